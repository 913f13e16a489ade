"""What a system retrieved for every query of a config, from the transcripts, vectors and rankings of the stages."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....errors import ModelError, SqutrWarning
from ....loaders.records import Query, SpokenQuery
from ...components.checked import given_hits
from ...evaluation.inference import Cell, Inferred, Outputs
from ...evaluation.plan import SpeechPlan
from ...evaluation.record import json_bytes
from ...evaluation.rewriting import Spoken
from ...evaluation.store import Ranking
from ...evaluation.task import Output, Run
from ...evaluation.tools import Tools
from ...protocols import PrecomputedRun, Transcript
from ...results.envelope import TEXT_CONDITION
from ...systems.system import System
from .plan import RetrievalPlan
from .routing import NO_CONFIDENCE, route_parts, typed_rankings
from .search import SearchResults
from .search_requests import SearchRequest, audio_key, searchers_of
from .search_texts import folded, ranking_of, search_texts

NOTHING = Ranking.of((), 0.0)


@dataclass(frozen=True, slots=True)
class Stages:
    """What the stages gave: outputs by model, rewritten texts, rankings of `depth` documents."""

    spoken: Spoken
    searched: SearchResults
    depth: int
    tools: Tools

    @property
    def outputs(self) -> Mapping[str, Outputs]:
        return self.spoken.outputs

    def inferred(self, plan: SpeechPlan, system: System, cell: Cell) -> list[Inferred]:
        """The rows of a cell with what was inferred for a system. Raises why its model or rewriter failed on it."""
        return self.spoken.rows(plan, system, cell)

    def rankings(self, plan: SpeechPlan, system: System, subset: str) -> Sequence[Mapping[str, Ranking]]:
        """The rankings of texts, of both parts of a route. Raises why the retriever failed on the subset."""
        retrievers = searchers_of(system, plan.language(subset), self.tools)
        if not retrievers:
            raise ModelError(f"{system.name} does not search with texts.")
        return [self.searched.of(SearchRequest(one, self.depth).key, subset) for one in retrievers]

    def clip_rankings(self, plan: SpeechPlan, system: System, subset: str) -> Mapping[str, Ranking]:
        """The rankings of an end-to-end system's clips. Raises as `rankings`."""
        return self.searched.of(audio_key(system, plan.language(subset), self.depth), subset)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One row of a run on its way to a record.

    `spoken` is None under `text`, `transcript` under `text` and from a system without words; `error` says why there was
    nothing to search with. `shown` is the transcript in the corpus's script, `rewritten` what was searched with in its
    place, None without a rewriter.
    """

    query: Query
    spoken: SpokenQuery | None
    audio_sha256: str
    transcript: Transcript | None
    error: str
    shown: str
    ranking: Ranking
    rewritten: str | None = None


def output_of(plan: RetrievalPlan, stages: Stages, run: Run) -> Output:
    """What a system retrieved for a config; the content is a list of `Retrieved` by subset. Raises why it failed."""
    system = plan.system(run.system)
    found = {cell[0]: retrieved_rows(plan, stages, system, cell) for cell in plan.cells_of(run.config)}
    failed = {
        one.query.id if len(found) == 1 else f"{subset}/{one.query.id}": one.error
        for subset, rows in found.items()
        for one in rows
        if one.error
    }
    return Output(_digest(found), sum(map(len, found.values())), failed, found)


def retrieved_rows(
    plan: RetrievalPlan, stages: Stages, system: System, cell: Cell, part: int | None = None
) -> list[Retrieved]:
    """In the order of the cell's rows; of a route by its rule, or, with `part`, all by that part."""
    (subset, condition), rows, language = cell, plan.rows(cell), plan.language(cell[0])
    run = system.for_language(language).precomputed_run
    ranked = [] if run is None else _precomputed(plan, run, cell, rows, stages.depth)
    if condition == TEXT_CONDITION:
        if run is None:
            texts = typed_rankings(plan, stages, system, subset)
            ranked = [texts[row.text] for row in rows]
        return [Retrieved(q, None, "", None, "", q.text, r) for q, r in zip(rows, ranked, strict=True)]
    inferred = stages.inferred(plan, system, cell)
    if run is not None:
        transcribed = system.kind == "cascade"
        return [
            Retrieved(q, one.row, one.audio_sha256, one.transcript if transcribed else None, one.transcript.error,
                      one.transcript.text, r)
            for q, one, r in zip(rows, inferred, ranked, strict=True)
        ]  # fmt: skip
    if system.kind == "end-to-end":
        clips = stages.clip_rankings(plan, system, subset)
        return [
            Retrieved(q, one.row, one.audio_sha256, None, one.transcript.error, "",
                      NOTHING if one.transcript.error else clips[one.audio_sha256])
            for q, one in zip(rows, inferred, strict=True)
        ]  # fmt: skip
    rankings, parts = stages.rankings(plan, system, subset), route_parts(plan, system, cell, inferred, part)
    found = []
    for q, one, chosen in zip(rows, inferred, parts, strict=True):
        searched = search_texts(system, one.transcript, language, one.rewritten)
        error, ranking = one.error, NOTHING
        if chosen is None:
            error = error or NO_CONFIDENCE
        else:
            ranking = ranking_of(system, searched, rankings[chosen], stages.depth)
        rewritten = None if one.rewritten is None else searched.texts[0]
        shown = folded(system, language, one.transcript.text)
        found.append(Retrieved(q, one.row, one.audio_sha256, one.transcript, error, shown, ranking, rewritten))
    return found


def _precomputed(
    plan: RetrievalPlan, run: PrecomputedRun, cell: Cell, rows: Sequence[Query], depth: int
) -> list[Ranking]:
    """What a precomputed run holds for these rows."""
    ids = plan.corpus(cell[0]).ids
    counts = getattr(run, "missing", "error") == "count"
    found = given_hits(run, *cell, [row.id for row in rows], k=depth, ids=None if counts else ids)
    if counts:
        given = [hit.document_id for hits in found for hit in hits]
        unknown = len(ids.unknown(given))
        if unknown == len(given) and given:
            given_hits(run, *cell, [row.id for row in rows], k=depth, ids=ids)
        if unknown:
            warnings.warn(
                f"{unknown} of {len(given)} documents that {run.spec.name} has for {' under '.join(cell)} are not in "
                "the corpus: they keep their ranks, and are not relevant.",
                SqutrWarning,
                stacklevel=2,
            )
    return [Ranking.of(hits, 0.0) for hits in found]


def _digest(found: Mapping[str, Sequence[Retrieved]]) -> str:
    digest = hashlib.sha256()
    for subset, rows in found.items():
        digest.update(json_bytes([subset, len(rows)]))
        for one in rows:
            t = one.transcript
            transcript = None if t is None else (t.text, t.loop, t.truncated)
            digest.update(
                json_bytes([one.query.id, one.query.text, one.audio_sha256, transcript, one.error, one.shown])
            )
            if one.rewritten is not None:
                digest.update(json_bytes(["rewritten", one.rewritten]))
            digest.update(one.ranking.content)
    return digest.hexdigest()
