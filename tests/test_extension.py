"""One of each from outside the package, in a few lines: transcriber, condition, metric, benchmark; used together.

The four are the Python blocks of CONTRIBUTING.md, as files in a folder of the user's own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import squtr
from squtr.errors import UsageError
from squtr.harness.report import write_report
from squtr.harness.results.envelope import read_runs
from tests.loaders.collections_for_tests import make_collection

LONGEST = 30
"""Lines of each of the four."""

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="only in a checkout")
NAMES = ("my_transcriber", "my_condition", "my_metric", "my_benchmark")


def files() -> dict[str, str]:
    """The Python blocks of the page by the name of the file that their first line is."""
    found = re.findall(
        r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return dict(found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, content in files().items():
        (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_short(name: str) -> None:
    assert len(files()[name].splitlines()) < LONGEST


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
        "class:my_transcriber:ByLength + bm25",
        data="data",
        benchmark=row,
        out="run",
        cache="cache",
        resamples=20,
        self_check=False,
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


def test_a_benchmark_must_fit_the_data() -> None:
    for system, given, message in (
        (
            "whisper-base + bm25",
            {"benchmark": "escucha", "data": "mini"},
            "holds speech, and the task of .* understanding",
        ),
        (
            "whisper-base",
            {"benchmark": "squtr", "data": "questions:mini"},
            "holds questions, and the task of .* retrieval",
        ),
        ("whisper-base + bm25", {}, "no data is given"),
        ("whisper-base + bm25", {"benchmark": "retrieval"}, "is for data of one's own"),
        ("whisper-base + bm25", {"benchmark": "sqtr"}, "unknown benchmark 'sqtr'"),
    ):
        with pytest.raises(UsageError, match=message):
            squtr.evaluate(system, **given)
