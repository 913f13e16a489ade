"""Recordings that lie beside a table: which file a row names, and reading it as clean speech."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import AudioError, DataError, unknown_name
from ..audio import Channel, check_samples, decode_audio, resample
from ..jsonl import text_field
from ..mixing import ROUNDING_RMS, mean_square
from ..records import NAN, SAMPLE_RATE, CleanSpeech, Document, Qrel, Query, Samples

CHANNEL_HINT = (
    "Write ?channel=0 (or &channel=0) behind the source's name, ?channel=mean for their mean, or give "
    "--speech-channel; channels count"
)

HIGHEST_PEAK = 16.0
"""24 dB above full scale. Floating point may pass full scale; integers stored as floating point lie far above."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A recording; `file` is relative to the folder of recordings, with forward slashes."""

    file: str
    voice: str = ""
    speaker: str = ""
    tts_error_rate: float = NAN
    tts_takes: int = 0
    tts_transcriber: str = ""


class RecordingsAlone(ABC):
    """The part of a source of speech with transcripts: there is no corpus, and nothing is judged."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def subsets(self) -> Mapping[str, str]: ...

    @abstractmethod
    def speech_at(self, query: Query, rate: int) -> CleanSpeech: ...

    def check(self, subset: str) -> None:
        if subset not in self.subsets:
            raise unknown_name(f"subset of {self.name}:", subset, self.subsets)

    def documents(self, subset: str) -> Sequence[Document]:
        self.check(subset)
        return []

    def qrels(self, subset: str) -> Sequence[Qrel]:
        self.check(subset)
        return []

    def speech(self, query: Query) -> CleanSpeech:
        return self.speech_at(query, SAMPLE_RATE)


def clip_of(row: Mapping[str, Any], place: str, *, file_key: str = "file", speaker_key: str = "speaker") -> Clip:
    """The clip that a row of an index names, of which `squtr synthesize` writes how it was selected.

    A missing `tts_error_rate` is NaN. Raises `DataError`.
    """
    return Clip(
        text_field(row, file_key, place),
        optional_text(row, "voice", place),
        optional_text(row, speaker_key, place),
        _rate(row.get("tts_error_rate"), place),
        _takes(row.get("candidates"), place),
        optional_text(row, "transcriber", place),
    )


def optional_text(row: Mapping[str, Any], key: str, place: str) -> str:
    return "" if row.get(key) is None else text_field(row, key, place)


def _takes(value: object, place: str) -> int:
    if value is None or value == "":
        return 0
    if isinstance(value, int | str) and not isinstance(value, bool) and str(value).isdecimal():
        return int(value)
    raise DataError(f"{place}: candidates is {value!r}.", hint="Write the number of takes, or nothing.")


def _rate(value: object, place: str) -> float:
    if value is None or value == "":
        return NAN
    # Tables of text (CSV, TSV) hold numbers as text.
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            rate = float(value)
        except ValueError:
            rate = math.inf
        if not math.isinf(rate):
            return rate
    raise DataError(
        f"{place}: tts_error_rate is {value!r}.", hint="Write a number such as 0.25, or nothing if it is not known."
    )


def inside(file: str) -> bool:
    """Whether a written path stays inside its folder.

    >>> inside("en/q1.wav"), inside("../q1.wav"), inside("/q1.wav")
    (True, False, False)
    """
    return not Path(file).is_absolute() and ".." not in Path(file).parts


def clip_path(folder: Path, file: str, name: str) -> Path:
    """The path of a recording. Raises `AudioError` calling it `name` if it lies outside `folder` or does not exist."""
    path = folder / file
    # Links inside the folder may lead anywhere (the cache of a Hub is made of them); the written path may not.
    if not inside(file):
        raise AudioError(f"{name} lies outside {folder}.", hint="Use a path inside the folder.")
    if not path.is_file():
        raise AudioError(f"{name} does not exist in {folder}.", hint="Restore the file, or leave the query out.")
    return path


def read_clip(
    folder: Path, clip: Clip, query: Query, rate: int = SAMPLE_RATE, *, channel: Channel = None
) -> CleanSpeech:
    """The recording of `query`, resampled to `rate` Hz; `channel` as in `decode_audio`.

    Raises `AudioError` naming query and file.
    """
    name = f"the recording {clip.file} of query {query.id!r}"
    return clean_speech(clip_path(folder, clip.file, name), clip, name, rate, channel=channel)


def clean_speech(
    content: bytes | Path, clip: Clip, name: str, rate: int = SAMPLE_RATE, *, channel: Channel = None
) -> CleanSpeech:
    """A recording (a file's content or its path) as clean speech at `rate` Hz. Raises `AudioError`."""
    samples = read_speech(content, name, rate, channel=channel)
    selected = clip.tts_error_rate, clip.tts_takes, clip.tts_transcriber
    return CleanSpeech(samples, clip.speaker, clip.voice, *selected)


def read_speech(content: bytes | Path, name: str, rate: int, *, channel: Channel = None) -> Samples:
    """(T,) float32 at `rate` Hz of a recording. Raises `AudioError` if it is unusable, or not scaled to ±1."""
    samples, recorded = decode_audio(content, name, channel=channel, channel_hint=CHANNEL_HINT)
    check_samples(samples, name)
    peak = max(float(samples.max()), -float(samples.min()))
    if peak > HIGHEST_PEAK:
        raise AudioError(
            f"{name} peaks at {peak:,.0f}, where full scale is 1.", hint="Scale its samples to between -1 and 1."
        )
    if mean_square(samples) < ROUNDING_RMS * ROUNDING_RMS:
        raise AudioError(f"{name} is weaker than 16 bits can hold.", hint="Scale it up, or record it again.")
    return resample(samples, recorded, rate)
