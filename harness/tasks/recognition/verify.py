"""What follows from the records of speech recognition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...results.columns import Columns
from ...results.envelope import ACOUSTIC_COLUMNS, TRANSCRIPT_COLUMNS, Result, item_schema
from ..verification import (
    RATES,
    Problems,
    Recomputed,
    common_problems,
    condition_config_problem,
    count_problems,
    flag_counts,
    rate_error,
    rate_scores,
    rate_values,
)

NULLABLE: frozenset[str] = frozenset()
config_problem = condition_config_problem
_STRANGE_RATE = 5.0


def schema(result: Result) -> pa.Schema:
    return item_schema(*ACOUSTIC_COLUMNS, *TRANSCRIPT_COLUMNS)


def rows(result: Result) -> int | None:
    return result.data.n


def summary_problems(result: Result) -> Problems:
    for name, score in result.scores.items():
        if score.value is not None and score.value > _STRANGE_RATE:
            yield f"scores.{name}", f"{score.value:.4g} is more than {_STRANGE_RATE:.0f} errors per token"


def recompute(result: Result, columns: Columns) -> Recomputed:
    every = np.ones(len(columns), dtype=bool)
    scores = rate_scores(columns, every)
    subsets = np.array(columns.texts("subset"), dtype=object)
    # Rows of one utterance are drawn together: their standard error is not that of single rows.
    alone = result.data.clusters == len(columns)
    return Recomputed(
        scores=scores,
        by_group={"subset": {subset: rate_scores(columns, subsets == subset) for subset in result.data.subsets}}
        if "subset" in result.by_group
        else {},
        failures=flag_counts(columns),
        errors={name: rate_error(columns, name, every) for name in scores} if alone else {},
        problems=[*common_problems(result, columns), *count_problems(columns)],
    )


def item_values(table: pa.Table, metric: str, subset: str, *, lenient: bool = False) -> dict[str, dict[str, float]]:
    return rate_values(table, metric, subset, lenient=lenient) if metric.removesuffix("_macro") in RATES else {}
