"""What renders blocks of queries: threads of this machine, or Ray.

An engine changes the speed only. Blocks come back in order, with the same tables whatever made them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from ..errors import unknown_name
from .conditions import Condition
from .recipe import OpenedRecipe
from .records import Query, SpokenQuery
from .rows import ROWS_PER_TABLE, batches, in_order, query_features, query_table, render_query


class BlockEngine(Protocol):
    """Renders blocks of queries under several conditions."""

    def __call__(
        self, opened: OpenedRecipe, conditions: Sequence[Condition], blocks: Sequence[Sequence[Query]]
    ) -> Iterator[list[pa.Table]]:
        """Per block, in order, one table per condition. A block has at most `ROWS_PER_TABLE` queries."""
        ...


def block_tables(rows: Sequence[Sequence[SpokenQuery]], schema: pa.Schema) -> list[pa.Table]:
    """From rows by query to one table per condition."""
    return [query_table(column, schema) for column in zip(*rows, strict=True)]


class ThreadEngine:
    """Threads of this machine; `workers` of 0 is one per core."""

    def __init__(self, workers: int = 0) -> None:
        self._workers = workers or os.cpu_count() or 1

    def __call__(
        self, opened: OpenedRecipe, conditions: Sequence[Condition], blocks: Sequence[Sequence[Query]]
    ) -> Iterator[list[pa.Table]]:
        """Render; queries run ahead across blocks, so that no thread waits at a block's end."""
        schema = query_features().arrow_schema
        queries = (query for block in blocks for query in block)
        rows = in_order(lambda query: render_query(opened, conditions, query), queries, workers=self._workers)
        for batch in batches(rows, ROWS_PER_TABLE):
            yield block_tables(batch, schema)


ENGINES = ("threads", "ray")


def load_engine(name: str, *, workers: int = 0, ray_address: str | None = None) -> BlockEngine:
    """The engine called `name`. Raises `UnknownNameError`, or `MissingExtraError` for ray without its extra."""
    if name == "threads":
        return ThreadEngine(workers)
    if name == "ray":
        from .ray_engine import RayEngine

        return RayEngine(ray_address, num_cpus=workers or None)
    raise unknown_name("engine", name, ENGINES)
