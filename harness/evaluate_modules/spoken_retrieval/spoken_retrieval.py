"""Ranking metrics of squtr for the `evaluate` library: `evaluate.load("<this folder>")`.

The library copies this file and imports the copy, so it imports squtr by its full name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import evaluate  # type: ignore[import-not-found,import-untyped,unused-ignore]

from squtr.errors import DataError
from squtr.harness.metrics.ranking import DEFAULT_METRICS
from squtr.harness.metrics.summaries import summarize_ranking

_DESCRIPTION = """nDCG, MRR, Recall, MAP, precision and hit rate at any cut-off with the semantics of trec_eval: linear
gain, ideal from all judgments, ties by score descending, then document id descending."""
_INPUTS = """
Args:
    predictions: one {"query_id", "document_ids", "scores"} per query. The scores order the documents.
    references: one {"query_id", "document_ids", "grades"} per query. Joined by query id: order does not matter, a query
        without prediction is one with no documents.
    metrics: names `<family>_at_<k>` (ndcg_at_10, mrr_at_10, recall_at_10).
    seed, resamples: of the 95 % bootstrap intervals (0, 1000).
Returns:
    the metrics, n_queries, missing (queries that found nothing, which score 0), unjudged (documents), no_relevant
    (queries without a relevant document, left out), and intervals.
"""
_CITATION = """Järvelin and Kekäläinen: Cumulated gain-based evaluation of IR techniques. TOIS 20(4), 2002."""


class SpokenRetrieval(evaluate.Metric):  # type: ignore[misc,unused-ignore]
    """Ranking metrics of spoken queries."""

    def _info(self) -> evaluate.MetricInfo:
        ids = datasets.Sequence(datasets.Value("string"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "predictions": {
                        "query_id": datasets.Value("string"),
                        "document_ids": ids,
                        "scores": datasets.Sequence(datasets.Value("float64")),
                    },
                    "references": {
                        "query_id": datasets.Value("string"),
                        "document_ids": ids,
                        "grades": datasets.Sequence(datasets.Value("int64")),
                    },
                }
            ),
        )

    def _compute(
        self,
        predictions: Sequence[Mapping[str, Any]],
        references: Sequence[Mapping[str, Any]],
        *,
        metrics: Sequence[str] = DEFAULT_METRICS,
        seed: int = 0,
        resamples: int = 1000,
    ) -> dict[str, Any]:
        qrels: dict[str, dict[str, int]] = {}
        for row in references:
            pairs = _pairs(row, "grades", qrels)
            qrels[row["query_id"]] = dict(pairs)
            if len(qrels[row["query_id"]]) != len(pairs):
                raise DataError(f"query {row['query_id']!r} judges a document twice.", hint="Judge it once.")
        run: dict[str, list[tuple[str, float]]] = {}
        for row in predictions:
            run[row["query_id"]] = _pairs(row, "scores", run)
        # A query that was handed in with no document is as missing as one that was not.
        found = {query_id: hits for query_id, hits in run.items() if hits}
        return summarize_ranking(qrels, found, list(metrics), seed=seed, resamples=resamples).scores


def _pairs(row: Mapping[str, Any], values: str, seen: Mapping[str, object]) -> list[tuple[str, Any]]:
    query_id = row["query_id"]
    if query_id in seen:
        raise DataError(f"query {query_id!r} stands twice.", hint="Give each query once.")
    if len(row["document_ids"]) != len(row[values]):
        raise DataError(
            f"query {query_id!r} has {len(row['document_ids'])} document_ids and {len(row[values])} {values}.",
            hint="Give one for each document.",
        )
    return list(zip(row["document_ids"], row[values], strict=True))
