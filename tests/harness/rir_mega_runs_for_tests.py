"""Small pairs with transcribers that lose more in more reverberant rooms, as far as a test wants it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from squtr.harness.protocols import ComponentSpec, Transcript
from squtr.harness.rir_mega.recognizers import Recognizer
from squtr.loaders.audio import decode_audio
from squtr.loaders.rir_mega.build import build_pairs
from squtr.loaders.rir_mega.data import RirMegaData
from squtr.loaders.rir_mega.recipe import open_pair_kitchen

from ..loaders.rir_mega_for_tests import make_rooms, make_speech

Words = dict[str, str | Transcript]
"""What is heard, by the sha256 of a clip's samples."""


def build_data(root: Path, *, count: int = 24, rooms: int = 12, rooms_per_utterance: int = 2, bins: int = 3) -> Path:
    """A built folder of tiny recordings in rooms from 0.2 s up; about four fifths of it are its test split."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQUTR_HOME", str(root / "home"))
        kitchen = open_pair_kitchen(
            f"recorded:{make_speech(root / 'speech', count)}",
            str(make_rooms(root / "rooms", rooms)),
            rooms_per_utterance=rooms_per_utterance,
            rt60_bins=bins,
            drr_bins=bins,
        )
        build_pairs(kitchen, root / "data", workers=1)
    return root / "data"


def key_of(samples: np.ndarray) -> str:
    return hashlib.sha256(samples.tobytes()).hexdigest()


def truth(data: RirMegaData, split: str = "test") -> tuple[Words, Words]:
    """The text of every clean and of every reverberant sound."""
    clean, reverb = {}, {}
    for pair in data.pairs(split):
        clean[key_of(decode_audio(pair.clean_audio, "c")[0])] = pair.text
        reverb[key_of(decode_audio(pair.reverb_audio, "r")[0])] = pair.text
    return clean, reverb


def in_rooms(data: RirMegaData, *, threshold_s: float, slope: float, seed: int = 0, split: str = "test") -> Words:
    """Clean clips are heard right; in a room beyond the threshold words are lost, more of them with more RT60."""
    table: Words = {}
    for pair in data.pairs(split):
        table[key_of(decode_audio(pair.clean_audio, "c")[0])] = pair.text
        rng = np.random.default_rng([seed, *pair.sample_id.encode()])
        rate = min(0.9, slope * max(0.0, pair.rt60_s - threshold_s))
        kept = [word if rng.random() >= rate else "blur" for word in pair.text.split()]
        table[key_of(decode_audio(pair.reverb_audio, "r")[0])] = " ".join(kept)
    return table


class TableTranscriber:
    """Hears what a table says for a sound; counts its clips."""

    def __init__(
        self, table: Mapping[str, str | Transcript], name: str = "table", *, weights: Path | None = None
    ) -> None:
        self.table = table
        self.heard: list[str] = []
        self.fail_after: int | None = None
        self.spec = ComponentSpec("transcriber", "table", name, revision=name)
        self.sample_rate = 16_000
        self.weights = weights

    def supports(self, language: str) -> bool:
        return language == "en"

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        if self.fail_after is not None and len(self.heard) + len(clips) > self.fail_after:
            raise KeyboardInterrupt
        found = []
        for clip in clips:
            key = key_of(clip)
            self.heard.append(key)
            said = self.table.get(key, "something else")
            found.append(said if isinstance(said, Transcript) else Transcript(said, seconds=0.25))
        return found


class Halver:
    """A front end that halves the level: the table knows no such sound, unless it is told."""

    spec = ComponentSpec("front_end", "halver", "halver", revision="1")
    sample_rate = 16_000

    def enhance(self, clips: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [clip * np.float32(0.5) for clip in clips]


def halved(data: RirMegaData, table: Words, *, clean: bool = True) -> Words:
    """The table for a transcriber behind `Halver`, which hears every sound right (clean ones too, if wanted)."""
    more: Words = {}
    for pair in data.pairs("test"):
        for audio, wanted in ((pair.clean_audio, clean), (pair.reverb_audio, True)):
            samples = decode_audio(audio, "x")[0]
            more[key_of(samples * np.float32(0.5))] = pair.text if wanted else table[key_of(samples)]
    return {**table, **more}


def recognizer(table: Mapping[str, str | Transcript], name: str = "table", **options: object) -> Recognizer:
    return Recognizer(TableTranscriber(table, name), **options)  # type: ignore[arg-type]
