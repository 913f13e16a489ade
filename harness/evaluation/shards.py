"""How audio reaches a model: in shards of similar length, read and decoded ahead in threads.

A cell (a subset under a condition) is cut into windows of consecutive queries, a window sorted by length and cut into
shards, from the data alone; shard i belongs to process i mod N. So results are the same for every N.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...errors import AudioError, DataError
from ...loaders.audio import decode_hashed, resample
from ...loaders.data import check_pairing
from ...loaders.in_order import in_order
from ...loaders.records import Query, Samples, SpokenQuery
from ..protocols import Transcript
from .inference import Cell, Inferred

SHARD_CLIPS = 64
"""Clips that are inferred and kept together: what is lost at most when a run is killed."""
WINDOW_SHARDS = 16
"""Shards whose clips are sorted by length together: a window of 1,024 clips takes about 100 MB."""
DECODERS = 2
SHARDS_AHEAD = 4
UNDECODABLE = "undecodable:"
_TEXTS = (
    "id", "subset", "language", "text", "condition", "noise_id", "noise_family", "rir_id", "speaker", "voice",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows that are inferred together, longest first, with their positions in the cell."""

    cell: Cell
    positions: tuple[int, ...]
    rows: tuple[SpokenQuery, ...]


@dataclass(frozen=True, slots=True)
class LoadedShard:
    """A shard without its files: digests of the clips in order, what is known of them, and the clips to infer from.

    `digests` are those of the PCM, `files` maps the files' digests to them, `known` and `failed` map digests to
    transcripts, `clips` digests to samples at the wanted rate, longest first.
    """

    shard: Shard
    digests: tuple[str, ...]
    files: Mapping[str, str]
    known: Mapping[str, Transcript]
    failed: Mapping[str, Transcript]
    clips: Mapping[str, Samples]


class CellData(Protocol):
    """Audio by cell, as `SpeechData` has it."""

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """The spoken queries at positions `start` to `stop` (not included) of a cell."""
        ...


def window_of(data: CellData) -> int:
    """How many clips a window of this data has: few where it is rendered when it is read (`rows_at_once`)."""
    rows: int = getattr(data, "rows_at_once", SHARD_CLIPS * WINDOW_SHARDS)
    return max(SHARD_CLIPS, rows // SHARD_CLIPS * SHARD_CLIPS)


def shard_count(clips: int) -> int:
    """How many shards a cell of this many clips has.

    >>> shard_count(0), shard_count(64), shard_count(65)
    (0, 1, 2)
    """
    return -(-clips // SHARD_CLIPS)


def read_shards(
    data: CellData,
    cell: Cell,
    expected: Sequence[Query],
    *,
    own: Callable[[int], bool],
    keep: Callable[[SpokenQuery], None],
) -> Generator[Shard, None, None]:
    """The shards of a cell that `own` accepts, read a window ahead in a thread; `keep` sees every row read."""
    size = window_of(data)
    starts = [
        start
        for start in range(0, len(expected), size)
        if any(own(i) for i in range(start // SHARD_CLIPS, shard_count(min(start + size, len(expected)))))
    ]

    def read(start: int) -> list[SpokenQuery]:
        return _window(data, cell, expected, start=start, stop=min(start + size, len(expected)), keep=keep)

    for start, window in zip(starts, in_order(read, starts, workers=1, ahead=2), strict=True):
        order = sorted(range(len(window)), key=lambda i: (-window[i].duration_s, window[i].id))
        for first in range(0, len(order), SHARD_CLIPS):
            if own((start + first) // SHARD_CLIPS):
                members = order[first : first + SHARD_CLIPS]
                yield Shard(cell, tuple(start + i for i in members), tuple(window[i] for i in members))


def _window(
    data: CellData, cell: Cell, expected: Sequence[Query], *, start: int, stop: int, keep: Callable[[SpokenQuery], None]
) -> list[SpokenQuery]:
    subset, condition = cell
    window: list[SpokenQuery] = []
    for query in data.spoken(subset, condition, start=start, stop=stop):
        check_pairing(expected, query, start + len(window))
        keep(query)
        window.append(query)
    if len(window) != stop - start:
        raise DataError(
            f"{subset} under {condition} has {start + len(window)} of {len(expected)} rows.",
            hint="Build the data set again.",
        )
    return window


def load_shards(
    shards: Iterator[Shard],
    *,
    rate: int,
    known_clips: Callable[[Sequence[str]], Mapping[str, str]],
    known_transcripts: Callable[[Sequence[str]], Mapping[str, Transcript]],
) -> Generator[LoadedShard, None, None]:
    """Look up and decode shards ahead in threads. What is known is not decoded."""

    def load(shard: Shard) -> LoadedShard:
        return _load(shard, rate, known_clips, known_transcripts)

    yield from in_order(load, shards, workers=DECODERS, ahead=SHARDS_AHEAD)


def _load(
    shard: Shard,
    rate: int,
    known_clips: Callable[[Sequence[str]], Mapping[str, str]],
    known_transcripts: Callable[[Sequence[str]], Mapping[str, Transcript]],
) -> LoadedShard:
    encoded = [hashlib.sha256(query.audio).hexdigest() for query in shard.rows]
    files = dict(known_clips(encoded))
    known = dict(known_transcripts(list(files.values())))
    failed: dict[str, Transcript] = {}
    decoded: dict[str, tuple[Samples, int]] = {}
    digests: list[str] = []
    for query, key in zip(shard.rows, encoded, strict=True):
        digest = files.get(key)
        if digest is None or digest not in known:
            try:
                samples, own_rate, digest = _decode(query)
                decoded[digest], files[key] = (samples, own_rate), digest
            except AudioError as error:
                digest = UNDECODABLE + key
                failed[digest] = Transcript("", error=error.message)
        digests.append(digest)
    # Another file with the same samples may be known already.
    known |= known_transcripts([digest for digest in decoded if digest not in known])
    clips = {d: resample(samples, own, rate) for d, (samples, own) in decoded.items() if d not in known}
    bare = replace(shard, rows=tuple(map(without_audio, shard.rows)))
    return LoadedShard(bare, tuple(digests), files, known, failed, clips)


def is_undecodable(one: Inferred) -> bool:
    """Whether a row failed for its audio, before any model saw it."""
    return one.audio_sha256.startswith(UNDECODABLE)


def without_audio(query: SpokenQuery) -> SpokenQuery:
    """The row without its file, its texts held once for all that have the same."""
    texts: dict[str, Any] = {name: sys.intern(str(getattr(query, name))) for name in _TEXTS}
    return replace(query, audio=b"", **texts)


def _decode(query: SpokenQuery) -> tuple[Samples, int, str]:
    """The samples of a row's audio, their rate, and their digest. Raises `AudioError` for audio that has none."""
    name = f"query {query.id!r} under {query.condition}"
    samples, rate, digest = decode_hashed(query.audio, name)
    if not samples.size:
        raise AudioError(f"{name} has no samples.", hint="Build the data set again.")
    return samples, rate, digest
