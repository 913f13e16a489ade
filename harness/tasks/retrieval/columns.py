"""The columns of the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from ...metrics.registry import Metric
from ...results.envelope import ACOUSTIC_COLUMNS, TRANSCRIPT_COLUMNS, item_schema

REWRITTEN = "rewritten"
RATES: Mapping[str, str] = {
    "wer": "word",
    "cer": "char",
    "wer_rewritten": f"{REWRITTEN}_word",
    "cer_rewritten": f"{REWRITTEN}_char",
}
"""Families of error rates with the unit whose counts the records have; those of a rewriter's texts beside the ASR's."""


def items_schema(metrics: Iterable[Metric], *, rewritten: bool = False) -> pa.Schema:
    """Common, acoustic, transcript (and what a rewriter made of it), the ranking, one column per ranking metric."""
    counts = [(f"{REWRITTEN}_{name}", kind) for name, kind in TRANSCRIPT_COLUMNS if kind == pa.float64()]
    return item_schema(
        *ACOUSTIC_COLUMNS,
        *TRANSCRIPT_COLUMNS,
        *([(REWRITTEN, pa.string()), *counts] if rewritten else ()),
        ("group", pa.string()),
        # Rank of the best relevant document among the retrieved, from 1; 0 if none was retrieved.
        ("first_relevant_rank", pa.int64()),
        # All that were retrieved, to the depth of the search, in the retriever's order.
        ("documents", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float64())),
        *((metric.name, pa.float64()) for metric in metrics if metric.is_ranking),
    )
