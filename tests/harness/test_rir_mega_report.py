"""The report of rir_mega: one safe file, every number from the results, partial ones marked; the terminal's table."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main
from squtr.harness.protocols import Transcript
from squtr.harness.report.formats import interval, number, percent
from squtr.harness.report.rir_mega import summary_table, write_report
from squtr.harness.report.rir_mega.data import sections, signed
from squtr.harness.report.rir_mega.plots import decay_plot, pareto
from squtr.harness.report.terminal import display_width
from squtr.harness.results.old import write_run
from squtr.harness.rir_mega.evaluate import Options, run_evaluation
from squtr.harness.rir_mega.recognizers import Recognizer
from squtr.harness.rir_mega.results import PairRecord, read_records, result_path, write_record
from squtr.harness.rir_mega.samples import SampleRoom
from squtr.loaders.rir_mega.data import RirMegaData

from .report_runs_for_tests import Example, example_records
from .rir_mega_runs_for_tests import Halver, TableTranscriber, Words, build_data, halved, in_rooms
from .test_report import Page

EVIL = "large <b onclick=x>1</b>"
OPTIONS = Options(normalizer="default", resamples=100, permutations=300, samples=2)


def timed(table: Words, seconds: float) -> Words:
    return {key: Transcript(str(text), seconds=seconds) for key, text in table.items()}


def weights(folder: Path, size: int) -> Path:
    header = json.dumps({"a": {"dtype": "F16", "shape": [size, 1000], "data_offsets": [0, 0]}}).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RirMegaData:
    return RirMegaData(build_data(tmp_path_factory.mktemp("rir_mega_report"), count=30, rooms=15))


@pytest.fixture(scope="module")
def folder(data: RirMegaData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rir_mega_runs")
    small = in_rooms(data, threshold_s=0.3, slope=2.0)
    ear = TableTranscriber(timed(halved(data, small), 0.1), "small", weights=weights(place / "w1", 39))
    large = timed(in_rooms(data, threshold_s=0.5, slope=1.0), 0.8)
    recognizers = [
        Recognizer(TableTranscriber(large, EVIL, weights=weights(place / "w2", 244))),
        Recognizer(ear),
        Recognizer(ear, Halver()),
    ]
    done = run_evaluation(recognizers, data, out=place, options=replace(OPTIONS, latency=2))
    assert done.failures == []
    return place


@pytest.fixture(scope="module")
def content(folder: Path) -> str:
    return write_report(folder, folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(content: str) -> Page:
    return Page(content)


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


def test_policy_allows_exactly_its_own_script_and_style(page: Page, content: str) -> None:
    policy = page.all("meta")[1]["content"]
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", content, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_tags_balance_and_ids_are_unique(page: Page) -> None:
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for attributes in page.all("a")} <= set(ids)


def test_drawings_are_well_formed_and_described(content: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", content, re.DOTALL)
    shown = 0
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        if root.get("aria-hidden") is None:
            shown += 1
            assert root.findtext("title")
            assert root.findtext("desc")
        for text in re.findall(r' (?:x|y|cx|cy|points|x1|y1|x2|y2)="([^"]*)"', drawing):
            for value in re.split("[ ,]", text):
                assert re.fullmatch(r"-?\d+(\.\d)?", value), value
    # By RT60, by DRR, by size, by speed, and two rooms.
    assert shown == 6


def test_every_rate_of_every_recognizer_is_shown(folder: Path, page: Page) -> None:
    text = "".join(page.text)
    for record in read_records(folder):
        result = record.result
        for rates in (*result.rates.values(), *result.other_normalizers["raw"].values()):
            assert percent(rates.clean.value) in text
            assert percent(rates.reverb.value) in text
            assert signed(rates.delta.absolute.value) in text
            assert interval(rates.delta.absolute, 1, as_percent=True) in text
        for found in (*result.by_rt60, *result.by_drr):
            assert signed(found.rates["wer"].delta.absolute.value) in text
        for cell in result.map:
            assert f"n = {cell.pairs}" in text
        if result.effect is not None:
            assert interval(result.effect.reverb["wer"].absolute, 1, as_percent=True) in text
    for word in ("nan", "None", "inf", "null"):
        assert not re.search(rf"\b{word}\b", text), word


def test_the_front_end_is_judged(folder: Path, page: Page) -> None:
    text = " ".join("".join(page.text).split())
    (behind,) = (r.result for r in read_records(folder) if r.result.effect is not None)
    lowered = -100 * behind.effect.reverb["wer"].absolute.value
    assert f"halver before small: in a room it lowers WER by {number(lowered, 1)} points" in text
    assert "It clearly helps" in text


def test_players_have_every_clip_and_what_was_heard(folder: Path, page: Page, content: str) -> None:
    players = page.all("audio")
    assert len(players) == 2 * 3
    for player in players:
        assert base64.b64decode(player["src"].partition(",")[2]).startswith(b"fLaC")
        assert player["preload"] == "none"
    assert sum("behind halver" in p["aria-label"] for p in players) == 2
    assert content.count("Energy decay</figcaption>") == 2


def test_too_much_sound_is_left_out(folder: Path, tmp_path: Path) -> None:
    none = write_report(folder, tmp_path / "r.html", max_audio_bytes=0).read_text()
    assert "data:audio" not in none
    assert "Left out for their size" in none
    with pytest.raises(UsageError, match="max_audio_bytes is -1"):
        write_report(folder, tmp_path / "r.html", max_audio_bytes=-1)


def test_the_same_results_give_the_same_bytes(folder: Path, content: str, tmp_path: Path) -> None:
    assert write_report(folder, tmp_path / "again.html").read_text(encoding="utf-8") == content


def test_small_models_first_and_front_ends_behind_them(folder: Path) -> None:
    (section,) = sections(read_records(folder))
    assert [entry.name for entry in section.entries] == ["small", "halver | small", EVIL]
    assert [entry.name for entry in section.plain] == ["small", EVIL]
    front = {entry.name for entry in pareto(section)}
    best = min(section.entries, key=lambda e: e.main.delta.absolute.value)
    fastest = max(section.entries, key=lambda e: e.result.timing.rtfx)
    assert {best.name, fastest.name} <= front


def test_the_terminal_says_the_same(folder: Path) -> None:
    records = read_records(folder)
    table = summary_table(records)
    for record in records:
        assert record.result.system.name in table
        assert signed(record.result.main.delta.absolute.value) in table
    assert max(map(display_width, table.splitlines())) <= 110
    assert "PARTIAL" not in table


def test_partial_results_are_marked_and_never_mixed(data: RirMegaData, folder: Path, tmp_path: Path) -> None:
    ear = TableTranscriber(in_rooms(data, threshold_s=0.3, slope=2.0), "part")
    part = run_evaluation([Recognizer(ear)], data, out=tmp_path, options=replace(OPTIONS, limit=10))
    assert "PARTIAL" in summary_table(part.records)
    shown = write_report(tmp_path, tmp_path / "r.html").read_text()
    assert "Partial." in shown
    with pytest.raises(DataError, match="covers"):
        sections([*read_records(folder), *part.records])


def test_other_data_or_normalizers_stand_apart(folder: Path) -> None:
    records = read_records(folder)
    other = records[0].result
    moved = other.model_copy(
        update={"system": other.system.model_copy(update={"normalizer": "raw", "normalizer_version": "1"})}
    )
    found = sections([*records, PairRecord(moved, records[0].pairs)])
    assert len(found) == 2
    assert any("normalizer raw 1" in section.mark for section in found)
    with pytest.raises(DataError, match="two results of"):
        sections([*records, records[0]])


def test_squtr_report_knows_the_benchmark(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["benchmark"] == "rir_mega"
    assert (tmp_path / "page.html").stat().st_size == told["bytes"]
    for record in read_records(folder):
        write_record(tmp_path / "mixed", record)
    write_run(tmp_path / "mixed", example_records(Example(languages=("en",), conditions=("text",)))[0])
    assert main(["report", str(tmp_path / "mixed")]) == 1
    assert "is a result of rir_mega" in capsys.readouterr().err


def test_a_damaged_result_is_named(folder: Path, tmp_path: Path) -> None:
    (record, *_) = read_records(folder)
    path = write_record(tmp_path, record)
    content = json.loads(path.read_text())
    content["rates"]["wer"]["clean"]["value"] = "much"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"en_test\.json is no result of rir_mega: rates\.wer\.clean\.value"):
        read_records(tmp_path)
    write_record(tmp_path, record)
    result_path(tmp_path, *record.result.key).with_suffix(".pairs.parquet").write_bytes(b"x")
    with pytest.raises(DataError, match=r"pairs\.parquet cannot be read"):
        read_records(tmp_path)


def test_a_decay_is_drawn_where_it_is_known() -> None:
    room = SampleRoom("a", "en", "hall", 0.5, -3.0, [0.0, -6.0, -30.0, -70.0], 0.05)
    drawn = ElementTree.fromstring(decay_plot("d", room))
    assert drawn.findtext("desc") == "Falls to −70 dB in 0.15 s; RT60 0.50 s."
    assert decay_plot("d", replace(room, decay_db=[])) == ""
    assert "not known" in str(decay_plot("d", replace(room, rt60_s=None)))
    assert math.isfinite(float(drawn.attrib["viewBox"].split()[2]))
