"""What an evaluation would do: what is cached, what is left, and how long that takes by a measured rate."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import AudioError
from ...loaders.audio import decode_audio, resample
from ...loaders.corpus import as_corpus
from ...loaders.data import SpeechData
from ...loaders.partial import PartialData
from ...loaders.records import Samples
from ..components.encoders.cache import DirectoryEmbeddingCache
from ..processes import Alone
from ..protocols import Retriever
from ..results.old import TEXT_CONDITION
from ..systems.system import System
from .demands import Need, all_needs, is_composite, searcher_of, sound_demands, text_demands, text_sha256
from .evaluate import Options, silent
from .hearing import Hearing
from .listeners import Ear, Heard, Listened, Tools, listener_of
from .listening import listeners, read_ready
from .plan import Cell, Plan, make_plan
from .samples import keep_nothing
from .shards import read_shards, without_sound
from .store import Corner, Store

TIMED_CLIPS = 8
TIMED_DOCUMENTS = 64


@dataclass(frozen=True, slots=True)
class Forecast:
    """One line of the forecast.

    `items` clips or documents are to be worked on in all, `cached` of them need no work any more: their transcript or
    vector is known, or (documents) all that would be searched for in them. `seconds` is what the others take by the
    rate that was measured, `measured` says when: "before" or "now", "" if nothing is left.
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
    data: SpeechData,
    *,
    configs: Sequence[str] | None = None,
    cache: Path | None = None,
    options: Options | None = None,
) -> list[Forecast]:
    """What `run_evaluation` would do with the same arguments in one process.

    Rates are those of earlier evaluations in this cache; a component that has none is timed now on a few items. Raises
    as `run_evaluation`, and what a component raises that is timed.
    """
    chosen = options or Options()
    taken = (
        PartialData(data, limit=chosen.limit, fraction=chosen.fraction, seed=chosen.seed) if chosen.partial else data
    )
    plan = make_plan(systems, taken, configs)
    store = Store(cache) if cache is not None and Store.exists(cache) else None
    if store is not None:
        store.merge()
    embeddings = DirectoryEmbeddingCache(cache / "embeddings") if cache is not None else None
    tools = Tools(Alone(), store, embeddings, lambda _: keep_nothing, silent)
    listened: dict[str, Listened] = {}
    lines: list[Forecast] = []
    for key, (listener, cells) in listeners(plan).items():
        if isinstance(listener, Ear):
            listened[key] = Listened()
            lines += _listening(plan, listener, cells, tools, listened[key])
        else:
            listened[key] = read_ready(plan, listener, cells, tools)
    return lines + _indexing(plan, listened, chosen.depth, tools)


def _listening(plan: Plan, ear: Ear, cells: Sequence[Cell], tools: Tools, found: Listened) -> list[Forecast]:
    """The lines of one listener; cells of which all is known are put into `found`."""
    speed = None if tools.store is None else tools.store.speed(ear.key)
    measured = "now" if speed is None else "before"
    lines: list[Forecast] = []
    for cell in cells:
        missing_s, known = _missing(plan, ear, cell, tools, found)
        if speed is None and missing_s:
            speed = _speed(plan, ear, cell)
        left_s = missing_s * (speed or 0.0)
        total = len(plan.queries[cell[0]])
        lines.append(
            Forecast("listen", ear.name, "_".join(cell), total, known, left_s, measured if known < total else "")
        )
    return lines


def _missing(plan: Plan, ear: Ear, cell: Cell, tools: Tools, found: Listened) -> tuple[float, int]:
    """Seconds of sound that were not heard yet, and how many clips were."""
    hearing = Hearing(ear, plan.data.subsets[cell[0]], tools, found)
    expected = plan.queries[cell[0]]
    heard: dict[int, Heard] = {}
    missing_s = 0.0
    for shard in read_shards(plan.data, cell, expected, own=lambda _: True, keep=keep_nothing):
        encoded = [hashlib.sha256(query.audio).hexdigest() for query in shard.queries]
        sounds = hearing.known_sounds(encoded)
        known = hearing.known(list(sounds.values()))
        for position, query, key in zip(shard.positions, shard.queries, encoded, strict=True):
            digest = sounds.get(key, "")
            if digest in known:
                heard[position] = Heard(without_sound(query), digest, known[digest])
            else:
                missing_s += query.duration_s
    if len(heard) == len(expected):
        found.cells[cell] = [heard[position] for position in range(len(expected))]
    return missing_s, len(heard)


def _speed(plan: Plan, ear: Ear, cell: Cell) -> float:
    """Seconds of work per second of sound, timed on a few clips after as many that warm up; 0 if none can be heard."""
    rate = ear.model.sample_rate
    clips: list[Samples] = []
    for query in plan.data.spoken(*cell, start=0, stop=2 * TIMED_CLIPS):
        try:
            clips.append(resample(*decode_audio(query.audio, f"query {query.id!r}"), rate))
        except AudioError:
            # It takes no time in the evaluation either.
            continue
    if not clips:
        return 0.0
    half, language = max(1, len(clips) // 2), plan.data.subsets[cell[0]]
    _hear(ear, clips[:half], language)
    timed = clips[half:] or clips
    started = time.perf_counter()
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


def _indexing(plan: Plan, listened: Mapping[str, Listened], depth: int, tools: Tools) -> list[Forecast]:
    """One line per corpus and retriever that is made of no others."""
    asked = _asked(plan, listened, depth, tools)
    lines: list[Forecast] = []
    rates: dict[str, float] = {}
    for (fingerprint, subset), (leaf, needed) in asked.items():
        corpus, language = plan.corpus(subset), plan.data.subsets[subset]
        cached = len(corpus)
        if needed and cached:
            prepared = getattr(leaf, "prepared", None)
            cached = int(prepared(corpus, language=language)) if prepared is not None else 0
        left = len(corpus) - cached
        before = (
            None if tools.store is None else tools.store.indexing_s(Corner(fingerprint, corpus.digest, language, 0))
        )
        if left and before is None and fingerprint not in rates:
            rates[fingerprint] = _seconds_per_document(plan, leaf, subset)
        rate = 0.0 if not left else before / len(corpus) if before is not None else rates[fingerprint]
        measured = "" if not left else "before" if before is not None else "now"
        lines.append(Forecast("index", leaf.spec.name, subset, len(corpus), cached, left * rate, measured))
    return lines


def _asked(
    plan: Plan, listened: Mapping[str, Listened], depth: int, tools: Tools
) -> Mapping[tuple[str, str], tuple[Retriever, bool]]:
    """Which retrievers that are made of no others are asked on which subsets, and whether anything is not known."""
    asked: dict[tuple[str, str], tuple[Retriever, bool]] = {}

    def ask(need: Need, subset: str, *, unknown: bool) -> None:
        if not is_composite(need.retriever):
            place = (need.retriever.spec.fingerprint, subset)
            leaf, before = asked.get(place, (need.retriever, False))
            asked[place] = leaf, before or unknown

    for system in plan.systems:
        retriever = searcher_of(system, tools)
        for cell in plan.cells(system) if retriever is not None else []:
            # What is not heard yet may be asked anything.
            unheard = cell[1] != TEXT_CONDITION and cell not in listened[listener_of(system).key].cells
            for need in all_needs(Need(retriever, depth)) if retriever is not None else []:
                ask(need, cell[0], unknown=unheard)
    spoken = sound_demands(plan, listened, depth, tools)
    for need, by_subset in text_demands(plan, listened, depth, tools).values():
        for subset, texts in by_subset.items():
            keys = [text_sha256(text) for text in texts]
            ask(need, subset, unknown=_unknown(plan, tools, need.key, subset, keys))
            for sounds in spoken.get(need.key, []):
                heard = list(sounds.by_subset.get(subset, ()))
                ask(need, subset, unknown=_unknown(plan, tools, sounds.key, subset, heard))
    return asked


def _unknown(plan: Plan, tools: Tools, key: tuple[str, int], subset: str, asked: Sequence[str]) -> bool:
    if tools.store is None:
        return bool(asked)
    corner = Corner(key[0], plan.corpus(subset).digest, plan.data.subsets[subset], key[1])
    return len(tools.store.rankings(corner, asked)) < len(set(asked))


def _seconds_per_document(plan: Plan, leaf: Retriever, subset: str) -> float:
    """The time that a document takes, measured on a few after as many that warm up."""
    corpus, language = plan.corpus(subset), plan.data.subsets[subset]
    some = corpus[: 2 * TIMED_DOCUMENTS]
    half = max(1, len(some) // 2)
    timed = some[half:] or some
    encoder = getattr(leaf, "encoder", None)
    for documents in (some[:half], timed):
        started = time.perf_counter()
        if encoder is not None:
            # An index of the sample would be kept in the cache, where nobody wants it.
            encoder.encode([document.contents for document in documents], role="document")
        else:
            leaf.index(as_corpus(documents), language=language)
    return (time.perf_counter() - started) / len(timed)
