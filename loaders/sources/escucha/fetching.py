"""Fetching the sound of a set from the addresses in its table. A stopped run continues; every sound has a status.

    audio/<id>.flac            what is there: 16 kHz mono, 16 bit
    status/<id>.json           what became of it, written as soon as it is known (see `statuses`)
    other_length/<id>.flac     what its address gives now, but with another length than the table says
    parts/<id>/                what is under way

Sound stays with who published it: ESCUCHA names addresses and no license. Fetch what you may use.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from ....errors import AudioError, DataError, FetchError, StorageError
from ...banks.download import download
from ...manifest import file_sha256
from ...questions.audio_folder import READABLE
from ...questions.question import Question
from ...questions.reading import PUBLISHED_TABLES, find_table
from ...questions.statuses import SETTLED, AudioStatus, read_statuses, write_status
from ...questions.validate import same_length
from ...questions.windows import RATE, facts, windows
from ...shards import replace_file
from .yt_dlp import FetchTool, RefusedError, convert_by_ffmpeg

AUDIO, OTHER_LENGTH, PARTS = "audio", "other_length", "parts"
REPOSITORY = "https://raw.githubusercontent.com/ferugit/ESCUCHA/main"
"""Where the paper says that the questions are; it states no license."""
CHUNK_S = 60.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sound to fetch: its id, its address, and its length in s (NaN where the table does not say it)."""

    id: str
    url: str
    expected_s: float


@dataclass(frozen=True, slots=True)
class FetchReport:
    """What a run did: every wanted sound's status, and the ids of those that it fetched itself."""

    statuses: Mapping[str, AudioStatus]
    new: Sequence[str]

    @property
    def counts(self) -> dict[str, int]:
        """How many sounds have each status, the most frequent first."""
        listed = [status.status for status in self.statuses.values()]
        return {status: listed.count(status) for status in sorted(set(listed), key=lambda s: (-listed.count(s), s))}


def fetch_table(folder: Path, given: Path | None = None, base: str = REPOSITORY) -> Path:
    """The table of questions in `folder`: what lies there already, else a copy of `given`, else the published one.

    The published table is tried under its names (`data/tsv/ESCUCHA.json`, then `.tsv`) below `base`. Raises `DataError`
    where `given` and another table in the folder differ, `FetchError` where none can be had.
    """
    here = find_table(folder)
    if given is not None:
        if not given.is_file():
            raise DataError(f"{given} does not exist.", hint="Check the path.")
        target = folder / f"questions{given.suffix.lower()}"
        if here is not None and here.resolve() == given.resolve():
            return here
        if here is not None and here.read_bytes() != given.read_bytes():
            raise DataError(f"{folder} holds another table, {here.name}.", hint="Choose another folder with --to.")
        if here is None:
            replace_file(target, given.read_bytes())
        return here or target
    if here is not None:
        return here
    refused: list[str] = []
    for name in PUBLISHED_TABLES:
        target = folder / name
        try:
            download(f"{base.rstrip('/')}/{name}", target)
        except FetchError as error:
            refused.append(error.message)
            continue
        return target
    raise FetchError(
        f"the published questions cannot be had: {refused[0]}",
        hint=f"Get data/tsv/ESCUCHA.json from github.com/ferugit/ESCUCHA and put it into {folder / 'data' / 'tsv'}.",
    )


Progress = Callable[[int, int, str], None]
"""Called with how many sounds are settled, of how many, and the id under way."""


def wanted_of(questions: Iterable[Question]) -> list[Wanted]:
    """Every sound that the questions name and that has an address, once, in order.

    Raises `DataError` where a sound has two addresses.
    """
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
                    f"item {question.id!r}: the sound {audio!r} has the address {url!r}, elsewhere {known.url!r}.",
                    hint="Give each sound one address.",
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
    """Fetch what is not there yet, one sound after the other, and write each one's status.

    What is there is kept. What was refused for good (removed, private, not in this country, another length) is tried
    again with `again` only; what failed otherwise always is. One sound's refusal never stops the others. Raises
    `StorageError` where the disk refuses, `MissingExtraError` where a sound needs ffmpeg and there is none, and
    `FetchError` after ten failures in a row without a success: the network is gone.
    """
    known = read_statuses(folder)
    statuses: dict[str, AudioStatus] = {}
    new: list[str] = []
    failures = 0
    fetcher = _Fetcher(folder, tool, ffmpeg, on_bytes)
    for number, sound in enumerate(wanted):
        if progress is not None:
            progress(number, len(wanted), sound.id)
        before = known.get(sound.id)
        if (folder / AUDIO / f"{sound.id}.flac").is_file() and before is not None and before.status == "ok":
            statuses[sound.id] = before
            continue
        if before is not None and before.status in SETTLED and before.url == sound.url and not again:
            statuses[sound.id] = before
            continue
        attempts = before.attempts + 1 if before is not None and before.url == sound.url else 1
        status = fetcher.fetch(sound, attempts)
        write_status(folder, status)
        statuses[sound.id] = status
        if status.status == "ok":
            new.append(sound.id)
        failures = failures + 1 if status.status == "failed" else 0
        if failures == 10:
            raise FetchError(
                f"ten sounds in a row could not be fetched, the last because: {status.reason}",
                hint="Check the network, and run the same command again: it continues.",
            )
    if progress is not None:
        progress(len(wanted), len(wanted), "")
    return FetchReport(statuses, new)


@dataclass(frozen=True, slots=True)
class _Fetcher:
    """Fetches one sound after the other into a folder."""

    folder: Path
    tool: FetchTool
    ffmpeg: str
    on_bytes: Callable[[str, int, int], None] | None

    def fetch(self, sound: Wanted, attempts: int) -> AudioStatus:
        """Get the sound, convert it, put it where it belongs, and say what became of it; not yet written."""
        told = AudioStatus(
            id=sound.id,
            status="ok",
            url=sound.url,
            expected_s=None if math.isnan(sound.expected_s) else sound.expected_s,
            attempts=attempts,
            tool=self.tool.name,
        )
        parts = self.folder / PARTS / sound.id
        try:
            parts.mkdir(parents=True, exist_ok=True)
            made = parts / f"{sound.id}.converted"
            try:
                got = self.tool.fetch(sound.url, parts, sound.id, self._progress(sound.id))
                to_flac(got, made, self.ffmpeg)
                duration = round(facts(made, f"the sound {sound.id!r}").duration_s, 3)
            except RefusedError as error:
                return told.model_copy(update={"status": error.refusal.status, "reason": error.refusal.reason})
            except AudioError as error:
                # What came is no sound: the next try begins anew.
                shutil.rmtree(parts)
                return told.model_copy(update={"status": "failed", "reason": str(error)})
            right = same_length(duration, sound.expected_s)
            target = self.folder / (AUDIO if right else OTHER_LENGTH) / f"{sound.id}.flac"
            target.parent.mkdir(parents=True, exist_ok=True)
            made.replace(target)
            shutil.rmtree(parts)
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{self.folder} cannot be written: {error}.", hint="Check the disk.") from error
        if not right:
            reason = f"it lasts {duration:g} s, not {sound.expected_s:g} s"
            return told.model_copy(update={"status": "wrong_duration", "reason": reason, "duration_s": duration})
        return told.model_copy(update={"duration_s": duration, "sha256": file_sha256(target)})

    def _progress(self, id_: str) -> Callable[[int, int], None] | None:
        on_bytes = self.on_bytes
        return None if on_bytes is None else lambda done, total: on_bytes(id_, done, total)


def to_flac(source: Path, target: Path, ffmpeg: str = "") -> None:
    """Any sound file as 16 kHz mono FLAC, in pieces; channels are averaged, as players do.

    libsndfile decodes what it can, ffmpeg the rest. Raises `AudioError`, or `MissingExtraError` without ffmpeg.
    """
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
    """The sound at 16 kHz in pieces, without seams: one resampler goes through all of it."""
    import soxr

    if rate == RATE:
        for window in windows(source, CHUNK_S, name=source.name):
            yield window.samples
        return
    stream = soxr.ResampleStream(rate, RATE, 1, dtype="float32", quality="VHQ")
    for window in windows(source, CHUNK_S, name=source.name):
        yield stream.resample_chunk(window.samples)
    yield stream.resample_chunk(np.zeros(0, dtype=np.float32), last=True)
