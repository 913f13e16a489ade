"""Reports on systems of every kind: no transcripts, composites, partial and imported runs, effects of parts, time."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main
from squtr.harness.metrics.compare_items import compare_items
from squtr.harness.metrics.comparison import holm
from squtr.harness.report import make_report, summary_table, write_report
from squtr.harness.report.formats import number
from squtr.harness.report.sections import Section, sections
from squtr.harness.report.systems import described, parts_of, system_cards
from squtr.harness.report.timing import timing_tables
from squtr.harness.results.envelope import RunRecord, Timing, write_run
from squtr.harness.tasks.retrieval.report.scatter import scatter
from squtr.harness.tasks.retrieval.report.scores import speed
from squtr.harness.tasks.retrieval.report.variants import Variant, answers, variants
from squtr.harness.tasks.retrieval.report.worst import worst_cases

from .report_runs_for_tests import EVERY_KIND, Example, Parts, example_records, imported_records, write_example
from .test_report import Page

ENGLISH = Example(languages=("en",), systems=EVERY_KIND, n=16)
FEW = ("text", "clean", "reverb")
BASE, WITH_FRONT_END, WITH_N_BEST, HYBRID, RERANKED, END_TO_END, PRECOMPUTED = (parts.name for parts in EVERY_KIND)


@pytest.fixture(scope="module")
def section() -> Section:
    (found,) = sections(example_records(ENGLISH))
    return found


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("kinds")
    write_example(folder, ENGLISH)
    for record in imported_records(Example(languages=("en",), systems=EVERY_KIND[:1], conditions=FEW, n=16)):
        write_run(folder, record)
    return write_report(folder, folder / "report.html").read_text(encoding="utf-8")


def text_of(content: str) -> str:
    return " ".join("".join(Page(content).text).split())


def part_of_page(content: str, anchor: str) -> str:
    found = re.search(rf'<section id="{anchor}".*?</section>', content, re.DOTALL)
    assert found is not None
    return found[0]


# Systems without words


def test_the_page_of_every_kind_is_whole(content: str) -> None:
    page = Page(content)
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for drawing in re.findall(r"<svg.*?</svg>", content, re.DOTALL):
        ElementTree.fromstring(drawing)
    for word in ("nan", "None", "inf", "null"):
        assert not re.search(rf"\b{word}\b", "".join(page.text)), word


def test_a_system_without_words_has_no_error_rate(content: str) -> None:
    table = part_of_page(content, "s1")
    rows = re.search(
        rf"<tr class=\"group\">[^\n]*?{re.escape(END_TO_END)}</span></th></tr>(.*?)</tbody>", table, re.DOTALL
    )
    assert rows is not None
    for row in re.findall(r"<tr.*?</tr>", rows[1], re.DOTALL):
        cells = re.findall(r"<td.*?</td>", row, re.DOTALL)
        assert [re.sub("<.*?>", "", cell) for cell in cells[4:6]] == ["–", "–"]


def test_charts_of_words_leave_it_out_and_say_so(section: Section, content: str) -> None:
    drawn = scatter(section, 1.0)
    assert drawn is not None
    assert drawn.left_out == (END_TO_END, PRECOMPUTED)
    assert drawn.drawing.count('class="typed-line') == 5
    assert END_TO_END not in drawn.drawing
    assert f"Left out without error rates: {END_TO_END}, {PRECOMPUTED}." in text_of(content)


def test_nothing_is_called_empty_that_has_no_transcript(section: Section, content: str) -> None:
    cases = [case for case in worst_cases(section, 40) if case.system.name in (END_TO_END, PRECOMPUTED)]
    assert cases
    for case in cases:
        assert case.noisy.text is None
        assert case.typed.text
    assert "searched without a transcript" in text_of(content)
    samples = re.findall(r'<article class="sample">.*?</article>', content, re.DOTALL)
    assert samples
    # One transcriber, with and without a front end: encoders have no transcripts to show.
    for sample in samples:
        for clip in re.findall(r"<li>.*?</li>", sample, re.DOTALL):
            assert len(re.findall("<p>", clip)) <= 2


def test_systems_without_a_retriever_keep_their_own_typed_run() -> None:
    example = Example(languages=("en",), systems=(Parts(encoder="one"), Parts(encoder="two")), conditions=FEW, n=4)
    (found,) = sections(example_records(example))
    for system in found.systems:
        assert system.text is not None
        assert system.text.result.system.name == system.name


def test_a_system_without_words_joins_whatever_normalizer_the_others_have() -> None:
    records = []
    for record in example_records(Example(languages=("en",), systems=EVERY_KIND[:1] + EVERY_KIND[5:], conditions=FEW)):
        system = record.result.system
        if system.normalizer:
            system = system.model_copy(update={"normalizer": "raw"})
        records.append(RunRecord(record.result.model_copy(update={"system": system}), record.items))
    (found,) = sections(records)
    assert [s.name for s in found.systems] == [END_TO_END, PRECOMPUTED, BASE]


# Cards


def test_a_composite_reads_as_a_tree(section: Section) -> None:
    spec = next(s for s in section.systems if s.name == RERANKED).info.components["retriever"]
    assert described(spec) == "reranker bge-reranker-base over (hybrid of BM25 and MiniLM-L6)"
    (first,) = parts_of(spec)
    assert [part["name"] for part in parts_of(first)] == ["BM25", "MiniLM-L6"]


def cards_of(content: str) -> dict[str, str]:
    """The cards of a page by the system's name, as HTML."""
    cards = re.findall(r'<article class="card">.*?</article>', content, re.DOTALL)
    names = [re.search(r"<h3>(.*?) <small>", card) for card in cards]
    return {html.unescape(name[1]): card for name, card in zip(names, cards, strict=True) if name}


def test_cards_show_every_part_and_setting(tmp_path: Path) -> None:
    write_example(tmp_path, ENGLISH, clips=0)
    cards = cards_of(write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert set(cards) == {parts.name for parts in EVERY_KIND}
    front = text_of(cards[WITH_FRONT_END])
    assert front.index("Front end") < front.index("Transcriber") < front.index("Retriever")
    for setting in ("delay3", "iterations3", "taps10", "beam_size5", "b0.4", "k10.9"):
        assert setting in front
    assert "n best5" in text_of(cards[WITH_N_BEST])
    assert "n best fusionrrf" in text_of(cards[WITH_N_BEST])
    assert "Encoder of audio and text" in text_of(cards[END_TO_END])
    # The outer blank of a prompt is part of it.
    assert 'query_prompt"query: "' in text_of(cards[END_TO_END])
    assert "precomputed run" in text_of(cards[PRECOMPUTED])
    tree = cards[RERANKED]
    assert tree.count("<ul>") == 2
    for setting in ("max_tokens512", "methodrrf", "k60"):
        assert setting in text_of(tree)
    assert "script foldingnone" in front
    assert "revision" in front


def test_languages_share_a_card() -> None:
    (card,) = system_cards(sections(example_records(Example(systems=EVERY_KIND[:1], conditions=FEW, n=4))))
    assert dict(card.settings)["script folding"] == "none (English), simplified (Chinese)"
    assert dict(card.settings)["normalizer"] == "default 1"


# Partial and imported runs


def test_partial_runs_are_marked_on_top(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = Example(languages=("en",), systems=EVERY_KIND[:1], conditions=FEW, n=34, part=0.05)
    records = write_example(tmp_path / "run" / "partial-share-0.05", example)
    # The folder that `squtr evaluate --out` was given.
    assert main(["report", str(tmp_path / "run")]) == 0
    page = text_of((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    marked = "5 % of the items: 34 of 680"
    assert page.index(f"Partial. {marked}.") < page.index("English n = 34")
    assert f"PARTIAL: {marked}" in summary_table(records).split("\n")
    write_example(tmp_path / "run" / "partial-first-3", Example(languages=("en",), conditions=FEW, n=3, part=0.1))
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run")]) == 2
    assert "partial-first-3" in capsys.readouterr().err


def test_sections_with_other_parts_are_marked_each(tmp_path: Path) -> None:
    for language, part in (("en", 0.5), ("zh", 0.25)):
        write_example(tmp_path, Example(languages=(language,), conditions=FEW, n=4, part=part), clips=0)
    page = text_of(write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "English: 50 % of the items: 4 of 8; Chinese: 25 % of the items: 4 of 16." in page


def test_full_runs_are_reported_without_the_partial_ones(tmp_path: Path) -> None:
    write_example(tmp_path, Example(languages=("en",), conditions=FEW, n=4), clips=0)
    write_example(tmp_path / "partial-first-2", Example(languages=("en",), conditions=FEW, n=2, part=0.5), clips=0)
    page = text_of(write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Partial runs are kept separately and not shown: partial-first-2." in page
    assert "English n = 4" in page
    assert "2 queries" not in page


def test_full_and_partial_never_share_a_page(tmp_path: Path) -> None:
    one, other = (Example(languages=("en",), systems=(parts,), conditions=FEW, n=4) for parts in EVERY_KIND[:2])
    write_example(tmp_path, one, clips=0)
    write_example(tmp_path, Example(**{**other.__dict__, "part": 0.5}), clips=0)
    with pytest.raises(DataError) as error:
        make_report(tmp_path, tmp_path / "r.html")
    assert f"{WITH_FRONT_END!r} on 'en_clean' is partial (50 % of the items: 4 of 8)" in str(error.value)
    assert f"{BASE!r} on 'en_clean' is not" in str(error.value)
    assert not (tmp_path / "r.html").exists()


def test_parts_of_other_sizes_never_share_a_page() -> None:
    records = [
        record
        for parts, n in zip(EVERY_KIND[:2], (4, 6), strict=True)
        for record in example_records(Example(languages=("en",), systems=(parts,), conditions=FEW, n=n, part=0.5))
    ]
    with pytest.raises(DataError, match=r"covers 4 of 8 items, .* 6 of 12"):
        summary_table(records)


def test_imported_results_have_a_table_and_nothing_else(content: str) -> None:
    page = text_of(content)
    assert "English: mini-en (imported) n = 16 · imported: aggregates only, no intervals" in page
    own = part_of_page(content, "s2")
    assert "aggregates only, no intervals" in text_of(own)
    assert own.count("<table") == 1
    assert "<h3" in own
    assert own.count("<h3") == 1
    assert not re.search(r"\[\d", text_of(own))
    values = {s.value for r in imported_records(ENGLISH) for m, s in r.result.scores.items() if m == "ndcg_at_10"}
    assert any(number(value) in text_of(own) for value in values)
    # No other table or chart knows it.
    rest = content.replace(own, "")
    assert all("org/model" not in found for found in re.findall(r"<(?:table|svg).*?</(?:table|svg)>", rest, re.DOTALL))


def test_imported_results_alone_make_a_page_and_a_table(tmp_path: Path) -> None:
    records = imported_records(Example(languages=("en",), systems=EVERY_KIND[:1], conditions=FEW, n=8))
    for record in records:
        write_run(tmp_path, record)
    page = Page(write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert "imported: aggregates only, no intervals" in summary_table(records).split("\n")


def test_sections_of_one_name_are_told_apart() -> None:
    records = example_records(Example(languages=("en",), systems=EVERY_KIND[:1], conditions=FEW, n=4))
    other = [
        RunRecord(r.result.model_copy(update={"benchmark_version": "2"}), r.items)
        for r in example_records(Example(languages=("en",), systems=EVERY_KIND[:1], conditions=FEW, n=4))
    ]
    titles = [found.title for found in sections(records + other)]
    assert titles == ["English (benchmark version 1)", "English (benchmark version 2)"]


# What one part changes


def by_question(found: list[Variant]) -> dict[str, list[tuple[str, str]]]:
    named: dict[str, list[tuple[str, str]]] = {}
    for one in found:
        named.setdefault(one.question, []).append((one.plain.name, one.changed.name))
    return named


def test_pairs_differ_in_exactly_one_part(section: Section) -> None:
    assert by_question(variants(section)) == {
        "front end": [(BASE, WITH_FRONT_END)],
        "n-best": [(BASE, WITH_N_BEST)],
        "reranker": [(HYBRID, RERANKED)],
        "hybrid": [(BASE, HYBRID)],
    }


def test_two_parts_at_once_answer_nothing() -> None:
    systems = (Parts("whisper-base", "BM25"), Parts("whisper-small", "BM25", front_end="WPE"))
    (found,) = sections(example_records(Example(languages=("en",), systems=systems, conditions=FEW, n=6)))
    assert variants(found) == []


def test_a_front_end_of_an_encoder_is_compared_without_words() -> None:
    systems = (Parts(encoder="clap"), Parts(encoder="clap", front_end="WPE"))
    (found,) = sections(example_records(Example(languages=("en",), systems=systems, conditions=FEW, n=6)))
    (one,) = variants(found)
    assert [e.condition for e in one.effects] == ["clean", "reverb"]
    assert all(e.error is None for e in one.effects)


def test_effects_are_those_of_the_paired_functions(section: Section) -> None:
    one = next(v for v in variants(section) if v.question == "front end")
    assert [e.condition for e in one.effects] == [run.condition for run in one.changed.runs]
    p_values = {}
    for effect in one.effects:
        sides = []
        for system in (one.changed, one.plain):
            run = system.run(effect.condition)
            assert run is not None
            fields = ("ndcg_at_10", "word_errors", "word_reference_length")
            sides.append({key: {name: row[name] for name in fields} for key, row in run.items.items.items()})
        wanted = compare_items(*sides, ["ndcg_at_10", "wer"], seed=7)
        assert effect.error is not None
        for own, expected in zip((effect.score, effect.error), wanted, strict=True):
            assert own.comparison == expected.comparison
            assert (own.a, own.b) == (expected.a, expected.b)
            p_values[f"{effect.condition}/{own.metric}"] = own.comparison.p_value
    corrected = {f"{e.condition}/{row.metric}": row.p_holm for e in one.effects for row in (e.score, e.error) if row}
    assert corrected == pytest.approx(holm(p_values))
    # With minus without, and what it costs.
    reverb = next(e for e in one.effects if e.condition == "reverb")
    changed, plain = (s.run("reverb") for s in (one.changed, one.plain))
    assert changed is not None
    assert plain is not None
    assert reverb.score.a == pytest.approx(changed.result.scores["ndcg_at_10"].value)
    assert reverb.score.b == pytest.approx(plain.result.scores["ndcg_at_10"].value)


def test_undecoded_queries_are_left_out_of_the_error_rates() -> None:
    records = example_records(Example(languages=("en",), systems=EVERY_KIND[:2], conditions=FEW, n=8))
    spoiled = []
    for record in records:
        items, result = record.items.to_pylist(), record.result
        if "front_end" in record.result.system.components:
            kinds = ("substitutions", "deletions", "insertions")
            items[0] |= {"error": "cannot decode", **{f"word_{kind}": float("nan") for kind in kinds}}
            result = result.model_copy(update={"failures": {"failed": 1}})
        spoiled.append(RunRecord(result, record.items.from_pylist(items, schema=record.items.schema)))
    (found,) = sections(spoiled)
    (one,) = variants(found)
    for effect in one.effects:
        assert effect.error is not None
        assert effect.score.comparison.n == 8
        assert effect.error.comparison.n == 7
    # Both n are shown.
    (answer,) = answers(found, [one])
    place = next(k for k, (column, _) in enumerate(answer.table.columns) if column == "WER difference")
    for row in answer.table.groups[0].rows:
        assert (row.cells[0].text, str(row.cells[place].text).partition(" of ")[2]) == ("8", "7")


def test_the_page_answers_the_questions(content: str) -> None:
    page = text_of(part_of_page(content, "s1"))
    assert f"WPE against no front end, in {BASE}: nDCG@10 " in page
    assert re.search(r"RTFx goes from \d+\.\d to \d+\.\d\.", page)
    assert f"The 5 best transcripts against the best one, in {BASE}" in page
    assert "Reranker bge-reranker-base over (hybrid of BM25 and MiniLM-L6) against hybrid of BM25 and MiniLM-L6" in page
    assert "Hybrid of BM25 and MiniLM-L6 against BM25" in page


# Time


def test_speed_leaves_out_and_counts_what_has_none(section: Section, content: str) -> None:
    drawn = speed(section, 1.0)
    assert drawn is not None
    assert drawn.left_out == (PRECOMPUTED,)
    assert "Left out without RTFx or score: 1 system (our.trec)." in text_of(content)
    assert drawn.conditions == tuple(c for c in section.conditions if c != "text")
    for point in drawn.points:
        scores = [run.result.scores["ndcg_at_10"].value or 0 for run in point.system.runs]
        assert point.value == pytest.approx(sum(scores) / len(scores))
        audio = sum(run.result.timing.audio_s or 0 for run in point.system.runs)
        per_query = 0.1 if point.system.name == END_TO_END else 0.7 if point.system.name == WITH_FRONT_END else 0.4
        assert point.rtfx == pytest.approx(audio / (per_query * 16 * len(point.system.runs)))
    assert drawn.drawing.count('class="marker') == len(drawn.points) == 6


def test_speed_averages_over_what_all_share() -> None:
    records = [
        record
        for record in example_records(Example(languages=("en",), systems=EVERY_KIND[:2], n=6))
        if "front_end" not in record.result.system.components or record.result.data.condition in ("clean", "reverb")
    ]
    (found,) = sections(records)
    drawn = speed(found, 1.0)
    assert drawn is not None
    assert drawn.conditions == ("clean", "reverb")


def test_timings_show_what_is_there(section: Section) -> None:
    page = timing_words([section])
    for shown in ("Front end", "Transcription", "RTFx", "Waiting", "1.3 %", "Processes", "812 MB", "6.1 GB", "54.3 kJ"):
        assert shown.replace(" %", "\u202f%") in page or shown in page, shown
    assert "Latency in s" in page
    for value in ("0.50", "0.70", "0.80", "1.25"):
        assert value in page
    bare = [
        RunRecord(r.result.model_copy(update={"timing": Timing(stages={"search": 2.5})}), r.items)
        for r in example_records(Example(languages=("en",), systems=EVERY_KIND[:1], conditions=FEW, n=4))
    ]
    page = timing_words(sections(bare))
    assert "5.00" in page
    for absent in ("Front end", "RTFx", "Waiting", "memory", "Energy", "Latency", "–"):
        assert absent not in page, absent


def timing_words(found: list[Section]) -> str:
    """All that the tables on time show."""
    words = []
    for one in timing_tables(found):
        words += [one.table.caption, *(f"{name} {unit}" for name, unit in one.table.columns)]
        words += [str(cell.text) for group in one.table.groups for row in group.rows for cell in row.cells]
    return " ".join(words)


def test_no_timings_are_said(tmp_path: Path) -> None:
    write_example(tmp_path, Example(languages=("en",), systems=EVERY_KIND[:1], conditions=("text",), n=4), clips=0)
    page = write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "No times were measured" in page


def test_terminal_shows_every_kind() -> None:
    lines = summary_table(example_records(ENGLISH)).split("\n")
    start = lines.index(END_TO_END)
    spoken = lines[start + 2].split()
    assert spoken[0] == "clean"
    assert spoken[-2] == "–"
    assert float(spoken[-1]) > 0
    assert lines[lines.index(PRECOMPUTED) + 2].split()[-2:] == ["–", "–"]


def test_json_leaves_systems_without_words_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_example(tmp_path, Example(languages=("en",), systems=EVERY_KIND, conditions=FEW, n=4), clips=0)
    assert main(["report", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {entry["system"] for entry in told["attribution"]} == {p.name for p in EVERY_KIND if p.transcriber}


def test_several_folders_of_partial_runs_must_be_chosen_from(tmp_path: Path) -> None:
    for name in ("partial-first-2", "partial-share-0.5"):
        write_example(tmp_path / name, Example(languages=("en",), conditions=FEW, n=2, part=0.5), clips=0)
    with pytest.raises(UsageError, match="2 folders of partial runs"):
        write_report(tmp_path, tmp_path / "r.html")
