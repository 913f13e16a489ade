"""A few clips of every run, for the report's players."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ...loaders.keyed import keyed_seed
from ...loaders.records import Query, SpokenQuery
from ..results.files import file_name, write_atomically


def keep_samples(folder: Path, count: int, seed: int) -> Callable[[Sequence[Query]], Callable[[SpokenQuery], None]]:
    """What keeps the clips of `count` drawn queries per subset below `folder`, for the report's players."""

    def keeper(queries: Sequence[Query]) -> Callable[[SpokenQuery], None]:
        drawn = sorted(queries, key=lambda q: keyed_seed(seed, "sample", q.subset, q.id))
        ids = {query.id for query in drawn[:count]}

        def keep(query: SpokenQuery) -> None:
            if query.id in ids:
                write_sample(folder, query)

        return keep

    return keeper


def write_sample(folder: Path, query: SpokenQuery) -> Path:
    """Keep a clip: `samples/<subset>/<query id>/<condition>.flac`."""
    path = folder / "samples" / file_name(query.subset) / file_name(query.id) / f"{query.condition}.flac"
    if not (path.exists() and path.stat().st_size == len(query.audio)):
        write_atomically(path, query.audio)
    return path
