"""What failed is shown: a column, the rate's own n and its bounds, on a terminal, in the report and in comparisons."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from squtr.harness.cli import main
from squtr.harness.report import summary_table, write_report
from squtr.harness.report.formats import full_rate_words, rate_words
from squtr.harness.report.sections import Section, sections
from squtr.harness.report.tables import display_width
from squtr.harness.results.envelope import RunRecord, Timing, read_runs
from squtr.harness.tasks.recognition.report.tables import pareto, rates_table
from squtr.harness.tasks.retrieval.report.attribution import attributions, parts_table
from squtr.harness.tasks.retrieval.report.scatter import scatter
from squtr.harness.tasks.retrieval.report.scores import score_table

from .failed_runs_for_tests import DROPPER, KEEPER, failed_runs, of
from .report_runs_for_tests import Example, example_records
from .test_report import Page


@pytest.fixture(scope="module")
def runs() -> dict[str, Path]:
    return failed_runs()


@pytest.fixture(scope="module")
def spoken(runs: dict[str, Path]) -> list[RunRecord]:
    return read_runs(runs["recognition"])


@pytest.fixture(scope="module")
def searched(runs: dict[str, Path]) -> list[RunRecord]:
    return read_runs(runs["retrieval"])


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def english(records: list[RunRecord]) -> Section:
    return next(one for one in sections(records) if one.language == "en")


def test_on_a_terminal_retrieval_has_a_column_and_both_n(searched: list[RunRecord]) -> None:
    lines = summary_table(searched).splitlines()
    head = next(line for line in lines if "condition" in line)
    assert head.split()[:3] == ["condition", "n", "failed"]
    noisy = [line for line in lines if line.split()[:1] == ["high_noise"]]
    assert [line.split()[1:3] for line in noisy[:2]] == [["6", "2"], ["6", "0"]]
    assert "25.0 % of 4" in noisy[0] and "50.0 %" in noisy[1] and "of" not in noisy[1]
    assert (
        "dropper + words, high_noise: 2 of 6 failed; WER 25.0 % of 4 (16.7 to 50.0 % with the failed)"
        in lines[: lines.index("")]
    )
    assert max(map(display_width, lines)) <= 110


def test_on_a_terminal_recognition_has_them_too(spoken: list[RunRecord]) -> None:
    text = summary_table(spoken)
    lines = text.splitlines()
    head = next(line for line in lines if "Failed" in line)
    assert head.split() == ["Condition", "n", "Failed", "WER", "ΔWER", "p", "RTFx"]
    result = of(spoken, DROPPER, "en_reverb").result
    row = next(line for line in lines if line.split()[:1] == ["reverb"])
    assert row.split()[1:3] == ["38", "4"]
    loss = result.losses["clean"]["wer"].absolute
    assert "% of 34 [" in row and f"of {loss.n} [" in row
    assert f"{DROPPER}, reverb: 4 of 38 failed; WER {plain(full_rate_words(result.main))}" in lines
    assert any(line.startswith(f"{KEEPER}, reverb: {result.failures['empty']} empty (") for line in lines)
    assert max(map(display_width, lines)) <= 110


def test_without_failures_nothing_is_shown_of_them(searched: list[RunRecord], spoken: list[RunRecord]) -> None:
    for records in (searched, spoken, example_records(Example(n=6))):
        whole = [r for r in records if not r.result.failures.get("failed")]
        kept = [r for r in whole if DROPPER not in r.result.system.name]
        text = summary_table(kept)
        assert "failed" not in text.lower() and "% of " not in text
        for section in sections(kept):
            table = rates_table(section) if section.first.task == "recognition" else score_table(section)
            assert "Failed" not in [name for name, _ in table.columns]


def test_the_report_has_the_column_the_bounds_and_a_warning(
    runs: dict[str, Path], searched: list[RunRecord], spoken: list[RunRecord], tmp_path: Path
) -> None:
    for name, records in (("retrieval", searched), ("recognition", spoken)):
        text = plain(
            " ".join("".join(Page(write_report(runs[name], tmp_path / f"{name}.html").read_text()).text).split())
        )
        config = "en_high_noise" if name == "retrieval" else "en_reverb"
        score = of(records, DROPPER, config).result.scores["wer"]
        assert plain(full_rate_words(score)) in text
        bounds = re.search(r"\d+\.\d to \d+\.\d % with the failed", plain(full_rate_words(score)))
        assert bounds is not None
        # In the table the two stand apart, the interval between them.
        assert text.count(bounds[0]) > text.count(plain(full_rate_words(score)))
        assert "in no error rate" in text
    section = english(searched)
    table = score_table(section)
    place = [column for column, _ in table.columns].index("Failed")
    cells = {(group.head.name, row.head.name): row.cells for group in table.groups if group.head for row in group.rows}
    own = cells["dropper + words", "high_noise"]
    assert (own[place].text, plain(own[place].below[0])) == ("2", "33.3 %")
    wer = next(k for k, (column, _) in enumerate(table.columns) if column == "WER, corpus")
    assert plain(str(own[wer].text)) == "25.0 % of 4"
    assert plain(own[wer].below[-1]) == "16.7 to 50.0 % with the failed"
    drawn = scatter(section, 1.0)
    assert drawn is not None and "25.0 % of 4 (16.7 to 50.0 % with the failed)" in plain(drawn.drawing)


def test_attribution_says_how_many_have_an_error_rate(searched: list[RunRecord]) -> None:
    section = english(searched)
    found = attributions(section)
    table = parts_table(section, found)
    cells = {
        (group.head.name, row.head.name): row.cells[0] for group in table.groups if group.head for row in group.rows
    }
    own = cells["dropper + words", "high_noise"]
    assert (own.text, own.below) == ("6", ("4 with an error rate",))
    assert cells["keeper + words", "high_noise"].below == ()
    # What failed is lost to the ASR: the parts are of all queries.
    (one,) = [o for o in found if (o.system.name, o.run.condition) == ("dropper + words", "high_noise")]
    assert (one.found.n, one.found.asr.n, one.found.perfect.n + one.found.imperfect.n) == (6, 6, 4)


def test_the_json_of_a_report_has_counts_and_bounds(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs["recognition"]), "--out", str(tmp_path / "r.html"), "--json"]) == 0
    groups = [g for g in json.loads(capsys.readouterr().out)["groups"] if g["condition"] == "reverb"]
    bounded = [g for g in groups if g["counts"].get("failed")]
    assert bounded and len(bounded) < len(groups)
    for group in groups:
        failed = group["counts"].get("failed", 0)
        assert group.get("score_n", group["n"]) == group["n"] - failed
        assert ("bounds" in group) == bool(failed)


def test_the_best_system_is_not_the_one_that_drops_its_hard_clips(spoken: list[RunRecord], tmp_path: Path) -> None:
    """On clean clips the one that drops has the lower rate, and the higher one with what it dropped."""
    from squtr.harness.report.task_report import AudioBudget, Context
    from squtr.harness.tasks.recognition.report import view

    clean = {name: of(spoken, name, "en_clean").result.main for name in (KEEPER, DROPPER)}
    assert clean[DROPPER].value is not None and clean[KEEPER].value is not None
    assert clean[DROPPER].value < clean[KEEPER].value < (clean[DROPPER].ordered_by or 0)
    section = english(spoken)
    lede = "".join(view(section, Context([section], tmp_path, AudioBudget(0), 1)).lede)
    assert lede.startswith(f"{KEEPER} has a WER of {rate_words(clean[KEEPER])} ")


def test_dropping_hard_clips_wins_no_place_on_the_pareto_front(spoken: list[RunRecord]) -> None:
    timing = Timing(audio_s=1.0, rtfx=10.0)
    same = [replace(r, result=r.result.model_copy(update={"timing": timing})) for r in spoken]
    losses = {name: of(same, name, "en_reverb").result.losses["clean"]["wer"].absolute for name in (KEEPER, DROPPER)}
    assert (losses[DROPPER].value or 0) < (losses[KEEPER].value or 0) < (losses[DROPPER].ordered_by or 0)
    assert [one.name for one in pareto(english(same))] == [KEEPER]


@pytest.mark.parametrize(("name", "config"), [("retrieval", "en_high_noise"), ("recognition", "en_reverb")])
def test_compare_is_over_what_both_have_transcribed(
    runs: dict[str, Path], name: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        str(next(p for p in (runs[name] / "results").glob(f"*/{config}.json") if one in p.parent.name))
        for one in (KEEPER, DROPPER)
    ]
    assert main(["compare", *paths, "--resamples", "50", "--json"]) == 0
    found = {one["metric"]: one for one in json.loads(capsys.readouterr().out)["comparisons"]}
    records = read_runs(runs[name])
    kept, fewer = (of(records, one, config) for one in (KEEPER, DROPPER))
    gone = {row["id"] for row in fewer.items.to_pylist() if row["error"]}
    assert (found["wer"]["n"], found["wer"]["left_out"]) == (fewer.result.scores["wer"].n, len(gone))
    rows = [row for row in kept.items.to_pylist() if row["id"] not in gone]
    errors = sum(row[f"word_{kind}"] for row in rows for kind in ("substitutions", "deletions", "insertions"))
    assert found["wer"]["a"] == pytest.approx(errors / sum(row["word_reference_length"] for row in rows))
    assert found["wer"]["b"] == pytest.approx(fewer.result.scores["wer"].value)
    # What is the same in both is no difference, whatever was dropped.
    assert found["wer"]["difference"] == found["wer_macro"]["difference"] == 0
    if name == "retrieval":
        assert (found["ndcg_at_10"]["n"], found["ndcg_at_10"]["left_out"]) == (6, 0)
    assert main(["compare", *paths, "--resamples", "50"]) == 0
    out = capsys.readouterr().out
    assert f"{fewer.result.scores['wer'].n} (-{len(gone)})" in out
    assert "they failed on the other" in out
