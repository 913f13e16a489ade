"""The second stage: every distinct text is searched once per retriever, whatever systems and conditions share it.

A retriever made of others (a hybrid, a reranker) combines the rankings of its parts, which are searched like any other.
A corpus that must be embedded is shared among processes, and so are the searches in it; a lexical index is built and
searched by the main process alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeGuard

from ...errors import ModelError, SqutrError, StorageError
from ...loaders.corpus import Corpus
from ..processes import Processes, complete
from ..protocols import CompositeRetriever, Hit, Retriever
from ..results import TEXT_CONDITION
from ..store import Corner, Ranking, Store
from ..systems.system import Cascade, EndToEnd, System
from .asking import search_texts
from .listening import Failure, Listened, Tools, Vector, listener_of, text_sha256
from .plan import Cell, Plan

UNIT_TEXTS = 256
"""Texts that are searched and kept together."""


@dataclass(frozen=True, slots=True)
class Need:
    """One retriever at one depth."""

    retriever: Retriever
    depth: int

    @property
    def key(self) -> tuple[str, int]:
        """What its rankings are shared by."""
        return self.retriever.spec.fingerprint, self.depth


@dataclass(slots=True)
class Searched:
    """Rankings by retriever key, subset and what was searched with (a text, or a sound of an end-to-end system).

    `failed` says why a retriever failed on a subset, `index_s` what indexing a subset took when it was done.
    """

    rankings: dict[tuple[str, int], dict[str, dict[str, Ranking]]] = field(default_factory=dict)
    failed: dict[tuple[tuple[str, int], str], Failure] = field(default_factory=dict)
    index_s: dict[tuple[tuple[str, int], str], float] = field(default_factory=dict)


def end_to_end_key(system: EndToEnd, depth: int) -> tuple[str, int]:
    """What the rankings of an end-to-end system's sounds are shared by."""
    return f"{listener_of(system).key}-sound", depth


def search_all(plan: Plan, listened: Mapping[str, Listened], depth: int, tools: Tools) -> Searched:
    """Search everything that the systems ask for. A retriever that fails on a subset is noted, the others go on.

    Raises `StorageError` at once.
    """
    found = Searched()
    texts = _demands(plan, listened, depth, tools)
    # A part is searched before what is made of it.
    for need in _bottom_up(texts):
        by_subset = texts[need.key][1]
        counter = _Counter(f"searching with {need.retriever.spec.name}", sum(map(len, by_subset.values())), tools)
        for subset, distinct in by_subset.items():
            search = _TextSearch(plan, need, subset, list(distinct), found)
            _guarded(found, need.key, subset, search=search, tools=tools, counter=counter)
    for system in plan.systems:
        if isinstance(system, EndToEnd):
            _search_sounds(plan, system, listened, depth, found=found, tools=tools)
    return found


Demands = dict[tuple[str, int], tuple[Need, dict[str, dict[str, None]]]]


def _demands(plan: Plan, listened: Mapping[str, Listened], depth: int, tools: Tools) -> Demands:
    """Which texts every retriever is asked, by subset; parts are asked what the whole is asked."""
    demands: Demands = {}

    def demand(retriever: Retriever, k: int, subset: str, texts: Sequence[str]) -> None:
        need = Need(retriever, k)
        _, by_subset = demands.setdefault(need.key, (need, {}))
        by_subset.setdefault(subset, {}).update(dict.fromkeys(texts))
        if is_composite(retriever):
            for part in retriever.parts:
                demand(part, retriever.part_depth(k), subset, texts)

    for system in plan.systems:
        retriever = searcher_of(system, tools)
        if retriever is None:
            continue
        for cell in plan.cells(system):
            texts = _cell_texts(plan, system, cell, listened)
            if texts:
                demand(retriever, depth, cell[0], texts)
    return demands


def searcher_of(system: System, tools: Tools) -> Retriever | None:
    """What a system searches texts with: a cascade's retriever, an end-to-end system's encoder as a dense retriever."""
    if isinstance(system, Cascade):
        return system.searcher
    return tools.dense_of(system) if isinstance(system, EndToEnd) else None


def _cell_texts(plan: Plan, system: System, cell: Cell, listened: Mapping[str, Listened]) -> list[str]:
    """The distinct texts that a system searches with in a cell; [] where listening failed or gives none."""
    subset, condition = cell
    if condition == TEXT_CONDITION:
        return list(dict.fromkeys(query.text for query in plan.queries[subset]))
    if not isinstance(system, Cascade):
        return []
    heard = listened[listener_of(system).key].cells.get(cell)
    language = plan.data.subsets[subset]
    return list(dict.fromkeys(t for h in heard or () for t in search_texts(system, h.transcript, language).texts))


def _bottom_up(demands: Demands) -> list[Need]:
    order: dict[tuple[str, int], Need] = {}

    def visit(need: Need) -> None:
        if is_composite(need.retriever):
            for part in need.retriever.parts:
                visit(Need(part, need.retriever.part_depth(need.depth)))
        order.setdefault(need.key, need)

    for need, _ in demands.values():
        visit(need)
    return list(order.values())


def is_composite(retriever: Retriever) -> TypeGuard[CompositeRetriever]:
    """Whether a retriever is made of others."""
    return hasattr(retriever, "combine") and hasattr(retriever, "parts")


class _Counter:
    def __init__(self, stage: str, total: int, tools: Tools) -> None:
        self._stage, self._total, self._tell, self._done = stage, total, tools.tell, 0
        tools.tell(stage, 0, total)

    def advance(self, n: int) -> None:
        self._done += n
        self._tell(self._stage, self._done, self._total)


class _Search(Protocol):
    """One retriever on one subset. `items` are texts or sounds, `keys` name them in the store."""

    @property
    def corner(self) -> Corner: ...
    @property
    def items(self) -> Sequence[str]: ...
    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def shared(self) -> bool:
        """Whether every process searches its share."""
        ...

    def prepare(self, rank: int, size: int) -> None: ...
    def index(self) -> float | None:
        """Get ready to search; the seconds that it took, None if there is nothing to index."""
        ...

    def search(self, items: Sequence[str]) -> list[list[Hit]]: ...


def _guarded(
    found: Searched, key: tuple[str, int], subset: str, *, search: _Search, tools: Tools, counter: _Counter
) -> None:
    """Search, and note what came of it or why it failed; the same in every process."""
    outcome: _Outcome | None = None
    failure: Failure | None = None
    try:
        outcome = _search(search, tools, counter)
    except SqutrError as error:
        failure = error
    except _ElsewhereError as error:
        failure = error.failure
    if isinstance(failure, StorageError):
        raise failure
    if failure is not None or outcome is None:
        found.failed[key, subset] = failure or ModelError(f"{subset} was not searched.")
        return
    found.rankings.setdefault(key, {})[subset] = outcome.rankings
    found.index_s[key, subset] = outcome.index_s


@dataclass(frozen=True, slots=True)
class _Outcome:
    rankings: dict[str, Ranking]
    index_s: float


class _ElsewhereError(Exception):
    """Another process failed; this one gives up too."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def _together(processes: Processes, work: Callable[[], None]) -> None:
    """Do the work in this process and wait for the others; all of them fail if one fails."""
    failure: Failure | None = None
    try:
        work()
    except SqutrError as error:
        failure = error
    for other in processes.gather(failure):
        if other is not None:
            raise other if other is failure else _ElsewhereError(other)


def _search(search: _Search, tools: Tools, counter: _Counter) -> _Outcome:
    processes, store = tools.processes, tools.store
    known: dict[str, Ranking] = {}

    def look() -> None:
        if store is not None:
            known.update(store.rankings(search.corner, search.keys))

    _together(processes, look)
    # What the main process knows decides: its file may have grown since another looked.
    known = processes.gather(known)[0] if processes.size > 1 else known
    missing = [(item, key) for item, key in zip(search.items, search.keys, strict=True) if key not in known]
    counter.advance(len(search.items) - len(missing))
    index_s = store.indexing_s(search.corner) if store is not None else None
    made: list[tuple[int, Ranking]] = []
    if missing:
        _together(processes, lambda: search.prepare(processes.rank, processes.size))
        taken: list[float] = []

        def work() -> None:
            if not (search.shared or processes.rank == 0):
                return
            taken.append(search.index() or 0.0)
            share = range(processes.rank, len(missing), processes.size) if search.shared else range(len(missing))
            for start in range(0, len(share), UNIT_TEXTS):
                unit = share[start : start + UNIT_TEXTS]
                made.extend(_searched(search, [missing[i] for i in unit], list(unit), store))
                counter.advance(len(unit) * (processes.size if search.shared else 1))

        _together(processes, work)
        if index_s is None:
            index_s = taken[0] if taken else 0.0
            if store is not None and processes.rank == 0:
                store.keep_indexing_s(search.corner, index_s)
    parts = processes.gather((made, index_s))
    new = complete([part for part, _ in parts], len(missing), "searches")
    known |= {key: ranking for (_, key), ranking in zip(missing, new, strict=True)}
    if store is not None and processes.rank == 0:
        store.merge()
    rankings = {item: known[key] for item, key in zip(search.items, search.keys, strict=True)}
    return _Outcome(rankings, parts[0][1] or 0.0)


def _searched(
    search: _Search, unit: Sequence[tuple[str, str]], places: Sequence[int], store: Store | None
) -> list[tuple[int, Ranking]]:
    """The rankings of a unit, kept before they are returned."""
    started = time.perf_counter()
    try:
        hits = search.search([item for item, _ in unit])
    except SqutrError:
        raise
    except Exception as error:
        # A user's own class may raise anything. Its config fails with a sentence, the others go on.
        raise ModelError(
            f"searching {len(unit)} texts failed: {type(error).__name__}: {error}.",
            hint="Mend the retriever, then run the evaluation again: what was done is kept.",
        ) from error
    if len(hits) != len(unit):
        raise ModelError(
            f"a retriever gave {len(hits)} rankings for {len(unit)} texts.", hint="It must give one per text, in order."
        )
    seconds = (time.perf_counter() - started) / len(unit)
    rankings = [Ranking(_checked(ranking, item), seconds) for ranking, (item, _) in zip(hits, unit, strict=True)]
    if store is not None:
        store.keep_rankings(search.corner, {key: r for (_, key), r in zip(unit, rankings, strict=True)})
    return list(zip(places, rankings, strict=True))


def _checked(hits: Sequence[Hit], item: str) -> tuple[Hit, ...]:
    for hit in hits:
        if hit.score != hit.score:
            raise ModelError(f"document {hit.document_id!r} has the score NaN for {item[:80]!r}.")
    return tuple(hits)


class _TextSearch:
    """A retriever with texts."""

    def __init__(self, plan: Plan, need: Need, subset: str, texts: Sequence[str], found: Searched) -> None:
        self._need, self._found, self._subset = need, found, subset
        self._corpus: Corpus = plan.corpus(subset)
        self._language = plan.data.subsets[subset]
        self.items = texts
        self.keys = [text_sha256(text) for text in texts]
        self.shared = is_composite(need.retriever) or hasattr(need.retriever, "prepare")

    @property
    def corner(self) -> Corner:
        return Corner(self._need.retriever.spec.fingerprint, self._corpus.digest, self._language, self._need.depth)

    def prepare(self, rank: int, size: int) -> None:
        retriever = self._need.retriever
        if is_composite(retriever):
            for part in retriever.parts:
                key = Need(part, retriever.part_depth(self._need.depth)).key
                if (key, self._subset) in self._found.failed:
                    raise self._found.failed[key, self._subset]
        elif hasattr(retriever, "prepare"):
            retriever.prepare(self._corpus, language=self._language, rank=rank, size=size)

    def index(self) -> float | None:
        if is_composite(self._need.retriever):
            return None
        started = time.perf_counter()
        self._need.retriever.index(self._corpus, language=self._language)
        return time.perf_counter() - started

    def search(self, items: Sequence[str]) -> list[list[Hit]]:
        retriever, depth = self._need.retriever, self._need.depth
        if not is_composite(retriever):
            return retriever.search(items, k=depth)
        of_parts = [
            self._found.rankings[Need(p, retriever.part_depth(depth)).key][self._subset] for p in retriever.parts
        ]
        rankings = [[list(of_part[item].hits) for item in items] for of_part in of_parts]
        return retriever.combine(items, rankings, self._corpus, k=depth)


def _search_sounds(
    plan: Plan, system: EndToEnd, listened: Mapping[str, Listened], depth: int, *, found: Searched, tools: Tools
) -> None:
    """Search with the vectors of an end-to-end system's sounds, all conditions of a subset together."""
    key = end_to_end_key(system, depth)
    if key in found.rankings or any(failed[0] == key for failed in found.failed):
        return
    heard = listened[listener_of(system).key]
    by_subset: dict[str, dict[str, None]] = {}
    for cell in plan.cells(system):
        sounds = (h.audio_sha256 for h in heard.cells.get(cell, ()) if not h.transcript.error)
        by_subset.setdefault(cell[0], {}).update(dict.fromkeys(sounds))
    counter = _Counter(f"searching with {system.encoder.spec.name}", sum(map(len, by_subset.values())), tools)
    for subset, distinct in by_subset.items():
        search = _SoundSearch(plan, system, subset, sounds=list(distinct), heard=heard, depth=depth, tools=tools)
        _guarded(found, key, subset, search=search, tools=tools, counter=counter)


class _SoundSearch:
    """An end-to-end encoder with the vectors of sounds."""

    shared = True

    def __init__(
        self,
        plan: Plan,
        system: EndToEnd,
        subset: str,
        *,
        sounds: Sequence[str],
        heard: Listened,
        depth: int,
        tools: Tools,
    ) -> None:
        self._retriever = tools.dense_of(system)
        self._corpus, self._language = plan.corpus(subset), plan.data.subsets[subset]
        self._vectors: Mapping[str, Vector] = heard.vectors
        self._key, self._depth = end_to_end_key(system, depth)
        self.items = self.keys = sounds

    @property
    def corner(self) -> Corner:
        return Corner(self._key, self._corpus.digest, self._language, self._depth)

    def prepare(self, rank: int, size: int) -> None:
        self._retriever.prepare(self._corpus, language=self._language, rank=rank, size=size)

    def index(self) -> float | None:
        started = time.perf_counter()
        self._retriever.index(self._corpus, language=self._language)
        return time.perf_counter() - started

    def search(self, items: Sequence[str]) -> list[list[Hit]]:
        import numpy as np

        return self._retriever.search_vectors(np.stack([self._vectors[item] for item in items]), k=self._depth)
