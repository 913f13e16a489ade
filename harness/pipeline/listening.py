"""The first stage: every listener hears every cell that one of its systems meets, once.

A listener is what turns sound into something to search with: a transcriber or an audio-text encoder, behind a front end
or not. Processes share its shards; what it made is kept shard by shard, so a killed run continues.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import AudioError, DataError, ModelError, SqutrError, StorageError
from ...loaders.audio import resample
from ...loaders.keyed import keyed_seed
from ...loaders.paired import check_pairing
from ...loaders.records import Query, Samples, SpokenQuery
from ..backends.dense import DenseRetriever
from ..backends.embedding_cache import EmbeddingCache
from ..metering import WaitMeter
from ..processes import Processes, complete, gather_long
from ..progress import Progress
from ..protocols import AudioTextEncoder, FrontEnd, ReadyTranscripts, Transcriber, Transcript
from ..results import TEXT_CONDITION, file_name, write_atomically
from ..store import Store
from ..systems.system import Cascade, EndToEnd, System
from .plan import Cell, Plan
from .shards import LoadedShard, SpokenData, load_shards, read_shards, shard_count, without_sound

Failure = SqutrError
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Heard:
    """A spoken query without its sound, with what was made of it.

    An encoder gives no words: its transcript is empty, or says why there is no vector. `audio_sha256` is "" where the
    sound was not heard here (ready transcripts, ready runs).
    """

    query: SpokenQuery
    audio_sha256: str
    transcript: Transcript


class Listener(Protocol):
    """What turns the sound of a cell into `Heard`."""

    @property
    def key(self) -> str:
        """What its work is shared by."""
        ...

    @property
    def name(self) -> str:
        """As shown in progress."""
        ...


@dataclass(frozen=True, slots=True)
class Ear:
    """A listener that hears: a transcriber or an encoder, behind a front end or not."""

    model: Transcriber | AudioTextEncoder
    front_end: FrontEnd | None

    @property
    def key(self) -> str:
        """The fingerprint of the model, with that of the front end."""
        own = self.model.spec.fingerprint
        return own if self.front_end is None else f"{own}-{self.front_end.spec.fingerprint}"

    @property
    def name(self) -> str:
        """The names of its parts."""
        own = self.model.spec.name
        return own if self.front_end is None else f"{self.front_end.spec.name} | {own}"

    @property
    def transcriber(self) -> Transcriber | None:
        """The transcriber, None for an encoder."""
        return cast(Transcriber, self.model) if hasattr(self.model, "transcribe") else None

    @property
    def encoder(self) -> AudioTextEncoder | None:
        """The encoder, None for a transcriber."""
        return None if hasattr(self.model, "transcribe") else self.model


@dataclass(frozen=True, slots=True)
class Ready:
    """A listener that reads what was made elsewhere; without transcripts it only says which queries there are."""

    transcripts: ReadyTranscripts | None

    @property
    def key(self) -> str:
        """The fingerprint of the transcripts, `none` without any."""
        return "none" if self.transcripts is None else self.transcripts.spec.fingerprint

    @property
    def name(self) -> str:
        """The name of the transcripts."""
        return "ready runs" if self.transcripts is None else self.transcripts.spec.name


def listener_of(system: System) -> Ear | Ready:
    """What listens for a system."""
    if isinstance(system, Cascade):
        if system.listener is None:
            return Ready(system.ready_transcripts)
        return Ear(system.listener, system.front_end)
    return Ear(system.encoder, system.front_end) if isinstance(system, EndToEnd) else Ready(None)


@dataclass(slots=True)
class Listened:
    """What one listener made of its cells, or why it failed on a cell; vectors of an encoder by sound.

    `seconds` is the time that this evaluation listened, `waiting_s` the part of it in which the model waited for sound,
    both of the main process; 0 if everything was known.
    """

    cells: dict[Cell, list[Heard]] = field(default_factory=dict)
    failed: dict[Cell, Failure] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    seconds: float = 0.0
    waiting_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Tools:
    """What the stages work with. `keeper` gives, for the queries of a subset, what keeps the clips for players."""

    processes: Processes
    store: Store | None
    embeddings: EmbeddingCache | None
    keeper: Callable[[Sequence[Query]], Callable[[SpokenQuery], None]]
    tell: Progress
    _dense: dict[str, DenseRetriever] = field(default_factory=dict)
    _spoken: dict[Cell, list[SpokenQuery]] = field(default_factory=dict)

    def shared(self, cell: Cell, heard: list[Heard]) -> list[Heard]:
        """`heard` with the queries of those who heard the cell before: they are held once."""
        spoken = self._spoken.setdefault(cell, [h.query for h in heard])
        return [replace(h, query=query) for h, query in zip(heard, spoken, strict=True)]

    def dense_of(self, system: EndToEnd) -> DenseRetriever:
        """An end-to-end system's encoder as a dense retriever, the same whenever it is asked for."""
        key = system.encoder.spec.fingerprint
        if key not in self._dense:
            self._dense[key] = DenseRetriever(encoder=system.encoder, cache=self.embeddings)
        return self._dense[key]


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
                    given = [_checked(t) for t in ready.transcripts.transcripts(subset, condition, ids)]
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


def keep_nothing(_: SpokenQuery) -> None:
    """Keep no clip."""


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


class Hearing:
    """One listener at work in one language, at the rate that it wants sound in; `busy` once a model heard something."""

    def __init__(self, ear: Ear, language: str, tools: Tools, found: Listened) -> None:
        self.busy = False
        self._ear, self._language, self._tools = ear, language, tools
        self._vectors = found.vectors
        self._heard_here: dict[str, Transcript] = {}
        self._space = f"{ear.key}-audio-{language}"
        self.rate = ear.model.sample_rate if ear.front_end is None else ear.front_end.sample_rate

    def known_sounds(self, encoded: Sequence[str]) -> Mapping[str, str]:
        """The digests of these files' sounds, as far as they are known."""
        return {} if self._tools.store is None else self._tools.store.sounds(encoded)

    def known(self, digests: Sequence[str]) -> Mapping[str, Transcript]:
        """What is known of these sounds; of an encoder, if the vector is there too."""
        store = self._tools.store
        if store is None:
            return {}
        known = store.transcripts(digests, language=self._language, listener=self._ear.key)
        if self._ear.encoder is None or not known:
            return known
        if self._tools.embeddings is None:
            return {}
        vectors = self._tools.embeddings.get_many(self._space, list(known))
        self._vectors.update(vectors)
        return {digest: transcript for digest, transcript in known.items() if digest in vectors}

    def hear(self, loaded: LoadedShard) -> list[Heard]:
        """The shard's queries with what was made of them, kept before it is returned."""
        durations = {d: q.duration_s for d, q in zip(loaded.digests, loaded.shard.queries, strict=True)}
        # Shards are loaded ahead: the same sound may have been heard since in one before.
        before = {digest: self._heard_here[digest] for digest in loaded.clips if digest in self._heard_here}
        made = self._made({digest: clip for digest, clip in loaded.clips.items() if digest not in before})
        self._heard_here.update(made)
        if self._tools.store is not None:
            if self._ear.encoder is not None and self._tools.embeddings is not None:
                done = [digest for digest, transcript in made.items() if not transcript.error]
                if done:
                    self._tools.embeddings.put_many(self._space, done, np.stack([self._vectors[d] for d in done]))
            self._tools.store.keep_heard(
                loaded.sounds,
                {digest: (transcript, durations[digest]) for digest, transcript in made.items()},
                language=self._language,
                listener=self._ear.key,
            )
        all_known = {**loaded.known, **loaded.failed, **before, **made}
        return [
            Heard(query, digest, all_known[digest])
            for query, digest in zip(loaded.shard.queries, loaded.digests, strict=True)
        ]

    def _made(self, clips: dict[str, Samples]) -> dict[str, Transcript]:
        """Transcripts of these sounds, behind the front end."""
        if not clips:
            return {}
        self.busy = True
        failed: dict[str, Transcript] = {}
        front_s = 0.0
        if self._ear.front_end is not None:
            started = time.perf_counter()
            clips, failed = _enhanced(self._ear.front_end, clips)
            clips = {d: resample(clip, self.rate, self._ear.model.sample_rate) for d, clip in clips.items()}
            front_s = (time.perf_counter() - started) / max(1, len(clips))
        answers = self._heard(list(clips.values())) if clips else []
        made = self._with_vectors(dict(zip(clips, answers, strict=True)))
        return {digest: replace(t, front_end_seconds=front_s) for digest, t in made.items()} | failed

    def _heard(self, clips: list[Samples]) -> list[Transcript | tuple[Vector, float]]:
        spec = self._ear.model.spec
        transcriber, encoder = self._ear.transcriber, self._ear.encoder
        started = time.perf_counter()
        answers: list[Transcript] | list[Vector] = []
        with sentences(f"{spec.name} on {len(clips)} clips in {self._language!r}"):
            if transcriber is not None:
                answers = [_checked(t) for t in transcriber.transcribe(clips, language=self._language)]
            elif encoder is not None:
                answers = _rows(np.asarray(encoder.encode_audio(clips, language=self._language), dtype=np.float32))
        if len(answers) != len(clips):
            raise ModelError(
                f"{spec.name} gave {len(answers)} answers for {len(clips)} clips.",
                hint="It must give one per clip, in order.",
            )
        seconds = (time.perf_counter() - started) / len(clips)
        return [a if isinstance(a, Transcript) else (a, seconds) for a in answers]

    def _with_vectors(self, answers: Mapping[str, Transcript | tuple[Vector, float]]) -> dict[str, Transcript]:
        """Transcripts as they are; of vectors, keep those that are finite and say which are not."""
        made: dict[str, Transcript] = {}
        for digest, answer in answers.items():
            if isinstance(answer, Transcript):
                made[digest] = answer
                continue
            vector, seconds = answer
            if np.isfinite(vector).all():
                self._vectors[digest] = vector
                made[digest] = Transcript("", seconds=seconds)
            else:
                made[digest] = Transcript("", error="the encoder gave no finite vector", seconds=seconds)
        return made


@contextmanager
def sentences(what: str) -> Iterator[None]:
    """Whatever a component raises, as a `ModelError` that begins with `what`; errors of squtr stay as they are.

    A user's own class may raise anything. Its configs fail with a sentence, the others go on.
    """
    try:
        yield
    except SqutrError:
        raise
    except Exception as error:
        raise ModelError(
            f"{what} failed: {type(error).__name__}: {error}.",
            hint="Mend it, then run the evaluation again: what was done is kept.",
        ) from error


def _checked(transcript: object) -> Transcript:
    """A transcript that can be kept: text that is text, log-probabilities that are numbers."""
    if not isinstance(transcript, Transcript):
        raise TypeError(f"it gave {type(transcript).__name__} instead of Transcript")
    if transcript.error:
        return replace(transcript, text="", hypotheses=())
    best = tuple(replace(h, text=_written(h.text)) for h in transcript.hypotheses)
    for hypothesis in best:
        if not math.isfinite(hypothesis.score):
            raise ValueError(f"the hypothesis {hypothesis.text[:80]!r} has the log-probability {hypothesis.score}")
    return replace(transcript, text=_written(transcript.text), hypotheses=best)


def _written(text: str) -> str:
    """`text`, with what no file can hold (halves of surrogate pairs that have no other half) replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _rows(vectors: Vector) -> list[Vector]:
    if vectors.ndim != 2:
        raise ValueError(f"it gave vectors of shape {vectors.shape}")
    return list(vectors)


def _enhanced(front_end: FrontEnd, clips: Mapping[str, Samples]) -> tuple[dict[str, Samples], dict[str, Transcript]]:
    """The enhanced clips, and a failed transcript for each that the front end could not work on."""
    enhanced: dict[str, Samples] = {}
    failed: dict[str, Transcript] = {}
    try:
        enhanced = dict(zip(clips, _worked_on(front_end, list(clips.values())), strict=True))
    except AudioError:
        # One clip of them: each is tried alone.
        for digest, clip in clips.items():
            try:
                (enhanced[digest],) = _worked_on(front_end, [clip])
            except AudioError as error:
                failed[digest] = Transcript("", error=f"{front_end.spec.name}: {error.message}")
    for digest in [digest for digest, clip in enhanced.items() if not np.isfinite(clip).all()]:
        del enhanced[digest]
        failed[digest] = Transcript("", error=f"{front_end.spec.name} gave samples that are not finite")
    return enhanced, failed


def _worked_on(front_end: FrontEnd, clips: list[Samples]) -> list[Samples]:
    with sentences(f"{front_end.spec.name} on {len(clips)} clips"):
        enhanced = front_end.enhance(clips)
    if [clip.shape for clip in enhanced] != [clip.shape for clip in clips]:
        raise ModelError(
            f"{front_end.spec.name} changed the lengths of {len(clips)} clips.",
            hint="A front end must give as many samples as it was given.",
        )
    return enhanced


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


def text_sha256(text: str) -> str:
    """The sha256 of a text in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
