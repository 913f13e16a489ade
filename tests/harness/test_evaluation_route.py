"""A retriever chosen by the confidence of the transcript, and its threshold, fitted on queries that are not scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UsageError
from squtr.harness.components.retrievers.hybrid import HybridRetriever
from squtr.harness.components.retrievers.route import RouteRetriever, chosen_part, fitted_threshold
from squtr.harness.evaluate import evaluate_records, forecast
from squtr.harness.evaluation.options import Options
from squtr.harness.protocols import ComponentSpec, Hit, Transcript
from squtr.harness.results.envelope import RunRecord
from squtr.harness.systems import load_system, load_systems, write_spec
from squtr.harness.systems.system import System
from squtr.loaders.data import BuiltData
from squtr.loaders.partial import held_out
from squtr.loaders.records import Document, SpokenQuery

from .evaluate_runs_for_tests import evaluate_runs
from .evaluation_for_tests import built, by_config, truth_of
from .fakes import LookupTranscriber, WordRetriever

CONDITIONS = ("clean", "high_noise")


class Fixed:
    """Finds one document for everything."""

    def __init__(self, document: str) -> None:
        self.document = document
        self.searched = 0
        self.spec = ComponentSpec("retriever", "test", f"fixed-{document}", settings={"document": document})

    def supports(self, language: str) -> bool:
        return True

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        pass

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.searched += len(queries)
        return [[Hit(self.document, 1.0)] for _ in queries]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> BuiltData:
    return built(tmp_path_factory.mktemp("route"), *CONDITIONS, queries=10)


@pytest.fixture(scope="module")
def truth(data: BuiltData) -> dict[str, SpokenQuery]:
    return truth_of(data)


def confident(truth: Mapping[str, SpokenQuery], told: Mapping[tuple[str, str], float]) -> LookupTranscriber:
    """The truth, with a confidence by id and condition (0.9 where nothing is told)."""
    table = {
        key: Transcript(query.text, seconds=0.25, confidence=told.get((query.id, query.condition), 0.9))
        for key, query in truth.items()
    }
    return LookupTranscriber(table)


def runs(systems: Sequence[System], data: BuiltData, **options: Any) -> list[RunRecord]:
    return evaluate_runs(systems, data, self_check=False, **options)


def routed(transcriber: object, threshold: Any = 0.5, document: str = "d3") -> System:
    route = RouteRetriever(below=Fixed(document), otherwise=WordRetriever(), threshold=threshold)
    return System(transcriber=transcriber, retriever=route)  # type: ignore[arg-type]


# The rule


def test_the_retriever_is_chosen_by_confidence(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    asr = confident(truth, {("q0", "clean"): 0.2, ("q1", "clean"): 0.5, ("q2", "clean"): 0.0})
    system = routed(asr)
    assert system.name == "lookup + route(confidence < 0.5 ? fixed-d3 : words)"
    plain = System(transcriber=asr, retriever=WordRetriever())
    records = runs([system, plain], data, configs=["en_clean", "en_high_noise"])
    for condition, below in (("clean", {"q0", "q2"}), ("high_noise", set()), ("text", set())):
        rows = by_config(records, system.name)[f"en_{condition}"].items.to_pylist()
        others = {r["id"]: r for r in by_config(records, plain.name)[f"en_{condition}"].items.to_pylist()}
        for row in rows:
            expected = ["d3"] if row["id"] in below else others[row["id"]]["documents"]
            assert row["documents"] == expected
    result = by_config(records, system.name)["en_clean"].result
    assert result.system.components["retriever"]["settings"]["threshold"] == 0.5
    assert "route" not in result.system.settings
    assert result.timing.stages["search"] > 0


def test_what_has_no_confidence_fails(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    some = confident(truth, {("q0", "clean"): math.nan})
    record = by_config(runs([routed(some)], data, configs=["en_clean"]))["en_clean"]
    row = record.items.to_pylist()[0]
    assert "comes without a confidence" in row["error"]
    assert row["documents"] == []
    assert record.result.failures["failed"] == 1
    assert record.result.scores["wer"].n == 10
    silent = LookupTranscriber({key: query.text for key, query in truth.items()})
    done = evaluate_records([routed(silent)], data, configs=["en_clean"], options=Options(self_check=False))
    assert [(f.config, "lookup does not tell how confident it is" in str(f.error)) for f in done.failures] == [
        ("en_clean", True)
    ]


def test_an_empty_transcript_needs_no_confidence(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    asr = confident(truth, {})
    key = next(key for key, query in truth.items() if (query.id, query.condition) == ("q0", "clean"))
    asr.table = {**asr.table, key: Transcript("", seconds=0.25)}
    record = by_config(runs([routed(asr)], data, configs=["en_clean"]))["en_clean"]
    assert (record.items.to_pylist()[0]["error"], record.items.to_pylist()[0]["documents"]) == ("", [])


def test_routes_that_are_refused() -> None:
    for threshold in (-0.1, 1.1, math.nan, "often"):
        with pytest.raises(UsageError, match="threshold"):
            RouteRetriever(below="bm25", otherwise=Fixed("d0"), threshold=threshold)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the same retriever"):
        RouteRetriever(below="bm25", otherwise="bm25", threshold=0.5)
    route = RouteRetriever(below=Fixed("d0"), otherwise="bm25", threshold=0.5)
    with pytest.raises(UsageError, match="a route is a part of another retriever"):
        HybridRetriever(parts=[route, "bm25"])
    with pytest.raises(UsageError, match="a route is a part of another retriever"):
        RouteRetriever(below=route, otherwise="bm25", threshold=0.5)
    with pytest.raises(UsageError, match="was not fitted"):
        chosen_part(0.5, None)


def test_alone_it_searches_as_for_typed_queries() -> None:
    documents = [Document("d0", "", "river"), Document("d1", "", "stone")]
    route = RouteRetriever(below=Fixed("d0"), otherwise=WordRetriever(), threshold=1.0)
    route.index(documents, language="en")
    assert [hit.document_id for hit in route.search(["stone"], k=5)[0]] == ["d1"]


def test_how_it_is_written(tmp_path: Path) -> None:
    short = "whisper-base + route(confidence < 0.6 ? rrf(bm25, dense:all-minilm-l6-v2) : bm25)"
    path = tmp_path / "route.yaml"
    path.write_text(
        "transcriber: whisper-base\nretriever:\n  backend: route\n  threshold: 0.6\n"
        "  below: {backend: hybrid, method: rrf, parts: [bm25, 'dense:all-minilm-l6-v2']}\n  otherwise: bm25\n",
        encoding="utf-8",
    )
    written, (filed,) = load_system(short), load_systems([str(path)])
    assert written.fingerprint == filed.fingerprint
    again = tmp_path / "again.yaml"
    again.write_text(write_spec(filed), encoding="utf-8")
    assert load_systems([str(again)])[0].fingerprint == written.fingerprint
    auto = load_system("whisper-base + route(confidence < auto ? dense:all-minilm-l6-v2 : bm25)")
    assert auto.retriever.spec.settings["threshold"] == "auto"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        ("route(confidence<0.6 ? bm25 : dense:x)", "'confidence<0.6' stands where 'confidence' is expected"),
        ("route(confidence < x ? bm25 : dense:x)", "'x' is no threshold"),
        ("route(confidence < 0.6 ? bm25)", "')' stands where ':' is expected"),
        ("route(confidence < 0.6 ? bm25 : dense:all-minilm-l6-v2) > rerank:x", "a route is a part of another"),
        ("rrf(bm25, route(confidence < 0.6 ? bm25 : dense:all-minilm-l6-v2))", "a route is a part of another"),
        ("route", "stands alone"),
    ],
)
def test_what_is_written_wrong(retriever: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_system(f"whisper-base + {retriever}")
    assert message in str(caught.value)


# The threshold

scores = st.floats(0, 1)


@given(st.lists(st.tuples(scores, scores, scores), max_size=12))
def test_no_other_threshold_is_better(rows: list[tuple[float, float, float]]) -> None:
    confidences, below, otherwise = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])

    def total(threshold: float) -> float:
        return math.fsum(b if c < threshold else o for c, b, o in rows)

    found = fitted_threshold(confidences, below, otherwise)
    assert 0 <= found <= 1
    assert all(total(found) >= total(other) - 1e-9 for other in (0.0, 1.0, *confidences, *(c / 2 for c in confidences)))


def test_of_ties_the_lowest_threshold_is_taken() -> None:
    assert fitted_threshold([0.2, 0.8], [0.5, 0.5], [0.5, 0.5]) == 0.0
    assert fitted_threshold([], [], []) == 0.0
    assert fitted_threshold([0.2, 0.8], [1.0, 1.0], [0.0, 0.0]) == 1.0


def dev_ids(data: BuiltData, fraction: float = 0.5, seed: int = 0) -> dict[str, set[str]]:
    return {subset: {q.id for q in held_out(data, fraction, seed)[1].queries(subset)} for subset in data.subsets}


def test_a_threshold_is_fitted_on_queries_that_no_system_is_scored_on(
    data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path
) -> None:
    dev = dev_ids(data)["tiny-en"]
    first = sorted(dev)[0]
    # Of the held-out queries one is badly recognized; `below` finds its document and nothing else.
    document = f"d{first[1:]}"
    asr = confident(truth, {(first, "clean"): 0.3, (first, "high_noise"): 0.4})
    asr.table = {
        key: Transcript("mumble", seconds=0.25, confidence=heard.confidence)
        if (truth[key].subset, truth[key].id) == ("tiny-en", first)
        else heard
        for key, heard in asr.table.items()
        if isinstance(heard, Transcript)
    }
    system, plain = routed(asr, "auto", document), System(transcriber=asr, retriever=WordRetriever())
    out = tmp_path / "out"
    records = runs([system, plain], data, configs=["en_clean", "en_high_noise"], dev_fraction=0.5, out=out)
    for name in (system.name, plain.name):
        for record in by_config(records, name).values():
            ids = set(record.items.column("id").to_pylist())
            assert ids.isdisjoint(dev)
            assert len(ids) == 5
            assert (record.result.data.n, record.result.data.n_total, record.result.data.partial) == (5, 10, True)
    found = by_config(records, system.name)["en_clean"].result.system.settings["route"]
    # Between 0.4 and 0.9.
    assert found == {"threshold": pytest.approx(0.65), "n": 10, "metric": "ndcg_at_10", "dev_fraction": 0.5}
    assert "route" not in by_config(records, system.name)["en_text"].result.system.settings
    assert (out / "partial-without-dev-0.5" / "results").is_dir()
    # Written in a folder of its own, and read again from there.
    again = runs([system, plain], data, configs=["en_clean", "en_high_noise"], dev_fraction=0.5, out=out)
    assert [r.result.inputs_sha256 for r in again] == [r.result.inputs_sha256 for r in records]


def test_what_was_held_out_does_not_depend_on_configs_and_does_on_the_seed(data: BuiltData) -> None:
    assert dev_ids(data) == dev_ids(data)
    assert any(dev_ids(data, seed=seed) != dev_ids(data) for seed in range(1, 4))
    scored, dev = held_out(data, 0.25, 0)
    for subset in data.subsets:
        ids = [{q.id for q in part.queries(subset)} for part in (scored, dev)]
        assert ids[0] | ids[1] == {q.id for q in data.queries(subset)}
        assert [len(own) for own in ids] == [7, 3]
        assert {row.id for row in dev.rows(subset, "clean")} == ids[1]
        assert set(dev.qrels(subset)) == ids[1]
    with pytest.raises(UsageError, match="none is left"):
        held_out(data, 0.95, 0)[0].queries("tiny-en")


def test_auto_without_held_out_queries_is_refused(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    system = routed(confident(truth, {}), "auto")
    with pytest.raises(UsageError, match=r"is auto, and there are no queries to fit it on.*--dev-fraction 0\.2"):
        runs([system], data, configs=["en_clean"])
    with pytest.raises(UsageError, match="dev_fraction is 1"):
        Options(dev_fraction=1.0)


def test_a_threshold_that_cannot_be_fitted_fails_its_runs(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    silent = LookupTranscriber({key: query.text for key, query in truth.items()})
    done = evaluate_records(
        [routed(silent, "auto")], data, configs=["en_clean"], options=Options(dev_fraction=0.5, self_check=False)
    )
    assert [failure.config for failure in done.failures] == ["en_clean"]
    assert "comes without a confidence" in str(done.failures[0].error)


def test_a_forecast_counts_the_held_out_clips(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    options = Options(dev_fraction=0.5, self_check=False)
    lines = forecast([routed(confident(truth, {}), "auto")], data, configs=["en_clean"], options=options)
    assert [(line.stage, line.scope, line.items) for line in lines if line.stage == "transcribe"] == [
        ("transcribe", "tiny-en_clean", 5),
        ("transcribe", "tiny-en_clean (held out)", 5),
    ]
    assert {line.component for line in lines if line.stage == "index"} == {"fixed-d3", "words"}


def test_the_latency_is_that_of_the_chosen_part(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    system = routed(confident(truth, {}), 0.5)
    records = runs([system], data, configs=["en_clean"], latency=2)
    assert by_config(records)["en_clean"].result.timing.latency is not None
    below = system.retriever.routed[0]  # type: ignore[union-attr]
    # The evaluation searches with both, the user of the system waits for one.
    assert below.searched == len({q.text for q in data.queries("tiny-en")})


def test_part_names() -> None:
    assert Options(dev_fraction=0.2).part == "partial-without-dev-0.2"
    assert Options(dev_fraction=0.2, seed=3).part == "partial-without-dev-0.2-seed-3"
    assert Options(dev_fraction=0.2, limit=5, seed=3).part == "partial-first-5-seed-3-without-dev-0.2"
    assert Options().part == ""
