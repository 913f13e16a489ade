"""What the inference stage would do: what is cached, what is left, and how long that takes by a measured rate."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence

from ...errors import AudioError
from ...loaders.audio import decode_audio, resample
from ...loaders.records import Samples
from .cells import read_precomputed
from .inference import AudioModel, Cell, Inference, Inferred, Outputs, infer_clips
from .plan import SpeechPlan
from .shards import read_shards, without_audio
from .task import Forecast
from .tools import Tools, keep_nothing

TIMED_CLIPS = 8


def forecast_inference(plan: SpeechPlan, tools: Tools) -> tuple[list[Forecast], Mapping[str, Outputs]]:
    """One line per model and cell, timed on a few clips if no rate is known; the outputs of fully known cells."""
    outputs: dict[str, Outputs] = {}
    lines: list[Forecast] = []
    for key, (model, cells) in plan.models().items():
        if isinstance(model, AudioModel):
            outputs[key] = Outputs()
            lines += _inference(plan, model, cells, tools, outputs[key])
        else:
            outputs[key] = read_precomputed(plan, model, cells, tools)
    return lines, outputs


def _inference(
    plan: SpeechPlan, model: AudioModel, cells: Sequence[Cell], tools: Tools, found: Outputs
) -> list[Forecast]:
    """The lines of one model; cells of which all is known are put into `found`."""
    speed = None if tools.store is None else tools.store.speed(model.key)
    measured = "now" if speed is None else "before"
    stage = "encode" if model.encoder is not None else "transcribe"
    lines: list[Forecast] = []
    for cell in cells:
        missing_s, known = _missing(plan, model, cell, tools, found)
        if speed is None and missing_s:
            speed = _speed(plan, model, cell)
        left_s, total = missing_s * (speed or 0.0), len(plan.rows(cell))
        shown = measured if known < total else ""
        lines.append(Forecast(stage, model.name, "_".join(cell), total, known, left_s, shown))
    return lines


def _missing(plan: SpeechPlan, model: AudioModel, cell: Cell, tools: Tools, found: Outputs) -> tuple[float, int]:
    """Seconds of audio that nothing was inferred from yet, and how many clips need no work any more."""
    inference = Inference(model, plan.language(cell[0]), tools, found)
    expected = plan.rows(cell)
    done: dict[int, Inferred] = {}
    missing_s = 0.0
    for shard in read_shards(plan.data, cell, expected, own=lambda _: True, keep=keep_nothing):
        encoded = [hashlib.sha256(row.audio).hexdigest() for row in shard.rows]
        clips = inference.known_clips(encoded)
        known = inference.known(list(clips.values()))
        for position, row, key in zip(shard.positions, shard.rows, encoded, strict=True):
            digest = clips.get(key, "")
            if digest in known:
                done[position] = Inferred(without_audio(row), digest, known[digest])
            else:
                missing_s += row.duration_s
    if len(done) == len(expected):
        found.cells[cell] = [done[position] for position in range(len(expected))]
    return missing_s, len(done)


def _speed(plan: SpeechPlan, model: AudioModel, cell: Cell) -> float:
    """Seconds of work per second of audio, timed on a few clips after as many to warm up; 0 if none can be decoded."""
    clips: dict[str, Samples] = {}
    for row in plan.data.spoken(*cell, start=0, stop=2 * TIMED_CLIPS):
        try:
            clips[row.id] = resample(*decode_audio(row.audio, f"query {row.id!r}"), model.sample_rate)
        except AudioError:
            # It takes no time in the evaluation either.
            continue
    if not clips:
        return 0.0
    half, language = max(1, len(clips) // 2), plan.language(cell[0])
    first, second = dict(list(clips.items())[:half]), dict(list(clips.items())[half:])
    infer_clips(model, first, language)
    timed = second or first
    started = time.perf_counter()
    infer_clips(model, timed, language)
    return (time.perf_counter() - started) / (sum(map(len, timed.values())) / model.sample_rate)
