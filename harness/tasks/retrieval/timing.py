"""What a run took: seconds per stage, and of every query."""

from __future__ import annotations

import pyarrow as pa

from ...evaluation.inference import AudioModel, Cell, model_of
from ...evaluation.plan import SpeechPlan
from ...evaluation.task import Run
from ...evaluation.timing import inference_timing, seconds_table
from ...results.envelope import TEXT_CONDITION, Timing
from ...systems.system import System
from .outputs import Stages
from .search_requests import SearchRequest, searcher_of
from .search_texts import search_texts


def run_timing(plan: SpeechPlan, stages: Stages, run: Run) -> tuple[Timing, pa.Table | None]:
    """The timing of a run, and the seconds of its rows; None where no model worked on audio."""
    system = plan.system(run.system)
    model = model_of(system, plan.language(plan.configs[run.config][0][0]))
    timing, seconds = Timing(), None
    if plan.condition(run.config) != TEXT_CONDITION and isinstance(model, AudioModel):
        rows = [one for cell in plan.cells_of(run.config) for one in stages.inferred(plan, system, cell)]
        timing, seconds = inference_timing(model, stages.outputs[model.key], rows), seconds_table(rows)
    searching = _search_stages(plan, stages, system, run.config)
    return timing.model_copy(update={"stages": timing.stages | searching}), seconds


def _search_stages(plan: SpeechPlan, stages: Stages, system: System, config: str) -> dict[str, float]:
    """The seconds that a run's distinct searches took, and those of indexing; parts of a retriever count too."""
    found: dict[str, float] = {}
    for cell in plan.cells_of(config):
        subset, condition = cell
        retriever = searcher_of(system, plan.language(subset), stages.tools)
        if retriever is None:
            continue
        request = SearchRequest(retriever, stages.depth)
        search_s = index_s = 0.0
        if system.kind == "end-to-end" and condition != TEXT_CONDITION:
            rankings = stages.clip_rankings(plan, system, subset)
            inferred = stages.inferred(plan, system, cell)
            search_s = sum(
                rankings[clip].seconds for clip in {one.audio_sha256 for one in inferred if not one.transcript.error}
            )
            index_s = stages.searched.index_s.get((request.key, subset), 0.0)
        else:
            texts = _texts(plan, stages, system, cell)
            for part in request.with_parts():
                rankings = stages.searched.of(part.key, subset)
                search_s += sum(rankings[text].seconds for text in texts)
                index_s += stages.searched.index_s.get((part.key, subset), 0.0)
        found = {"index": found.get("index", 0.0) + index_s, "search": found.get("search", 0.0) + search_s}
    return found


def _texts(plan: SpeechPlan, stages: Stages, system: System, cell: Cell) -> set[str]:
    if cell[1] == TEXT_CONDITION:
        return {query.text for query in plan.queries(cell[0])}
    language = plan.language(cell[0])
    inferred = stages.inferred(plan, system, cell)
    return {text for one in inferred for text in search_texts(system, one.transcript, language).texts}
