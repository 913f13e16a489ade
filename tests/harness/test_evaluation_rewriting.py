"""A rewriter in the chain: what is searched with, what is counted, what is kept, and what the records say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import UsageError
from squtr.harness.evaluate import evaluate_records, forecast
from squtr.harness.evaluation import rewriting
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.run import Evaluation
from squtr.harness.protocols import ComponentSpec, Rewritten, Transcript
from squtr.harness.report import summary_table, write_report
from squtr.harness.report.sections import sections
from squtr.harness.results.columns import Columns
from squtr.harness.results.envelope import RunRecord
from squtr.harness.systems.system import System
from squtr.harness.tasks.retrieval import verify
from squtr.harness.tasks.retrieval.report.rewriting import most_changed, rewritings
from squtr.harness.tasks.retrieval.report.worst import worst_cases
from squtr.loaders.data import BuiltData
from squtr.loaders.records import SpokenQuery

from .evaluation_for_tests import NBest, built, by_config, truth_of
from .fakes import LookupTranscriber, WordRetriever
from .groups_for_tests import Crew
from .test_report import Page

UNCHECKED = Options(self_check=False, max_failed=1.0)
MENDED = {"rover": "river", "stoned": "stone", "bridge": "fridge"}


class Mending:
    """Replaces words by a table; a text of `failing` fails. It counts what it is asked."""

    def __init__(self, table: Mapping[str, str] = MENDED, failing: Sequence[str] = (), n_best: int = 0) -> None:
        self.table, self.failing = table, failing
        self.asked: list[tuple[str, ...]] = []
        self.fail_after: int | None = None
        if n_best:
            self.n_best = n_best
        self.spec = ComponentSpec("rewriter", "test", "mending", revision="1")

    def supports(self, language: str) -> bool:
        return language == "en"

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        assert language == "en"
        if self.fail_after is not None and len(self.asked) + len(transcripts) > self.fail_after:
            raise KeyboardInterrupt
        self.asked += [tuple(texts) for texts in transcripts]
        return [
            Rewritten("", error="it could not", seconds=0.5)
            if best in self.failing
            else Rewritten(self.table.get(best, best), seconds=0.5)
            for best, *_ in transcripts
        ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> BuiltData:
    return built(tmp_path_factory.mktemp("rewriting"), "clean", "high_noise")


@pytest.fixture(scope="module")
def truth(data: BuiltData) -> dict[str, SpokenQuery]:
    return truth_of(data)


WRONG: Mapping[str, str | Transcript] = {
    "river": "rover", "stone": "stoned", "lamp": "", "garden": Transcript("", error="too loud"),
}  # fmt: skip


@pytest.fixture
def wrong(truth: Mapping[str, SpokenQuery]) -> LookupTranscriber:
    return LookupTranscriber({key: WRONG.get(query.text, query.text) for key, query in truth.items()})


def runs(systems: Sequence[System], data: BuiltData, *, benchmark: str | None = None, **how: Any) -> list[RunRecord]:
    """As `evaluate_runs`, unchecked."""
    named = {name: how.pop(name) for name in ("configs", "cache") if name in how}
    options = Options.of({"max_failed": 1.0, **how, "self_check": False})
    done = evaluate_records(systems, data, benchmark=benchmark, options=options, **named)
    done.raise_failures()
    return done.records


def chain(transcriber: object, rewriter: object | None = None, **more: object) -> System:
    return System(transcriber=transcriber, rewriter=rewriter, retriever=WordRetriever(), **more)  # type: ignore[arg-type]


def same(left: Sequence[RunRecord], right: Sequence[RunRecord]) -> bool:
    """Whether the records are the same, NaN included."""
    return [str(r.items.to_pylist()) for r in left] == [str(r.items.to_pylist()) for r in right]


def test_what_was_rewritten_is_searched_with(data: BuiltData, wrong: LookupTranscriber) -> None:
    mending = Mending()
    systems = [chain(wrong), chain(wrong, mending)]
    assert systems[1].name == "lookup + mending + words"
    records = runs(systems, data, configs=["en_clean", "en_high_noise"])
    plain = {row["id"]: row for row in by_config(records, systems[0].name)["en_clean"].items.to_pylist()}
    record = by_config(records, systems[1].name)["en_clean"]
    rows = {row["id"]: row for row in record.items.to_pylist()}
    typed = {row["id"]: row for row in by_config(records, systems[1].name)["en_text"].items.to_pylist()}
    assert [(r["transcript"], r["rewritten"]) for r in rows.values()] == [
        ("rover", "river"), ("stoned", "stone"), ("", ""), ("", ""), ("bridge", "fridge"),
    ]  # fmt: skip
    for id_ in ("q0", "q1"):
        assert plain[id_]["documents"] == []
        assert rows[id_]["documents"] == typed[id_]["documents"] != []
    assert rows["q4"]["documents"] == [] != plain["q4"]["documents"]
    assert "rewritten" not in plain["q0"]
    assert "rewritten" not in typed["q0"]
    # Each distinct transcript is rewritten once, in all conditions; what was not recognized never.
    assert sorted(mending.asked) == [("bridge",), ("rover",), ("stoned",)]
    scores, result = record.result.scores, record.result
    # The error rate is that of the transcript: two replaced and one empty of four; of the rewritten text beside it.
    assert scores["wer"].value == by_config(records, systems[0].name)["en_clean"].result.scores["wer"].value == 3 / 4
    assert (scores["wer_rewritten"].value, scores["wer_rewritten"].n) == (2 / 4, 4)
    assert scores["wer_rewritten_macro"].value == 2 / 4
    assert result.system.components["rewriter"]["name"] == "mending"
    assert "rewriter" not in by_config(records, systems[1].name)["en_text"].result.system.components
    assert result.timing.stages["rewrite"] == pytest.approx(1.5)
    assert result.failures["failed"] == 1


def test_records_with_rewritten_texts_are_verified(data: BuiltData, wrong: LookupTranscriber) -> None:
    record = by_config(runs([chain(wrong, Mending())], data, configs=["en_clean"]))["en_clean"]
    assert record.items.schema.equals(verify.schema(record.result))
    found = verify.recompute(record.result, Columns(record.items))
    assert list(found.problems) == []
    assert {name: (s.value, s.n) for name, s in found.scores.items()}.items() >= {
        name: (pytest.approx(s.value), s.n) for name, s in record.result.scores.items()
    }.items()
    assert verify.item_values(record.items, "wer_rewritten", "") == {
        "": {"tiny-en/q0": 0.0, "tiny-en/q1": 0.0, "tiny-en/q2": 1.0, "tiny-en/q3": 1.0, "tiny-en/q4": 1.0}
    }
    plain = by_config(runs([chain(wrong)], data, configs=["en_clean"]))["en_clean"]
    assert verify.item_values(plain.items, "wer_rewritten", "") == {}
    assert plain.items.schema.equals(verify.schema(plain.result))


def test_a_failed_rewriting_is_counted_and_never_the_transcript(data: BuiltData, wrong: LookupTranscriber) -> None:
    system = chain(wrong, Mending(failing=["bridge"]))
    record = by_config(runs([system], data, configs=["en_clean"]))["en_clean"]
    row = next(row for row in record.items.to_pylist() if row["id"] == "q4")
    assert (row["error"], row["rewritten"], row["documents"]) == ("the rewriter failed: it could not", "", [])
    assert row["ndcg_at_10"] == 0
    assert record.result.failures["failed"] == 2
    # Its transcript is scored as before; there is no text of the rewriter to score.
    assert record.result.scores["wer"].n == 4
    assert record.result.scores["wer_rewritten"].n == 3
    done = evaluate_records([system], data, configs=["en_clean"], options=Options(strict=True, self_check=False))
    assert "2 of 5 items of en_clean failed" in str(done.failures[0].error)


class Broken(Mending):
    def __init__(self, gives: object) -> None:
        super().__init__()
        self.gives = gives

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (
            ZeroDivisionError("no model"),
            "Broken.rewrite (mending) on 3 transcripts in 'en' failed: ZeroDivisionError: no model",
        ),
        ([], "Broken.rewrite (mending) gave 0 outputs for 3 items"),
        (["river"] * 3, "gave str ('river') for the transcript 'rover'. Give squtr.harness.protocols.Rewritten."),
    ],
)
def test_a_rewriter_that_breaks_fails_its_runs_only(
    data: BuiltData, wrong: LookupTranscriber, gives: object, message: str
) -> None:
    done = evaluate_records([chain(wrong), chain(wrong, Broken(gives))], data, configs=["en_clean"], options=UNCHECKED)
    assert {(f.system, f.config) for f in done.failures} == {("lookup + mending + words", "en_clean")}
    assert message in str(done.failures[0].error)
    assert len(done.records) == 3


def test_a_blank_text_without_an_error_fails(data: BuiltData, wrong: LookupTranscriber) -> None:
    record = by_config(runs([chain(wrong, Mending({"rover": " "}))], data, configs=["en_clean"]))["en_clean"]
    assert record.items.to_pylist()[0]["error"] == "the rewriter failed: it gave no text"


def test_what_was_rewritten_is_kept(data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path) -> None:
    table = {**WRONG, "garden": "garden"}
    wrong = LookupTranscriber({key: table.get(query.text, query.text) for key, query in truth.items()})
    first = runs([chain(wrong, Mending(failing=["bridge"]))], data, configs=["en_clean"], cache=tmp_path)
    again, later = Mending(failing=["bridge"]), Mending()
    second = runs([chain(wrong, again)], data, configs=["en_clean"], cache=tmp_path)
    # What failed is tried again.
    assert again.asked == [("bridge",)]
    assert [r.result.inputs_sha256 for r in first] == [r.result.inputs_sha256 for r in second]
    assert same(first, second)
    lines = forecast([chain(wrong, later)], data, configs=["en_*"], cache=tmp_path)
    (line,) = [line for line in lines if line.stage == "rewrite"]
    # high_noise is not transcribed yet: its five queries are all left.
    assert (line.component, line.scope, line.items, line.cached, line.measured) == ("mending", "en", 9, 3, "before")
    assert line.seconds == pytest.approx(6 * 0.5)
    assert later.asked == []
    runs([chain(wrong, later)], data, configs=["en_*"], cache=tmp_path)
    (line,) = [
        line for line in forecast([chain(wrong, later)], data, configs=["en_*"], cache=tmp_path)
        if line.stage == "rewrite"
    ]  # fmt: skip
    assert (line.items, line.cached, line.seconds, line.measured) == (4, 4, 0.0, "")


def test_a_forecast_measures_a_rate_on_typed_queries(data: BuiltData, wrong: LookupTranscriber) -> None:
    mending = Mending()
    lines = forecast([chain(wrong, mending)], data, configs=["en_clean"])
    (line,) = [line for line in lines if line.stage == "rewrite"]
    assert (line.items, line.cached, line.measured) == (5, 0, "now")
    assert ("river",) in mending.asked


def test_several_processes_share_the_rewriting(
    data: BuiltData, wrong: LookupTranscriber, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = runs([chain(wrong, Mending())], data, configs=["en_clean"], cache=tmp_path / "alone")
    mending = Mending()
    monkeypatch.setattr(rewriting, "UNIT", 1)

    def work(processes: Any) -> Evaluation:
        return evaluate_records(
            [chain(wrong, mending)],
            data,
            configs=["en_clean"],
            cache=tmp_path / "crew",
            options=UNCHECKED,
            processes=processes,
        )

    found = Crew(3).run(work)[0]
    assert not found.failures
    assert same(alone, found.records)
    assert sorted(mending.asked) == [("bridge",), ("rover",), ("stoned",)]


def test_the_n_best_go_in_and_one_text_comes_out(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    told = {("tiny-en", "q0"): [("rover", -0.5), (" ", -0.7), ("liver", -3.0)]}
    mending = Mending(n_best=3)
    record = by_config(runs([chain(NBest(truth, told), mending, n_best=3)], data, configs=["en_clean"]))["en_clean"]
    assert ("rover", "liver") in mending.asked
    row = record.items.to_pylist()[0]
    assert (row["transcript"], row["rewritten"]) == ("rover", "river")
    assert record.result.system.settings["n_best"] == 3


def test_chains_with_a_rewriter_that_make_no_sense(truth: Mapping[str, SpokenQuery], wrong: LookupTranscriber) -> None:
    with pytest.raises(UsageError, match="stands behind a transcriber"):
        System(rewriter=Mending(), retriever=WordRetriever())
    with pytest.raises(UsageError, match=r"n_best is 1, but the rewriter takes 3 transcript"):
        chain(wrong, Mending(n_best=3))
    with pytest.raises(UsageError, match="n_best is 2, but lookup"):
        chain(wrong, Mending(), n_best=2)
    # Of a language that it does not support, nothing is evaluated.
    assert not chain(wrong, Mending()).supports("zh")


def test_the_latency_includes_the_rewriter(data: BuiltData, wrong: LookupTranscriber) -> None:
    mending = Mending()
    records = runs([chain(wrong, mending)], data, configs=["en_clean"], latency=3)
    latency = by_config(records)["en_clean"].result.timing.latency
    assert latency is not None
    before = len({("bridge",), ("rover",), ("stoned",)})
    assert len(mending.asked) > before


def test_a_killed_rewriting_continues(data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path) -> None:
    perfect = LookupTranscriber({key: query.text for key, query in truth.items()})
    killed = Mending()
    killed.fail_after = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewriting, "UNIT", 2)
        with pytest.raises(KeyboardInterrupt):
            runs([chain(perfect, killed)], data, configs=["en_clean"], cache=tmp_path)
        again = Mending()
        after = runs([chain(perfect, again)], data, configs=["en_clean"], cache=tmp_path)
        assert len(again.asked) == 3
        whole = runs([chain(perfect, Mending())], data, configs=["en_clean"])
    assert same(after, whole)


# Speech recognition


def test_in_speech_recognition_the_rewritten_text_is_the_hypothesis(
    data: BuiltData, wrong: LookupTranscriber, tmp_path: Path
) -> None:
    mending = Mending(failing=["bridge"])
    systems = [System(transcriber=wrong), System(transcriber=wrong, rewriter=mending)]
    assert systems[1].name == "lookup + mending"
    assert systems[1].kind == "transcriber"
    records = runs(systems, data, configs=["en_clean"], cache=tmp_path, benchmark="recognition")
    plain, changed = (by_config(records, system.name)["en_clean"] for system in systems)
    assert [row["transcript"] for row in plain.items.to_pylist()] == ["rover", "stoned", "", "", "bridge"]
    rows = changed.items.to_pylist()
    assert [row["transcript"] for row in rows] == ["river", "stone", "", "", ""]
    assert rows[4]["error"] == "the rewriter failed: it could not"
    assert changed.result.failures["failed"] == 2
    # Of three that were decoded and rewritten, the empty one is wrong.
    assert (changed.result.scores["wer"].value, changed.result.scores["wer"].n) == (pytest.approx(1 / 3), 3)
    assert changed.result.timing.stages["rewrite"] == pytest.approx(1.5)
    assert changed.result.system.components["rewriter"]["name"] == "mending"
    with pytest.raises(UsageError, match="has a rewriter, and only transcribers are timed alone"):
        runs(systems[1:], data, configs=["en_clean"], benchmark="recognition", latency=1)


# The report


def test_the_report_shows_what_was_changed(data: BuiltData, wrong: LookupTranscriber, tmp_path: Path) -> None:
    systems = [chain(wrong), chain(wrong, Mending(failing=["bridge"]))]
    done = evaluate_records(systems, data, configs=["en_clean"], out=tmp_path, options=UNCHECKED)
    done.raise_failures()
    content = write_report(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8")
    shown = " ".join("".join(Page(content).text).split())
    assert "Rewritten transcripts" in shown
    # Per query: the transcript against what was typed, then the rewritten text against the transcript.
    assert '<del>river</del> <ins>rover</ins></span></td><td class="transcript" lang="en">' in content
    assert '<span class="sub"><del>rover</del> <ins>river</ins></span>' in content
    assert "1 → 0" in shown
    assert "Does the rewriter help?" in shown
    assert "mending against no rewriter" in shown
    (section,) = sections(done.records)
    (found,) = rewritings(section)
    # Of four transcripts one is empty and one failed: two are rewritten, both changed for the better. The empty one
    # counts with its error before and after.
    assert (found.n, found.failed, len(found.changed), found.better, found.worse) == (2, 1, 2, 2, 0)
    assert found.rates == (pytest.approx(3 / 3), pytest.approx(1 / 3))
    assert [one.key[1] for one in most_changed([found], 1)] == ["q0"]
    case = next(one for one in worst_cases(section, 10) if one.query_id == "q4" and "mending" in one.system.name)
    assert case.noisy.failure == "the rewriter failed: it could not"
    table = summary_table(done.records)
    assert "WER, rewritten" in table
    plain = evaluate_records(systems[:1], data, configs=["en_clean"], options=UNCHECKED).records
    assert "rewritten" not in summary_table(plain)
