"""The columns of the records."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ...metrics.registry import Metric
from ...results.envelope import ACOUSTIC_COLUMNS, TRANSCRIPT_COLUMNS, item_schema

DOCUMENTS_KEPT = 10
"""How many retrieved documents a record names, or more if a metric looks deeper."""


def items_schema(metrics: Iterable[Metric]) -> pa.Schema:
    """Common, acoustic, transcript, the ranking, one column per ranking metric."""
    return item_schema(
        *ACOUSTIC_COLUMNS,
        *TRANSCRIPT_COLUMNS,
        ("group", pa.string()),
        # Rank of the best relevant document among the retrieved, from 1; 0 if none was retrieved.
        ("first_relevant_rank", pa.int64()),
        ("documents", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float64())),
        *((metric.name, pa.float64()) for metric in metrics if metric.is_ranking),
    )
