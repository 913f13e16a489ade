"""The inference stage on speech data: every model works, once, on every cell that one of its systems needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace

from ...errors import DataError, SqutrError, StorageError
from ...loaders.data import check_pairing
from ...loaders.records import SpokenQuery
from ..components.checked import given_transcripts
from ..metering import WaitMeter
from ..processes import complete, gather_long
from ..progress import showing_batches
from ..protocols import Transcript
from .inference import AudioModel, Cell, Inference, Inferred, Outputs, Precomputed
from .outage import failed_tail, stopped
from .plan import SpeechPlan
from .shards import is_undecodable, load_shards, read_shards, shard_count, without_audio
from .tools import Tools, keep_nothing


def infer_cells(plan: SpeechPlan, tools: Tools) -> Mapping[str, Outputs]:
    """What every model of a plan gave, by its key. A cell that fails is noted and the others go on.

    All processes must call it. Raises `StorageError` at once.
    """
    return {
        key: _infer(plan, model, cells, tools)
        if isinstance(model, AudioModel)
        else read_precomputed(plan, model, cells, tools)
        for key, (model, cells) in plan.models().items()
    }


def read_precomputed(plan: SpeechPlan, model: Precomputed, cells: Sequence[Cell], tools: Tools) -> Outputs:
    """The transcripts that a file has of each cell. Every process reads it: that is cheaper than sending it."""
    found = Outputs()
    for cell in cells:
        subset, condition = cell
        expected = plan.rows(cell)
        keep = tools.keeper(expected) if tools.processes.rank == 0 else keep_nothing
        try:
            rows: list[SpokenQuery] = []
            for row in plan.data.spoken(subset, condition):
                check_pairing(expected, row, len(rows))
                keep(row)
                rows.append(without_audio(row))
            if len(rows) != len(expected):
                raise DataError(f"{subset} under {condition} has {len(rows)} of {len(expected)} rows.")
            given = [Transcript("")] * len(expected)
            if model.transcripts is not None:
                given = given_transcripts(model.transcripts, subset, condition, [row.id for row in expected])
            found.cells[cell] = _shared(tools, cell, [Inferred(row, "", t) for row, t in zip(rows, given, strict=True)])
        except StorageError:
            raise
        except SqutrError as error:
            found.failed[cell] = error
    return found


def _infer(plan: SpeechPlan, model: AudioModel, cells: Sequence[Cell], tools: Tools) -> Outputs:
    found = Outputs()
    started = time.perf_counter()
    waiting = WaitMeter()
    verb = "encoding" if model.encoder is not None else "transcribing"
    counter = _Counter(f"{verb} with {model.name}", sum(len(plan.rows(cell)) for cell in cells), tools)
    first, busy = 0, False
    worked: list[tuple[tuple[Cell, int], str]] = []
    for cell in cells:
        total = len(plan.rows(cell))
        inference = Inference(model, plan.language(cell[0]), tools, found)
        mine: list[tuple[int, Inferred]] = []
        failure: SqutrError | None = None
        try:
            for part in _parts(plan, cell, inference, counter, first=first, waiting=waiting, tools=tools):
                mine.extend(part)
                worked += [((cell, i), one.transcript.error) for i, one in part if not is_undecodable(one)]
                counter.advance(len(part), sum(one.row.duration_s for _, one in part))
        except SqutrError as error:
            failure = error
        busy = busy or inference.busy
        # The counter of shards runs on over cells, so that small cells do not all fall to the first process.
        first += shard_count(total)
        failures = [failed for failed in tools.processes.gather(failure) if failed is not None]
        for fatal in failures:
            if isinstance(fatal, StorageError):
                raise fatal
        if failures:
            found.failed[cell] = failures[0]
        else:
            parts = gather_long(tools.processes, mine)
            found.cells[cell] = _shared(tools, cell, complete(parts, total, f"rows of {'_'.join(cell)}"))
        counter.settle(total)
    if plan.options.max_failed < 1:
        _refuse_tail(model.name, worked, found, tools)
    if model.encoder is not None and tools.processes.size > 1:
        for vectors in gather_long(tools.processes, list(found.vectors.items())):
            found.vectors.update(vectors)
    take_in(tools)
    if busy:
        found.seconds, found.waiting_s = time.perf_counter() - started, waiting.waited_s
    return found


def _refuse_tail(who: str, worked: Sequence[tuple[tuple[Cell, int], str]], found: Outputs, tools: Tools) -> None:
    """Fail the cells in which the last items that a process worked on all failed."""
    for tail in tools.processes.gather(failed_tail(worked)):
        for cell, _ in tail:
            found.failed.setdefault(cell, stopped(who, tail))


def _parts(
    plan: SpeechPlan,
    cell: Cell,
    inference: Inference,
    counter: _Counter,
    *,
    first: int,
    waiting: WaitMeter,
    tools: Tools,
) -> Iterator[list[tuple[int, Inferred]]]:
    """This process's rows of a cell, shard by shard, with positions; `first` is the number of its first shard."""
    expected, processes = plan.rows(cell), tools.processes
    shards = read_shards(
        plan.data,
        cell,
        expected,
        own=lambda i: (first + i) % processes.size == processes.rank,
        keep=tools.keeper(expected),
    )
    loaded = load_shards(
        shards, rate=inference.model.sample_rate, known_clips=inference.known_clips, known_transcripts=inference.known
    )
    # Closed at once also after an error: their threads hold many clips.
    with closing(shards), closing(loaded):
        for shard in waiting.over(loaded):
            rows = shard.shard.rows
            with counter.within(len(rows), sum(row.duration_s for row in rows)):
                made = inference.infer(shard)
            yield list(zip(shard.shard.positions, made, strict=True))


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


def _shared(tools: Tools, cell: Cell, found: list[Inferred]) -> list[Inferred]:
    """`found` with the rows of the model that came to the cell before: they are held once."""
    rows = tools.shared.setdefault(("rows", cell), [one.row for one in found])
    return [replace(one, row=row) for one, row in zip(found, rows, strict=True)]


class _Counter:
    def __init__(self, stage: str, total: int, tools: Tools) -> None:
        self._stage, self._total, self._tools = stage, total, tools
        self._done, self._audio_s, self._settled = 0, 0.0, 0
        tools.tell(stage, 0, total)

    def advance(self, clips: int, audio_s: float) -> None:
        # The others are about as far: their shards are of the same size.
        self._done = min(self._total, self._done + clips * self._tools.processes.size)
        self._audio_s += audio_s * self._tools.processes.size
        self._tools.tell(self._stage, self._done, self._total, audio_s=self._audio_s)

    def within(self, clips: int, audio_s: float) -> AbstractContextManager[None]:
        return showing_batches(
            self._tools.tell,
            self._stage,
            self._done,
            self._total,
            clips,
            audio_s=(self._audio_s, audio_s),
            processes=self._tools.processes.size,
        )

    def settle(self, clips: int) -> None:
        self._settled += clips
        if self._done != self._settled:
            self._done = self._settled
            self._tools.tell(self._stage, self._done, self._total, audio_s=self._audio_s)
