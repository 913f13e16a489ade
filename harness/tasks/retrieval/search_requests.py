"""What every retriever is to search with: texts, and audio vectors of end-to-end systems, by subset."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard, cast

from ...components.retrievers.dense import DenseRetriever
from ...components.retrievers.route import is_route
from ...evaluation.inference import Cell, Outputs, Vector, model_of
from ...evaluation.plan import SpeechPlan
from ...evaluation.rewriting import Spoken
from ...evaluation.tools import Tools
from ...protocols import AudioTextEncoder, CompositeRetriever, Retriever
from ...results.envelope import TEXT_CONDITION
from ...systems.system import System
from .search_texts import search_texts

Key = tuple[str, int]
"""What rankings are shared by: a fingerprint and the depth."""
Source = tuple[SpeechPlan, Spoken]
"""What is searched with: that of the queries which are scored, and of those on which a threshold is fitted."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One retriever at one depth, with the distinct texts to search each subset with."""

    retriever: Retriever
    depth: int
    texts: dict[str, dict[str, None]] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.retriever.spec.fingerprint, self.depth

    def with_parts(self) -> list[SearchRequest]:
        """It and all that its retriever is made of, parts first, each once."""
        found: dict[Key, SearchRequest] = {}
        if is_composite(self.retriever):
            for part in self.retriever.parts:
                request = SearchRequest(part, self.retriever.part_depth(self.depth), self.texts)
                found |= {one.key: one for one in request.with_parts()}
        return list((found | {self.key: self}).values())


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """The clips, by subset, that an end-to-end system searches with, and their vectors."""

    key: Key
    clips: Mapping[str, Mapping[str, None]]
    vectors: Mapping[str, Vector]


def text_requests(sources: Sequence[Source], depth: int, tools: Tools) -> dict[Key, SearchRequest]:
    """What is searched with texts, parts before what is made of them; parts get the texts of the whole."""
    requests: dict[Key, SearchRequest] = {}
    for plan, spoken in sources:
        for system in plan.systems:
            for cell in plan.cells(system):
                retrievers = searchers_of(system, plan.language(cell[0]), tools)
                texts = dict.fromkeys(_cell_texts(plan, system, cell, spoken) if retrievers else ())
                for one in requests_of(retrievers if texts else (), depth):
                    request = requests.setdefault(one.key, SearchRequest(one.retriever, one.depth))
                    request.texts.setdefault(cell[0], {}).update(texts)
    return requests


def requests_of(retrievers: Sequence[Retriever], depth: int) -> list[SearchRequest]:
    """The requests of retrievers and of all that they are made of, parts first."""
    return [one for retriever in retrievers for one in SearchRequest(retriever, depth).with_parts()]


def vector_requests(
    plan: SpeechPlan, inferred: Mapping[str, Outputs], depth: int, tools: Tools
) -> Mapping[Key, list[VectorRequest]]:
    """What end-to-end systems search with in all conditions, by the key of the dense retriever that searches."""
    clips: dict[Key, dict[Key, dict[str, dict[str, None]]]] = {}
    vectors: dict[Key, Mapping[str, Vector]] = {}
    for system in plan.systems:
        if system.kind != "end-to-end":
            continue
        for cell in plan.cells(system):
            if cell[1] == TEXT_CONDITION:
                continue
            language = plan.language(cell[0])
            outputs, key = inferred[model_of(system, language).key], audio_key(system, language, depth)
            digests = (one.audio_sha256 for one in outputs.cells.get(cell, ()) if not one.transcript.error)
            searcher = SearchRequest(dense_of(system, language, tools), depth).key
            clips.setdefault(searcher, {}).setdefault(key, {}).setdefault(cell[0], {}).update(dict.fromkeys(digests))
            vectors[key] = outputs.vectors
    return {
        searcher: [VectorRequest(key, by_subset, vectors[key]) for key, by_subset in same.items()]
        for searcher, same in clips.items()
    }


def audio_key(system: System, language: str, depth: int) -> Key:
    """What the rankings of an end-to-end system's clips are shared by."""
    return f"{model_of(system, language).key}-audio", depth


def dense_of(system: System, language: str, tools: Tools) -> DenseRetriever:
    """An end-to-end system's encoder as a dense retriever, the same one within an evaluation."""
    encoder = cast(AudioTextEncoder, system.for_language(language).encoder)
    key = ("dense", encoder.spec.fingerprint)
    if key not in tools.shared:
        tools.shared[key] = DenseRetriever(encoder=encoder, cache=tools.embeddings)
    return cast(DenseRetriever, tools.shared[key])


def searchers_of(system: System, language: str, tools: Tools) -> Sequence[Retriever]:
    """What a system searches texts with: one, both of a route, none of a precomputed run.

    An end-to-end system's encoder searches as a dense retriever.
    """
    if system.kind == "end-to-end":
        return (dense_of(system, language, tools),)
    retriever = system.for_language(language).searcher
    if retriever is None:
        return ()
    return retriever.routed if is_route(retriever) else (retriever,)


def _cell_texts(plan: SpeechPlan, system: System, cell: Cell, spoken: Spoken) -> list[str]:
    """The distinct texts that a system searches with in a cell; [] where a stage failed or gives none."""
    subset, condition = cell
    if condition == TEXT_CONDITION:
        return list(dict.fromkeys(query.text for query in plan.queries(subset)))
    if system.kind != "cascade":
        return []
    language, rows = plan.language(subset), spoken.known_rows(plan, system, cell) or ()
    return list(
        dict.fromkeys(t for one in rows for t in search_texts(system, one.transcript, language, one.rewritten).texts)
    )


def is_composite(retriever: Retriever) -> TypeGuard[CompositeRetriever]:
    return hasattr(retriever, "combine") and hasattr(retriever, "parts")


def text_sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
