"""Clips built per second, beside audiomentations and beside FLAC encoding alone.

Each of the contenders makes five outputs from every clip: clean, noise at 20, 10 and 0 dB, and reverberation with its
tail, all as 24 kHz FLAC of 16 bit:

- squtr: `squtr.loaders.render.render`;
- audiomentations: AddBackgroundNoise at a fixed level and ApplyImpulseResponse, written by soundfile at its defaults;
- FLAC alone: squtr's own five outputs, encoded again from 16-bit samples. Nothing can build them faster than that.

They run in turns in one process, on clips, noises and rooms made here; the median of the rounds counts. Peak memory is
taken in a process of its own for each.

    python benchmarks/build.py [--clips 24] [--rounds 7] [--threads 1]
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from squtr.loaders.banks import load_noise_bank, load_room_bank
from squtr.loaders.banks.babble import babble
from squtr.loaders.conditions import parse_condition
from squtr.loaders.keyed import keyed_rng
from squtr.loaders.records import SAMPLE_RATE, CleanSpeech, Query, Samples
from squtr.loaders.render import Air, render

CONDITIONS = ("clean", "low_noise", "medium_noise", "high_noise", "reverb")
LEVELS_DB = (20.0, 10.0, 0.0)
NOISES, ROOMS = 4, 4
CONTENDERS = ("flac", "squtr", "audiomentations")

Build = Callable[[int], int]
"""Makes all outputs of one clip; returns their bytes."""


class FewNoises:
    """The first variants of the embedded noises, so that all contenders draw from the same few."""

    def __init__(self) -> None:
        self._bank = load_noise_bank("synthetic")
        self.name, self.version, self.licence = self._bank.name, self._bank.version, self._bank.licence
        self._infos = [info for info in self._bank.noises() if info.id.endswith("_v01")][:NOISES]

    def noises(self) -> list[Any]:
        """The noises."""
        return self._infos

    def read(self, noise_id: str) -> Samples:
        """The noise."""
        return self._bank.read(noise_id)


class FewRooms:
    """Some of the embedded rooms, short to long."""

    def __init__(self) -> None:
        self._bank = load_room_bank("simulated")
        self.name, self.version, self.licence = self._bank.name, self._bank.version, self._bank.licence
        self._ids = list(self._bank.rooms())[3::5][:ROOMS]

    def rooms(self) -> list[str]:
        """The ids."""
        return self._ids

    def read(self, rir_id: str) -> Samples:
        """The impulse response."""
        return self._bank.read(rir_id)


def make_clips(count: int) -> list[Samples]:
    """Synthetic talkers of 4 to 6 s with a peak of 0.5."""
    clips = []
    for number in range(count):
        rng = keyed_rng(0, "benchmark clip", str(number))
        clip = babble(rng, 2 * int(rng.integers(2 * SAMPLE_RATE, 3 * SAMPLE_RATE)), talkers=1)
        clips.append((0.5 * clip / np.abs(clip).max()).astype(np.float32))
    return clips


def squtr_builder(clips: list[Samples], air: Air) -> Build:
    """Through the function that builds data sets."""
    conditions = [parse_condition(name) for name in CONDITIONS]

    def build(number: int) -> int:
        query = Query(f"q{number}", "benchmark", "en", "")
        speech = CleanSpeech(clips[number])
        return sum(len(render(query, speech, condition, air).audio) for condition in conditions)

    return build


def flac_builder(clips: list[Samples], air: Air) -> Build:
    """The encoder alone, on the outputs of `squtr_builder`."""
    conditions = [parse_condition(name) for name in CONDITIONS]
    outputs = []
    for number, clip in enumerate(clips):
        rows = [render(Query(f"q{number}", "benchmark", "en", ""), CleanSpeech(clip), c, air) for c in conditions]
        outputs.append([soundfile.read(io.BytesIO(row.audio), dtype="int16")[0] for row in rows])

    def build(number: int) -> int:
        total = 0
        for pcm in outputs[number]:
            buffer = io.BytesIO()
            soundfile.write(buffer, pcm, SAMPLE_RATE, format="FLAC", subtype="PCM_16", compression_level=5 / 8)
            total += len(buffer.getvalue())
        return total

    return build


def audiomentations_builder(clips: list[Samples], air: Air, folder: Path) -> Build:
    """What its documentation shows, with every probability at 1 and every range at one value."""
    from audiomentations import AddBackgroundNoise, ApplyImpulseResponse

    noises, rooms = folder / "noise", folder / "rooms"
    noises.mkdir()
    rooms.mkdir()
    assert air.noise is not None and air.rooms is not None  # noqa: S101
    for info in air.noise.noises():
        soundfile.write(noises / f"{info.id}.wav", air.noise.read(info.id), SAMPLE_RATE, subtype="FLOAT")
    for rir_id in air.rooms.rooms():
        soundfile.write(rooms / f"{rir_id}.wav", air.rooms.read(rir_id), SAMPLE_RATE, subtype="FLOAT")
    adders = [
        AddBackgroundNoise(sounds_path=noises, min_snr_db=level, max_snr_db=level, noise_rms="relative", p=1.0)
        for level in LEVELS_DB
    ]
    reverberator = ApplyImpulseResponse(ir_path=rooms, p=1.0, leave_length_unchanged=False)

    def build(number: int) -> int:
        clip = clips[number]
        outputs = [clip, *(add(clip, SAMPLE_RATE) for add in adders), reverberator(clip, SAMPLE_RATE)]
        total = 0
        for samples in outputs:
            peak = float(np.abs(samples).max())
            buffer = io.BytesIO()
            scaled = samples * (0.9 / peak) if peak > 0.9 else samples
            soundfile.write(buffer, scaled, SAMPLE_RATE, format="FLAC", subtype="PCM_16")
            total += len(buffer.getvalue())
        return total

    return build


def make_builder(name: str, clips: list[Samples], air: Air, folder: Path) -> Build:
    """The contender called `name`."""
    if name == "squtr":
        return squtr_builder(clips, air)
    if name == "flac":
        return flac_builder(clips, air)
    return audiomentations_builder(clips, air, folder)


def run(build: Build, count: int, threads: int) -> float:
    """Seconds for all clips."""
    start = time.perf_counter()
    if threads == 1:
        for number in range(count):
            build(number)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(build, range(count)))
    return time.perf_counter() - start


def memory_mb() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Clips built per second, beside audiomentations and FLAC alone.")
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory-of", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    try:
        import audiomentations
    except ImportError:
        audiomentations = None
        print("audiomentations is not installed: it is left out. To compare: pip install audiomentations\n")

    clips = make_clips(arguments.clips)
    air = Air(FewNoises(), FewRooms())
    names = [name for name in CONTENDERS if audiomentations or name != "audiomentations"]
    with tempfile.TemporaryDirectory() as folder:
        if arguments.memory_of:
            build = make_builder(arguments.memory_of, clips, air, Path(folder))
            # Noises and rooms are made before; what is asked for is what building adds to them.
            before = memory_mb()
            run(build, len(clips), arguments.threads)
            print(json.dumps({"before": before, "peak": memory_mb()}))
            return
        builders = {name: make_builder(name, clips, air, Path(folder)) for name in names}
        for build in builders.values():
            run(build, len(clips), arguments.threads)
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(arguments.rounds):
            for name, build in builders.items():
                seconds[name].append(run(build, len(clips), arguments.threads))

    median = {name: statistics.median(times) for name, times in seconds.items()}
    length = sum(clip.size for clip in clips) / SAMPLE_RATE / len(clips)
    print(
        f"{len(clips)} clips of {length:.1f} s on average, {len(CONDITIONS)} outputs each, "
        f"{arguments.threads} thread(s), median of {arguments.rounds} rounds"
    )
    print(f"{'':<17}{'clips/s':>9}{'outputs/s':>11}{'time / FLAC':>13}{'peak MB':>9}")
    for name in names:
        command = [sys.executable, __file__, "--memory-of", name, "--clips", str(len(clips))]
        command += ["--threads", str(arguments.threads)]
        peak = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        rate = len(clips) / median[name]
        print(
            f"{name if name != 'flac' else 'FLAC alone':<17}{rate:>9.1f}{rate * len(CONDITIONS):>11.1f}"
            f"{median[name] / median['flac']:>13.2f}{peak['peak']:>9.0f}"
        )
    if "audiomentations" in median:
        print(f"squtr builds {median['audiomentations'] / median['squtr']:.2f} times as fast as audiomentations.")


if __name__ == "__main__":
    main()
