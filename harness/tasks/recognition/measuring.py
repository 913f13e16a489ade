"""One system alone in a process of its own: how long a clip takes, and how much memory it needs.

In the evaluation's process all models share one memory, so its peak says nothing about any of them.
"""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from ....errors import AudioError, ModelError, SqutrError
from ....loaders.audio import decode_audio, resample
from ....loaders.records import Samples, SpokenQuery
from ...components.raised import sentences
from ...evaluation.inference import AudioModel, infer_clips
from ...evaluation.timing import latency_of
from ...metering import gpu_memory_mb, peak_memory_mb
from ...protocols import FrontEnd, Transcriber
from ...results.envelope import Isolated, Latency
from ...stopping import end_with_parent
from ...systems.building import Builder, Overrides
from ...systems.entries import ComponentEntry
from ...systems.system import System

Clip = tuple[Samples, int]
"""Samples and their rate in Hz."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the other process does: transcribe `clips` one by one."""

    transcriber: ComponentEntry
    front_end: ComponentEntry | None
    trust_remote_code: bool
    language: str
    clips: tuple[Clip, ...]


Found = tuple[tuple[float | str, ...], Isolated]
"""Seconds per clip, or why it failed, and what the process needed."""


def decoded(rows: Sequence[SpokenQuery]) -> tuple[Clip, ...]:
    """The clips of these rows; those that cannot be decoded are left out."""
    clips = []
    for row in rows:
        try:
            clips.append(decode_audio(row.audio, f"{row.id!r} under {row.condition}"))
        except AudioError:
            continue
    return tuple(clips)


def measure(
    system: System, language: str, clips: tuple[Clip, ...], max_failed: float = 0.0
) -> tuple[Latency | None, Isolated | None]:
    """Latency from a clip to its transcript, and memory. None for precomputed transcripts and without clips.

    A system whose components were made in Python is timed in this process, with this process's memory. Raises
    `ModelError` if the other process ends without an answer, or a larger share of the clips fails than `max_failed`.
    """
    plain = system.for_language(language)
    transcriber, front_end = plain.model_transcriber, cast("FrontEnd | None", plain.front_end)
    if transcriber is None or not clips:
        return None, None
    parts = [part for part in (transcriber, front_end) if part is not None]
    entries = [next((entry for made, entry in system.origins if made is part), None) for part in parts]
    if entries[0] is None or entries[-1] is None:
        seconds, isolated = _timed(AudioModel(transcriber, front_end), language, clips, time.perf_counter())
    else:
        trusted = any(part.spec.settings.get("trust_remote_code") for part in parts)
        job = Job(entries[0], entries[1] if front_end is not None else None, trusted, language, clips)
        seconds, isolated = _in_own_process(job, system.name)
    return latency_of(seconds, system.name, max_failed), isolated


def _in_own_process(job: Job, name: str) -> Found:
    # A fork would begin with this process's memory and its threads' locks.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(job, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        answer: Any = ours.recv()
    except EOFError:
        process.join()
        raise ModelError(
            f"measuring {name} ended without an answer (exit status {process.exitcode}).",
            hint="If memory ran out, leave the measurement out.",
        ) from None
    finally:
        ours.close()
    process.join()
    if isinstance(answer, SqutrError):
        raise answer
    return cast(Found, answer)


def _answer(job: Job, connection: Connection) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        end_with_parent(parent.pid)
    try:
        started = time.perf_counter()
        builder = Builder(overrides=Overrides(trust_remote_code=job.trust_remote_code))
        transcriber = cast(Transcriber, builder.component("transcriber", job.transcriber).component)
        front_end = None
        if job.front_end is not None:
            front_end = cast(FrontEnd, builder.component("front_end", job.front_end).component)
        answer: Found | SqutrError = _timed(AudioModel(transcriber, front_end), job.language, job.clips, started)
    except SqutrError as error:
        answer = error
    connection.send(answer)
    connection.close()


def _timed(model: AudioModel, language: str, clips: Sequence[Clip], started: float) -> Found:
    """The first clip is taken twice: engines load and compile with the first."""
    seconds: list[float | str] = []
    load_s = 0.0
    with sentences(f"timing {model.name}"):
        for place, (samples, rate) in enumerate([clips[0], *clips]):
            before = time.perf_counter()
            made = infer_clips(model, {"": resample(samples, rate, model.sample_rate)}, language)[""]
            if place:
                seconds.append(made.error or time.perf_counter() - before)
            else:
                load_s = time.perf_counter() - started
    gpu, device = gpu_memory_mb(), model.model.spec.settings.get("device")
    isolated = Isolated(
        load_s=load_s,
        peak_memory_mb=own_peak_memory_mb(),
        peak_gpu_memory_mb=max(gpu.values()) if gpu else None,
        device=device if isinstance(device, str) else "",
    )
    return tuple(seconds), isolated


def own_peak_memory_mb(status: Path = Path("/proc/self/status")) -> float:
    """The most resident memory that this program has held, in MB.

    Linux hands the peak of the process that started this one on to `getrusage`; its own is in `status`.
    """
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(encoding="ascii"), flags=re.MULTILINE)
    except OSError:
        found = None
    return round(int(found[1]) * 1024 / 1e6, 1) if found else peak_memory_mb()
