"""What follows from the records of a run: scores, failures, and what cannot be. Each task has a `verify` module.

A `verify` module has

    schema(result) -> pa.Schema            the columns that the records of such a result have
    NULLABLE: frozenset[str]               those that may hold nulls
    config_problem(data) -> str            why a config is not that of its language, subsets and condition, else ""
    rows(result) -> int | None             how many rows there must be, None where that depends on how it was run
    summary_problems(result) -> Problems   what cannot be, or is hard to believe, in the summary alone
    recompute(result, columns) -> Recomputed

Nothing here needs torch, datasets or a room: whoever hosts results can check them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import unknown_name
from ...loaders.text import has_replacement
from ..metrics.failed_items import rate_bounds
from ..results.columns import Columns, Floats
from ..results.envelope import FLAGS, DataInfo, Result, Score
from . import TASKS

Mask = NDArray[np.bool_]
Problems = Iterator[tuple[str, str]]
"""Where, and what is wrong."""
RATES: Mapping[str, str] = {"wer": "word", "cer": "char"}
"""Error rates and the unit whose counts they are made of. Where texts were rewritten, theirs stand beside them."""
_REWRITTEN = {f"{name}_rewritten": f"rewritten_{unit}" for name, unit in RATES.items()}
KINDS = ("substitutions", "deletions", "insertions")


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the records give.

    `scores` are without intervals, `by_group` by breakdown and label, as far as the records determine them. `failures`
    are counts by kind. `errors` maps a metric to the standard error of its score, None where it is not known. `values`
    is not part of it: ranking asks `item_values`.
    """

    scores: Mapping[str, Score]
    by_group: Mapping[str, Mapping[str, Mapping[str, Score]]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, float | None] = field(default_factory=dict)
    problems: Sequence[tuple[str, str]] = ()


class Verifier(Protocol):
    """A task's `verify` module."""

    NULLABLE: frozenset[str]

    def config_problem(self, data: DataInfo) -> str: ...

    def schema(self, result: Result) -> pa.Schema: ...

    def rows(self, result: Result) -> int | None: ...

    def summary_problems(self, result: Result) -> Problems: ...

    def recompute(self, result: Result, columns: Columns) -> Recomputed: ...

    def item_values(
        self, table: pa.Table, metric: str, subset: str, *, lenient: bool = False
    ) -> dict[str, dict[str, float]]:
        """The metric of each item by stratum (what is averaged unweighted) and item, {} where records lack it.

        In an error rate all words of a failed item are deleted; `lenient`: it has no error.
        """
        ...


Judgments = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Grades by subset, query (utterance) and document."""


def judged_problems(result: Result, columns: Columns, qrels: Judgments) -> Problems:
    """What does not follow from the records and judgments; nothing of a task that has none."""
    found = getattr(load_verifier(result.task), "judged_problems", None)
    if found is not None:
        yield from found(result, columns, qrels)


def load_verifier(task: str) -> Verifier:
    """The `verify` module of a task. Raises `UnknownNameError`."""
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    return cast(Verifier, import_module(f".{task}.verify", __package__))


def condition_config_problem(data: DataInfo) -> str:
    """Why a config is not `<language>_<condition>`, nor that of its only subset; "" if it is."""
    scopes = [data.language, *(data.subsets if len(data.subsets) == 1 else ())]
    known = [f"{scope}_{data.condition}" for scope in scopes]
    return "" if data.config in known else f"with these subsets and this condition it is called {' or '.join(known)}"


def is_rate(metric: str) -> bool:
    return metric.removesuffix("_macro") in {**RATES, **_REWRITTEN}


def _rates(table: pa.Table) -> Mapping[str, str]:
    """The error rates that records have counts of."""
    return {**RATES, **_REWRITTEN} if "rewritten" in table.column_names else RATES


def error_counts(columns: Columns, unit: str, mask: Mask) -> tuple[Floats, Floats]:
    """Errors (NaN of failed items) and reference lengths of the items of `mask` that have a reference length."""
    lengths = columns.floats(f"{unit}_reference_length")[mask]
    errors = sum((columns.floats(f"{unit}_{kind}")[mask] for kind in KINDS), np.zeros(len(lengths)))
    counted = np.isfinite(lengths)
    return errors[counted], lengths[counted]


def rate_scores(columns: Columns, mask: Mask) -> dict[str, Score]:
    """Corpus and macro error rates of the items of `mask` that have a transcript, with bounds where some have none."""
    scores: dict[str, Score] = {}
    for name, unit in _rates(columns.table).items():
        errors, lengths = error_counts(columns, unit, mask)
        bounds, macro_bounds = (rate_bounds(errors, lengths, macro=macro) for macro in (False, True))
        known = np.isfinite(errors)
        errors, lengths = errors[known], lengths[known]
        if not len(errors) and bounds is None:
            continue
        total = float(lengths.sum())
        value = float(errors.sum()) / total if total else None
        scores[name] = Score(value=value, n=len(errors), bounds=bounds)
        own = lengths > 0
        if own.any() or macro_bounds is not None:
            value = float((errors[own] / lengths[own]).mean()) if own.any() else None
            scores[f"{name}_macro"] = Score(value=value, n=int(own.sum()), bounds=macro_bounds)
    return scores


def rate_error(columns: Columns, metric: str, mask: Mask) -> float | None:
    """The standard error of an error rate over items that are drawn alone; None where it is not known."""
    errors, lengths = error_counts(columns, _rates(columns.table)[metric.removesuffix("_macro")], mask)
    kept = (lengths > 0) & np.isfinite(errors)
    errors, lengths = errors[kept], lengths[kept]
    if len(errors) < 2:
        return None
    if metric.endswith("_macro"):
        return float((errors / lengths).std(ddof=1) / math.sqrt(len(errors)))
    # By the delta method: the residuals of a ratio of sums.
    rest = errors - lengths * (errors.sum() / lengths.sum())
    return float(rest.std(ddof=1) * math.sqrt(len(errors)) / lengths.sum())


def rate_values(table: pa.Table, metric: str, subset: str, *, lenient: bool = False) -> dict[str, dict[str, float]]:
    """The errors of each item (divided by its length for a macro rate), in one stratum, by which systems are ranked.

    A corpus rate needs no divisor: all systems have the same references. All words of an item that failed count as
    deleted (`lenient`: as right): a system that leaves out what is hard is not the better for it.
    """
    columns = Columns(table)
    unit = _rates(table).get(metric.removesuffix("_macro"), "")
    if not unit:
        return {}
    lengths = columns.floats(f"{unit}_reference_length")
    values = sum((columns.floats(f"{unit}_{kind}") for kind in KINDS), np.zeros(len(lengths)))
    values = np.where(np.isnan(values), 0 * lengths if lenient else lengths, values)
    if metric.endswith("_macro"):
        values = np.divide(values, lengths, out=np.full(len(lengths), math.nan), where=lengths > 0)
    return {"": keyed_values(columns, values, subset)} if len(columns) else {}


def keyed_values(columns: Columns, values: Floats, subset: str) -> dict[str, float]:
    """Finite values by item; an id is unique within its subset. `subset` "" takes all."""
    keys = zip(columns.texts("id"), columns.texts("subset"), values.tolist(), strict=True)
    return {f"{own}/{id_}": v for id_, own, v in keys if math.isfinite(v) and subset in ("", own)}


def flag_counts(columns: Columns) -> dict[str, int]:
    """How many items failed, and how many have each flag."""
    return {
        "failed": sum(bool(text) for text in columns.texts("error")),
        **{name: int(columns.has("flags", name).sum()) for name in FLAGS},
    }


def common_problems(result: Result, columns: Columns, *, unique: bool = True) -> Problems:
    """Records that are not of the result's items."""
    data = result.data
    keys = list(zip(columns.texts("subset"), columns.texts("id"), strict=True))
    if unique and len(set(keys)) != len(keys):
        yield "items.id", "an item has two records"
    if set(columns.texts("subset")) != set(data.subsets):
        yield "items.subset", f"the records are not of the subsets {', '.join(sorted(data.subsets))[:200]}"
    for column, wanted in (("condition", data.condition), ("language", data.language)):
        if set(columns.texts(column)) - {wanted}:
            yield f"items.{column}", f"some records are of another {column} than {wanted!r}"
    if len(set(columns.texts("cluster"))) > data.clusters:
        yield "items.cluster", f"there are more clusters than the result's {data.clusters}"


def count_problems(columns: Columns) -> Problems:
    """Error counts that cannot be, and flags that the texts belie."""
    yield from _flag_problems(columns)
    for unit in _rates(columns.table).values():
        names = [f"{unit}_{kind}" for kind in (*KINDS, "reference_length")]
        *known, long = [np.isfinite(columns.floats(name)) for name in names]
        if any((own != known[0]).any() for own in known[1:]) or (known[0] & ~long).any():
            yield f"items.{unit}_reference_length", "a record has some counts and lacks others"
            continue
        silent = np.array([not error for error in columns.texts("error")], dtype=bool)
        if (long & ~known[0] & silent).any():
            yield f"items.{unit}_reference_length", "a record has no error counts and did not fail"
        if long.any() and not long.all():
            yield (
                f"items.{unit}_reference_length",
                "a failed item has no reference length, without which the bounds of the error rate are not known: "
                "evaluate again with this version",
            )
        for name in names:
            values = columns.floats(name)
            values = values[np.isfinite(values)]
            if (values < 0).any() or (values != np.floor(values)).any():
                yield f"items.{name}", "a count is negative or no whole number"
        substitutions, deletions, _, length = (columns.floats(name)[known[0]] for name in names)
        if (substitutions + deletions > length).any():
            yield f"items.{unit}_deletions", "more words were replaced or deleted than there are"


def _flag_problems(columns: Columns) -> Problems:
    names = ("error", "text", "transcript", *(("rewritten",) if "rewritten" in columns.table.column_names else ()))
    lost = [
        not error and any(map(has_replacement, written)) and not has_replacement(text)
        for error, text, *written in zip(*(columns.texts(name) for name in names), strict=True)
    ]
    if (np.array(lost, dtype=bool) & ~columns.has("flags", "invalid_text")).any():
        yield "items.flags", "a transcript with lost characters (U+FFFD) is not marked invalid_text"
    wordless = np.array([not text.strip() for text in columns.texts("transcript")], dtype=bool)
    if any((wordless & columns.has("flags", name)).any() for name in ("loop", "hallucination")):
        yield "items.flags", "a transcript without text is marked as a loop or a hallucination"
