"""The recognition task's part of the report: every rate, the front end, groups, cost, and players."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main
from squtr.harness.report import summary_table, write_report
from squtr.harness.report.formats import group_words, interval, number, percent, signed
from squtr.harness.report.sections import Section, sections
from squtr.harness.report.tables import display_width
from squtr.harness.results.envelope import RunRecord, read_runs, write_run
from squtr.harness.tasks.recognition.report.effects import effect_verdicts
from squtr.harness.tasks.recognition.report.plots import decay_plot
from squtr.harness.tasks.recognition.report.tables import hardest_condition, map_tables, pareto

from .recognition_records_for_tests import CONDITIONS, EVIL, recognition_records, write_recognition
from .report_runs_for_tests import Example, example_records
from .test_report import Page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recognition_runs")
    write_recognition(place)
    return place


@pytest.fixture(scope="module")
def content(folder: Path) -> str:
    return write_report(folder, folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(content: str) -> Page:
    return Page(content)


@pytest.fixture(scope="module")
def section() -> Section:
    (found,) = sections(recognition_records())
    return found


def text_of(page: Page) -> str:
    return " ".join("".join(page.text).split())


def test_needs_nothing_outside_itself(page: Page, content: str) -> None:
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            if name in ("src", "href", "data", "action", "poster", "srcset"):
                assert value.startswith(("#", "data:audio/flac;base64,")), (tag, name, value[:60])
            assert not name.startswith("on"), (tag, name)
            assert name != "style"
    assert not re.search(r"https?:|url\(|@import|\bfetch\b|XMLHttpRequest", content)
    assert "<b onclick" not in content
    assert "&lt;b onclick=x&gt;" in content


def test_tags_balance_and_ids_are_unique(page: Page) -> None:
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for attributes in page.all("a")} <= set(ids)


def test_drawings_are_well_formed_and_described(content: str) -> None:
    shown = 0
    for drawing in re.findall(r"<svg.*?</svg>", content, re.DOTALL):
        root = ElementTree.fromstring(drawing)
        if root.get("aria-hidden") is None:
            shown += 1
            assert root.findtext("title")
            assert root.findtext("desc")
        for text in re.findall(r' (?:x|y|cx|cy|points|x1|y1|x2|y2)="([^"]*)"', drawing):
            for value in re.split("[ ,]", text):
                assert re.fullmatch(r"-?\d+(\.\d)?", value), value
    # By RT60, by DRR, by size, by speed, and the decays of two RIRs.
    assert shown == 6


def test_every_rate_and_loss_is_shown(folder: Path, page: Page) -> None:
    text = "".join(page.text)
    for record in read_runs(folder):
        result = record.result
        for score in result.scores.values():
            assert percent(score.value) in text
            assert interval(score, 1, as_percent=True) in text
        for loss in (losses["wer"] for losses in result.losses.values()):
            assert signed(loss.absolute.value) in text
            assert interval(loss.absolute, 1, as_percent=True) in text
        for column, groups in result.by_group.items():
            for group in groups:
                assert signed(group.losses["clean"]["wer"].absolute.value) in text
                if "|" not in column:
                    assert group_words(group, column) in text
    for word in ("nan", "None", "inf", "null"):
        assert not re.search(rf"\b{word}\b", text), word
    for title in ("Change point", "Spread over RIRs", "Substituted words", "normalizer raw", "Robustness"):
        assert title in text, title


def test_the_front_end_is_judged(section: Section, page: Page) -> None:
    (verdict,) = effect_verdicts(section)
    lowered = section.systems[1].run("reverb").loss("no-front-end")  # type: ignore[union-attr]
    assert lowered is not None
    said = "".join(verdict)
    assert (
        f"halver before small: with reverberation it lowers WER by {number(-100 * lowered.absolute.value, 1)}" in said
    )
    assert "It takes 0.020 s per second of audio." in said
    assert "Does a front end help?" in text_of(page)


def test_players_have_every_clip_and_its_transcripts(folder: Path, page: Page, content: str) -> None:
    players = page.all("audio")
    assert len(players) == 2 * 3
    for player in players:
        assert base64.b64decode(player["src"].partition(",")[2]).startswith(b"fLaC")
        assert player["preload"] == "none"
    assert sum("after halver" in p["aria-label"] for p in players) == 2
    assert content.count("Energy decay of the RIR</figcaption>") == 2
    # Clean and reverberant of both transcribers, enhanced of the one behind the front end.
    for sample in re.findall(r'<article class="sample">.*?</article>', content, re.DOTALL):
        assert [clip.count("<p>") for clip in re.findall(r"<li><h5>.*?</li>", sample, re.DOTALL)] == [2, 2, 1]


def test_too_much_audio_is_left_out(folder: Path, tmp_path: Path) -> None:
    none = write_report(folder, tmp_path / "r.html", max_audio_bytes=0).read_text()
    assert "data:audio" not in none
    assert "Left out: u00@rir0, u01@rir1." in none
    with pytest.raises(UsageError, match="max_audio_bytes is -1"):
        write_report(folder, tmp_path / "r.html", max_audio_bytes=-1)


def test_the_same_results_give_the_same_bytes(folder: Path, content: str, tmp_path: Path) -> None:
    assert write_report(folder, tmp_path / "again.html").read_text(encoding="utf-8") == content


def test_small_models_first_and_front_ends_behind_them(section: Section) -> None:
    assert [system.name for system in section.systems] == ["small", "halver | small", EVIL]
    assert hardest_condition(section) == "reverb"
    front = {system.name for system in pareto(section)}
    losses = {s.name: s.run("reverb").loss("clean").absolute.value for s in section.systems}  # type: ignore[union-attr]
    fastest = max(section.systems, key=lambda system: system.rtfx or 0)
    assert {min(losses, key=lambda name: losses[name] or 0), fastest.name} <= front


def test_the_map_has_a_cell_for_every_pair_of_bins(section: Section) -> None:
    maps = map_tables(section)
    assert len(maps) == 3
    for _, table in maps:
        assert [len(row.cells) for group in table.groups for row in group.rows] == [2, 2, 2]


def test_the_terminal_says_the_same(folder: Path) -> None:
    records = read_runs(folder)
    table = summary_table(records)
    for record in records:
        assert record.result.system.name in table
        if record.result.data.condition != "clean":
            assert signed(record.result.losses["clean"]["wer"].absolute.value) in table
    assert "σ, English" in table
    assert "1 loop (8.3 %)" in table
    assert max(map(display_width, table.splitlines())) <= 110
    assert "PARTIAL" not in table


def test_partial_results_are_marked_and_never_mixed(tmp_path: Path) -> None:
    part = write_recognition(tmp_path, partial=True)
    assert "PARTIAL" in summary_table(part)
    assert "Partial." in write_report(tmp_path, tmp_path / "r.html").read_text()
    with pytest.raises(DataError, match="is partial"):
        sections([*recognition_records()[:1], *part[1:]])


def test_other_normalizers_have_a_section_of_their_own() -> None:
    records = recognition_records()
    other = [
        RunRecord(
            r.result.model_copy(update={"system": r.result.system.model_copy(update={"normalizer": "raw"})}), r.items
        )
        for r in records
    ]
    found = sections([*records, *other])
    assert len(found) == 2
    assert any("normalizer raw" in one.mark for one in found)
    with pytest.raises(DataError, match="two results of"):
        sections([*records, records[0]])


@pytest.mark.parametrize("conditions", [("clean",), ("snr_5", "snr_0"), CONDITIONS[:2], ("reverb",)])
def test_any_set_of_conditions_makes_a_page(conditions: tuple[str, ...], tmp_path: Path) -> None:
    for record in recognition_records(conditions=conditions):
        write_run(tmp_path, record)
    assert Page(write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8")).open == []


def test_results_of_several_tasks_share_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for record in (*recognition_records(), *example_records(Example(languages=("en",), n=6))):
        write_run(tmp_path, record)
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tasks"] == ["recognition", "retrieval"]
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.open == []
    text = text_of(page)
    assert "Evaluation of speech systems" in text
    assert "nDCG@10" in text
    assert "ΔWER" in text


def test_a_decay_is_drawn_where_it_is_known() -> None:
    decay = [0.0, -6.0, -30.0, -70.0]
    drawn = ElementTree.fromstring(decay_plot("d", "hall", 0.5, decay, 0.05))
    assert drawn.findtext("desc") == "Falls to −70 dB in 0.15 s; RT60 0.50 s."
    assert decay_plot("d", "hall", 0.5, [], 0.05) == ""
    assert "not known" in decay_plot("d", "hall", None, decay, 0.05)
    assert math.isfinite(float(drawn.attrib["viewBox"].split()[2]))
