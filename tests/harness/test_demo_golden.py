"""The numbers of the demos, from outputs of real models that were kept: scoring must give what it always gave.

The files of `tests/golden/` hold transcripts and replies of whisper-base and multilingual-e5-small as one machine gave
them, and the scores, losses and intervals that the first version of the package computed from them.
`recognition.json`, beside them, is of the third demo: see `test_recognition_golden.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import squtr
from squtr.harness.benchmarks import BENCHMARKS
from squtr.harness.results.envelope import Score
from squtr.loaders.build import build
from squtr.loaders.recipe import open_recipe

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def read(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def check(where: str, score: Score, expected: list[float | None]) -> None:
    for name, value in zip(("value", "low", "high", "n"), expected, strict=True):
        found = getattr(score, name)
        assert (found is None) == (value is None), (where, name)
        assert found is None or found == pytest.approx(value, abs=1e-9), (where, name)


def test_retrieval(tmp_path: Path) -> None:
    golden, row = read("demo_retrieval.json"), BENCHMARKS["squtr"]
    assert row.demo is not None
    lines = [
        {"subset": subset, "condition": condition, "id": id_, "text": text}
        for subset, conditions in golden["transcripts"].items()
        for condition, texts in conditions.items()
        for id_, text in texts.items()
    ]
    transcripts = tmp_path / "transcripts.jsonl"
    transcripts.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    recipe = open_recipe(
        row.demo.source, conditions=row.demo.conditions, languages=row.demo.languages, limit=8, benchmark="squtr"
    )
    build(recipe, tmp_path / "data")
    results = squtr.evaluate(
        f"transcripts:{transcripts} + bm25", data=str(tmp_path / "data"), out=tmp_path / "run", cache=tmp_path / "home"
    )
    assert {result.data.config for result in results} == set(golden["scores"])
    for result in results:
        config = result.data.config
        for metric, expected in golden["scores"][config].items():
            check(f"{config} {metric}", result.scores[metric], expected)
        for baseline, by_metric in golden["losses"][config].items():
            for metric, (absolute, relative) in by_metric.items():
                loss = result.losses[baseline][metric]
                check(f"{config} {metric} against {baseline}", loss.absolute, absolute)
                check(f"{config} {metric} against {baseline}, relative", loss.relative, relative)


def test_understanding(tmp_path: Path) -> None:
    golden = read("demo_understanding.json")
    replies = tmp_path / "replies.jsonl"
    lines = [
        {"id": one["id"], "reply": one["reply"], **({"spoken": True} if one["spoken"] else {})}
        for one in golden["replies"]
    ]
    replies.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    (result,) = squtr.evaluate(
        f"replies:{replies}", data="questions:mini", out=tmp_path / "run", cache=tmp_path / "home"
    )
    for metric, expected in golden["scores"].items():
        check(metric, result.scores[metric], expected)
