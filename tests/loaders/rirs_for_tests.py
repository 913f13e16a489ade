"""Small speech and RIRs for the tests of plans."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import soundfile

from squtr.loaders.rirs.measured import MeasuredRir

RATE = 16_000

TEXTS = (
    "one small step",
    "two large steps",
    "three",
    "four of them",
    "five",
    "six or so",
    "seven",
    "eight",
    "nine",
    "ten",
)


def make_speech(folder: Path, count: int = 10, *, rate: int = RATE, language: str = "en") -> Path:
    """A folder of recordings with its table: noise of a syllable's rhythm, 0.5 s and more."""
    folder.mkdir(parents=True)
    rows = []
    for number in range(count):
        rng = np.random.default_rng(number)
        samples = int((0.5 + 0.05 * number) * rate)
        envelope = 0.5 + 0.5 * np.sin(2 * np.pi * 4 * np.arange(samples) / rate)
        soundfile.write(folder / f"u{number:02d}.flac", 0.1 * envelope * rng.standard_normal(samples), rate)
        text = TEXTS[number % len(TEXTS)] + (f" {number}" if number >= len(TEXTS) else "")
        rows.append(
            {"id": f"u{number:02d}", "file": f"u{number:02d}.flac", "text": text, "speaker": f"s{number % 3}"}
            | {"language": language}
        )
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def response(seed: int, rt60_s: float, *, delay: int = 40, direct: float = 3.0) -> np.ndarray:
    """Noise that decays by 60 dB in `rt60_s` after a direct path, (L,) float32 at 16 kHz."""
    rng = np.random.default_rng(seed)
    length = int(1.2 * rt60_s * RATE)
    tail = rng.standard_normal(length) * 10.0 ** (-3.0 * np.arange(length) / RATE / rt60_s)
    tail[0] = direct
    return np.concatenate([np.zeros(delay), tail]).astype(np.float32)


def make_rooms(folder: Path, count: int = 10) -> Path:
    """A folder of impulse responses with reverberation times from 0.2 s up."""
    folder.mkdir(parents=True)
    for number in range(count):
        samples = response(number, 0.2 + 0.06 * number, delay=20 * number)
        soundfile.write(folder / f"r{number:02d}.wav", samples, RATE, subtype="FLOAT")
    return folder


def measured(rir_id: str, rt60_s: float, drr_db: float = 0.0, room_id: str = "") -> MeasuredRir:
    """A RIR with given measures."""
    return MeasuredRir(rir_id, room_id or rir_id, rt60_s=rt60_s, drr_db=drr_db)
