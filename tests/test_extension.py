"""One of each from outside the package, in a few lines: transcriber, condition, metric, benchmark; used together.

CONTRIBUTING.md shows the same; here the four are files beside one another in a folder of the user's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import squtr
from squtr.harness.report import write_report
from squtr.harness.results.envelope import read_runs
from tests.loaders.collections_for_tests import make_collection

LONGEST = 30
"""Lines of each of the four."""

TRANSCRIBER = '''
"""Tells clips apart by their length, as a stand-in for a model."""
from squtr.harness.protocols import ComponentSpec, Transcript

WORDS = "river stone lamp garden bridge".split()


class ByLength:
    sample_rate = 16_000
    spec = ComponentSpec("transcriber", "class", "by-length", revision="1")

    def supports(self, language):
        return language == "en"

    def transcribe(self, clips, *, language):
        return [Transcript(WORDS[round((len(clip) / 16_000 - 0.8) * 10) % 5]) for clip in clips]
'''

CONDITION = '''
"""The recording stops before its end: `cut_300` lacks the last 300 ms."""
from dataclasses import dataclass

from squtr.loaders.conditions.step import CHANNEL, StepKind


@dataclass(frozen=True)
class Cut:
    ms: int

    def as_dict(self):
        return {"step": "cut", "ms": self.ms}

    def apply(self, signal, utterance, context):
        kept = len(signal.samples) - signal.rate * self.ms // 1000
        return signal.passed_on(signal.samples[:kept], {"cut_ms": float(self.ms)})


def parse(text):
    return Cut(int(text.removeprefix("cut_")))


CUT = StepKind("cut", CHANNEL, r"cut_[1-9]\\d*", parse, columns={"cut_ms": "float64"})
'''

METRIC = '''
"""Rank-biased precision with persistence 0.8 (Moffat and Zobel 2008), of the first 20 documents."""
from squtr.harness.metrics.registry import Family, Metric


def rank_biased_precision(k, found, judged):
    return 0.2 * sum(0.8 ** (rank - 1) for rank, grade in found)


RBP = Metric(Family("rbp", "RBP", "higher", score=rank_biased_precision), 20)
'''

BENCHMARK = '''
"""A fourth benchmark of an existing task is a row."""
from squtr import Benchmark

ROW = Benchmark(
    name="cut_queries",
    version="1",
    task="retrieval",
    title="Cut queries: retrieval when the end of the query is missing",
    metrics=("my_metric:RBP", "recall_at_5", "wer"),
    groups=("subset", "cut_ms"),
    conditions=("clean", "cut_100", "cut_300"),
)
'''

FILES = {"my_transcriber": TRANSCRIBER, "my_condition": CONDITION, "my_metric": METRIC, "my_benchmark": BENCHMARK}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, content in FILES.items():
        (tmp_path / f"{name}.py").write_text(content.lstrip(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in FILES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", FILES)
def test_each_is_short(name: str) -> None:
    assert len(FILES[name].strip().splitlines()) < LONGEST


def test_they_are_used_together_in_one_evaluation(folder: Path) -> None:
    import my_benchmark  # type: ignore[import-not-found]
    import my_condition  # type: ignore[import-not-found]

    from squtr.loaders.build import build
    from squtr.loaders.recipe import open_recipe

    row = my_benchmark.ROW
    recipe = open_recipe(
        str(make_collection(folder / "tiny")), conditions=row.conditions, languages=["en"], steps=[my_condition.CUT]
    )
    build(recipe, folder / "data")
    results = squtr.evaluate(
        "class:my_transcriber:ByLength + bm25", data="data", benchmark=row, out="run", cache="cache", resamples=20
    )

    by_config = {result.data.config: result for result in results}
    assert list(by_config) == ["en_text", "en_clean", "en_cut_100", "en_cut_300"]
    clean, cut = by_config["en_clean"], by_config["en_cut_300"]
    assert {result.benchmark for result in results} == {"cut_queries"}
    assert clean.main_metric == "rbp_at_20"
    assert set(clean.scores) == {"rbp_at_20", "recall_at_5", "wer"}
    # The transcriber tells clips by their length: of clips that lack their end it takes most for others.
    assert clean.scores["wer"].value == 0.0
    assert cut.scores["wer"].value > 0.5
    assert cut.losses["clean"]["rbp_at_20"].absolute.value > 0.05
    assert clean.losses["text"]["rbp_at_20"].absolute.value == 0.0
    assert [group.label for group in cut.by_group["cut_ms"]] == ["300.0"]

    assert sorted(run.result.data.config for run in read_runs(Path("run"))) == sorted(by_config)
    page = write_report(Path("run"), Path("report.html")).read_text(encoding="utf-8")

    assert "cut_300" in page
    assert "rbp_at_20" in page or "RBP" in page
