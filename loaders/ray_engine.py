"""Rendering on a Ray cluster (extra `squtr[ray]`).

Blocks are mapped in order, so that the bytes are those of `ThreadEngine`. Every actor opens source and banks itself: a
folder must be reachable under the same path on every node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from .blocks import Block, rendered_take
from .conditions import Condition
from .faults import Fault
from .ray_map import RayMap
from .recipe import OpenedRecipe
from .records import Take


class RayEngine:
    """Actors, one per CPU, at most `num_cpus`, on the cluster at `address`. Raises `MissingExtraError` without ray."""

    def __init__(self, address: str | None = None, *, num_cpus: int | None = None) -> None:
        self._map = RayMap(address, num_cpus=None if address else num_cpus, actors=num_cpus or 0)

    def __call__(
        self, opened: OpenedRecipe, conditions: Sequence[Condition], blocks: Sequence[Sequence[Take]]
    ) -> Iterator[Block]:
        for contents, digests, faults in self._map(
            _BlockRenderer, (opened, tuple(conditions)), [list(block) for block in blocks]
        ):
            yield Block([_read(content) for content in contents], digests, faults)


class _BlockRenderer:
    """Renders blocks; keeps the RIRs and noises that it needed."""

    def __init__(self, opened: OpenedRecipe, conditions: tuple[Condition, ...]) -> None:
        self._opened, self._conditions = opened, conditions

    def __call__(self, block: Sequence[Take]) -> tuple[list[bytes], tuple[str, ...], tuple[Fault, ...]]:
        rendered = [rendered_take(self._opened, self._conditions, take) for take in block]
        made = Block.of(rendered, self._opened.features().arrow_schema)
        return [_written(table) for table in made.tables], made.digests, made.faults


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _read(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()
