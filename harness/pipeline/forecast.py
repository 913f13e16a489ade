"""What an evaluation would do: what is cached, what is left, and how long that takes by a measured rate."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...loaders.audio import decode_audio, resample
from ...loaders.corpus import as_corpus
from ...loaders.paired import PairedData
from ...loaders.partial import PartialData
from ...loaders.records import Samples
from ..protocols import Retriever
from ..results import TEXT_CONDITION
from ..store import Store
from ..systems.system import Cascade, EndToEnd, System
from .evaluate import Options
from .listening import Ear, listener_of
from .plan import Cell, Plan, make_plan
from .searching import is_composite

TIMED_CLIPS = 8
TIMED_DOCUMENTS = 64


@dataclass(frozen=True, slots=True)
class Forecast:
    """One line of the forecast.

    `items` clips or documents are to be worked on in all, `cached` of them are already. `seconds` is what the others
    take by the rate that was measured, `measured` says where: "before" or "now".
    """

    stage: str
    component: str
    scope: str
    items: int
    cached: int
    seconds: float
    measured: str


def forecast(
    systems: Sequence[System],
    data: PairedData,
    *,
    configs: Sequence[str] | None = None,
    cache: Path | None = None,
    options: Options | None = None,
) -> list[Forecast]:
    """What `run_evaluation` would do with the same arguments in one process.

    Rates are those of earlier evaluations in this cache; a component that has none is timed now on a few items. Raises
    as `run_evaluation`.
    """
    chosen = options or Options()
    taken = (
        PartialData(data, limit=chosen.limit, fraction=chosen.fraction, seed=chosen.seed) if chosen.partial else data
    )
    plan = make_plan(systems, taken, configs)
    store = Store(cache) if cache is not None else None
    if store is not None:
        store.merge()
    return [*_listening(plan, store), *_indexing(plan, store, chosen.depth)]


def _listening(plan: Plan, store: Store | None) -> list[Forecast]:
    jobs: dict[str, tuple[Ear, dict[Cell, None]]] = {}
    for system in plan.systems:
        listener = listener_of(system)
        if isinstance(listener, Ear):
            _, cells = jobs.setdefault(listener.key, (listener, {}))
            cells.update(dict.fromkeys(cell for cell in plan.cells(system) if cell[1] != TEXT_CONDITION))
    lines: list[Forecast] = []
    for ear, cells in jobs.values():
        speed = None if store is None else store.speed(ear.key)
        measured = "now" if speed is None else "before"
        for cell in cells:
            missing_s, known = _missing(plan, store, ear, cell)
            if speed is None and missing_s:
                speed = _speed(plan, ear, cell)
            lines.append(
                Forecast(
                    "listen",
                    ear.name,
                    "_".join(cell),
                    len(plan.queries[cell[0]]),
                    known,
                    missing_s * (speed or 0.0),
                    measured,
                )
            )
    return lines


def _missing(plan: Plan, store: Store | None, ear: Ear, cell: Cell) -> tuple[float, int]:
    """Seconds of sound that were not heard yet, and how many clips were."""
    language = plan.data.subsets[cell[0]]
    missing_s, known = 0.0, 0
    for query in plan.data.spoken(*cell):
        key = hashlib.sha256(query.audio).hexdigest()
        sounds = {} if store is None else store.sounds([key])
        heard = {} if store is None else store.transcripts(sounds.values(), language=language, listener=ear.key)
        if heard:
            known += 1
        else:
            missing_s += query.duration_s
    return missing_s, known


def _speed(plan: Plan, ear: Ear, cell: Cell) -> float:
    """Seconds of work per second of sound, timed on a few clips after as many that warm up."""
    language = plan.data.subsets[cell[0]]
    queries = list(plan.data.spoken(*cell, start=0, stop=2 * TIMED_CLIPS))
    rate = ear.model.sample_rate
    clips = [resample(*decode_audio(q.audio, f"query {q.id!r}"), rate) for q in queries]
    half = max(1, len(clips) // 2)
    _hear(ear, clips[:half], language)
    started = time.perf_counter()
    timed = clips[half:] or clips
    _hear(ear, timed, language)
    return (time.perf_counter() - started) / (sum(map(len, timed)) / rate)


def _hear(ear: Ear, clips: list[Samples], language: str) -> None:
    if ear.front_end is not None:
        own, rate = ear.front_end.sample_rate, ear.model.sample_rate
        enhanced = ear.front_end.enhance([resample(clip, rate, own) for clip in clips])
        clips = [resample(clip, own, rate) for clip in enhanced]
    if ear.transcriber is not None:
        ear.transcriber.transcribe(clips, language=language)
    elif ear.encoder is not None:
        ear.encoder.encode_audio(clips, language=language)


def _leaves(retriever: Retriever) -> list[Retriever]:
    if not is_composite(retriever):
        return [retriever]
    return [leaf for part in retriever.parts for leaf in _leaves(part)]


def _indexing(plan: Plan, store: Store | None, depth: int) -> list[Forecast]:
    from ..backends.dense import DenseRetriever

    jobs: dict[str, tuple[Retriever, dict[str, None]]] = {}
    for system in plan.systems:
        whole = system.searcher if isinstance(system, Cascade) else None
        if isinstance(system, EndToEnd):
            whole = DenseRetriever(encoder=system.encoder)
        for leaf in _leaves(whole) if whole is not None else []:
            _, subsets = jobs.setdefault(leaf.spec.fingerprint, (leaf, {}))
            subsets.update(dict.fromkeys(subset for subset, _ in plan.cells(system)))
    lines: list[Forecast] = []
    for leaf, subsets in jobs.values():
        per_document: float | None = None
        for subset in subsets:
            corpus, language = plan.corpus(subset), plan.data.subsets[subset]
            done = getattr(leaf, "prepared", None)
            known = int(done(corpus, language=language)) if done is not None else 0
            if per_document is None:
                sample = as_corpus(list(islice(corpus, TIMED_DOCUMENTS)))
                started = time.perf_counter()
                leaf.index(sample, language=language)
                per_document = (time.perf_counter() - started) / max(1, len(sample))
            left = len(corpus) - known
            lines.append(Forecast("index", leaf.spec.name, subset, len(corpus), known, left * per_document, "now"))
    return lines
