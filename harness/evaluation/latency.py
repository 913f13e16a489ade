"""How long one query takes from its sound to its ranking, one at a time: what a user of the system would wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ...errors import AudioError, SqutrError
from ...loaders.audio import decode_audio, resample
from ...loaders.keyed import keyed_seed
from ...loaders.records import Samples, SpokenQuery
from ..metering import percentiles
from ..protocols import Retriever
from ..results.old import TEXT_CONDITION, Latency, RunRecord
from ..systems.system import Cascade, EndToEnd, System
from .asking import search_texts
from .demands import Need, all_needs, searcher_of
from .hearing import sentences
from .plan import Plan
from .recording import Made


def with_latency(
    made: Made, system: System, records: Sequence[RunRecord], count: int, seed: int
) -> tuple[list[RunRecord], dict[str, SqutrError]]:
    """These runs with the latency of `count` drawn queries each, measured now, nothing cached; and why some have none.

    Runs without sound, of ready files, and of queries that cannot be decoded stay as they are.
    """
    timed: dict[str, RunRecord] = {record.result.data.config: record for record in records}
    failed: dict[str, SqutrError] = {}
    indexed = ""
    # By subset, so that each is indexed once.
    for config, record in sorted(timed.items(), key=lambda pair: pair[1].result.data.subsets):
        subsets, condition = made.plan.configs[config]
        if condition == TEXT_CONDITION or not _can_be_timed(system):
            continue
        # One subset stands for the config: indexing several at once is not what a user waits for.
        subset, depth = subsets[0], record.result.system.depth
        try:
            with sentences(f"timing {system.name} on {config}"):
                retriever = searcher_of(system, made.tools)
                if retriever is not None and indexed != subset:
                    retriever.index(made.plan.corpus(subset), language=made.plan.data.subsets[subset])
                    indexed = subset
                answer = _answerer(made, system, subset, depth)
                drawn = _drawn(made.plan, subset, condition, count, seed)
                with _anew(retriever):
                    # The first is heard twice: engines load and compile with the first.
                    seconds = [s for query in drawn[:1] + drawn if (s := answer(query)) is not None]
                latency = _latency(seconds[1:])
        except SqutrError as error:
            failed[config] = error
            continue
        timing = record.result.timing.model_copy(update={"latency": latency})
        timed[config] = replace(record, result=record.result.model_copy(update={"timing": timing}))
    return list(timed.values()), failed


@contextmanager
def _anew(retriever: Retriever | None) -> Iterator[None]:
    """What retrievers keep of queries is not used: the evaluation has seen them all."""
    with ExitStack() as stack:
        for need in all_needs(Need(retriever, 1)) if retriever is not None else []:
            anew = getattr(need.retriever, "encoding_anew", None)
            if anew is not None:
                stack.enter_context(anew())
        yield


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
