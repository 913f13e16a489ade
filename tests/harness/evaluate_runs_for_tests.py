"""Evaluations of stand-ins, which cannot pass the self-check, on a few items of which one is a large share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from squtr.harness import evaluate
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.run import Evaluation
from squtr.harness.results.envelope import RunRecord
from squtr.harness.systems import System


def evaluate_records(
    systems: Sequence[System | str], data: Any, *, options: Options | None = None, **given: Any
) -> Evaluation:
    """As the function of that name, without the self-check; any share of the items may fail where none is given."""
    chosen = replace(options or Options(max_failed=1.0), self_check=False)
    return evaluate.evaluate_records(systems, data, options=chosen, **given)


def evaluate_runs(
    systems: Sequence[System | str],
    data: Any,
    *,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    **options: Any,
) -> list[RunRecord]:
    """The records of all runs, as `evaluate_records`. Raises as `squtr.evaluate` if a run failed."""
    chosen = Options.of({"max_failed": 1.0, **options})
    done = evaluate_records(systems, data, configs=configs, out=out, cache=cache, options=chosen)
    done.raise_failures()
    return done.records
