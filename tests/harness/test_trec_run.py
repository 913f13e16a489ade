"""TREC run files as ready rankings."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from squtr.errors import DataError
from squtr.harness.components import load_retriever
from squtr.harness.components.retrievers.trec_run import TrecRun
from squtr.harness.protocols import Hit

RUN = """q1 Q0 d1 1 0.5 mine
q1 Q0 d3 2 0.7 mine

q1 Q0 d2 3 0.5 mine
q2\tQ0\td9\t1\t-3e2\tmine
"""


def test_order_is_that_of_trec_eval(tmp_path: Path) -> None:
    path = tmp_path / "my.trec"
    path.write_text(RUN)
    run = TrecRun(path, missing="count")
    assert run.hits("fiqa", "clean", ["q2", "q1", "q3"], k=10) == [
        [Hit("d9", -300.0)],
        [Hit("d3", 0.7), Hit("d2", 0.5), Hit("d1", 0.5)],
        [],
    ]
    assert run.hits("fiqa", "clean", ["q1"], k=2) == [[Hit("d3", 0.7), Hit("d2", 0.5)]]
    assert run.spec.name == "my"
    assert run.spec.revision.startswith("sha256:")
    assert str(tmp_path) not in str(run.spec)


def test_it_is_read_by_subset_and_condition(tmp_path: Path) -> None:
    for condition, score in (("clean", 1), ("high_noise", 2)):
        with gzip.open(tmp_path / f"fiqa_{condition}.trec.gz", "wt") as file:
            file.write(f"q Q0 d 1 {score} t\n")
    run = TrecRun(tmp_path / "{config}.trec.gz")
    assert run.hits("fiqa", "high_noise", ["q"], k=1) == [[Hit("d", 2.0)]]
    assert run.hits("fiqa", "clean", ["q"], k=1) == [[Hit("d", 1.0)]]
    with pytest.raises(DataError, match="fiqa_reverb"):
        run.hits("fiqa", "reverb", ["q"], k=1)
    changed = run.spec.revision
    with gzip.open(tmp_path / "fiqa_clean.trec.gz", "wt") as file:
        file.write("q Q0 d 1 9 t\n")
    assert TrecRun(tmp_path / "{config}.trec.gz").spec.revision != changed


def test_one_file_is_one_condition(tmp_path: Path) -> None:
    path = tmp_path / "my.trec"
    path.write_text(RUN)
    run = TrecRun(path)
    run.hits("fiqa", "clean", ["q1"], k=1)
    with pytest.raises(DataError, match="cannot be high_noise too"):
        run.hits("fiqa", "high_noise", ["q1"], k=1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 Q0 d1 1 0.5", "line 2: 5 columns instead of 6"),
        ("q1 Q0 d2 1 nan t", "line 2: the score 'nan'"),
        ("q1 Q0 d2 1 x t", "line 2: the score 'x'"),
        ("q1 Q0 d1 1 0.4 t", "line 2: 'd1' occurs twice for query 'q1'"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "wrong.trec"
    path.write_text(f"q1 Q0 d1 1 0.5 t\n{line}\n")
    with pytest.raises(DataError, match=message):
        TrecRun(path).hits("fiqa", "clean", ["q1"], k=1)


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no runs at"):
        _ = load_retriever(f"trec:{tmp_path / 'none.trec'}").spec
    (tmp_path / "latin.trec").write_bytes(b"q Q0 d\xe9 1 1 t\n")
    with pytest.raises(DataError, match=r"latin\.trec cannot be read"):
        TrecRun(tmp_path / "latin.trec").hits("fiqa", "clean", ["q"], k=1)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(RUN.encode() * 200)
    spoiled = bytearray(packed)
    spoiled[20:60] = bytes(40)
    for content in (packed[: len(packed) // 2], bytes(spoiled)):
        (tmp_path / "x.trec.gz").write_bytes(content)
        with pytest.raises(DataError, match=r"x\.trec\.gz cannot be read"):
            TrecRun(tmp_path / "x.trec.gz").hits("fiqa", "clean", ["q"], k=1)


def test_the_order_is_that_of_pytrec_eval(tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    scores = {f"d{i}": float(i * 7 % 4) for i in range(30)}
    (tmp_path / "a.run").write_text("".join(f"q Q0 {d} 1 {s} t\n" for d, s in scores.items()))
    (hits,) = TrecRun(tmp_path / "a.run").hits("s", "clean", ["q"], k=30)
    for depth in (1, 5, 10, 20):
        qrels = {"q": {hit.document_id: 1 for hit in hits[:depth]}}
        found = pytrec_eval.RelevanceEvaluator(qrels, {f"P.{depth}"}).evaluate({"q": scores})
        assert found["q"][f"P_{depth}"] == 1.0
