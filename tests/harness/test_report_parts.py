"""The parts of the report: arrangement of runs, differences, scales, breakdowns, worst cases, the terminal's table."""

from __future__ import annotations

import html
import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.report import summary_table, svg
from squtr.harness.report.differences import marked
from squtr.harness.report.robustness import breakdowns, facts, group_table, group_tables, robustness
from squtr.harness.report.sections import sections
from squtr.harness.report.tables import MOST_COLUMNS, display_width
from squtr.harness.results.envelope import Loss, RunRecord, Score, items_table
from squtr.harness.tasks.retrieval.report.curves import curve_panels
from squtr.harness.tasks.retrieval.report.headline import lede
from squtr.harness.tasks.retrieval.report.scatter import scatter
from squtr.harness.tasks.retrieval.report.worst import worst_cases

from .report_runs_for_tests import FAMILIES, SCHEMA, Example, example_records

SMALL = Example(languages=("en",), systems=(("whisper-base", "BM25"),), n=12)


def changed(record: RunRecord, group: str, **fields: Any) -> RunRecord:
    part = getattr(record.result, group).model_copy(update=fields)
    return RunRecord(record.result.model_copy(update={group: part}), record.items)


# Arrangement


def test_runs_are_ordered_by_language_system_and_severity() -> None:
    records = example_records()
    found = sections(list(reversed(records)))
    assert [s.language for s in found] == ["en", "zh"]
    assert [s.name for s in found[0].systems] == [
        "whisper-base + BM25",
        "whisper-base + MiniLM-L6",
        "whisper-small + BM25",
    ]
    assert [r.condition for r in found[0].systems[0].shown] == [
        *("text", "clean", "medium_noise", "high_noise", "snr_-5", "reverb", "reverb_medium_noise")
    ]


def test_a_typed_run_belongs_to_every_system_with_its_retriever() -> None:
    records = example_records(Example(languages=("en",), n=4))
    typed = {r.result.system.components["retriever"]["name"]: r for r in records if r.result.data.condition == "text"}
    spoken = [r for r in records if r.result.data.condition != "text"]
    shared = [changed(r, "system", name=f"text + {name}") for name, r in typed.items()]
    (section,) = sections(spoken + shared)
    assert len(section.systems) == 3
    for system in section.systems:
        assert system.text is not None
        assert system.text.result.system.components["retriever"] == system.runs[0].result.system.components["retriever"]
    assert len(list(section.runs)) == len(spoken) + len(shared)


def test_a_typed_run_alone_is_a_system() -> None:
    records = [r for r in example_records(SMALL) if r.result.data.condition == "text"]
    (section,) = sections(records)
    assert section.systems[0].runs == ()
    assert section.systems[0].text is not None


@pytest.mark.parametrize(
    ("group", "field", "value"),
    [("system", "normalizer_version", "2"), ("system", "normalizer", "raw"), ("data", "source_version", "9")],
)
def test_what_cannot_be_compared_shares_no_section(group: str, field: str, value: str) -> None:
    records = example_records(SMALL)
    other = [changed(r, group, **{field: value}) for r in records]
    assert len(sections(records + other)) == 2


def test_two_results_of_one_system_and_config_are_refused() -> None:
    records = example_records(SMALL)
    with pytest.raises(DataError, match=r"two results of 'whisper-base \+ BM25' on 'en_clean'"):
        sections([*records, records[1]])


def test_a_config_that_is_not_its_condition_is_refused() -> None:
    record = changed(example_records(SMALL)[1], "data", config="en_reverb")
    with pytest.raises(DataError, match="en_reverb"):
        sections([record])


# Words


def test_headline_names_gains_losses_and_what_may_be_chance() -> None:
    records = example_records(SMALL)
    result = next(r.result for r in records if r.result.data.condition == "clean")

    def words(value: float, low: float, high: float) -> str:
        loss = Loss(absolute=Score(value=value, low=low, high=high, n=12), relative=Score(value=value / 0.8, n=12))
        own = result.model_copy(update={"losses": {"text": {"ndcg_at_10": loss}}})
        changed_records = [r if r.result is not result else RunRecord(own, r.items) for r in records]
        return "".join(lede(sections(changed_records)[0]))

    assert "loses 0.20 ([0.10, 0.30], 25\u202f%)." in words(0.2, 0.1, 0.3)
    assert "gains 0.20 ([0.10, 0.30], 25\u202f%)." in words(-0.2, -0.3, -0.1)
    assert "loses 0.02 ([−0.10, 0.14], 2\u202f%, not distinguishable from no change)." in words(0.016, -0.1, 0.14)
    assert "loses nothing." in words(0, 0, 0)


# Differences


def _without(pattern: str, marks: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", re.sub(pattern, "", marks)))


@given(st.text("ab<&一二", max_size=8), st.text("ab<&一二", max_size=8))
def test_marks_by_character_hold_both_texts(said: str, heard: str) -> None:
    marks = marked(said, heard, by_character=True)
    letters = str.maketrans("", "", "<&")
    assert _without(r"<del>.*?</del>", marks).translate(letters) == heard.translate(letters)
    assert _without(r"<ins>.*?</ins>", marks).translate(letters) == said.translate(letters)
    assert not re.search(r"<(?!/?(?:del|ins|span)\b)", marks)


@given(st.lists(st.sampled_from(["a", "b<i>", "c,", "D"])), st.lists(st.sampled_from(["a", "b<i>", "c.", "d"])))
def test_marks_by_word_hold_the_transcript(said: list[str], heard: list[str]) -> None:
    marks = marked(" ".join(said), " ".join(heard), by_character=False)
    assert _without(r"<del>.*?</del>", marks).split() == heard
    if [w.strip(",.").lower() for w in said] == [w.strip(",.").lower() for w in heard]:
        assert "<del>" not in marks
        assert "<ins>" not in marks


def test_case_width_and_punctuation_are_no_difference() -> None:
    assert "<" not in marked("Wait, FIFTY days?", "wait fifty days", by_character=False)
    assert "<" not in marked("最多４０天？", "最多40天", by_character=True)


# Drawing


@given(st.lists(st.floats(0, 300), max_size=8))
def test_labels_keep_their_distance_and_their_order(wanted: list[float]) -> None:
    places = svg.spread(wanted, 20, 0, 300)
    assert all(-1e-6 <= p <= 300 + 1e-6 for p in places)
    ordered = sorted(places)
    assert all(b - a >= 20 - 1e-6 for a, b in itertools.pairwise(ordered))
    assert sorted(range(len(wanted)), key=lambda i: wanted[i]) == sorted(range(len(wanted)), key=lambda i: places[i])


@given(st.floats(1e-6, 1e6))
def test_ticks_cover_and_are_few(high: float) -> None:
    marks = svg.ticks(high)
    assert marks[0] == 0
    assert marks[-1] >= high * (1 - 1e-6)
    assert 2 <= len(marks) <= 7


def test_shapes_and_colors_differ_between_systems() -> None:
    looks = {svg.marker(k, 0, 0) for k in range(42)}
    assert len(looks) == 42


def test_scatter_has_a_point_for_every_spoken_run() -> None:
    (section,) = sections(example_records(Example(languages=("en",), n=6)))
    drawn = scatter(section, 1.0)
    assert drawn is not None
    assert drawn.points == 18
    assert drawn.drawing.count('class="marker') == 18
    assert drawn.drawing.count('class="point') == 18 - drawn.unlabeled


# Groups, robustness and worst cases


def test_groups_show_the_losses_of_the_results() -> None:
    (section,) = sections(example_records(Example(languages=("en",), systems=SMALL.systems, n=24)))
    assert list(breakdowns(section)) == ["noise_family", "rt60_s"]
    family, rooms = group_tables(section)
    assert [name for name, _ in family.columns] == ["medium_noise", "high_noise", "snr_-5", "reverb_medium_noise"]
    assert [row.head.name for group in family.groups for row in group.rows] == list(FAMILIES)
    run = section.systems[0].run("snr_-5")
    assert run is not None
    (group,) = [g for g in run.result.by_group["noise_family"] if g.label == "traffic"]
    cell = family.groups[0].rows[1].cells[2]
    loss = group.losses["text"]["ndcg_at_10"].absolute
    assert cell.text == f"{loss.value:.3f}"
    assert cell.below[0] == f"[{loss.low:.3f}, {loss.high:.3f}]".replace("-", "−")
    assert [name for name, _ in rooms.columns] == ["reverb", "reverb_medium_noise"]
    assert {row.head.name.replace("\u202f", " ") for group in rooms.groups for row in group.rows} == {
        *("up to 0.40 s", "0.40 to 0.70 s", "over 0.70 s")
    }
    assert not group_table(section, "speaker", "text")


def test_robustness_is_the_spread_of_the_means() -> None:
    found = sections(example_records(Example(n=8)))
    for one in robustness(found):
        means = {
            section.language: [
                run.result.scores["ndcg_at_10"].value
                for system in section.systems
                if system.name == one.system
                for run in system.runs
            ]
            for section in found
        }
        for language, values in means.items():
            estimate = one.sigma.within[language]
            assert estimate.value == pytest.approx(np.std(values, ddof=1))
            assert estimate.interval.low <= estimate.value <= estimate.interval.high * 1.2
        assert one.sigma.pooled.value == pytest.approx(np.std([v for own in means.values() for v in own], ddof=1))
        assert {share for _, share in one.snr} == {0.1, 0.2}
        told = one.as_json(found)
        assert set(told["sigma_within"]) == {"en", "zh"}
        assert len(told["snr_at_loss"]) == 4


def test_loss_by_group_reaches_terminal_and_json() -> None:
    records = example_records(Example(languages=("en",), systems=SMALL.systems, n=24))
    (section,) = sections(records)
    hardest = {}
    for name in breakdowns(section):
        runs = [run for run in section.systems[0].runs if run.result.by_group.get(name)]
        hardest[name] = max(runs, key=lambda run: run.result.losses["text"]["ndcg_at_10"].absolute.value or 0.0)
    table = summary_table(records).partition("Loss against text")[2]
    for name, run in hardest.items():
        words = {"noise_family": "by noise family", "rt60_s": "by RT60"}[name]
        assert f"{words}, {run.condition}" in table
        for group in run.result.by_group[name]:
            assert f"{group.losses['text']['ndcg_at_10'].absolute.value:.3f}".replace("-", "−") in table
    found = facts([section])["groups"]
    rows = {(one["condition"], one["by"], one["label"]): one for one in found}
    assert len(rows) == len(found) == sum(len(g) for run in section.runs for g in run.result.by_group.values())
    for run in hardest.values():
        for name, groups in run.result.by_group.items():
            for group in groups:
                row = rows[run.condition, name, group.label]
                assert row["score"] == group.scores["ndcg_at_10"].value
                assert row["losses"]["text"]["absolute"]["value"] == group.losses["text"]["ndcg_at_10"].absolute.value


def test_conditions_of_one_snr_stand_side_by_side() -> None:
    conditions = ("text", "clean", "reverb_low_noise", "early_reverb_low_noise", "reverb_snr_0", "early_reverb_snr_0")
    (section,) = sections(
        example_records(Example(languages=("en",), systems=SMALL.systems, n=6, conditions=conditions))
    )
    (_, noise), (_, rooms) = curve_panels(section, 1.0)
    places = re.findall(r'marker hollow[^>]*(?:cx="([\d.]+)")', rooms)
    assert len(places) == len(set(places)) == 4
    assert rooms.count("curve s0 room") == 2
    assert re.findall(r'class="point halo"[^>]*>([^<]*)<', rooms) == ["early_reverb", "reverb"]
    assert "point halo" not in noise


def test_worst_cases_come_in_order_with_all_three_transcripts() -> None:
    (section,) = sections(example_records(Example(languages=("en",), n=16)))
    cases = worst_cases(section, 10)
    assert [c.loss for c in cases] == sorted((c.loss for c in cases), reverse=True)
    everything = [
        typed - spoken
        for system in section.systems
        if system.text is not None
        for run in system.runs
        for typed, spoken in zip(system.text.numbers("ndcg_at_10"), run.numbers("ndcg_at_10"), strict=True)
    ]
    assert cases[0].loss == pytest.approx(max(everything))
    for case in cases:
        assert case.loss == pytest.approx(case.typed.score - case.noisy.score)
        assert case.typed.text
        assert case.clean is not None
    pairs = {(c.system.index, c.condition) for c in cases}
    lossy = {(s.index, r.condition) for s in section.systems for r in s.runs if _any_loss(s, r)}
    assert pairs == lossy


def _any_loss(system: Any, run: Any) -> bool:
    return bool((system.text.numbers("ndcg_at_10") - run.numbers("ndcg_at_10") > 1e-9).any())


def test_queries_without_a_score_are_no_worst_case() -> None:
    records = example_records(SMALL)
    blank = [
        RunRecord(r.result, items_table(({**row, "ndcg_at_10": float("nan")} for row in r.items.to_pylist()), SCHEMA))
        for r in records
    ]
    (section,) = sections(blank)
    assert worst_cases(section, 5) == []


# Terminal


def test_terminal_table_fits_and_aligns() -> None:
    long = Example(systems=(("检索" * 40, "BM25"), ("whisper-base", "MiniLM-L6")), n=5, first_text={})
    table = summary_table(example_records(long))
    lines = table.split("\n")
    assert max(map(display_width, lines)) <= MOST_COLUMNS
    assert lines[0] == "English (en), 5 queries"
    assert "WER" in lines[1]
    assert "CER" in table
    first = lines[: next(i for i, line in enumerate(lines) if line.startswith("  System"))]
    assert len({display_width(line) for line in first if line.startswith("  ")}) == 1


def test_terminal_table_shows_the_numbers() -> None:
    records = example_records(SMALL)
    table = summary_table(records).replace("−", "-")
    for record in records:
        score = record.result.scores["ndcg_at_10"]
        assert f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}]" in table
        if record.result.data.condition != "text":
            assert f"{record.result.losses['text']['ndcg_at_10'].absolute.value:.3f} [" in table
            assert f"{100 * (record.result.scores['wer'].value or 0):.1f} %" in table


def test_terminal_table_holds_no_control_characters() -> None:
    record = changed(example_records(SMALL)[1], "system", name="a\x1b[31m\nb")
    table = summary_table([record])
    assert "\x1b" not in table
    assert "a\ufffd[31m\ufffdb" in table


def test_terminal_table_of_nothing_is_empty() -> None:
    assert summary_table([]) == ""
