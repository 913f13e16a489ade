"""Evaluations of stand-ins, which cannot pass the self-check."""

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
    """As the function of that name, without the self-check."""
    return evaluate.evaluate_records(systems, data, options=replace(options or Options(), self_check=False), **given)


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
