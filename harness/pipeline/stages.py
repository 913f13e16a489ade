"""The two expensive stages, each done once for all that share it: transcribing and searching."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...errors import DataError
from ...loaders.keyed import keyed_seed
from ...loaders.records import Query, SpokenQuery
from ..protocols import Hit, Retriever, Transcriber
from ..results import TEXT_CONDITION
from ..text.script import fold_script
from ..transcript_cache import TranscriptCache
from .plan import Cell, Plan, fingerprint
from .system import Cascade
from .transcribing import Heard, transcribe, write_sample

AllHeard = Mapping[str, Mapping[Cell, list[Heard]]]
"""Transcripts by transcriber fingerprint and cell."""


class Progress(Protocol):
    """Told what the evaluation is doing."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """`done` of `total` items of this stage are finished."""
        ...


@dataclass(frozen=True, slots=True)
class Samples:
    """Whose clips are kept for the report's players: `count` queries per subset, below `folder`; None keeps none."""

    folder: Path | None
    count: int
    seed: int

    def keeper(self, queries: Sequence[Query]) -> Callable[[SpokenQuery], None]:
        """A function that keeps the chosen ones of these queries."""
        folder = self.folder
        if folder is None:
            return lambda _: None
        drawn = sorted(queries, key=lambda q: keyed_seed(self.seed, "sample", q.subset, q.id))
        ids = {query.id for query in drawn[: self.count]}

        def keep(query: SpokenQuery) -> None:
            if query.id in ids:
                write_sample(folder, query)

        return keep


def transcribe_all(plan: Plan, store: TranscriptCache | None, samples: Samples, tell: Progress) -> AllHeard:
    """Every transcriber hears every cell that one of its systems meets, once."""
    jobs: dict[str, tuple[Transcriber, dict[Cell, None]]] = {}
    for system in plan.systems:
        _, cells = jobs.setdefault(fingerprint(system.transcriber), (system.transcriber, {}))
        cells.update(dict.fromkeys(cell for cell in plan.cells(system) if cell[1] != TEXT_CONDITION))
    found: dict[str, dict[Cell, list[Heard]]] = {}
    for key, (transcriber, cells) in jobs.items():
        counter = _Counter(
            f"transcribing with {transcriber.spec.name}", sum(len(plan.queries[subset]) for subset, _ in cells), tell
        )
        found[key] = {}
        for subset, condition in cells:
            expected = plan.queries[subset]
            heard = transcribe(
                transcriber,
                plan.data.spoken(subset, condition),
                expected,
                language=plan.data.subsets[subset],
                cache=store,
                progress=counter.advance,
                keep=samples.keeper(expected),
            )
            if len(heard) != len(expected):
                raise DataError(
                    f"{subset} under {condition} has {len(heard)} of {len(expected)} queries.",
                    hint="Build the data set again.",
                )
            found[key][subset, condition] = heard
    return found


class _Counter:
    def __init__(self, stage: str, total: int, tell: Progress) -> None:
        self._stage, self._total, self._tell, self._done = stage, total, tell, 0

    def advance(self, n: int) -> None:
        self._done += n
        self._tell(self._stage, self._done, self._total)


def search_text(heard: Heard, folding: str) -> str:
    """What is searched with: the transcript, folded to the corpus's script where the system says so."""
    text = heard.transcript.text
    return text if folding == "none" else fold_script(text, "simplified")


@dataclass(slots=True)
class Searches:
    """One retriever's rankings by subset and text, how many texts a subset had, and what they cost in s."""

    hits: dict[tuple[str, str], Sequence[Hit]] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    index_s: dict[str, float] = field(default_factory=dict)
    search_s: dict[str, float] = field(default_factory=dict)


def search_all(plan: Plan, heard: AllHeard, depth: int, tell: Progress) -> Mapping[str, Searches]:
    """Rankings by retriever fingerprint: a corpus is indexed once, every distinct text searched once."""
    jobs: dict[str, tuple[Retriever, dict[str, dict[str, None]]]] = {}
    for system in plan.systems:
        _, by_subset = jobs.setdefault(fingerprint(system.retriever), (system.retriever, {}))
        for subset, condition in plan.cells(system):
            texts = cell_texts(plan, system, (subset, condition), heard)
            by_subset.setdefault(subset, {}).update(dict.fromkeys(texts))
    found: dict[str, Searches] = {}
    for key, (retriever, by_subset) in jobs.items():
        searches = found[key] = Searches()
        counter = _Counter(f"searching with {retriever.spec.name}", sum(map(len, by_subset.values())), tell)
        for subset, distinct in by_subset.items():
            started = time.perf_counter()
            retriever.index(plan.data.documents(subset), language=plan.data.subsets[subset])
            indexed = time.perf_counter()
            rankings = retriever.search(list(distinct), k=depth)
            searches.texts[subset] = len(distinct)
            searches.index_s[subset] = indexed - started
            searches.search_s[subset] = time.perf_counter() - indexed
            searches.hits.update({(subset, text): hits for text, hits in zip(distinct, rankings, strict=True)})
            counter.advance(len(distinct))
    return found


def cell_texts(plan: Plan, system: Cascade, cell: Cell, heard: AllHeard) -> list[str]:
    """What a system searches with in a cell, in query order."""
    subset, condition = cell
    if condition == TEXT_CONDITION:
        return [query.text for query in plan.queries[subset]]
    folding = system.folding(plan.data.subsets[subset])
    return [search_text(h, folding) for h in heard[fingerprint(system.transcriber)][cell]]
