"""What the stages of an evaluation work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import StorageError
from ...loaders.records import Query, SpokenQuery
from ..components.encoders.cache import DirectoryEmbeddingCache, EmbeddingCache
from ..processes import Processes
from ..progress import Progress
from .store import Store

Keeper = Callable[[Sequence[Query]], Callable[[SpokenQuery], None]]


@dataclass(frozen=True, slots=True)
class Tools:
    """Processes, caches and progress. `keeper` gives, for the rows of a cell, what keeps their clips for players.

    `shared` is a place for what several stages of one evaluation use (an index, a retriever made of an encoder).
    """

    processes: Processes
    store: Store | None
    embeddings: EmbeddingCache | None
    keeper: Keeper
    tell: Progress
    shared: dict[Any, Any] = field(default_factory=dict)


def open_tools(
    processes: Processes,
    cache: Path | None,
    keeper: Keeper | None = None,
    progress: Progress | None = None,
    *,
    write: bool = True,
) -> Tools:
    """The tools of this process. All processes must call it. Without `write`, a store that is not there is not made."""
    failure: StorageError | None = None
    store: Store | None = None
    if cache is not None and (write or Store.exists(cache)):
        try:
            store = Store(cache, rank=processes.rank)
            if processes.rank == 0:
                store.merge()
        except StorageError as error:
            failure = error
        for other in processes.gather(failure):
            if other is not None:
                raise other
    embeddings = DirectoryEmbeddingCache(cache / "embeddings") if cache is not None else None
    shown = progress if progress is not None and processes.rank == 0 else silent
    return Tools(processes, store, embeddings, keeper or (lambda _: keep_nothing), shown)


def silent(stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
    """A `Progress` that tells nobody."""


def keep_nothing(_: SpokenQuery) -> None:
    """Keep no clip."""
