"""Small recordings in rooms, with transcribers that lose more in more reverberant ones, as far as a test wants it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.harness.benchmarks import Benchmark, benchmark
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.run import Evaluation, run_evaluation
from squtr.harness.protocols import ComponentSpec, Transcript
from squtr.harness.results.envelope import RunRecord
from squtr.harness.systems import System
from squtr.harness.tasks.recognition.task import RecognitionTask
from squtr.loaders.audio import decode_audio
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData, SpeechData
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import SpokenQuery

from ..loaders.rirs_for_tests import make_rooms, make_speech

Words = dict[str, str | Transcript]
"""Transcripts by the sha256 of a clip's samples."""
QUICK: dict[str, Any] = {"resamples": 100, "permutations": 300}


def build_data(
    root: Path,
    *conditions: str,
    count: int = 24,
    rirs: int = 12,
    rirs_per_utterance: int = 2,
    bins: int = 3,
    benchmark: str = "rir_mega",
) -> BuiltData:
    """Tiny recordings in rooms from 0.2 s up; about four fifths of them are the test split."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQUTR_HOME", str(root / "home"))
        opened = open_recipe(
            f"recorded:{make_speech(root / 'speech', count)}",
            conditions=conditions or ("clean", "reverb"),
            rirs=str(make_rooms(root / "rirs", rirs)),
            sample_rate=16_000,
            stratify="rt60",
            rirs_per_utterance=rirs_per_utterance,
            rt60_bins=bins,
            drr_bins=bins,
            splits=True,
            benchmark=benchmark,
        )
        build(opened, root / "data", workers=1)
    return BuiltData(root / "data")


def key_of(samples: np.ndarray) -> str:
    return hashlib.sha256(samples.tobytes()).hexdigest()


def rows_of(data: SpeechData) -> Iterator[tuple[SpokenQuery, np.ndarray]]:
    """Every row with its samples."""
    for subset in data.subsets:
        for condition in data.conditions:
            for row in data.spoken(subset, condition):
                yield row, decode_audio(row.audio, "x")[0]


def truth(data: SpeechData) -> tuple[Words, Words]:
    """The text of every clean clip, and of every other."""
    clean: Words = {}
    others: Words = {}
    for row, samples in rows_of(data):
        (clean if row.condition == "clean" else others)[key_of(samples)] = row.text
    return clean, others


def in_rooms(data: SpeechData, *, threshold_s: float, slope: float, seed: int = 0) -> Words:
    """Clean clips are right; in a room beyond the threshold words are lost, more of them with more RT60."""
    table: Words = {}
    for row, samples in rows_of(data):
        rng = np.random.default_rng([seed, *row.id.encode()])
        rate = min(0.9, slope * max(0.0, row.rt60_s - threshold_s)) if row.rir_id else 0.0
        kept = [word if rng.random() >= rate else "blur" for word in row.text.split()]
        table[key_of(samples)] = " ".join(kept)
    return table


def with_errors(text: str, name: str, rate: float) -> str:
    """`text` with words left out, replaced and inserted, as many as `rate` says, drawn by `name`."""
    rng = np.random.default_rng([7, *name.encode()])
    words = []
    for word in text.split():
        drawn = rng.random()
        if drawn < rate / 3:
            continue
        words.append("blur" if drawn < 2 * rate / 3 else word)
        if 2 * rate / 3 <= drawn < rate:
            words.append("uh")
    return " ".join(words)


class TableTranscriber:
    """Gives the transcript that a table has for a clip; counts its clips."""

    def __init__(
        self, table: Mapping[str, str | Transcript], name: str = "table", *, weights: Path | None = None
    ) -> None:
        self.table = table
        self.clips: list[str] = []
        self.fail_after: int | None = None
        self.spec = ComponentSpec("transcriber", "table", name, revision=name)
        self.sample_rate = 16_000
        self.weights = weights

    def supports(self, language: str) -> bool:
        return language == "en"

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        if self.fail_after is not None and len(self.clips) + len(clips) > self.fail_after:
            raise KeyboardInterrupt
        found = []
        for clip in clips:
            key = key_of(clip)
            self.clips.append(key)
            text = self.table.get(key, "something else")
            found.append(text if isinstance(text, Transcript) else Transcript(text, seconds=0.25))
        return found


class Halver:
    """A front end that halves the level: the table knows no such clip, unless it has it."""

    spec = ComponentSpec("front_end", "halver", "halver", revision="1")
    sample_rate = 16_000

    def enhance(self, clips: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [clip * np.float32(0.5) for clip in clips]


def halved(data: SpeechData, table: Words) -> Words:
    """The table for a transcriber behind `Halver`, which gets every clip right."""
    return {**table, **{key_of(samples * np.float32(0.5)): row.text for row, samples in rows_of(data)}}


def system(table: Mapping[str, str | Transcript], name: str = "table", **options: Any) -> System:
    return System(transcriber=TableTranscriber(table, name), **options)


def evaluate(
    systems: Sequence[System], data: Any, row: Benchmark | str = "rir_mega", normalizer: str = "default", **given: Any
) -> Evaluation:
    """An evaluation of the recognition task; `given` are fields of `Options`, or arguments of `run_evaluation`."""
    chosen = QUICK | {"normalizer": normalizer, "self_check": False}
    arguments = {name: given.pop(name) for name in ("out", "cache", "configs", "processes") if name in given}
    return run_evaluation(
        RecognitionTask(),
        benchmark(row) if isinstance(row, str) else row,
        systems,
        data,
        options=Options.of(chosen | given),
        **arguments,
    )


def by_config(records: Sequence[RunRecord], name: str = "table") -> dict[str, RunRecord]:
    """The runs of a system by config."""
    return {record.result.data.config: record for record in records if record.result.system.name == name}
