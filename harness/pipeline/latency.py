"""How long one query takes from its sound to its ranking, one at a time: what a user of the system would wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...errors import AudioError
from ...loaders.audio import decode_audio, resample
from ...loaders.keyed import keyed_seed
from ...loaders.records import Samples, SpokenQuery
from ..metering import percentiles
from ..results import TEXT_CONDITION, Latency, RunRecord
from ..systems.system import Cascade, EndToEnd, System
from .asking import search_texts
from .plan import Plan
from .recording import Made
from .searching import searcher_of

WARM_UP = 1
"""Queries heard first, not counted: engines load and compile with the first."""


def with_latency(made: Made, system: System, records: Sequence[RunRecord], count: int, seed: int) -> list[RunRecord]:
    """These runs with the latency of `count` drawn queries each, measured now, nothing cached.

    Runs without sound, of ready files, and of queries that cannot be decoded stay as they are.
    """
    depth = records[0].result.system.depth if records else 0
    timed: list[RunRecord] = []
    indexed = ""
    for record in sorted(records, key=lambda r: r.result.data.subsets):
        subsets, condition = made.plan.configs[record.result.data.config]
        if condition == TEXT_CONDITION or not _can_be_timed(system):
            timed.append(record)
            continue
        # One subset stands for the config: indexing several at once is not what a user waits for.
        subset = subsets[0]
        answer = _answerer(made, system, subset, depth)
        if indexed != subset:
            retriever = searcher_of(system, made.tools)
            if retriever is not None:
                retriever.index(made.plan.corpus(subset), language=made.plan.data.subsets[subset])
            indexed = subset
        seconds = [
            s for q in _drawn(made.plan, subset, condition, count + WARM_UP, seed) if (s := answer(q)) is not None
        ]
        latency = _latency(seconds[WARM_UP:])
        timing = record.result.timing.model_copy(update={"latency": latency})
        timed.append(replace(record, result=record.result.model_copy(update={"timing": timing})))
    order = {record.result.data.config: i for i, record in enumerate(records)}
    return sorted(timed, key=lambda r: order[r.result.data.config])


def _can_be_timed(system: System) -> bool:
    if isinstance(system, Cascade):
        return system.listener is not None and system.searcher is not None
    return isinstance(system, EndToEnd)


def _latency(seconds: Sequence[float]) -> Latency | None:
    found = percentiles(seconds)
    if found is None:
        return None
    return Latency(n=len(seconds), p50_s=found["p50"], p90_s=found["p90"], p95_s=found["p95"], p99_s=found["p99"])


def _drawn(plan: Plan, subset: str, condition: str, count: int, seed: int) -> list[SpokenQuery]:
    queries = plan.queries[subset]
    order = sorted(range(len(queries)), key=lambda i: keyed_seed(seed, "latency", subset, queries[i].id))
    return [q for i in sorted(order[:count]) for q in plan.data.spoken(subset, condition, start=i, stop=i + 1)]


def _answerer(made: Made, system: System, subset: str, depth: int) -> Callable[[SpokenQuery], float | None]:
    """A function that answers a query and says what it took in s, None for a sound that cannot be decoded."""
    language = made.plan.data.subsets[subset]
    retriever = searcher_of(system, made.tools)
    dense = made.tools.dense_of(system) if isinstance(system, EndToEnd) else None

    def heard(query: SpokenQuery, rate: int) -> Samples:
        samples, own_rate = decode_audio(query.audio, f"query {query.id!r}")
        front_end = None if not isinstance(system, Cascade | EndToEnd) else system.front_end
        if front_end is None:
            return resample(samples, own_rate, rate)
        (clean,) = front_end.enhance([resample(samples, own_rate, front_end.sample_rate)])
        return resample(clean, front_end.sample_rate, rate)

    def answer(query: SpokenQuery) -> float | None:
        started = time.perf_counter()
        try:
            if isinstance(system, Cascade) and system.listener is not None and retriever is not None:
                clip = heard(query, system.listener.sample_rate)
                (transcript,) = system.listener.transcribe([clip], language=language)
                retriever.search(list(dict.fromkeys(search_texts(system, transcript, language).texts)), k=depth)
            elif isinstance(system, EndToEnd) and dense is not None:
                clip = heard(query, system.encoder.sample_rate)
                dense.search_vectors(system.encoder.encode_audio([clip], language=language), k=depth)
        except AudioError:
            return None
        return time.perf_counter() - started

    return answer
