"""What follows from the records of retrieval, and what nDCG, MRR and recall allow each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...metrics.ranking import score_ranking
from ...metrics.registry import Metric, metric_of
from ...metrics.stratified import unweighted_mean
from ...results.columns import Columns
from ...results.envelope import TEXT_CONDITION, TRANSCRIPT_FLAGS, Result, Score
from ..verification import (
    RATES,
    Mask,
    Problems,
    Recomputed,
    common_problems,
    condition_config_problem,
    count_problems,
    flag_counts,
    is_rate,
    keyed_values,
    rate_error,
    rate_scores,
    rate_values,
)
from .columns import items_schema

NULLABLE: frozenset[str] = frozenset()
config_problem = condition_config_problem
_CUT = 10
_TOLERANCE = 1e-9
_TRIO = ("ndcg_at_10", "mrr_at_10", "recall_at_10")
"""Metrics whose values bound each other."""
_GROWING = ("mrr", "recall", "map", "hit_rate")
"""Families whose value grows, or stays, with the cut-off."""


def _metrics(result: Result) -> list[Metric]:
    return [metric for metric in map(metric_of, result.scores) if metric.is_ranking]


def schema(result: Result) -> pa.Schema:
    return items_schema(_metrics(result), rewritten="rewriter" in result.system.components)


def rows(result: Result) -> int | None:
    return result.data.n


def summary_problems(result: Result) -> Problems:
    blocks = {"scores": result.scores}
    blocks |= {f"by_group.subset.{group.label}": group.scores for group in result.by_group.get("subset", [])}
    for where, scores in blocks.items():
        yield from _trio_problems(where, scores)
        for name in RATES:
            value = scores[name].value if name in scores else None
            if value is not None and (result.data.condition == TEXT_CONDITION or result.system.kind == "end-to-end"):
                yield f"{where}.{name}", "there are no transcripts, so there is no error rate"
    subsets = [group.scores for group in result.by_group.get("subset", [])]
    for metric in _metrics(result):
        values = [own[metric.name].value for own in subsets if metric.name in own]
        known = [value for value in values if value is not None]
        whole = result.scores[metric.name].value
        if whole is not None and known and abs(whole - math.fsum(known) / len(known)) > _TOLERANCE:
            mean = math.fsum(known) / len(known)
            yield f"scores.{metric.name}", f"{whole:.6g} is not the mean of the subsets, {mean:.6g}"
    if result.failures.get("missing") == result.data.n:
        yield "failures.missing", "no query found anything: the run failed"


def _trio_problems(where: str, scores: Mapping[str, Score]) -> Problems:
    values = [scores[name].value for name in _TRIO if name in scores]
    if len(values) < len(_TRIO) or None in values:
        return
    ndcg, mrr, recall = (value or 0.0 for value in values)
    if len({scores[name].n for name in _TRIO}) > 1:
        yield where, "nDCG, MRR and recall are of different numbers of queries"
    if (ndcg > _TOLERANCE) != (recall > _TOLERANCE) or (mrr > _TOLERANCE) != (recall > _TOLERANCE):
        yield where, f"nDCG {ndcg:.6g}, MRR {mrr:.6g} and recall {recall:.6g} exclude each other"
    # Where something was found among ten documents, MRR is at least 1/10, and recall at most 1.
    if recall > _CUT * mrr + _TOLERANCE:
        yield where, f"a recall of {recall:.6g} needs an MRR of {recall / _CUT:.6g}, not {mrr:.6g}"
    most = mrr_bound(mrr)
    if ndcg > most + 1e-6:
        yield where, f"an MRR of {mrr:.6g} allows an nDCG of {most:.6g}, not {ndcg:.6g}"


def mrr_bound(mrr: float) -> float:
    """The highest mean nDCG@10 that a mean MRR@10 allows: the concave hull of (1/rank, `best_ndcg(rank)`) and (0, 0).

    >>> mrr_bound(1.0), mrr_bound(0.0), round(mrr_bound(0.5), 4)
    (1.0, 0.0, 0.8329)
    """
    points = [(0.0, 0.0), *((1 / rank, best_ndcg(rank)) for rank in range(_CUT, 0, -1))]
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (y - y0) < (y1 - y0) * (x - x0):
                break
            hull.pop()
        hull.append((x, y))
    for (x0, y0), (x1, y1) in itertools.pairwise(hull):
        if x0 <= mrr <= x1:
            return y0 + (y1 - y0) * (mrr - x0) / (x1 - x0)
    return 1.0


def best_ndcg(rank: int) -> float:
    """The highest nDCG@10 that is possible when the first relevant document is at `rank` (from 1).

    Gains are linear and the ideal lists them in descending order, so the ratio is largest for equal gains; it is the
    best over their number.

    >>> best_ndcg(1), round(best_ndcg(2), 4), round(best_ndcg(10), 4)
    (1.0, 0.8329, 0.2891)
    """
    discounts = 1 / np.log2(np.arange(2, _CUT + 2))
    return max(float(discounts[rank - 1 : rank - 1 + m].sum() / discounts[:m].sum()) for m in range(1, _CUT + 2 - rank))


def recompute(result: Result, columns: Columns) -> Recomputed:
    """Scores of all and by subset, and failures. Ranking metrics are the unweighted mean of the subsets' means."""
    own = np.array(columns.texts("subset"), dtype=object)
    masks = {subset: own == subset for subset in result.data.subsets}
    metrics = _metrics(result)
    scores = _scores(columns, masks, metrics)
    every = np.ones(len(columns), dtype=bool)
    scored = np.ones(len(columns), dtype=bool)
    for metric in metrics:
        scored &= np.isfinite(columns.floats(metric.name))
    documents = columns.lengths("documents")
    flags = flag_counts(columns)
    problems = [
        *common_problems(result, columns),
        *count_problems(columns),
        *_rank_problems(columns, metrics, _depth(result, metrics)),
    ]
    if result.data.condition == TEXT_CONDITION and any(
        np.isfinite(columns.floats(f"{unit}_reference_length")).any() for unit in RATES.values()
    ):
        problems.append(("items.word_reference_length", "typed queries have no error rate"))
    return Recomputed(
        scores=scores,
        by_group={"subset": {subset: _scores(columns, {subset: mask}, metrics) for subset, mask in masks.items()}},
        failures={
            **{name: flags[name] for name in ("failed", *TRANSCRIPT_FLAGS)},
            "missing": int((scored & (documents == 0)).sum()),
            "no_relevant": int((~scored).sum()),
        },
        errors={
            name: rate_error(columns, name, every)
            if is_rate(name)
            else _mean_error(columns, name, list(masks.values()))
            for name in scores
        },
        problems=problems,
    )


def _scores(columns: Columns, masks: Mapping[str, Mask], metrics: Sequence[Metric]) -> dict[str, Score]:
    chosen = np.logical_or.reduce(list(masks.values())) if masks else np.zeros(len(columns), dtype=bool)
    scores = rate_scores(columns, chosen)
    for metric in metrics:
        values = columns.floats(metric.name)
        strata = {
            subset: {str(place): float(value) for place, value in enumerate(values[mask]) if math.isfinite(value)}
            for subset, mask in masks.items()
        }
        mean = unweighted_mean(strata)
        n = sum(map(len, strata.values()))
        scores[metric.name] = Score(value=mean if math.isfinite(mean) else None, n=n)
    return scores


def _mean_error(columns: Columns, metric: str, masks: Sequence[Mask]) -> float | None:
    values = columns.floats(metric)
    filled = [own for own in (values[mask][np.isfinite(values[mask])] for mask in masks) if len(own)]
    if any(len(own) < 2 for own in filled):
        return None
    return math.sqrt(sum(float(own.var(ddof=1)) / len(own) / len(filled) ** 2 for own in filled))


def _depth(result: Result, metrics: Sequence[Metric]) -> int:
    """How many documents were retrieved at most."""
    given = result.system.settings.get("depth")
    return max([given if type(given) is int else _CUT, *(metric.depth for metric in metrics)])


def _rank_problems(columns: Columns, metrics: Sequence[Metric], depth: int) -> Problems:
    documents = columns.lengths("documents")
    if (columns.lengths("scores") != documents).any() or (documents > depth).any():
        yield "items.documents", f"a record names more than {depth} documents, or not one score for each"
    yield from _found_problems(columns, metrics, documents, depth)
    for metric in metrics:
        values = columns.floats(metric.name)
        values = values[np.isfinite(values)]
        if (values < -_TOLERANCE).any() or (values > 1 + _TOLERANCE).any():
            yield f"items.{metric.name}", "a score is outside [0, 1]"
    if not {*_TRIO} <= {metric.name for metric in metrics}:
        return
    ndcg, mrr, recall = (columns.floats(name) for name in _TRIO)
    scored = np.isfinite(ndcg)
    if (np.isfinite(mrr) != scored).any() or (np.isfinite(recall) != scored).any():
        yield "items.ndcg_at_10", "a record has some ranking metrics and lacks others"
        return
    ids = columns.texts("id")

    def noted(name: str, wrong: Mask, what: str) -> Problems:
        places = np.flatnonzero(wrong & scored)
        if len(places):
            i = int(places[0])
            yield (
                f"items.{name}",
                f"{what}: query {ids[i][:60]!r} has nDCG {ndcg[i]:.6g}, MRR {mrr[i]:.6g}, recall {recall[i]:.6g} "
                f"({len(places)} such)",
            )

    with np.errstate(divide="ignore", invalid="ignore"):
        rank = np.where(mrr > 0, 1 / mrr, 0.0)
        off = (np.abs(rank - np.round(rank)) > 1e-6) | (rank > _CUT + 0.5)
        yield from noted("mrr_at_10", off, "MRR is no 1/rank up to 10")
        one_only = ((ndcg > 0) != (mrr > 0)) | ((mrr > 0) != (recall > 0))
        yield from noted("ndcg_at_10", one_only, "one metric found something only")
        limits = np.array([0.0, *(best_ndcg(place) for place in range(1, _CUT + 1))])
        places = np.clip(np.nan_to_num(np.round(rank)), 0, _CUT).astype(np.intp)
        too_high = (ndcg > limits[places] + _TOLERANCE) & (mrr > 0)
        yield from noted("ndcg_at_10", too_high, "nDCG is higher than that rank allows")
        nothing = (recall > 0) & (documents == 0)
        yield from noted("recall_at_10", nothing, "something was found among no documents")


def _found_problems(columns: Columns, metrics: Sequence[Metric], documents: NDArray[np.int64], depth: int) -> Problems:
    """What metrics of any depth, and the rank of the first relevant document, say of each other."""
    first, ids = columns.floats("first_relevant_rank"), columns.texts("id")
    # Older results name ten documents, or as many as their metrics look at, however many were retrieved.
    cut = max([_CUT, *(metric.depth for metric in metrics)])
    behind = np.flatnonzero((first < 0) | (first > depth) | ((first > documents) & (documents != cut)))
    if len(behind):
        i = int(behind[0])
        yield (
            "items.first_relevant_rank",
            f"the first relevant document of query {ids[i][:60]!r} is at rank {first[i]:.0f} of {documents[i]} "
            f"({len(behind)} such)",
        )
    # Where scores are tied the order is trec_eval's, and the rank that of the list as it was given.
    ordered = _strictly_ordered(columns.table["scores"])
    before: dict[str, Metric] = {}
    for metric in sorted(metrics, key=lambda one: one.depth):
        values = columns.floats(metric.name)
        found = (first >= 1) & (first <= metric.depth)
        if metric.family.name in ("mrr", "hit_rate"):
            expected = 1 / np.maximum(first, 1) if metric.family.name == "mrr" else np.ones(len(first))
            differs = np.abs(np.where(found, expected, 0.0) - values) > _TOLERANCE
        else:
            differs = (values > 0) != found
        wrong = np.flatnonzero(differs & ordered & np.isfinite(values))
        if len(wrong):
            i = int(wrong[0])
            yield (
                "items.first_relevant_rank",
                f"{metric.label} is not that of the first relevant rank: it is {values[i]:.6g} for query "
                f"{ids[i][:60]!r}, whose first is at {first[i]:.0f} ({len(wrong)} such)",
            )
        shallow = before.get(metric.family.name)
        if shallow is not None and metric.family.name in _GROWING:
            falls = np.flatnonzero(columns.floats(shallow.name) > values + _TOLERANCE)
            if len(falls):
                yield (
                    f"items.{metric.name}",
                    f"it is below {shallow.label} for query {ids[int(falls[0])][:60]!r} ({len(falls)} such)",
                )
        before[metric.family.name] = metric


def judged_problems(result: Result, columns: Columns, qrels: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Problems:
    """Ranking metrics that are not those of the documents; `qrels` are grades by subset, query and document.

    A subset without judgments is left out.
    """
    metrics = _metrics(result)
    subsets, ids, queries = columns.texts("subset"), columns.texts("id"), columns.texts("cluster")
    documents, scores = columns.table["documents"].to_pylist(), columns.table["scores"].to_pylist()
    given = {metric.name: columns.floats(metric.name) for metric in metrics}
    for subset in result.data.subsets:
        judged = qrels.get(subset)
        if judged is None:
            continue
        rows = {ids[i]: i for i, own in enumerate(subsets) if own == subset}
        grades = {id_: judged.get(queries[i], judged.get(id_, {})) for id_, i in rows.items()}
        hits = {id_: list(zip(documents[i], scores[i], strict=True)) for id_, i in rows.items() if documents[i]}
        again = score_ranking(grades, hits, metrics)
        for name, values in again.per_query.items():
            wrong = [id_ for id_, i in rows.items() if not _same(values.get(id_, math.nan), float(given[name][i]))]
            if wrong:
                first = wrong[0]
                yield (
                    f"items.{name}",
                    f"query {first[:60]!r} of {subset} has {given[name][rows[first]]:.6g}, its documents and the "
                    f"judgments give {values.get(first, math.nan):.6g} ({len(wrong)} such)",
                )
        known = {queries[i] for i in rows.values()} | rows.keys()
        lacking = [id_ for id_, own in judged.items() if id_ not in known and any(grade > 0 for grade in own.values())]
        if lacking and not result.data.partial:
            yield (
                "items.id",
                f"{len(lacking)} judged queries of {subset} have no record; the first is {lacking[0][:60]!r}",
            )


def _same(a: float, b: float) -> bool:
    return math.isnan(a) and math.isnan(b) if math.isnan(a) or math.isnan(b) else abs(a - b) <= _TOLERANCE


def _strictly_ordered(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Whether each list of scores falls strictly; an infinite or undefined score is no order."""
    lists = column.combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.chunk(0) if lists.num_chunks else pa.array([], lists.type)
    values = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    lengths = np.asarray(pc.list_value_length(lists).to_numpy(zero_copy_only=False), dtype=np.int64)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    falls = np.ones(len(lengths), dtype=bool)
    if len(values) > 1:
        same = rows[1:] == rows[:-1]
        falls[rows[1:][same & ~(values[1:] < values[:-1])]] = False
    falls[rows[~np.isfinite(values)]] = False
    return falls


def item_values(table: pa.Table, metric: str, subset: str, *, lenient: bool = False) -> dict[str, dict[str, float]]:
    """Ranking metrics are means over subsets, so these are the strata; a corpus rate has one."""
    if is_rate(metric):
        return rate_values(table, metric, subset, lenient=lenient)
    if metric not in table.column_names or not metric_of(metric).is_ranking:
        return {}
    columns = Columns(table)
    values = columns.floats(metric)
    names = [subset] if subset else list(dict.fromkeys(columns.texts("subset")))
    found = {name: keyed_values(columns, values, name) for name in names}
    return {name: own for name, own in found.items() if own}
