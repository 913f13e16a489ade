"""The search stage: every distinct text is searched with once per retriever, whatever systems and conditions share it.

A retriever made of others (a hybrid, a reranker) combines the rankings of its parts, which are searched like any other.
A corpus that must be embedded is shared among processes, and so are the searches in it; a lexical index is built and
searched by the main process alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, cast

import numpy as np

from ....errors import ModelError, SqutrError, StorageError
from ....loaders.corpus import Corpus
from ....loaders.document_ids import DocumentIds
from ...components import checked
from ...components.raised import sentences
from ...components.retrievers.dense import DenseRetriever
from ...evaluation.cells import take_in
from ...evaluation.plan import SpeechPlan
from ...evaluation.store import Ranking, RankingKey, Store
from ...evaluation.tools import Tools
from ...processes import Processes, complete, gather_long
from ...progress import Counting, counting, showing_batches
from ...protocols import Hit
from .search_requests import (
    Key,
    SearchRequest,
    Source,
    VectorRequest,
    is_composite,
    text_requests,
    text_sha256,
    vector_requests,
)

LEAST_UNIT, LARGEST_UNIT = 256, 4096
"""Texts that are searched and kept together: the more, the larger the corpus that each unit goes through once."""
DOCUMENTS_PER_TEXT = 1024
COMBINED_UNIT = 64
"""Texts whose rankings are combined and kept together: a reranker reads every document for every text anyway."""


@dataclass(slots=True)
class SearchResults:
    """Rankings by retriever key, subset and what was searched with (a text, or a clip's digest).

    `failed` says why a retriever failed on a subset, `index_s` what indexing a subset took when it was done. `indexed`
    is the subset that a retriever (by its identity) holds now.
    """

    rankings: dict[Key, dict[str, dict[str, Ranking]]] = field(default_factory=dict)
    failed: dict[tuple[Key, str], SqutrError] = field(default_factory=dict)
    index_s: dict[tuple[Key, str], float] = field(default_factory=dict)
    indexed: dict[int, str] = field(default_factory=dict)

    def of(self, key: Key, subset: str) -> Mapping[str, Ranking]:
        """The rankings of a subset. Raises why the retriever failed on it."""
        if (key, subset) in self.failed:
            raise self.failed[key, subset]
        return self.rankings.get(key, {}).get(subset, {})


def search_all(sources: Sequence[Source], depth: int, tools: Tools) -> SearchResults:
    """Search with everything that the systems need. A retriever that fails on a subset is noted, the others go on.

    Raises `StorageError` at once.
    """
    found = SearchResults()
    plan, spoken_queries = sources[0]
    requests = text_requests(sources, depth, tools)
    vectors = vector_requests(plan, spoken_queries.outputs, depth, tools)
    # A part is searched before what is made of it.
    for key, request in requests.items():
        spoken = vectors.get(key, [])
        total = sum(map(len, request.texts.values())) + sum(len(s) for one in spoken for s in one.clips.values())
        advance = counting(tools.tell, f"searching with {request.retriever.spec.name}", total)
        for subset, distinct in request.texts.items():
            place = Place(plan, subset, request, found)
            _guarded(found, key, subset, search=_TextSearch(place, list(distinct)), tools=tools, advance=advance)
            # While the corpus is indexed.
            for one in spoken:
                search = _VectorSearch(place, one, list(one.clips.get(subset, ())))
                _guarded(found, one.key, subset, search=search, tools=tools, advance=advance)
    return found


class _Search(Protocol):
    """One retriever on one subset. `items` are texts or digests of clips, `keys` name them in the store."""

    @property
    def ranking_key(self) -> RankingKey: ...
    @property
    def depth(self) -> int: ...
    @property
    def items(self) -> Sequence[str]: ...
    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def unit(self) -> int:
        """How many items are searched together. It follows from the data alone, as what is searched together may."""
        ...

    @property
    def shared(self) -> bool:
        """Whether every process searches its share."""
        ...

    @property
    def documents(self) -> int:
        """How many the corpus has, once it is open."""
        ...

    def open(self) -> None: ...

    def prepare(self, rank: int, size: int) -> None: ...
    def index(self) -> float | None: ...

    def search(self, items: Sequence[str]) -> list[list[Hit]]: ...


def _guarded(found: SearchResults, key: Key, subset: str, *, search: _Search, tools: Tools, advance: Counting) -> None:
    """Search, and note what came of it or why it failed; the same in every process."""
    outcome: _Outcome | None = None
    failure: SqutrError | None = None
    try:
        outcome = _search(search, tools, advance)
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

    def __init__(self, failure: SqutrError) -> None:
        super().__init__(str(failure))
        self.failure = failure


def _together(processes: Processes, work: Callable[[], None]) -> None:
    """Do the work in this process and wait for the others; all of them fail if one fails."""
    failure: SqutrError | None = None
    try:
        work()
    except SqutrError as error:
        failure = error
    failures = {rank: other for rank, other in enumerate(processes.gather(failure)) if other is not None}
    # Every process takes the same one; a full disk stops everything, so it goes first.
    for rank, other in sorted(failures.items(), key=lambda pair: not isinstance(pair[1], StorageError)):
        raise other if rank == processes.rank else _ElsewhereError(other)


@dataclass(frozen=True, slots=True)
class _Item:
    """An item that is not known: its place among those that are not, and its key."""

    place: int
    item: str
    key: str


def _search(search: _Search, tools: Tools, advance: Counting) -> _Outcome:
    processes, store = tools.processes, tools.store
    main = processes.rank == 0
    known: dict[str, Ranking] = {}
    taken: list[float] = []

    def look() -> None:
        search.open()
        if store is not None and main:
            known.update(store.rankings(search.ranking_key, search.keys))
            taken.extend(seconds for seconds in (store.indexing_s(search.ranking_key),) if seconds is not None)

    _together(processes, look)
    if processes.size > 1:
        known = dict(gather_long(processes, list(known.items()))[0])
    units = _units(search, known)
    missing = sum(map(len, units))
    advance(len(search.items) - missing)
    mine: list[tuple[int, Ranking]] = []
    if missing:
        began = time.perf_counter()
        indexing, total = f"{advance.stage}: documents", search.documents
        own = units[processes.rank :: processes.size] if search.shared else units if main else []

        def index() -> None:
            seconds = search.index() if own else None
            if seconds is not None and not taken:
                # A corpus to embed is embedded by then: that is what its index costs.
                taken.append(prepared_s + seconds)
                if store is not None and main:
                    store.keep_indexing_s(search.ranking_key, taken[0])

        def work() -> None:
            for unit in own:
                together = processes.size if search.shared else 1
                with advance.within(len(unit), processes=together):
                    mine.extend(_searched(search, unit, store))
                advance(len(unit) * together)

        tools.tell(indexing, 0, total)
        # What is prepared is then read: a document counts once.
        with showing_batches(tools.tell, indexing, 0, total, total, processes=processes.size):
            _together(processes, lambda: search.prepare(processes.rank, processes.size))
            prepared_s = time.perf_counter() - began
            _together(processes, index)
        tools.tell(indexing, total, total)
        advance(0)
        _together(processes, work)
    new = complete(gather_long(processes, mine), missing, "searches")
    known.update(zip((one.key for unit in units for one in unit), new, strict=True))
    if missing:
        take_in(tools)
    rankings = {item: known[key] for item, key in zip(search.items, search.keys, strict=True)}
    return _Outcome(rankings, taken[0] if taken else 0.0)


def _units(search: _Search, known: Mapping[str, Ranking]) -> list[list[_Item]]:
    """What is not known, in units of all items: so each is searched with the same others in any number of processes."""
    units: list[list[_Item]] = []
    place = 0
    for start in range(0, len(search.items), search.unit):
        stop = start + search.unit
        pairs = zip(search.items[start:stop], search.keys[start:stop], strict=True)
        unit = [_Item(place + i, *pair) for i, pair in enumerate(pair for pair in pairs if pair[1] not in known)]
        place += len(unit)
        if unit:
            units.append(unit)
    return units


def _searched(search: _Search, unit: Sequence[_Item], store: Store | None) -> list[tuple[int, Ranking]]:
    """The rankings of a unit with their places, kept before they are returned. Blank texts are not searched with."""
    started = time.perf_counter()
    items = [one.item for one in unit if one.item.strip()]
    found = search.search(items) if items else []
    seconds = (time.perf_counter() - started) / len(unit)
    by_item = dict(zip(items, found, strict=True))
    rankings = [Ranking.of(by_item.get(one.item, [])[: search.depth], seconds) for one in unit]
    if store is not None:
        store.keep_rankings(search.ranking_key, {one.key: r for one, r in zip(unit, rankings, strict=True)})
    return [(one.place, r) for one, r in zip(unit, rankings, strict=True)]


@dataclass(frozen=True, slots=True)
class Place:
    """A retriever at a depth, and a subset with its corpus, which is opened when it is needed."""

    plan: SpeechPlan
    subset: str
    request: SearchRequest
    found: SearchResults

    @property
    def corpus(self) -> Corpus:
        return self.plan.corpus(self.subset)

    @property
    def ids(self) -> DocumentIds | None:
        """The ids that hits must be of; None for a retriever of ours, which takes them from the corpus itself."""
        ours = type(self.request.retriever).__module__.startswith(f"{__name__.partition('.')[0]}.")
        return None if ours else self.corpus.ids

    @property
    def language(self) -> str:
        return self.plan.language(self.subset)

    def open(self) -> None:
        len(self.corpus)

    @property
    def documents(self) -> int:
        return len(self.corpus)

    def ranking_key(self, fingerprint: str) -> RankingKey:
        """What rankings by a retriever (or an end-to-end system) of this fingerprint are kept by."""
        return RankingKey(fingerprint, self.corpus.digest, self.language, self.request.depth)

    @property
    def unit(self) -> int:
        """How many items are searched together."""
        return min(LARGEST_UNIT, max(LEAST_UNIT, len(self.corpus) // DOCUMENTS_PER_TEXT))

    def prepare(self, rank: int, size: int) -> None:
        """Do this process's share of the retriever's work on the corpus, if it can be shared."""
        retriever = self.request.retriever
        if hasattr(retriever, "prepare"):
            with sentences(f"{checked.name_of(retriever, 'prepare')} on {self.subset}"):
                retriever.prepare(self.corpus, language=self.language, rank=rank, size=size)

    def index(self) -> float | None:
        retriever = self.request.retriever
        if self.found.indexed.get(id(retriever)) == self.subset:
            return None
        self.found.indexed.pop(id(retriever), None)
        started = time.perf_counter()
        with sentences(f"{checked.name_of(retriever, 'index')} on {self.subset}"):
            retriever.index(self.corpus, language=self.language)
        self.found.indexed[id(retriever)] = self.subset
        return time.perf_counter() - started


class _TextSearch:
    def __init__(self, place: Place, texts: Sequence[str]) -> None:
        self._place, self._retriever = place, place.request.retriever
        self.depth = place.request.depth
        self.items = texts
        self.keys = [text_sha256(text) for text in texts]
        self.shared = is_composite(self._retriever) or hasattr(self._retriever, "prepare")
        self._of_parts: list[Mapping[str, Ranking]] = []

    @cached_property
    def ranking_key(self) -> RankingKey:
        return self._place.ranking_key(self._retriever.spec.fingerprint)

    @property
    def unit(self) -> int:
        return COMBINED_UNIT if is_composite(self._retriever) else self._place.unit

    @property
    def documents(self) -> int:
        return self._place.documents

    def open(self) -> None:
        self._place.open()

    def prepare(self, rank: int, size: int) -> None:
        if not is_composite(self._retriever):
            self._place.prepare(rank, size)
            return
        found, depth = self._place.found, self._retriever.part_depth(self.depth)
        keys = [SearchRequest(part, depth).key for part in self._retriever.parts]
        self._of_parts = [found.of(key, self._place.subset) for key in keys]

    def index(self) -> float | None:
        return None if is_composite(self._retriever) else self._place.index()

    def search(self, items: Sequence[str]) -> list[list[Hit]]:
        if not is_composite(self._retriever):
            return checked.search(self._retriever, items, k=self.depth, ids=self._place.ids)
        rankings = [[list(of_part[item].hits) for item in items] for of_part in self._of_parts]
        return checked.combine(self._retriever, items, rankings, self._place.corpus, k=self.depth, ids=self._place.ids)


class _VectorSearch:
    shared = True

    def __init__(self, place: Place, request: VectorRequest, clips: Sequence[str]) -> None:
        self._place, self._request = place, request
        self.depth = place.request.depth
        self.items = self.keys = clips

    @cached_property
    def ranking_key(self) -> RankingKey:
        return self._place.ranking_key(self._request.key[0])

    @property
    def unit(self) -> int:
        return self._place.unit

    @property
    def documents(self) -> int:
        return self._place.documents

    def open(self) -> None:
        self._place.open()

    def prepare(self, rank: int, size: int) -> None:
        self._place.prepare(rank, size)

    def index(self) -> float | None:
        return self._place.index()

    def search(self, items: Sequence[str]) -> list[list[Hit]]:
        retriever = cast(DenseRetriever, self._place.request.retriever)
        with sentences(
            f"{checked.name_of(retriever.encoder, 'encode_audio')}, searched with {len(items)} of its vectors,"
        ):
            return retriever.search_vectors(np.stack([self._request.vectors[item] for item in items]), k=self.depth)
