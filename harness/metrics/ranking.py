"""Ranking metrics with trec_eval's semantics, per query and on average.

A run is ordered by score descending, ties by document id descending. A grade of 0 or less is not relevant, the ideal is
made from all judgments. A query that is missing from the run scores 0; one without a relevant document is left out.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...errors import DataError, IntegrityError, UsageError
from .registry import Metric, depth_of, parse_metric

V = TypeVar("V")
Hits = Sequence[tuple[Any, float]] | Mapping[Any, float]
DEFAULT_METRICS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class RankingScores:
    """Scores of one run.

    `per_query[metric][query id]` covers the `n_queries` queries with a relevant document, in the order of the
    judgments; `mean[metric]` is their unweighted mean. `missing` queries are not in the run (they score 0),
    `no_relevant` have no relevant document (excluded), `unjudged` counts hits without judgment within the deepest
    cut-off, `unknown_queries` are in the run but not in the judgments (ignored).
    """

    per_query: dict[str, dict[str, float]]
    mean: dict[str, float]
    n_queries: int
    missing: int
    no_relevant: int
    unjudged: int
    unknown_queries: int


def parse_grade(query_id: object, document_id: object, grade: object) -> int:
    """A grade as int; "2" and 2.0 are accepted. Raises `DataError` naming query and document."""
    try:
        value = int(grade) if isinstance(grade, str) else grade
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        # numpy integers know __index__, floats with a fraction do not.
        return value.__index__()  # type: ignore[attr-defined,no-any-return]
    except (AttributeError, ValueError) as error:
        raise DataError(
            f"the grade of document {document_id!r} for query {query_id!r} is {grade!r}.",
            hint="Grades are whole numbers.",
        ) from error


def string_keys(what: str, table: Mapping[Any, V]) -> dict[str, V]:
    """`table` with its ids as strings; two ids that become the same string (7 and "7") raise `DataError`."""
    if isinstance(table, dict) and set(map(type, table)) <= {str}:
        return table
    result = {str(key): value for key, value in table.items()}
    if len(result) != len(table):
        raise DataError(f"two ids of the {what} are the same when written as text.", hint="Make the ids unique.")
    return result


def order_hits(query_id: str, hits: Hits) -> list[str]:
    """Document ids, best first: score descending, ties by id descending; of a repeated id the first entry counts.

    Raises `DataError` naming query and document if a score is NaN or infinite.

    >>> order_hits("q", [("a", 1.0), ("b", 1.0), ("c", 2.0), ("a", 9.0)])
    ['c', 'b', 'a']
    """
    pairs = list(hits.items() if isinstance(hits, Mapping) else hits)
    documents = [str(document_id) for document_id, _ in pairs]
    values = [score for _, score in pairs]
    # Finite numbers may add up to infinity, so only then each is looked at.
    if not math.isfinite(sum(values)):
        for document_id, score in zip(documents, values, strict=True):
            if not math.isfinite(score):
                raise DataError(
                    f"the score of document {document_id!r} for query {query_id!r} is {score}.",
                    hint="Scores must be finite numbers.",
                )
    if all(map(operator.gt, values, values[1:])) and len(set(documents)) == len(documents):
        return documents
    scores: dict[str, float] = {}
    for document_id, score in zip(documents, values, strict=True):
        scores.setdefault(document_id, float(score))
    # Two stable sorts: ids descending first, then scores descending.
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


def score_ranking(
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Hits],
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    ignore_identical_ids: bool = False,
) -> RankingScores:
    """Score a run: query id → hits, as (document id, score) pairs or a mapping.

    Ids may be of any type and are joined as strings; grades may come as strings. `metrics` are ranking metrics of the
    registry, by name or as objects: `ndcg` (linear gain), `ndcg_exp` (2^grade − 1), … Only queries with
    judgments are scored: to evaluate a part, pass the judgments of that part. `ignore_identical_ids` drops the
    document that has the query's own id (for collections whose queries are documents).

    Raises `UnknownNameError` for a metric, `DataError` for a bad grade or score or if no query has a relevant document,
    `IntegrityError` if a result breaks an invariant (a defect of ours).

    >>> scores = score_ranking({"q": {"a": 2, "b": 1}}, {"q": [("x", 3.0), ("a", 2.0), ("b", 1.0)]})
    >>> {name: round(value, 4) for name, value in scores.mean.items()}
    {'ndcg_at_10': 0.6697, 'mrr_at_10': 0.5, 'recall_at_10': 1.0}
    """
    if not metrics:
        raise UsageError("no metric was asked for.", hint="Name at least one, for example ndcg_at_10.")
    parsed = [parse_metric(name) for name in metrics]
    other = next((metric for metric in parsed if not metric.is_ranking), None)
    if other is not None:
        raise UsageError(f"{other.name} is no metric of a ranking.", hint="For example ndcg_at_10.")
    scorers = {metric.name: (metric.family.score, metric.depth) for metric in parsed}
    depth = depth_of(parsed)
    judgments = string_keys("judgments", qrels)
    hits_by_query = string_keys("run", run)
    per_query: dict[str, dict[str, float]] = {name: {} for name in scorers}
    missing = no_relevant = unjudged = 0
    single: set[str] = set()
    for query_id, documents in judgments.items():
        table = string_keys(f"judgments of query {query_id!r}", documents)
        grades = {doc: parse_grade(query_id, doc, grade) for doc, grade in table.items()}
        if ignore_identical_ids:
            grades.pop(query_id, None)
        judged = sorted((g for g in grades.values() if g > 0), reverse=True)
        if not judged:
            no_relevant += 1
            continue
        if len(judged) == 1:
            single.add(query_id)
        missing += query_id not in hits_by_query
        ranked = order_hits(query_id, hits_by_query.get(query_id, ()))
        if ignore_identical_ids:
            ranked = [doc for doc in ranked if doc != query_id]
        ranked = ranked[:depth]
        graded = [grades.get(doc) for doc in ranked]
        unjudged += graded.count(None)
        found = [(rank, grade) for rank, grade in enumerate(graded, start=1) if grade is not None and grade > 0]
        for name, (score, k) in scorers.items():
            top = [hit for hit in found if hit[0] <= k]
            per_query[name][query_id] = score(k, top, judged) if top and score is not None else 0.0
    n = len(next(iter(per_query.values())))
    if n == 0:
        raise DataError("no query has a relevant document.", hint="Check the judgments (grades above 0, right ids).")
    check_invariants(per_query, single_relevant=single)
    return RankingScores(
        per_query=per_query,
        mean={name: math.fsum(values.values()) / n for name, values in per_query.items()},
        n_queries=n,
        missing=missing,
        no_relevant=no_relevant,
        unjudged=unjudged,
        unknown_queries=len(hits_by_query.keys() - judgments.keys()),
    )


def check_invariants(per_query: Mapping[str, Mapping[str, float]], *, single_relevant: Collection[str]) -> None:
    """Raise `IntegrityError` for a score outside [0, 1], or, with one relevant document, unless MRR ≤ nDCG ≤ Recall."""
    for name, values in per_query.items():
        for query_id, value in values.items():
            if not -_TOLERANCE <= value <= 1 + _TOLERANCE:
                raise IntegrityError(f"{name} of query {query_id!r} is {value}, outside [0, 1].")
    for name, values in per_query.items():
        family, _, k = name.partition("_at_")
        if family != "ndcg":
            continue
        for query_id in single_relevant:
            value = values[query_id]
            low = per_query.get(f"mrr_at_{k}", values)[query_id]
            high = per_query.get(f"recall_at_{k}", values)[query_id]
            if not low - _TOLERANCE <= value <= high + _TOLERANCE:
                raise IntegrityError(
                    f"query {query_id!r} has one relevant document, but not MRR {low} <= nDCG {value} <= Recall {high}."
                )
