"""An evaluation whose records are what a test looks at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from squtr.harness.evaluate import evaluate_records
from squtr.harness.evaluation.options import Options
from squtr.harness.results.envelope import RunRecord
from squtr.harness.systems import System


def evaluate_runs(
    systems: Sequence[System | str],
    data: Any,
    *,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    **options: Any,
) -> list[RunRecord]:
    """The records of all runs. Raises as `squtr.evaluate` if a run failed."""
    done = evaluate_records(systems, data, configs=configs, out=out, cache=cache, options=Options.of(options))
    done.raise_failures()
    return done.records
