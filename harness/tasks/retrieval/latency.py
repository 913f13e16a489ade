"""How long one query takes from its audio to its ranking, one at a time: what a user of the system would wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from ....errors import AudioError
from ....loaders.audio import decode_audio, resample
from ....loaders.records import Samples, SpokenQuery
from ...components import checked
from ...components.raised import sentences
from ...components.retrievers.route import chosen_part
from ...evaluation.inference import AudioModel, model_of
from ...evaluation.rewriting import rewritten_now
from ...evaluation.task import Run
from ...evaluation.timing import drawn_rows, latency_of
from ...protocols import Retriever
from ...results.envelope import TEXT_CONDITION, Latency
from ...systems.system import System
from .outputs import Stages
from .plan import RetrievalPlan
from .search_requests import dense_of, requests_of, searchers_of
from .search_texts import search_texts

_INDEXED = "indexed for latency"


def run_latency(plan: RetrievalPlan, stages: Stages, run: Run) -> Latency | None:
    """The latency of drawn queries, measured now, nothing cached; one subset stands for the config.

    None without audio and for precomputed output. Raises `ModelError` as `latency_of`.
    """
    system, condition = plan.system(run.system), plan.condition(run.config)
    # Indexing several subsets at once is not what a user waits for.
    subset = plan.configs[run.config][0][0]
    language, shared = plan.language(subset), stages.tools.shared
    model, retrievers = model_of(system, language), searchers_of(system, language, stages.tools)
    if condition == TEXT_CONDITION or not isinstance(model, AudioModel) or not retrievers:
        return None
    with sentences(f"timing {system.name} on {run.config}"):
        if shared.get(_INDEXED) != (system.name, subset):
            shared.pop(_INDEXED, None)
            for retriever in retrievers:
                retriever.index(plan.corpus(subset), language=language)
            shared[_INDEXED] = system.name, subset
        timed = _timer(plan, stages, system, model, language)
        drawn = drawn_rows(plan, subset, condition)
        with _encoding_anew(retrievers):
            # The first is taken twice: engines load and compile with the first.
            timed_one = [timed(query) for query in drawn[:1] + drawn]
        return latency_of(timed_one[1:], system.name, plan.options.max_failed)


@contextmanager
def _encoding_anew(retrievers: Sequence[Retriever]) -> Iterator[None]:
    """What retrievers keep of queries is not used: the evaluation has seen them all."""
    with ExitStack() as stack:
        for one in requests_of(retrievers, 1):
            anew = getattr(one.retriever, "encoding_anew", None)
            if anew is not None:
                stack.enter_context(anew())
        yield


def _timer(
    plan: RetrievalPlan, stages: Stages, system: System, model: AudioModel, language: str
) -> Callable[[SpokenQuery], float | str]:
    """A function that answers a query and gives the seconds that it took, or says why it failed."""
    retrievers, threshold = searchers_of(system, language, stages.tools), plan.threshold(system, language)

    def clip(query: SpokenQuery) -> Samples:
        samples, own_rate = decode_audio(query.audio, f"query {query.id!r}")
        samples = resample(samples, own_rate, model.sample_rate)
        if model.front_end is not None:
            (samples,) = checked.enhance(model.front_end, [samples])
        return resample(samples, model.sample_rate, model.model.sample_rate)

    def timed(query: SpokenQuery) -> float | str:
        started = time.perf_counter()
        try:
            if model.transcriber is not None:
                (transcript,) = checked.transcribe(model.transcriber, [clip(query)], language=language)
                rewritten = rewritten_now(system, transcript, language)
                error = transcript.error or ("" if rewritten is None else rewritten.error)
                if error:
                    return error
                texts = search_texts(system, transcript, language, rewritten).texts
                part = chosen_part(transcript.confidence, threshold) if len(retrievers) > 1 else 0
                checked.search(retrievers[part], list(dict.fromkeys(texts)), k=stages.depth, ids=None)
            elif model.encoder is not None:
                vectors = checked.encode_audio(model.encoder, [clip(query)], language=language)
                if not np.isfinite(vectors).all():
                    return "the encoder gave no finite vector"
                dense_of(system, language, stages.tools).search_vectors(vectors, k=stages.depth)
        except AudioError as error:
            return error.message
        return time.perf_counter() - started

    return timed
