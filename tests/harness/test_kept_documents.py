"""All that was retrieved stays in the records: what follows from it, and how much room it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squtr.harness.cli import main
from squtr.harness.evaluation.options import Options
from squtr.harness.metrics.ranking import score_ranking
from squtr.harness.metrics.registry import parse_metric
from squtr.harness.protocols import ComponentSpec, Hit
from squtr.harness.report.page import write_report
from squtr.harness.results.columns import Columns
from squtr.harness.results.envelope import RunRecord, read_record, read_runs, run_path
from squtr.harness.results.files import read_table, write_tables
from squtr.harness.systems.system import System
from squtr.harness.tasks.retrieval.columns import items_schema
from squtr.harness.tasks.retrieval.verify import recompute
from squtr.loaders.records import Document

from .evaluate_runs_for_tests import evaluate_records
from .evaluation_for_tests import SharedSounds
from .fakes import LookupTranscriber

DOCUMENTS = 150
DEPTH = 100


class Counted:
    """Finds all documents, in an order of the query's own; their scores are far from being floats of 32 bits."""

    def __init__(self) -> None:
        self.spec = ComponentSpec("retriever", "test", "counted", revision="1")

    def supports(self, language: str) -> bool:
        return True

    def index(self, documents: list[Document], *, language: str) -> None:
        self.ids = [document.id for document in documents]

    def search(self, queries: list[str], *, k: int) -> list[list[Hit]]:
        found = []
        for query in queries:
            order = np.random.default_rng(len(query)).permutation(len(self.ids))
            found.append([Hit(self.ids[i], 1 / (3 + place)) for place, i in enumerate(order[:k])])
        return found


NAME = "lookup + counted"


def system() -> System:
    return System(transcriber=LookupTranscriber({}), retriever=Counted())


QRELS = {f"q{i}": {f"d{j:03}": 1 + j % 2 for j in range(i, DOCUMENTS, 7)} for i in range(4)}


def data_of_many() -> SharedSounds:
    return SharedSounds(
        [(f"q{i}", "river " * (i + 1)) for i in range(4)],
        {},
        [Document(f"d{i:03}", "", "river") for i in range(DOCUMENTS)],
        QRELS,
    )


OPTIONS = Options(
    metrics=("ndcg_at_10", "mrr_at_10", "recall_at_10", "recall_at_100"), resamples=5, samples=0, max_failed=1.0
)


def evaluated(out: Path) -> RunRecord:
    (record,) = evaluate_records([system()], data_of_many(), configs=["en_text"], out=out, options=OPTIONS).records
    return record


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    evaluated(folder)
    return folder


def test_recall_at_100_follows_from_the_records(out: Path) -> None:
    (record,) = read_runs(out)
    rows = record.items.to_pylist()
    assert [len(row["documents"]) for row in rows] == [DEPTH] * 4
    run = {row["id"]: list(zip(row["documents"], row["scores"], strict=True)) for row in rows}
    again = score_ranking(QRELS, run, ["recall_at_100", "ndcg_at_10", "ndcg_at_100"])
    assert 0.5 < again.mean["recall_at_100"] < 0.9
    assert record.result.scores["recall_at_100"].value == pytest.approx(again.mean["recall_at_100"], abs=1e-12)
    for row in rows:
        assert row["recall_at_100"] == pytest.approx(again.per_query["recall_at_100"][row["id"]], abs=1e-12)


def test_memory_and_the_page_hold_the_first_ones(out: Path, tmp_path: Path) -> None:
    for folder in (out, tmp_path / "anew"):
        assert {len(own) for own in evaluated(folder).items["documents"].to_pylist()} == {10}
    path = run_path(out, NAME, "en_text")
    full, short = read_record(path), read_record(path, documents=3)
    assert short.items["documents"].to_pylist() == [own[:3] for own in full.items["documents"].to_pylist()]
    assert short.items.schema.equals(full.items.schema)
    others = [name for name in full.items.column_names if name not in ("documents", "scores")]
    assert str(short.items.select(others).to_pylist()) == str(full.items.select(others).to_pylist())
    page = write_report(out, tmp_path / "report.html").read_text(encoding="utf-8")
    assert sum(f"d{i:03}" in page for i in range(DOCUMENTS)) < 5


def test_a_table_of_many_documents_is_small_and_exact(tmp_path: Path) -> None:
    """About 1 kB per query with scores that fill 64 bits, half of that with scores that came from 32."""
    rng = np.random.default_rng(0)
    n, k = 500, 100
    ids = [f"doc{i}" for i in rng.integers(0, 2_000_000, n * k)]
    wide = np.sort(rng.gamma(8, 2, (n, k)), axis=1)[:, ::-1]
    for scores, most in ((wide, 1250), (wide.astype(np.float32).astype(np.float64), 900)):
        table = pa.table(
            {
                "documents": pa.array([ids[i * k : i * k + k] for i in range(n)]),
                "scores": pa.array(scores.tolist(), pa.list_(pa.float64())),
            }
        )
        write_tables(tmp_path / "x.json", {"items": table})
        file = tmp_path / "x.items.parquet"
        plain = tmp_path / "plain.parquet"
        pq.write_table(table, plain, compression="zstd")
        assert file.stat().st_size < 0.95 * plain.stat().st_size
        assert file.stat().st_size / n < most
        assert read_table(tmp_path / "x.json", "items").equals(table)


def edited(out: Path, name: str, values: list[object], documents: int = DEPTH) -> str:
    """What re-scoring says of the records with a column changed."""
    record = read_record(run_path(out, NAME, "en_text"), documents=documents)
    place = record.items.column_names.index(name)
    field = record.items.schema.field(name)
    table = record.items.set_column(place, field, pa.array(values, field.type))
    return " | ".join(message for _, message in recompute(record.result, Columns(table)).problems)


def test_deep_metrics_are_checked_against_the_rest(out: Path) -> None:
    items = read_runs(out)[0].items
    first, deep = items["first_relevant_rank"].to_pylist(), items["recall_at_100"].to_pylist()
    assert edited(out, "recall_at_100", deep) == ""
    assert "Recall@100 is not that of the first relevant rank" in edited(out, "recall_at_100", [0.0, *deep[1:]])
    assert "it is below Recall@10 for query 'q1'" in edited(out, "recall_at_100", [deep[0], 1e-6, *deep[2:]])
    assert "is at rank 200 of 100" in edited(out, "first_relevant_rank", [*first[:3], 200], documents=DEPTH)


def test_records_of_ten_documents_are_read(out: Path) -> None:
    """Older results name ten, however many were retrieved and wherever the first relevant one was."""
    record = read_record(run_path(out, NAME, "en_text"), documents=10)
    table = record.items.select(items_schema(map(parse_metric, ("ndcg_at_10", "mrr_at_10", "recall_at_10"))).names)
    scores = {name: score for name, score in record.result.scores.items() if name != "recall_at_100"}
    old = record.result.model_copy(update={"scores": scores})
    first = [40 if rank > 10 else rank for rank in table["first_relevant_rank"].to_pylist()]
    place = table.column_names.index("first_relevant_rank")
    table = table.set_column(place, "first_relevant_rank", pa.array(first, pa.int64()))
    assert list(recompute(old, Columns(table)).problems) == []


def test_metrics_follow_from_documents_and_judgments(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "beir" / "s" / "qrels"
    folder.mkdir(parents=True)
    lines = [f"{query}\t{document}\t{grade}" for query, own in QRELS.items() for document, grade in own.items()]
    (folder / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    asked = ["validate", str(out), "--qrels", str(tmp_path / "beir")]
    main(asked)
    assert "judgments" not in capsys.readouterr().out
    (folder / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines[:-1], "q9\td001\t1"]) + "\n")
    assert main(asked) == 1
    said = capsys.readouterr().out
    assert "items.recall_at_100: query 'q3' of s has" in said
    assert "its documents and the judgments give" in said
    assert "1 judged queries of s have no record; the first is 'q9'" in said
    (folder.parent).rename(tmp_path / "beir" / "t")
    main(asked)
    assert "there are no judgments of s" in capsys.readouterr().out
    assert main([*asked[:3], str(tmp_path / "none")]) == 1
    assert "squtr export beir DATA" in capsys.readouterr().err
