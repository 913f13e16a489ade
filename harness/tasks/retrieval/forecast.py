"""What an evaluation of retrieval would do: clips that are left to transcribe or encode, and documents to index."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....loaders.corpus import as_corpus
from ...evaluation.forecast import forecast_inference
from ...evaluation.plan import SpeechPlan
from ...evaluation.rewriting import Spoken, forecast_rewriting
from ...evaluation.store import RankingKey
from ...evaluation.task import Forecast
from ...evaluation.tools import Tools
from ...protocols import Retriever
from ...results.envelope import TEXT_CONDITION
from .plan import RetrievalPlan
from .search_requests import (
    Key,
    SearchRequest,
    Source,
    is_composite,
    requests_of,
    searchers_of,
    text_requests,
    text_sha256,
    vector_requests,
)

TIMED_DOCUMENTS = 64


def forecast(plan: RetrievalPlan, depth: int, tools: Tools) -> list[Forecast]:
    """The lines of the inference stage; then one line per corpus and retriever that is made of no others.

    Documents are cached if all that would be searched for in them is known, or their vectors are.
    """
    lines: list[Forecast] = []
    sources: list[Source] = []
    for own in (plan, plan.fitting):
        if own is not None:
            of, outputs = forecast_inference(own, tools)
            rewriting, rewrites = forecast_rewriting(own, outputs, tools)
            held_out = "" if own is plan else " (held out)"
            lines += [replace(line, scope=line.scope + held_out) for line in (*of, *rewriting)]
            sources.append((own, Spoken(outputs, rewrites)))
    rates: dict[str, float] = {}
    for (fingerprint, subset), (leaf, needed) in _leaves(sources, depth, tools).items():
        corpus, language = plan.corpus(subset), plan.language(subset)
        cached = len(corpus)
        if needed and cached:
            prepared = getattr(leaf, "prepared", None)
            cached = int(prepared(corpus, language=language)) if prepared is not None else 0
        left, key = len(corpus) - cached, RankingKey(fingerprint, corpus.digest, language, 0)
        before = None if tools.store is None else tools.store.indexing_s(key)
        if left and before is None and fingerprint not in rates:
            rates[fingerprint] = _seconds_per_document(plan, leaf, subset)
        rate = 0.0 if not left else before / len(corpus) if before is not None else rates[fingerprint]
        measured = "" if not left else "before" if before is not None else "now"
        lines.append(Forecast("index", leaf.spec.name, subset, len(corpus), cached, left * rate, measured))
    return lines


def _leaves(sources: Sequence[Source], depth: int, tools: Tools) -> Mapping[tuple[str, str], tuple[Retriever, bool]]:
    """Which retrievers that are made of no others search which subsets, and whether anything is not known."""
    leaves: dict[tuple[str, str], tuple[Retriever, bool]] = {}

    def note(request: SearchRequest, subset: str, *, unknown: bool) -> None:
        if not is_composite(request.retriever):
            place = (request.retriever.spec.fingerprint, subset)
            leaf, before = leaves.get(place, (request.retriever, False))
            leaves[place] = leaf, before or unknown

    for own, spoken in sources:
        for system in own.systems:
            for cell in own.cells(system):
                # What is not transcribed and rewritten yet may be searched with anything.
                unknown = cell[1] != TEXT_CONDITION and spoken.known_rows(own, system, cell) is None
                for part in requests_of(searchers_of(system, own.language(cell[0]), tools), depth):
                    note(part, cell[0], unknown=unknown)
    plan, scored = sources[0]
    vectors = vector_requests(plan, scored.outputs, depth, tools)
    for key, request in text_requests(sources, depth, tools).items():
        for subset, texts in request.texts.items():
            note(request, subset, unknown=_unknown(plan, tools, key, subset, [text_sha256(text) for text in texts]))
            for one in vectors.get(key, []):
                clips = list(one.clips.get(subset, ()))
                note(request, subset, unknown=_unknown(plan, tools, one.key, subset, clips))
    return leaves


def _unknown(plan: SpeechPlan, tools: Tools, key: Key, subset: str, items: Sequence[str]) -> bool:
    if tools.store is None:
        return bool(items)
    place = RankingKey(key[0], plan.corpus(subset).digest, plan.language(subset), key[1])
    return len(tools.store.rankings(place, items)) < len(set(items))


def _seconds_per_document(plan: SpeechPlan, leaf: Retriever, subset: str) -> float:
    """The time that a document takes, measured on a few after as many that warm up."""
    corpus, language = plan.corpus(subset), plan.language(subset)
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
