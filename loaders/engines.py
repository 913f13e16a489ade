"""What renders blocks of utterances, threads or Ray: the same tables in the same order, at another speed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

from ..errors import unknown_name
from .blocks import Block, rendered_take
from .conditions import Condition
from .in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from .recipe import OpenedRecipe
from .records import Take
from .rows import batches


class BlockEngine(Protocol):
    def __call__(
        self, opened: OpenedRecipe, conditions: Sequence[Condition], blocks: Sequence[Sequence[Take]]
    ) -> Iterator[Block]:
        """What comes of each block, in order. Blocks are equally long but for the last."""
        ...


class ThreadEngine:
    """Threads of this machine; `workers` of 0 is one per core."""

    def __init__(self, workers: int = 0) -> None:
        self._workers = workers or os.cpu_count() or 1

    def __call__(
        self, opened: OpenedRecipe, conditions: Sequence[Condition], blocks: Sequence[Sequence[Take]]
    ) -> Iterator[Block]:
        """Render; utterances run ahead across blocks, so that no thread waits at a block's end."""
        import_before_threads(*SIGNAL_PACKAGES)
        schema = opened.features().arrow_schema
        takes = (take for block in blocks for take in block)
        rows = in_order(lambda take: rendered_take(opened, conditions, take), takes, workers=self._workers)
        for batch in batches(rows, max((len(block) for block in blocks), default=1)):
            yield Block.of(batch, schema)


ENGINES = ("threads", "ray")


def load_engine(name: str, *, workers: int = 0, ray_address: str | None = None) -> BlockEngine:
    """The engine called `name`. Raises `UnknownNameError`, or `MissingExtraError` for ray without its extra."""
    if name == "threads":
        return ThreadEngine(workers)
    if name == "ray":
        from .ray_engine import RayEngine

        return RayEngine(ray_address, num_cpus=workers or None)
    raise unknown_name("engine", name, ENGINES)
