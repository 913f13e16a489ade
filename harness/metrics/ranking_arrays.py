"""The ranking metrics of `ranking` over arrays, for the full benchmark: queries × k document indices.

Instead of looking up every retrieved document, every judged document is searched in its query's row: there are far
fewer judgments than retrieved documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, IntegrityError, UsageError
from .ranking import DEFAULT_METRICS, parse_grade, parse_metric, string_keys

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NO_DOCUMENT = -1
_OUTSIDE_CORPUS = -2
_CHUNK_CELLS = 8_000_000


@dataclass(frozen=True, slots=True)
class ArrayJudgements:
    """Judgments as arrays: those of query `query_ids[i]` are `documents[starts[i]:starts[i + 1]]` and their grades."""

    query_ids: tuple[str, ...]
    starts: Ints
    documents: Ints
    grades: Ints

    @classmethod
    def from_qrels(cls, qrels: Mapping[str, Mapping[str, int]], index: Mapping[str, int]) -> ArrayJudgements:
        """From judgments and each document id's index. A judged document outside the corpus stays in the ideal."""
        table = string_keys("judgments", qrels)
        rows = list(table.values())
        ids = list(chain.from_iterable(rows))
        grades = list(chain.from_iterable(row.values() for row in rows))
        # The usual types are looked at all at once, others query by query.
        if not (set(map(type, ids)) <= {str} and set(map(type, grades)) <= {int}):
            rows = [string_keys(f"judgments of query {query_id!r}", row) for query_id, row in table.items()]
            ids = list(chain.from_iterable(rows))
            grades = [
                parse_grade(query_id, document_id, grade)
                for query_id, row in zip(table, rows, strict=True)
                for document_id, grade in row.items()
            ]
        starts = np.cumsum([0, *map(len, rows)])
        documents = [index.get(document_id, _OUTSIDE_CORPUS) for document_id in ids]
        return cls(
            tuple(table),
            starts.astype(np.int64),
            np.array(documents, dtype=np.int64),
            np.array(grades, dtype=np.int64),
        )


@dataclass(frozen=True, slots=True)
class ArrayScores:
    """As `RankingScores`; `per_query[metric]` is (Q,) float64 in the order of the judgments, NaN without relevant one.

    `missing` are queries whose row holds no document.
    """

    per_query: dict[str, Floats]
    mean: dict[str, float]
    n_queries: int
    missing: int
    no_relevant: int
    unjudged: int


def order_by_score(
    scores: NDArray[np.floating],
    documents: NDArray[np.integer],
    document_ids: Sequence[str],
    depth: int | None = None,
) -> NDArray[np.integer]:
    """(Q, k) document indices, each row by score descending, ties by document id descending.

    `scores` (Q, k) must be finite. With `depth` only the best so many columns come back, which is all that metrics with
    that cut-off read. Only rows that are not already in order are sorted. Signed indices keep their type, so that a
    large ranking needs little memory.

    >>> order_by_score(np.array([[1.0, 1.0, 2.0]]), np.array([[0, 1, 2]]), ["a", "b", "c"])
    array([[2, 1, 0]])
    """
    if scores.shape != documents.shape or scores.ndim != 2:
        raise UsageError(f"scores have shape {scores.shape}, documents {documents.shape}.", hint="Give (Q, k) twice.")
    if depth is not None and depth < 1:
        raise UsageError(f"the depth is {depth}.", hint="Give 1 or more.")
    width = scores.shape[1] if depth is None else min(depth, scores.shape[1])
    signed = np.issubdtype(documents.dtype, np.signedinteger)
    best: NDArray[np.integer] = documents[:, :width].astype(documents.dtype if signed else np.int64)
    step = max(1, _CHUNK_CELLS // max(1, scores.shape[1]))
    for start in range(0, len(scores), step):
        part = scores[start : start + step]
        if not np.isfinite(part).all():
            row = start + int(np.argmin(np.isfinite(part).all(axis=1)))
            raise DataError(f"row {row} of the scores holds a value that is not finite.", hint="Scores must be finite.")
        rising = (part[:, 1:] > part[:, :-1]).any(axis=1)
        # A tie matters if it reaches into the columns that come back.
        tied = (part[:, 1 : width + 1] == part[:, : part[:, 1 : width + 1].shape[1]]).any(axis=1)
        rows = np.flatnonzero(rising | tied)
        if len(rows):
            own, values = documents[start + rows], part[rows]
            order = np.lexsort((_places(own, values, document_ids), -values), axis=1)
            best[start + rows] = np.take_along_axis(own, order[:, :width], axis=1)
    return best


def _places(documents: NDArray[np.integer], scores: NDArray[np.floating], document_ids: Sequence[str]) -> Ints:
    """Of every cell, the place of its id in descending order; 0 for documents that no other ties with."""
    rising = (scores[:, 1:] > scores[:, :-1]).any(axis=1)
    tied = np.zeros(scores.shape, dtype=bool)
    equal = scores[:, 1:] == scores[:, :-1]
    tied[:, 1:] |= equal
    tied[:, :-1] |= equal
    # Of rows that are out of order, ties need not be neighbors yet.
    tied[rising] = True
    wanted = np.unique(documents[tied]).tolist()
    place = np.zeros(len(document_ids), dtype=np.int64)
    place[sorted(wanted, key=document_ids.__getitem__, reverse=True)] = np.arange(len(wanted))
    found: Ints = place[documents]
    return found


def _ranks(judgments: ArrayJudgements, ranked: NDArray[np.integer], depth: int) -> Ints:
    """Rank (from 1) of each judged document in its query's row within `depth`; 0 if it is not there."""
    owners = np.repeat(np.arange(len(judgments.query_ids)), np.diff(judgments.starts))
    wanted = judgments.documents.astype(ranked.dtype)
    ranks = np.zeros(len(owners), dtype=np.int64)
    step = max(1, _CHUNK_CELLS // max(1, depth))
    for start in range(0, len(owners), step):
        part = slice(start, start + step)
        rows, columns = np.nonzero(ranked[owners[part], :depth] == wanted[part, None])
        if len(rows) != len(np.unique(rows)):
            twice = rows[np.flatnonzero(np.diff(rows) == 0)[0]] + start
            query = judgments.query_ids[owners[twice]]
            raise DataError(f"a document stands twice in the ranking of query {query!r}.", hint="Remove duplicates.")
        ranks[start + rows] = columns + 1
    return ranks


def score_arrays(
    judgments: ArrayJudgements, ranked: NDArray[np.integer], metrics: Sequence[str] = DEFAULT_METRICS
) -> ArrayScores:
    """Score `ranked` (Q, k): signed document indices, best first, row i for query i of the judgments, -1 for none.

    Documents of a row are distinct (a judged one that stands twice raises `DataError`); see `order_by_score` for ties.

    >>> judgments = ArrayJudgements.from_qrels({"q": {"a": 2, "b": 1}}, {"a": 0, "b": 1, "x": 2})
    >>> score_arrays(judgments, np.array([[2, 0, 1]])).per_query["ndcg_at_10"].round(4)
    array([0.6697])
    """
    queries = len(judgments.query_ids)
    if ranked.ndim != 2 or len(ranked) != queries or not np.issubdtype(ranked.dtype, np.signedinteger):
        raise UsageError(
            f"the ranking has shape {ranked.shape} and type {ranked.dtype}.",
            hint=f"Give signed integers, one row for each of {queries} queries.",
        )
    parsed = {name: parse_metric(name) for name in metrics}
    if not parsed:
        raise UsageError("no metric was asked for.", hint="Name at least one, for example ndcg_at_10.")
    depth = min(max(k for _, k in parsed.values()), ranked.shape[1])
    ranks = _ranks(judgments, ranked, depth)
    owners = np.repeat(np.arange(queries), np.diff(judgments.starts))
    found = ranks > 0
    positive = judgments.grades > 0
    relevant = np.bincount(owners[positive], minlength=queries)
    answerable = relevant > 0
    filled = (ranked[:, :depth] >= 0).sum(axis=1)
    n = int(answerable.sum())
    if n == 0:
        raise DataError("no query has a relevant document.", hint="Check the judgments (grades above 0, right ids).")

    # The relevant documents that were found, by query and rank.
    hit = np.flatnonzero(found & positive)
    hit = hit[np.lexsort((ranks[hit], owners[hit]))]
    hit_owner, hit_rank, hit_grade = owners[hit], ranks[hit], judgments.grades[hit]
    first = np.ones(len(hit), dtype=bool)
    first[1:] = hit_owner[1:] != hit_owner[:-1]
    nth = _within_group(hit_owner, queries)
    # All relevant documents, by query and falling grade: the ideal ranking.
    best = np.flatnonzero(positive)
    best = best[np.lexsort((-judgments.grades[best], owners[best]))]
    best_owner, best_grade = owners[best], judgments.grades[best]
    best_rank = _within_group(best_owner, queries)

    def total(owner: Ints, weights: Floats, keep: NDArray[np.bool_]) -> Floats:
        # Without any weight bincount returns whole numbers.
        return np.bincount(owner[keep], weights=weights[keep], minlength=queries).astype(np.float64)

    per_query: dict[str, Floats] = {}
    share = np.maximum(relevant, 1).astype(np.float64)
    for name, (family, k) in parsed.items():
        within = hit_rank <= k
        if family in ("ndcg", "ndcg_exp"):
            value = total(hit_owner, _gains(family, hit_grade) / np.log2(hit_rank + 1.0), within)
            ideal = total(best_owner, _gains(family, best_grade) / np.log2(best_rank + 1.0), best_rank <= k)
            value /= np.where(answerable, ideal, 1.0)
        elif family == "mrr":
            value = total(hit_owner, 1.0 / hit_rank, within & first)
        elif family == "map":
            value = total(hit_owner, nth / hit_rank, within) / share
        else:
            counted = total(hit_owner, np.ones(len(hit)), within)
            value = {"recall": counted / share, "precision": counted / k}.get(family, (counted > 0).astype(np.float64))
        if ((value < 0) | (value > 1 + 1e-9)).any():
            raise IntegrityError(f"{name} of query {judgments.query_ids[int(value.argmax())]!r} lies outside [0, 1].")
        value[~answerable] = np.nan
        per_query[name] = value
    _check_invariants(judgments.query_ids, per_query, relevant == 1)
    judged_and_found = np.bincount(owners[found], minlength=queries)
    return ArrayScores(
        per_query=per_query,
        mean={name: float(np.nansum(value) / n) for name, value in per_query.items()},
        n_queries=n,
        missing=int((answerable & (filled == 0)).sum()),
        no_relevant=queries - n,
        unjudged=int((filled - judged_and_found)[answerable].sum()),
    )


def _check_invariants(query_ids: Sequence[str], per_query: Mapping[str, Floats], single: NDArray[np.bool_]) -> None:
    """With one relevant document MRR ≤ nDCG ≤ Recall at each cut-off, as `ranking.check_invariants` has it."""
    for name, values in per_query.items():
        family, k = parse_metric(name)
        if family != "ndcg":
            continue
        low, high = per_query.get(f"mrr_at_{k}", values), per_query.get(f"recall_at_{k}", values)
        broken = np.flatnonzero(single & ((values < low - 1e-9) | (values > high + 1e-9)))
        if len(broken):
            raise IntegrityError(
                f"query {query_ids[broken[0]]!r} has one relevant document, but not MRR {low[broken[0]]} <= "
                f"nDCG {values[broken[0]]} <= Recall {high[broken[0]]}."
            )


def _gains(family: str, grades: Ints) -> Floats:
    return np.exp2(grades) - 1.0 if family == "ndcg_exp" else grades.astype(np.float64)


def _within_group(owner: Ints, groups: int) -> Ints:
    """1, 2, … within each run of equal owners (sorted)."""
    sizes = np.bincount(owner, minlength=groups)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.arange(1, len(owner) + 1, dtype=np.int64) - starts[owner].astype(np.int64)
