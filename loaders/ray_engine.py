"""Rendering on a Ray cluster through Ray Data (extra `squtr[ray]`).

Blocks are mapped in order, so that the bytes are those of `ThreadEngine`. Every worker opens source and banks itself: a
folder must be reachable under the same path on every node.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import SqutrError, missing_extra
from .conditions import Condition
from .engines import block_tables
from .recipe import Kitchen
from .records import Query
from .rows import query_features, render_query

if TYPE_CHECKING:
    import numpy as np


class RayEngine:
    """Ray Data on the cluster that `ray.init` finds (`address` as there; None: the running one, or a local one).

    `num_cpus` limits a cluster that is started here. Raises `MissingExtraError` without ray.
    """

    def __init__(self, address: str | None = None, *, num_cpus: int | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise missing_extra("ray", "ray") from error
        self._ray: Any = ray
        self._address, self._num_cpus = address, num_cpus

    def __call__(
        self, kitchen: Kitchen, conditions: Sequence[Condition], blocks: Sequence[Sequence[Query]]
    ) -> Iterator[list[pa.Table]]:
        """Render the blocks, each a task of its own."""
        import ray.data

        if not self._ray.is_initialized():
            self._ray.init(address=self._address, num_cpus=self._num_cpus, include_dashboard=False, log_to_driver=False)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        render = _BlockRenderer(kitchen, tuple(conditions), [list(block) for block in blocks])
        numbers = ray.data.from_items([{"block": n} for n in range(len(blocks))], override_num_blocks=len(blocks))
        tables = numbers.map_batches(render, batch_size=1, batch_format="numpy")
        with _quiet("ray.data"):
            for row in tables.iter_rows():
                if row["error"]:
                    raise pickle.loads(row["error"])  # noqa: S301 - made by our own worker
                yield [_read(content) for content in row["tables"]]


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Keep what this logger says below errors off the terminal for a while: the builder has its own progress bar."""
    target = logging.getLogger(logger)
    before = target.level
    target.setLevel(logging.ERROR)
    try:
        yield
    finally:
        target.setLevel(before)


class _BlockRenderer:
    """Renders a block by its number; pickled to the workers once."""

    def __init__(self, kitchen: Kitchen, conditions: tuple[Condition, ...], blocks: list[list[Query]]) -> None:
        self._kitchen, self._conditions, self._blocks = kitchen, conditions, blocks

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, Any]:
        schema = query_features().arrow_schema
        made: list[list[bytes]] = []
        errors: list[bytes] = []
        for number in batch["block"]:
            try:
                rows = [render_query(self._kitchen, self._conditions, query) for query in self._blocks[int(number)]]
            except SqutrError as error:
                # Ray would wrap it so that neither its class nor its words come back.
                made.append([])
                errors.append(pickle.dumps(error))
            else:
                made.append([_written(table) for table in block_tables(rows, schema)])
                errors.append(b"")
        return {"tables": made, "error": errors}


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _read(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()
