"""What a run took: seconds per stage, and of every query."""

from __future__ import annotations

import pyarrow as pa

from ...evaluation.inference import AudioModel, Cell, model_of
from ...evaluation.rewriting import rewriting_stage
from ...evaluation.task import Run
from ...evaluation.timing import inference_timing, seconds_table
from ...results.envelope import TEXT_CONDITION, Timing
from ...systems.system import System
from .outputs import Stages
from .plan import RetrievalPlan
from .routing import route_parts
from .search_requests import requests_of, searchers_of
from .search_texts import search_texts


def run_timing(plan: RetrievalPlan, stages: Stages, run: Run) -> tuple[Timing, pa.Table | None]:
    """The timing of a run, and the seconds of its rows; None where no model worked on audio."""
    system = plan.system(run.system)
    model = model_of(system, plan.language(plan.configs[run.config][0][0]))
    timing, seconds = Timing(), None
    rewriting: dict[str, float] = {}
    if plan.condition(run.config) != TEXT_CONDITION:
        rows = [one for cell in plan.cells_of(run.config) for one in stages.inferred(plan, system, cell)]
        if isinstance(model, AudioModel):
            timing, seconds = inference_timing(model, stages.outputs[model.key], rows), seconds_table(rows)
        rewriting = rewriting_stage(system, rows)
    searching = _search_stages(plan, stages, system, run.config)
    return timing.model_copy(update={"stages": timing.stages | rewriting | searching}), seconds


def _search_stages(plan: RetrievalPlan, stages: Stages, system: System, config: str) -> dict[str, float]:
    """The seconds that a run's distinct searches took, and those of indexing; parts of a retriever count too."""
    found: dict[str, float] = {}
    for cell in plan.cells_of(config):
        subset, condition = cell
        retrievers = searchers_of(system, plan.language(subset), stages.tools)
        if not retrievers:
            continue
        search_s = index_s = 0.0
        if system.kind == "end-to-end" and condition != TEXT_CONDITION:
            rankings = stages.clip_rankings(plan, system, subset)
            inferred = stages.inferred(plan, system, cell)
            search_s = sum(
                rankings[clip].seconds for clip in {one.audio_sha256 for one in inferred if not one.transcript.error}
            )
            (request,) = requests_of(retrievers, stages.depth)
            index_s = stages.searched.index_s.get((request.key, subset), 0.0)
        else:
            for retriever, texts in zip(retrievers, _texts(plan, stages, system, cell), strict=True):
                for part in requests_of([retriever], stages.depth):
                    rankings = stages.searched.of(part.key, subset)
                    search_s += sum(rankings[text].seconds for text in texts)
                    index_s += stages.searched.index_s.get((part.key, subset), 0.0)
        found = {"index": found.get("index", 0.0) + index_s, "search": found.get("search", 0.0) + search_s}
    return found


def _texts(plan: RetrievalPlan, stages: Stages, system: System, cell: Cell) -> list[set[str]]:
    """The distinct texts that each retriever of a system searched with: only a route has two."""
    language = plan.language(cell[0])
    found: list[set[str]] = [set() for _ in searchers_of(system, language, stages.tools)]
    if cell[1] == TEXT_CONDITION:
        found[-1] |= {query.text for query in plan.queries(cell[0])}
        return found
    inferred = stages.inferred(plan, system, cell)
    for one, part in zip(inferred, route_parts(plan, system, cell, inferred), strict=True):
        if part is not None:
            found[part].update(search_texts(system, one.transcript, language, one.rewritten).texts)
    return found
