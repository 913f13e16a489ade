"""Scoring a result of `squtr` again from its per-query records, as the evaluation does.

Error rates come from the counts: the corpus rate is Σerrors / Σlength over all utterances, the macro rate the mean of
their own rates. Ranking metrics are the unweighted mean of the subsets' means, as published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..harness.metrics.stratified import unweighted_mean
from ..harness.results.old import TEXT_CONDITION, Result, Score
from .findings import Findings, close, number

RANKING_METRICS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")
RATES = {"wer": "word", "cer": "char"}
Floats = NDArray[np.float64]
_CUT = 10
_SURE = 100
"""From how many queries on the width of an interval is compared with the spread of the records."""


@dataclass(frozen=True, slots=True)
class Items:
    """The columns of a table as arrays: texts as (n,) of codes with their dictionary, numbers as (n,) float64."""

    table: pa.Table

    def floats(self, name: str) -> Floats:
        """A column of numbers."""
        return np.asarray(self.table[name].to_numpy(), dtype=np.float64)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column of truth values."""
        return np.asarray(self.table[name].to_numpy(zero_copy_only=False), dtype=np.bool_)

    def texts(self, name: str) -> list[str]:
        """A column of texts."""
        found: list[str] = self.table[name].to_pylist()
        return found

    def lengths(self, name: str) -> NDArray[np.int64]:
        """How many elements each list of a column has."""
        return np.asarray(pc.list_value_length(self.table[name]).to_numpy(), dtype=np.int64)


def rescore(items: Items, subsets: Iterable[str]) -> tuple[dict[str, Score], dict[str, dict[str, Score]]]:
    """The scores that follow from the records, without intervals: of all, and by subset."""
    own = np.array(items.texts("subset"), dtype=object)
    by_subset = {subset: _scores(items, {subset: own == subset}) for subset in subsets}
    return _scores(items, {subset: own == subset for subset in by_subset}), by_subset


def _scores(items: Items, masks: Mapping[str, NDArray[np.bool_]]) -> dict[str, Score]:
    chosen = np.logical_or.reduce(list(masks.values())) if masks else np.zeros(items.table.num_rows, dtype=bool)
    scores: dict[str, Score] = {}
    for name, unit in RATES.items():
        errors, lengths = items.floats(f"{unit}_errors")[chosen], items.floats(f"{unit}_reference_length")[chosen]
        counted = np.isfinite(errors) & np.isfinite(lengths)
        errors, lengths = errors[counted], lengths[counted]
        if not len(errors):
            continue
        total = float(lengths.sum())
        value = float(errors.sum()) / total if total else None
        scores[name] = Score(value=value, n=len(errors))
        said = lengths > 0
        if said.any():
            scores[f"{name}_macro"] = Score(value=float((errors[said] / lengths[said]).mean()), n=int(said.sum()))
    for metric in RANKING_METRICS:
        values = items.floats(metric)
        strata = {
            subset: {str(place): float(value) for place, value in enumerate(values[mask]) if math.isfinite(value)}
            for subset, mask in masks.items()
        }
        mean = unweighted_mean(strata)
        scores[metric] = Score(value=mean if math.isfinite(mean) else None, n=sum(map(len, strata.values())))
    return scores


def compare_scores(result: Result, items: Items, findings: Findings) -> None:
    """Note every score of a result that does not follow from the records, and every interval of an unlikely width."""
    scores, by_subset = rescore(items, result.data.subsets)
    _compare("scores", result.scores, scores, findings)
    for subset, own in by_subset.items():
        _compare(f"by_subset.{subset}", result.by_subset.get(subset, {}), own, findings)
    subsets = np.array(items.texts("subset"), dtype=object)
    for metric, score in result.scores.items():
        width = standard_error(items, metric, [subsets == subset for subset in result.data.subsets])
        if score.n < _SURE or score.low is None or score.high is None or width is None or width < 1e-6:
            continue
        ratio = (score.high - score.low) / (2 * 1.96 * width)
        if not 0.5 <= ratio <= 2:
            findings.error(
                f"scores.{metric}",
                f"the interval from {number(score.low)} to {number(score.high)} is {ratio:.2g} times as wide as the "
                "records say",
            )


def standard_error(items: Items, metric: str, masks: list[NDArray[np.bool_]]) -> float | None:
    """Of a score over these queries by subset; None where it is unknown."""
    name = metric.removesuffix("_macro")
    if name in RATES:
        unit = RATES[name]
        errors, lengths = items.floats(f"{unit}_errors"), items.floats(f"{unit}_reference_length")
        kept = np.isfinite(errors) & np.isfinite(lengths) & (lengths > 0)
        errors, lengths = errors[kept], lengths[kept]
        if len(errors) < 2:
            return None
        if metric.endswith("_macro"):
            return float((errors / lengths).std(ddof=1) / math.sqrt(len(errors)))
        # By the delta method: the residuals of a ratio of sums.
        rest = errors - lengths * (errors.sum() / lengths.sum())
        return float(rest.std(ddof=1) * math.sqrt(len(errors)) / lengths.sum())
    if metric not in RANKING_METRICS:
        return None
    variance = 0.0
    filled = [own[np.isfinite(own)] for own in (items.floats(metric)[mask] for mask in masks)]
    filled = [own for own in filled if len(own)]
    for own in filled:
        if len(own) < 2:
            return None
        variance += float(own.var(ddof=1)) / len(own) / len(filled) ** 2
    return math.sqrt(variance)


def _compare(where: str, said: Mapping[str, Score], found: Mapping[str, Score], findings: Findings) -> None:
    for name in dict.fromkeys((*said, *found)):
        a, b = said.get(name), found.get(name)
        if a is None or b is None:
            what = (
                "is not in the result, but follows from the records" if a is None else "does not follow from any record"
            )
            findings.error(f"{where}.{name}", f"this score {what}")
            continue
        same = a.value is b.value is None or (a.value is not None and b.value is not None and close(a.value, b.value))
        if not same:
            findings.error(f"{where}.{name}", f"the result says {number(a.value)}, its records give {number(b.value)}")
        if a.n != b.n:
            findings.error(f"{where}.{name}", f"the result says n = {a.n}, its records give {b.n}")


def compare_failures(result: Result, items: Items, findings: Findings) -> None:
    """Note every count of failures that does not follow from the records."""
    scored = np.isfinite(items.floats("ndcg_at_10"))
    hits = items.lengths("documents")
    counts = {
        "undecodable": sum(bool(text) for text in items.texts("error")),
        "loops": int(items.flags("loop").sum()),
        "truncated": int(items.flags("truncated").sum()),
        "empty": int(items.flags("empty").sum()),
        "hallucinations": int(items.flags("hallucination").sum()),
        "missing": int((scored & (hits == 0)).sum()),
        "no_relevant": int((~scored).sum()),
    }
    said = result.failures.model_dump()
    for name, count in counts.items():
        if said[name] != count:
            findings.error(f"failures.{name}", f"the result says {said[name]}, its records give {count}")
    most = int(hits.sum())
    if said["unjudged"] > most:
        findings.error("failures.unjudged", f"the result says {said['unjudged']} of {most} documents")


def check_items(result: Result, items: Items, findings: Findings) -> None:
    """Note records that are not those of the result's queries, or say what no system can do."""
    data = result.data
    ids, subsets = items.texts("id"), items.texts("subset")
    if len(set(zip(subsets, ids, strict=True))) != len(ids):
        findings.error("items.id", "a query has two records")
    if set(subsets) != set(data.subsets):
        findings.error(
            "items.subset", f"the records are of {sorted(set(subsets))[:9]}, the result of {data.subsets[:9]}"
        )
    for column, wanted in (("condition", data.condition), ("language", data.language)):
        other = set(items.texts(column)) - {wanted}
        if other:
            findings.error(f"items.{column}", f"the records say {sorted(other)[0]!r}, the result {wanted!r}")
    _check_counts(items, findings)
    _check_ranks(items, ids, findings)
    if data.condition == TEXT_CONDITION and any(np.isfinite(items.floats(f"{u}_errors")).any() for u in RATES.values()):
        findings.error("items.word_errors", "typed queries have no error rate")


def _check_counts(items: Items, findings: Findings) -> None:
    for unit in RATES.values():
        errors, lengths = items.floats(f"{unit}_errors"), items.floats(f"{unit}_reference_length")
        if (np.isfinite(errors) != np.isfinite(lengths)).any():
            findings.error(f"items.{unit}_errors", "a record has errors without a length, or a length without errors")
        for name, column in ((f"{unit}_errors", errors), (f"{unit}_reference_length", lengths)):
            known = column[~np.isnan(column)]
            if (known < 0).any() or (known != np.floor(known)).any() or np.isinf(known).any():
                findings.error(f"items.{name}", "a count is negative or no whole number")


def _check_ranks(items: Items, ids: list[str], findings: Findings) -> None:
    ndcg, mrr, recall = (items.floats(metric) for metric in RANKING_METRICS)
    first = items.floats("first_relevant_rank")
    hits = items.lengths("documents")
    scored = np.isfinite(ndcg)
    if (np.isfinite(mrr) != scored).any() or (np.isfinite(recall) != scored).any():
        findings.error("items.ndcg_at_10", "a record has some ranking metrics and lacks others")
        return
    if (items.lengths("scores") != hits).any() or (hits > _CUT).any():
        findings.error("items.documents", f"a record names more than {_CUT} documents, or not one score for each")

    def note(name: str, wrong: NDArray[np.bool_], what: str) -> None:
        places = np.flatnonzero(wrong & scored)
        if len(places):
            i = int(places[0])
            findings.error(
                f"items.{name}",
                f"{what}: query {ids[i]!r} has nDCG {number(ndcg[i])}, MRR {number(mrr[i])}, recall "
                f"{number(recall[i])} ({len(places)} such)",
            )

    with np.errstate(divide="ignore", invalid="ignore"):
        rank = np.where(mrr > 0, 1 / mrr, 0.0)
        for name, values in zip(RANKING_METRICS, (ndcg, mrr, recall), strict=True):
            note(name, (values < 0) | (values > 1 + 1e-9), "a score is outside [0, 1]")
        note("mrr_at_10", (np.abs(rank - np.round(rank)) > 1e-6) | (rank > _CUT + 0.5), "MRR is no 1/rank up to 10")
        note("ndcg_at_10", ((ndcg > 0) != (mrr > 0)) | ((mrr > 0) != (recall > 0)), "one metric found something only")
        limits = np.array([0.0, *(best_ndcg(place) for place in range(1, _CUT + 1))])
        places = np.clip(np.nan_to_num(np.round(rank)), 0, _CUT).astype(np.intp)
        note("ndcg_at_10", (ndcg > limits[places] + 1e-9) & (mrr > 0), "nDCG is higher than that rank allows")
        note("recall_at_10", (recall > 0) & (hits == 0), "something was found among no documents")
        inside = (first >= 1) & (first <= _CUT)
        ordered = _strictly_ordered(items.table["scores"])
        # Where scores are tied the order is trec_eval's, and the rank that of the list as it was given.
        expected = np.where(inside, 1 / np.maximum(first, 1), 0.0)
        note(
            "first_relevant_rank",
            ordered & (np.abs(expected - mrr) > 1e-9),
            "MRR is not that of the first relevant rank",
        )


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


def best_ndcg(rank: int) -> float:
    """The highest nDCG@10 that is possible when the first relevant document is at `rank` (from 1).

    Gains are linear and the ideal lists them in descending order, so the ratio is largest for equal gains; it is the
    best over their number.

    >>> best_ndcg(1), round(best_ndcg(2), 4), round(best_ndcg(10), 4)
    (1.0, 0.8329, 0.2891)
    """
    discounts = 1 / np.log2(np.arange(2, _CUT + 2))
    return max(float(discounts[rank - 1 : rank - 1 + m].sum() / discounts[:m].sum()) for m in range(1, _CUT + 2 - rank))
