"""Fetching the audio of a set from the addresses in its table. A stopped run continues; every file has a status.

    audio/<id>.flac            what is there: 16 kHz mono, 16 bit
    status/<id>.json           what became of it, written as soon as it is known (see `statuses`)
    other_length/<id>.flac     what its address gives now, but with another length than the table says
    parts/<id>/                what is under way

The audio belongs to those who published it. Fetch what you may use.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from ...errors import AudioError, DataError, FetchError, StorageError
from ..banks.download import download
from ..manifest import file_sha256
from ..shards import replace_file
from ..sources.published_questions import PublishedQuestions
from .audio_folder import READABLE
from .question import Question
from .reading import find_table
from .statuses import SETTLED, AudioStatus, Status, read_statuses, write_status
from .validate import same_length
from .windows import RATE, facts, windows
from .yt_dlp import FetchTool, RefusedError, convert_by_ffmpeg

AUDIO, OTHER_LENGTH, PARTS = "audio", "other_length", "parts"
CHUNK_S = 60.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """An audio file to fetch: its id, its address, and its length in s (NaN where the table does not say it)."""

    id: str
    url: str
    expected_s: float


@dataclass(frozen=True, slots=True)
class FetchReport:
    statuses: Mapping[str, AudioStatus]
    new: Sequence[str]

    @property
    def counts(self) -> dict[Status, int]:
        return dict(Counter(status.status for status in self.statuses.values()).most_common())


def fetch_table(
    folder: Path, published: PublishedQuestions | None, given: Path | None = None, address: str = ""
) -> Path:
    """The table of questions in `folder`: what lies there already, else a copy of `given`, else the published one.

    The published table is tried under its names below `address` (default: where it is published). Raises `DataError`
    where `given` and another table in the folder differ, `FetchError` where none can be had.
    """
    here = find_table(folder)
    if given is not None:
        if not given.is_file():
            raise DataError(f"{given} does not exist.", hint="Check the path.")
        if here is None:
            here = folder / f"questions{given.suffix.lower()}"
            replace_file(here, given.read_bytes())
        elif here.resolve() != given.resolve() and here.read_bytes() != given.read_bytes():
            raise DataError(f"{folder} holds another table, {here.name}.", hint="Choose another folder with --to.")
    if here is not None:
        return here
    if published is None:
        raise DataError(f"{folder} holds no table of questions.", hint="Give one, or the name of a published set.")
    refused: list[str] = []
    for name in published.tables:
        try:
            download(f"{(address or published.address).rstrip('/')}/{name}", folder / name)
        except FetchError as error:
            refused.append(error.message)
            continue
        return folder / name
    first = published.tables[0]
    raise FetchError(
        f"the published questions cannot be had: {refused[0]}",
        hint=f"Get {first} from {published.home} and put it into {(folder / first).parent}.",
    )


Progress = Callable[[int, int, str], None]
"""Called with how many files are settled, of how many, and the id under way."""


def wanted_of(questions: Iterable[Question]) -> list[Wanted]:
    """Every audio file that the questions name with an address, once. Raises `DataError` where one has two."""
    found: dict[str, Wanted] = {}
    for question in questions:
        lengths = question.audio_durations_s or (() if question.comparative else (question.duration_s,))
        for number, audio in enumerate(question.audios):
            url = question.source_urls[number] if number < len(question.source_urls) else ""
            if not url:
                continue
            known = found.get(audio)
            if known is not None and known.url != url:
                raise DataError(
                    f"item {question.id!r}: the audio {audio!r} has the address {url!r}, elsewhere {known.url!r}.",
                    hint="Give each audio file one address.",
                )
            expected = lengths[number] if number < len(lengths) else math.nan
            if known is None or math.isnan(known.expected_s):
                found[audio] = Wanted(audio, url, expected)
    return list(found.values())


def fetch_audio(
    wanted: Sequence[Wanted],
    folder: Path,
    tool: FetchTool,
    *,
    ffmpeg: str = "",
    again: bool = False,
    progress: Progress | None = None,
    on_bytes: Callable[[str, int, int], None] | None = None,
) -> FetchReport:
    """Fetch what is not there yet, one file after the other, and write each one's status.

    What is there is kept. What was refused for good (removed, private, not in this country, another length) is tried
    again with `again` only; what failed otherwise always is. One file's refusal never stops the others. Raises
    `StorageError` where the disk refuses, `MissingExtraError` where a file needs ffmpeg and there is none, and
    `FetchError` after ten failures in a row without a success: the network is gone.
    """
    known = read_statuses(folder)
    statuses: dict[str, AudioStatus] = {}
    new: list[str] = []
    failures = 0
    fetcher = _Fetcher(folder, tool, ffmpeg, on_bytes)
    for number, audio in enumerate(wanted):
        if progress is not None:
            progress(number, len(wanted), audio.id)
        before = known.get(audio.id)
        if (folder / AUDIO / f"{audio.id}.flac").is_file() and before is not None and before.status == "ok":
            statuses[audio.id] = before
            continue
        if before is not None and before.status in SETTLED and before.url == audio.url and not again:
            statuses[audio.id] = before
            continue
        attempts = before.attempts + 1 if before is not None and before.url == audio.url else 1
        status = fetcher.fetch(audio, attempts)
        write_status(folder, status)
        statuses[audio.id] = status
        if status.status == "ok":
            new.append(audio.id)
        failures = failures + 1 if status.status == "failed" else 0
        if failures == 10:
            raise FetchError(
                f"ten audio files in a row could not be fetched, the last because: {status.reason}",
                hint="Check the network, and run the same command again: it continues.",
            )
    if progress is not None:
        progress(len(wanted), len(wanted), "")
    return FetchReport(statuses, new)


@dataclass(frozen=True, slots=True)
class _Fetcher:
    folder: Path
    tool: FetchTool
    ffmpeg: str
    on_bytes: Callable[[str, int, int], None] | None

    def fetch(self, audio: Wanted, attempts: int) -> AudioStatus:
        """Get the file, convert it, put it where it belongs, and return its status, which is not yet written."""
        told = AudioStatus(
            id=audio.id,
            status="ok",
            url=audio.url,
            expected_s=None if math.isnan(audio.expected_s) else audio.expected_s,
            attempts=attempts,
            tool=self.tool.name,
        )
        parts = self.folder / PARTS / audio.id
        try:
            parts.mkdir(parents=True, exist_ok=True)
            made = parts / f"{audio.id}.converted"
            try:
                got = self.tool.fetch(audio.url, parts, audio.id, self._progress(audio.id))
                to_flac(got, made, self.ffmpeg)
                duration = round(facts(made, f"the audio {audio.id!r}").duration_s, 3)
            except RefusedError as error:
                return told.model_copy(update={"status": error.refusal.status, "reason": error.refusal.reason})
            except AudioError as error:
                # What came is no audio: the next try begins anew.
                shutil.rmtree(parts)
                return told.model_copy(update={"status": "failed", "reason": str(error)})
            right = same_length(duration, audio.expected_s)
            target = self.folder / (AUDIO if right else OTHER_LENGTH) / f"{audio.id}.flac"
            target.parent.mkdir(parents=True, exist_ok=True)
            made.replace(target)
            shutil.rmtree(parts)
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{self.folder} cannot be written: {error}.", hint="Check the disk.") from error
        if not right:
            reason = f"it lasts {duration:g} s, not {audio.expected_s:g} s"
            return told.model_copy(update={"status": "wrong_duration", "reason": reason, "duration_s": duration})
        return told.model_copy(update={"duration_s": duration, "sha256": file_sha256(target)})

    def _progress(self, id_: str) -> Callable[[int, int], None] | None:
        on_bytes = self.on_bytes
        return None if on_bytes is None else lambda done, total: on_bytes(id_, done, total)


def to_flac(source: Path, target: Path, ffmpeg: str = "") -> None:
    """Any audio file as 16 kHz mono FLAC, channels averaged. Raises `AudioError`, or `MissingExtraError` for ffmpeg."""
    if source.suffix.lower() not in READABLE:
        convert_by_ffmpeg(source, target, RATE, ffmpeg)
        return
    own = facts(source, source.name)
    if (own.rate, own.channels) == (RATE, 1) and source.suffix.lower() == ".flac" and _is_16_bit(source):
        shutil.copyfile(source, target)
        return
    with soundfile.SoundFile(target, "w", RATE, 1, subtype="PCM_16", format="FLAC", compression_level=5 / 8) as file:
        for piece in _resampled(source, own.rate):
            file.write(np.clip(piece, -1.0, 32767 / 32768))


def _is_16_bit(path: Path) -> bool:
    return bool(soundfile.info(path).subtype == "PCM_16")


def _resampled(source: Path, rate: int) -> Iterator[NDArray[np.float32]]:
    """One resampler goes through all pieces: no seams."""
    import soxr

    if rate == RATE:
        for window in windows(source, CHUNK_S, name=source.name):
            yield window.samples
        return
    stream = soxr.ResampleStream(rate, RATE, 1, dtype="float32", quality="VHQ")
    for window in windows(source, CHUNK_S, name=source.name):
        yield stream.resample_chunk(window.samples)
    yield stream.resample_chunk(np.zeros(0, dtype=np.float32), last=True)
