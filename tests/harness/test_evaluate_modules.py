"""The modules for the `evaluate` library, loaded by it from their folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import squtr
from squtr.errors import DataError, UsageError
from squtr.harness.metrics.ranking import score_ranking

MODULES = Path(os.path.realpath(squtr.__path__[0])) / "harness" / "evaluate_modules"


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return pytest.importorskip("evaluate")


@pytest.fixture
def load(evaluate: Any, tmp_path: Path) -> Any:
    def loaded(name: str) -> Any:
        return evaluate.load(str(MODULES / name), cache_dir=str(tmp_path / "cache"), experiment_id=tmp_path.name)

    return loaded


def test_retrieval(load: Any) -> None:
    module = load("spoken_retrieval")
    references = [
        {"query_id": "1", "document_ids": ["a", "b"], "grades": [2, 1]},
        {"query_id": "2", "document_ids": ["c"], "grades": [1]},
        {"query_id": "3", "document_ids": ["c"], "grades": [0]},
    ]
    # In another order; query 2 found nothing.
    predictions = [
        {"query_id": "3", "document_ids": ["c"], "scores": [1.0]},
        {"query_id": "2", "document_ids": [], "scores": []},
        {"query_id": "1", "document_ids": ["x", "b", "a"], "scores": [3.0, 1.0, 2.0]},
    ]
    found = module.compute(predictions=predictions, references=references)
    direct = score_ranking({"1": {"a": 2, "b": 1}, "2": {"c": 1}}, {"1": [("x", 3), ("a", 2), ("b", 1)]})
    assert {name: found[name] for name in direct.mean} == pytest.approx(direct.mean)
    assert [found[k] for k in ("n_queries", "missing", "unjudged", "no_relevant")] == [2, 1, 1, 1]
    assert "map_at_5" in module.compute(predictions=predictions, references=references, metrics=["map_at_5"])


def test_retrieval_refuses_what_does_not_fit(load: Any) -> None:
    module = load("spoken_retrieval")
    reference = {"query_id": "1", "document_ids": ["a"], "grades": [1]}
    with pytest.raises(DataError, match="2 document_ids and 1 scores"):
        module.compute(
            predictions=[{"query_id": "1", "document_ids": ["a", "b"], "scores": [1.0]}], references=[reference]
        )
    prediction = {"query_id": "1", "document_ids": ["a"], "scores": [1.0]}
    with pytest.raises(DataError, match="query '1' stands twice"):
        load("spoken_retrieval").compute(predictions=[prediction] * 2, references=[reference, reference])


def test_recognition_by_position_and_by_id(load: Any) -> None:
    found = load("spoken_recognition").compute(
        predictions=["twenty one dogs", "a cut"], references=["21 dogs", "a cat"], language="en"
    )
    assert [found["wer"], found["substitutions"], found["n"], found["normalizer"]] == [0.25, 1, 2, "default"]
    by_id = load("spoken_recognition").compute(
        predictions=[{"id": "x", "text": "100倍"}, {"id": "y", "text": "手鸡"}],
        references=[{"id": "y", "text": "手机"}, {"id": "x", "text": "一百倍"}],
        language="zh",
    )
    assert [by_id["wer"], by_id["cer"], by_id["unit"]] == [None, pytest.approx(1 / 6), "char"]


def test_recognition_refuses_what_does_not_fit(load: Any) -> None:
    one, other = {"id": "x", "text": "a"}, {"id": "y", "text": "a"}
    with pytest.raises(DataError, match="no hypothesis for id 'x'"):
        load("spoken_recognition").compute(predictions=[other], references=[one], language="en")
    with pytest.raises(UsageError, match="written without spaces"):
        load("spoken_recognition").compute(predictions=["甲"], references=["甲"], language="zh", unit="word")


def test_modules_add_up_batches(load: Any) -> None:
    module = load("spoken_recognition")
    module.add_batch(predictions=["a b"], references=["a b"])
    module.add(prediction="a", reference="a b")
    assert module.compute(language="en")["wer"] == 0.25
