"""What a run took: seconds per stage, and of every query."""

from __future__ import annotations

import math

import pyarrow as pa

from ...evaluation.inference import AudioModel, Cell, Inferred, model_of
from ...evaluation.plan import SpeechPlan
from ...evaluation.task import Run
from ...results.envelope import SECONDS_SCHEMA, TEXT_CONDITION, Timing
from ...systems.system import System
from .outputs import Stages
from .search_requests import SearchRequest, searcher_of
from .search_texts import search_texts


def run_timing(plan: SpeechPlan, stages: Stages, run: Run) -> tuple[Timing, pa.Table | None]:
    """The timing of a run, and the seconds of its rows; None where no model worked on audio."""
    system, condition = plan.system(run.system), plan.condition(run.config)
    taken: dict[str, float] = {}
    audio_s = rtfx = waiting = None
    seconds = None
    model = model_of(system, plan.language(plan.configs[run.config][0][0]))
    if condition != TEXT_CONDITION and isinstance(model, AudioModel):
        rows = [one for cell in plan.cells_of(run.config) for one in stages.inferred(plan, system, cell)]
        inference = math.fsum(one.transcript.seconds for one in rows)
        front_end = math.fsum(one.transcript.front_end_seconds for one in rows)
        if model.front_end is not None:
            taken["front_end"] = front_end
        taken["encode" if model.encoder is not None else "transcribe"] = inference
        audio_s = math.fsum(one.row.duration_s for one in rows)
        rtfx = audio_s / (inference + front_end) if inference + front_end else None
        outputs = stages.outputs[model.key]
        waiting = outputs.waiting_s / outputs.seconds if outputs.seconds else None
        seconds = _seconds(rows)
    taken |= _search_stages(plan, stages, system, run.config)
    return Timing(stages=taken, audio_s=audio_s, rtfx=rtfx, waiting_share=waiting), seconds


def _seconds(rows: list[Inferred]) -> pa.Table:
    columns = [
        [one.row.id for one in rows],
        [one.row.subset for one in rows],
        [one.transcript.seconds for one in rows],
        [one.transcript.front_end_seconds for one in rows],
        [one.row.duration_s for one in rows],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SECONDS_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SECONDS_SCHEMA)


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
