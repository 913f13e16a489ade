"""One recognizer alone in a process of its own: how long a clip takes, and how much memory it needs.

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

from ...errors import AudioError, ModelError, SqutrError
from ...loaders.audio import decode_audio, resample
from ...loaders.keyed import keyed_seed
from ...loaders.records import Samples
from ..evaluation.hearing import sentences
from ..metering import gpu_memory_mb, peak_memory_mb, percentiles
from ..protocols import FrontEnd, Transcriber
from ..results.old import Latency
from ..systems.building import Builder, Overrides
from ..systems.entries import ComponentEntry
from .arms import REVERB, PairArms
from .recognizers import Recognizer
from .results import Measured


@dataclass(frozen=True, slots=True)
class Job:
    """What the other process does: hear `clips` (each with its rate in Hz) one by one."""

    transcriber: ComponentEntry
    front_end: ComponentEntry | None
    trust_remote_code: bool
    language: str
    clips: tuple[tuple[Samples, int], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What it says: seconds per clip, and what it needed."""

    seconds: tuple[float, ...]
    measured: Measured


def drawn_clips(arms: PairArms, language: str, count: int, seed: int) -> tuple[tuple[Samples, int], ...]:
    """`count` drawn reverberant clips of a language, decoded; those that cannot be are left out."""
    queries = arms.expected((language, REVERB))
    order = sorted(range(len(queries)), key=lambda i: keyed_seed(seed, "latency", language, queries[i].id))
    clips = []
    for i in sorted(order[:count]):
        for query in arms.spoken(language, REVERB, start=i, stop=i + 1):
            try:
                clips.append(decode_audio(query.audio, f"pair {query.id!r}"))
            except AudioError:
                continue
    return tuple(clips)


def measure(
    recognizer: Recognizer, language: str, clips: tuple[tuple[Samples, int], ...], *, trust_remote_code: bool = False
) -> tuple[Latency, Measured] | None:
    """Latency from a clip's sound to its transcript, and memory. None for ready transcripts and without clips.

    A recognizer that was not written, but made in Python, is timed in this process, with this process's memory. Raises
    `ModelError` if the other process ends without an answer.
    """
    if recognizer.listener is None or not clips:
        return None
    if recognizer.transcriber_entry is None:
        found = _timed(recognizer.listener, recognizer.front_end, language, clips, 0.0)
    else:
        job = Job(recognizer.transcriber_entry, recognizer.front_end_entry, trust_remote_code, language, clips)
        found = _in_own_process(job, recognizer.name)
    shown = percentiles(found.seconds)
    if shown is None:
        return None
    latency = Latency(
        n=len(found.seconds), p50_s=shown["p50"], p90_s=shown["p90"], p95_s=shown["p95"], p99_s=shown["p99"]
    )
    return latency, found.measured


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
    try:
        builder = Builder(overrides=Overrides(trust_remote_code=job.trust_remote_code))
        started = time.perf_counter()
        transcriber = cast(Transcriber, builder.component("transcriber", job.transcriber).component)
        front_end = None
        if job.front_end is not None:
            front_end = cast(FrontEnd, builder.component("front_end", job.front_end).component)
        answer: Found | SqutrError = _timed(transcriber, front_end, job.language, job.clips, started)
    except SqutrError as error:
        answer = error
    connection.send(answer)
    connection.close()


def _timed(
    transcriber: Transcriber,
    front_end: FrontEnd | None,
    language: str,
    clips: Sequence[tuple[Samples, int]],
    started: float,
) -> Found:
    """The first clip is heard twice: engines load and compile with the first."""
    began = started or time.perf_counter()
    seconds: list[float] = []
    load_s = 0.0
    with sentences(f"timing {transcriber.spec.name}"):
        for place, (samples, rate) in enumerate([clips[0], *clips]):
            before = time.perf_counter()
            clip = samples
            if front_end is not None:
                (clip,) = front_end.enhance([resample(samples, rate, front_end.sample_rate)])
                rate = front_end.sample_rate  # noqa: PLW2901 - the clip's own rate from here on
            transcriber.transcribe([resample(clip, rate, transcriber.sample_rate)], language=language)
            if place:
                seconds.append(time.perf_counter() - before)
            else:
                load_s = time.perf_counter() - began
    gpu = gpu_memory_mb()
    device = transcriber.spec.settings.get("device")
    return Found(
        tuple(seconds),
        Measured(
            load_s=load_s,
            peak_memory_mb=own_peak_memory_mb(),
            peak_gpu_memory_mb=max(gpu.values()) if gpu else None,
            device=str(device) if isinstance(device, str) else "",
        ),
    )


def own_peak_memory_mb(status: Path = Path("/proc/self/status")) -> float:
    """The most resident memory that this program has held, in MB.

    Linux hands the peak of the process that started this one on to `getrusage`; its own is in `status`.
    """
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(encoding="ascii"), flags=re.MULTILINE)
    except OSError:
        found = None
    return round(int(found[1]) * 1024 / 1e6, 1) if found else peak_memory_mb()
