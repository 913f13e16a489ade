"""The first stage: every listener hears every cell that one of its systems meets, once.

A listener is what turns sound into something to search with: a transcriber or an audio-text encoder, behind a front end
or not. Processes share its shards; what it made is kept shard by shard, so a killed run continues.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Protocol

from ...errors import DataError, ModelError, SqutrError, StorageError
from ...loaders.paired import check_pairing
from ...loaders.records import Query, SpokenQuery
from ..metering import WaitMeter
from ..processes import complete, gather_long
from ..protocols import Transcript
from ..results.old import TEXT_CONDITION
from .hearing import Hearing, checked_transcript, sentences
from .listeners import Ear, Failure, Heard, Listened, Ready, Tools, listener_of
from .plan import Cell, Plan
from .samples import keep_nothing
from .shards import SpokenData, load_shards, read_shards, shard_count, without_sound


class Audible(Protocol):
    """What can be heard: the sound, and which queries in which language every cell has. A `Plan` is one."""

    @property
    def data(self) -> SpokenData:
        """The sound."""
        ...

    def expected(self, cell: Cell) -> Sequence[Query]:
        """The queries of a cell, in the order of its sound."""
        ...

    def language(self, cell: Cell) -> str:
        """The language of a cell."""
        ...


Jobs = Mapping[str, tuple[Ear | Ready, Sequence[Cell]]]
"""Listeners with the cells that each is to hear, by the listener's key."""


def listen_all(plan: Plan, tools: Tools) -> Mapping[str, Listened]:
    """What every listener of a plan made, by its key (see `hear_all`)."""
    return hear_all(plan, listeners(plan), tools)


def hear_all(audible: Audible, jobs: Jobs, tools: Tools) -> Mapping[str, Listened]:
    """What every listener made, by its key. A cell that fails is noted and the others go on.

    Raises `StorageError` at once: a full disk fails everything that follows.
    """
    return {
        key: _listen(audible, ear, cells, tools) if isinstance(ear, Ear) else read_ready(audible, ear, cells, tools)
        for key, (ear, cells) in jobs.items()
    }


def listeners(plan: Plan) -> Mapping[str, tuple[Ear | Ready, list[Cell]]]:
    """Every listener with the cells that its systems meet, by its key."""
    jobs: dict[str, tuple[Ear | Ready, dict[Cell, None]]] = {}
    for system in plan.systems:
        listener = listener_of(system)
        _, cells = jobs.setdefault(listener.key, (listener, {}))
        cells.update(dict.fromkeys(cell for cell in plan.cells(system) if cell[1] != TEXT_CONDITION))
    return {key: (listener, list(cells)) for key, (listener, cells) in jobs.items()}


def read_ready(audible: Audible, ready: Ready, cells: Sequence[Cell], tools: Tools) -> Listened:
    """What a file says of each cell. Every process reads it: that is cheaper than sending it."""
    found = Listened()
    for subset, condition in cells:
        queries = audible.expected((subset, condition))
        keep = tools.keeper(queries) if tools.processes.rank == 0 else keep_nothing
        try:
            spoken: list[SpokenQuery] = []
            for query in audible.data.spoken(subset, condition):
                check_pairing(queries, query, len(spoken))
                keep(query)
                spoken.append(without_sound(query))
            ids = [query.id for query in queries]
            if len(spoken) != len(ids):
                raise DataError(f"{subset} under {condition} has {len(spoken)} of {len(ids)} queries.")
            given = [Transcript("")] * len(ids)
            if ready.transcripts is not None:
                with sentences(f"reading {ready.name} of {subset} under {condition}"):
                    given = [checked_transcript(t) for t in ready.transcripts.transcripts(subset, condition, ids)]
            if len(given) != len(ids):
                raise ModelError(f"{ready.name} gave {len(given)} transcripts for {len(ids)} queries.")
            found.cells[subset, condition] = tools.shared(
                (subset, condition), [Heard(q, "", t) for q, t in zip(spoken, given, strict=True)]
            )
        except StorageError:
            raise
        except SqutrError as error:
            found.failed[subset, condition] = error
    return found


def _listen(audible: Audible, ear: Ear, cells: Sequence[Cell], tools: Tools) -> Listened:
    found = Listened()
    started = time.perf_counter()
    waiting = WaitMeter()
    counter = _Counter(f"listening with {ear.name}", sum(len(audible.expected(cell)) for cell in cells), tools)
    first, busy = 0, False
    for cell in cells:
        expected = audible.expected(cell)
        hearing = Hearing(ear, audible.language(cell), tools, found)
        mine: list[tuple[int, Heard]] = []
        failure: Failure | None = None
        try:
            for part in _heard_of(audible, cell, hearing, first=first, waiting=waiting, tools=tools):
                mine.extend(part)
                counter.advance(len(part), sum(h.query.duration_s for _, h in part))
        except SqutrError as error:
            failure = error
        busy = busy or hearing.busy
        # The counter of shards runs on over cells, so that small cells do not all fall to the first process.
        first += shard_count(len(expected))
        failures = [failed for failed in tools.processes.gather(failure) if failed is not None]
        for fatal in failures:
            if isinstance(fatal, StorageError):
                raise fatal
        if failures:
            found.failed[cell] = failures[0]
        else:
            parts = gather_long(tools.processes, mine)
            heard = complete(parts, len(expected), f"queries of {'_'.join(cell)}")
            found.cells[cell] = tools.shared(cell, heard)
        counter.settle(len(expected))
    if ear.encoder is not None:
        _share_vectors(found, ear, tools)
    take_in(tools)
    if busy:
        found.seconds, found.waiting_s = time.perf_counter() - started, waiting.waited_s
    return found


def _heard_of(
    audible: Audible, cell: Cell, hearing: Hearing, *, first: int, waiting: WaitMeter, tools: Tools
) -> Iterator[list[tuple[int, Heard]]]:
    """What this process hears of a cell, shard by shard, with positions; `first` is the number of its first shard."""
    expected, processes = audible.expected(cell), tools.processes
    shards = read_shards(
        audible.data,
        cell,
        expected,
        own=lambda i: (first + i) % processes.size == processes.rank,
        keep=tools.keeper(expected),
    )
    loaded = load_shards(shards, rate=hearing.rate, known_sounds=hearing.known_sounds, known_transcripts=hearing.known)
    # Closed at once also after an error: their threads hold many clips.
    with closing(shards), closing(loaded):
        for shard in waiting.over(loaded):
            yield list(zip(shard.shard.positions, hearing.hear(shard), strict=True))


def take_in(tools: Tools) -> None:
    """Bring what every process kept into the main file. All processes must call it; all fail if the disk refuses."""
    store, processes = tools.store, tools.processes
    if store is None or processes.size == 1:
        return
    files = processes.gather(store.own)
    failure: StorageError | None = None
    try:
        if processes.rank == 0:
            store.merge(files[1:])
    except StorageError as error:
        failure = error
    for refused in processes.gather(failure):
        if refused is not None:
            raise refused
    store.clear()


def _share_vectors(found: Listened, ear: Ear, tools: Tools) -> None:
    """Give every process the vectors that the others made."""
    if tools.processes.size > 1:
        for vectors in gather_long(tools.processes, list(found.vectors.items())):
            found.vectors.update(vectors)


class _Counter:
    """Progress of one listener over its cells, of all processes as far as this one can tell."""

    def __init__(self, stage: str, total: int, tools: Tools) -> None:
        self._stage, self._total, self._tools = stage, total, tools
        self._done, self._audio_s, self._settled = 0, 0.0, 0
        tools.tell(stage, 0, total)

    def advance(self, clips: int, audio_s: float) -> None:
        # The others are about as far: their shards are of the same size.
        self._done = min(self._total, self._done + clips * self._tools.processes.size)
        self._audio_s += audio_s * self._tools.processes.size
        self._tools.tell(self._stage, self._done, self._total, audio_s=self._audio_s)

    def settle(self, clips: int) -> None:
        self._settled += clips
        if self._done != self._settled:
            self._done = self._settled
            self._tools.tell(self._stage, self._done, self._total, audio_s=self._audio_s)
