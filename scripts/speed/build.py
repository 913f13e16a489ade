"""Clips built per second into parquet, beside audiomentations, a plain librosa script, and FLAC encoding alone.

Each contender makes five outputs from every clip: clean, noise at 20, 10 and 0 dB, and reverberation with its tail, all
as 24 kHz FLAC of 16 bit, and writes them to parquet:

- squtr: the engine and the shard writer that `squtr build` uses, with all columns of a data set;
- audiomentations: AddBackgroundNoise at a fixed level and ApplyImpulseResponse, FLAC by soundfile at its defaults;
- librosa: the mixing that a short script does, noise and RIR read by `librosa.load` for every clip, `scipy.signal`;
- FLAC alone: squtr's own five outputs, encoded again from 16-bit samples, no parquet. Nothing can be faster than that.

A corpus of ten shards is built beside a loop that parses its JSON lines and writes them with pyarrow.

They run in turns in one process, on clips, noises and RIRs made here; the median of the rounds counts. Peak memory is
taken in a process of its own for each.

    python scripts/speed/build.py [--clips 24] [--rounds 7] [--documents 200000]
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from squtr.loaders import build as build_module
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.blocks import render_take
from squtr.loaders.conditions import parse_condition
from squtr.loaders.conditions.step import StepContext
from squtr.loaders.engines import ThreadEngine
from squtr.loaders.keyed import keyed_rng
from squtr.loaders.noise.babble import babble
from squtr.loaders.recipe import OpenedRecipe, open_recipe
from squtr.loaders.records import SAMPLE_RATE, CleanSpeech, Document, Qrel, Query, Samples
from squtr.loaders.rows import ROWS_PER_TABLE, batches, corpus_features
from squtr.loaders.shards import ShardPlan, write_shards

CONDITIONS = ("clean", "low_noise", "medium_noise", "high_noise", "reverb")
LEVELS_DB = (20.0, 10.0, 0.0)
THREADS = (1, 2)
NOISES, RIRS = 4, 4
CONTENDERS = ("flac", "squtr", "audiomentations", "librosa")
LABELS = {"flac": "FLAC alone"}

Run = Callable[[int], None]
"""Makes all outputs of all clips with that many threads."""


class FewNoises:
    """The first variants of the embedded noises, so that all contenders draw from the same few."""

    def __init__(self) -> None:
        self._bank = load_noise_bank("synthetic")
        self.name, self.version, self.license = self._bank.name, self._bank.version, self._bank.license
        self._infos = [info for info in self._bank.noises() if info.id.endswith("_v01")][:NOISES]

    def noises(self) -> list[Any]:
        """The noises."""
        return self._infos

    def read(self, noise_id: str) -> Samples:
        """The noise."""
        return self._bank.read(noise_id)


class FewRooms:
    """Some of the embedded RIRs, short to long."""

    def __init__(self) -> None:
        self._bank = load_rir_bank("simulated")
        self.name, self.version, self.license = self._bank.name, self._bank.version, self._bank.license
        self._ids = list(self._bank.rirs())[3::5][:RIRS]

    def rirs(self) -> list[str]:
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


class Clips:
    """The clips as a source."""

    name, version, license = "benchmark", "1", "CC0-1.0"
    subsets: ClassVar[dict[str, str]] = {"benchmark": "en"}

    def __init__(self, clips: list[Samples]) -> None:
        self._clips = clips

    def queries(self, _: str) -> list[Query]:
        """One query per clip."""
        return [Query(str(number), "benchmark", "en", "a query") for number in range(len(self._clips))]

    def documents(self, _: str) -> list[Document]:
        """None."""
        return []

    def qrels(self, _: str) -> list[Qrel]:
        """None."""
        return []

    def speech(self, query: Query) -> CleanSpeech:
        """The clip."""
        return CleanSpeech(self._clips[int(query.id)])


def open_clips(clips: list[Samples]) -> OpenedRecipe:
    """The recipe of the benchmark, with few noises and RIRs."""
    opened = open_recipe(Clips(clips), conditions=CONDITIONS)
    return replace(opened, context=StepContext(FewNoises(), FewRooms()))


def squtr_run(opened: OpenedRecipe, folder: Path) -> Run:
    """As `squtr build` does it."""
    conditions = [parse_condition(name) for name in CONDITIONS]
    takes = opened.takes("benchmark")
    schema = opened.features().arrow_schema

    def run(threads: int) -> None:
        plans = [ShardPlan(f"{name}.parquet", len(takes), schema, name) for name in CONDITIONS]
        blocks = list(batches(takes, ROWS_PER_TABLE))
        rendered = ThreadEngine(threads)(opened, conditions, blocks)
        write_shards(folder / "squtr", plans, (block.tables for block in rendered))

    return run


def flac_run(opened: OpenedRecipe) -> Run:
    """The encoder alone, on the outputs of squtr."""
    conditions = [parse_condition(name) for name in CONDITIONS]
    outputs = [
        [soundfile.read(io.BytesIO(row.audio), dtype="int16")[0] for (row,) in render_take(opened, conditions, take)]
        for take in opened.takes("benchmark")
    ]

    def encode(pcms: list[np.ndarray]) -> int:
        total = 0
        for pcm in pcms:
            buffer = io.BytesIO()
            soundfile.write(buffer, pcm, SAMPLE_RATE, format="FLAC", subtype="PCM_16", compression_level=5 / 8)
            total += len(buffer.getvalue())
        return total

    return lambda threads: list_in_threads(encode, outputs, threads)


def list_in_threads(function: Callable[[Any], Any], items: Sequence[Any], threads: int) -> None:
    """Call `function` on all items."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(function, items))


def peer_run(outputs_of: Callable[[Samples], list[Samples]], clips: list[Samples], path: Path) -> Run:
    """A peer's outputs, turned down where they would clip, as FLAC in one parquet file."""

    def make(item: tuple[int, Samples]) -> list[dict[str, Any]]:
        rows = []
        for condition, samples in zip(CONDITIONS, outputs_of(item[1]), strict=True):
            peak = float(np.abs(samples).max())
            buffer = io.BytesIO()
            scaled = samples * (0.9 / peak) if peak > 0.9 else samples
            soundfile.write(buffer, scaled, SAMPLE_RATE, format="FLAC", subtype="PCM_16")
            rows.append({"id": str(item[0]), "condition": condition, "audio": buffer.getvalue()})
        return rows

    def run(threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            made = [row for rows in pool.map(make, enumerate(clips)) for row in rows]
        pq.write_table(pa.Table.from_pylist(made), path, compression="none")

    return run


def write_banks(context: StepContext, folder: Path) -> tuple[Path, Path]:
    """The noises and RIRs as WAV files, for the peers."""
    noises, rirs = folder / "noise", folder / "rirs"
    if not noises.exists():
        noises.mkdir()
        rirs.mkdir()
        for info in context.noise.noises() if context.noise else ():
            soundfile.write(noises / f"{info.id}.wav", context.noise.read(info.id), SAMPLE_RATE, subtype="FLOAT")
        for rir_id in context.rirs.rirs() if context.rirs else ():
            soundfile.write(rirs / f"{rir_id}.wav", context.rirs.read(rir_id), SAMPLE_RATE, subtype="FLOAT")
    return noises, rirs


def audiomentations_outputs(context: StepContext, folder: Path) -> Callable[[Samples], list[Samples]]:
    """What its documentation shows, with every probability at 1 and every range at one value."""
    from audiomentations import AddBackgroundNoise, ApplyImpulseResponse

    noises, rirs = write_banks(context, folder)
    adders = [
        AddBackgroundNoise(sounds_path=noises, min_snr_db=level, max_snr_db=level, noise_rms="relative", p=1.0)
        for level in LEVELS_DB
    ]
    reverberator = ApplyImpulseResponse(ir_path=rirs, p=1.0, leave_length_unchanged=False)
    return lambda clip: [clip, *(add(clip, SAMPLE_RATE) for add in adders), reverberator(clip, SAMPLE_RATE)]


def librosa_outputs(context: StepContext, folder: Path) -> Callable[[Samples], list[Samples]]:
    """What a short script does."""
    import librosa
    from scipy.signal import fftconvolve

    noises, rirs = (sorted(place.iterdir()) for place in write_banks(context, folder))
    rng = np.random.default_rng(0)

    def outputs(clip: Samples) -> list[Samples]:
        noise, _ = librosa.load(noises[rng.integers(len(noises))], sr=SAMPLE_RATE)
        rir, _ = librosa.load(rirs[rng.integers(len(rirs))], sr=SAMPLE_RATE)
        start = int(rng.integers(max(1, noise.size - clip.size)))
        segment = np.resize(noise[start:], clip.size)
        ratio = np.sqrt(np.mean(clip**2)) / np.sqrt(np.mean(segment**2))
        noisy = [clip + segment * ratio * 10 ** (-level / 20) for level in LEVELS_DB]
        return [clip, *noisy, fftconvolve(clip, rir / np.sqrt(np.sum(rir**2))).astype(np.float32)]

    return outputs


class Texts(Clips):
    """A corpus in a file of JSON lines, beside the clips."""

    def __init__(self, clips: list[Samples], path: Path) -> None:
        super().__init__(clips)
        self._path = path
        self.reads = 0

    def documents(self, _: str) -> Iterator[Document]:
        """The documents, parsed line by line."""
        self.reads += 1
        with self._path.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield Document(row["_id"], row["title"], row["text"])


def corpus_ratio(documents: int, folder: Path) -> tuple[float, int]:
    """Time to build a corpus of ten shards as a multiple of parsing and writing it, and how often it was read."""
    words = " ".join(f"word{number}" for number in range(60))
    path = folder / "corpus.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"_id": str(number), "title": f"title {number}", "text": f"{number} {words}"}) + "\n"
            for number in range(documents)
        )
    source = Texts(make_clips(1), path)
    start = time.perf_counter()
    schema = corpus_features().arrow_schema
    with pq.ParquetWriter(folder / "plain.parquet", schema, compression="zstd") as writer:
        for batch in batches(source.documents("benchmark"), build_module.DOCUMENTS_PER_TABLE):
            rows = [{"id": document.id, "title": document.title, "text": document.text} for document in batch]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    plain = time.perf_counter() - start
    source.reads, per_shard = 0, build_module.DOCUMENTS_PER_SHARD
    opened = open_recipe(source, conditions=["clean"])
    start = time.perf_counter()
    build_module.DOCUMENTS_PER_SHARD = -(-documents // 10)
    build_module.build(opened, folder / "corpus")
    build_module.DOCUMENTS_PER_SHARD = per_shard
    return (time.perf_counter() - start) / plain, source.reads


def make_run(name: str, clips: list[Samples], opened: OpenedRecipe, folder: Path) -> Run:
    """The contender called `name`."""
    if name == "squtr":
        return squtr_run(opened, folder)
    if name == "flac":
        return flac_run(opened)
    outputs = {"audiomentations": audiomentations_outputs, "librosa": librosa_outputs}[name](opened.context, folder)
    return peer_run(outputs, clips, folder / f"{name}.parquet")


def timed(run: Run, threads: int, folder: Path) -> float:
    """Seconds for all clips. What was written before is deleted first, so that replacing it is not timed."""
    for path in folder.rglob("*.parquet"):
        path.unlink()
    start = time.perf_counter()
    run(threads)
    return time.perf_counter() - start


def memory_mb() -> float:
    """Peak resident memory of this process so far. Not from getrusage, which counts the parent's as well."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Clips built per second, beside peers and FLAC alone.")
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--memory-of", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = [name for name in CONTENDERS if name in {"flac", "squtr"} or importlib.util.find_spec(name)]
    for name in set(CONTENDERS) - set(names):
        print(f"{name} is not installed and left out. To compare: pip install {name}")

    clips = make_clips(arguments.clips)
    opened = open_clips(clips)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.memory_of:
            run = make_run(arguments.memory_of, clips, opened, Path(folder))
            run(1)
            print(json.dumps({"peak": memory_mb()}))
            return
        runs = {name: make_run(name, clips, opened, Path(folder)) for name in names}
        for run in runs.values():
            run(1)
        seconds: dict[tuple[str, int], list[float]] = {}
        for _ in range(arguments.rounds):
            for threads in THREADS:
                for name, run in runs.items():
                    seconds.setdefault((name, threads), []).append(timed(run, threads, Path(folder)))

    median = {key: statistics.median(times) for key, times in seconds.items()}
    length = sum(clip.size for clip in clips) / SAMPLE_RATE / len(clips)
    print(
        f"{len(clips)} clips of {length:.1f} s on average, {len(CONDITIONS)} outputs each, "
        f"median of {arguments.rounds} rounds"
    )
    print(f"{'':<17}{'outputs/s, 1 thread':>21}{'2 threads':>11}{'scaling':>9}{'time / FLAC':>13}{'peak MB':>9}")
    for name in names:
        command = [sys.executable, __file__, "--memory-of", name, "--clips", str(len(clips))]
        peak = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        one, two = (len(clips) * len(CONDITIONS) / median[name, threads] for threads in THREADS)
        print(
            f"{LABELS.get(name, name):<17}{one:>21.1f}{two:>11.1f}{two / one:>9.2f}"
            f"{median[name, 1] / median['flac', 1]:>13.2f}{peak['peak']:>9.0f}"
        )
    with tempfile.TemporaryDirectory() as folder:
        ratio, reads = corpus_ratio(arguments.documents, Path(folder))
    print(
        f"A corpus of {arguments.documents:,} documents in 10 shards is read {reads} x; the build takes {ratio:.2f} x"
        " the time of parsing and writing alone."
    )
    for name in names[2:]:
        ratios = " and ".join(f"{median[name, t] / median['squtr', t]:.2f} ({t})" for t in THREADS)
        print(f"squtr is so many times as fast as {name}, by threads: {ratios}.")


if __name__ == "__main__":
    main()
