"""Sample clips for the report's players: which fit, and what is left out."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import StorageError, UnknownNameError, UsageError
from ...loaders.conditions import parse_condition
from ..results.files import file_name
from .data import Key, Section
from .formats import severity


@dataclass(frozen=True, slots=True)
class Heard:
    """What a transcriber heard, or why it heard nothing."""

    transcriber: str
    text: str
    error: str


@dataclass(frozen=True, slots=True)
class Clip:
    """One condition of a query: a data URI, and what each transcriber heard."""

    condition: str
    uri: str
    heard: tuple[Heard, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One query in every condition that has a clip, mildest first."""

    key: Key
    text: str
    clips: tuple[Clip, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """The chosen samples by section anchor, the bytes they take in the page, and why others were left out."""

    by_section: dict[str, list[Sample]]
    embedded_bytes: int
    left_out: dict[str, list[str]]


def choose_samples(folder: Path, sections: Sequence[Section], limit_bytes: int) -> Samples:
    """Take samples turn by turn from each section until the next would pass `limit_bytes` of base64.

    A query comes with all its clips or not at all. Files that are no FLAC, or not named after a condition, are left out
    and named.
    """
    chosen: dict[str, list[Sample]] = {section.anchor: [] for section in sections}
    left_out: dict[str, list[str]] = {section.anchor: [] for section in sections}
    waiting = {section.anchor: _queries(folder, section) for section in sections}
    total = 0
    for turn in range(max((len(queries) for queries in waiting.values()), default=0)):
        for section in sections:
            if turn >= len(waiting[section.anchor]):
                continue
            key, place = waiting[section.anchor][turn]
            paths = _clips(place, left_out[section.anchor])
            if not paths:
                continue
            size = sum(4 * (-(-path.stat().st_size // 3)) for path in paths)
            if total + size > limit_bytes:
                left_out[section.anchor].append(f"query {key[1]}: {size / 1e6:.1f} MB more would pass the limit")
                continue
            sample, used = _sample(section, key, paths, left_out[section.anchor])
            total += used
            if sample.clips:
                chosen[section.anchor].append(sample)
    return Samples(chosen, total, left_out)


def _queries(folder: Path, section: Section) -> list[tuple[Key, Path]]:
    """The queries of a section that have a sample folder, in path order."""
    keys: dict[Path, Key] = {}
    for run in section.runs:
        for subset, query_id in run.rows:
            keys.setdefault(Path(file_name(subset), file_name(query_id)), (subset, query_id))
            keys.setdefault(Path(subset, query_id), (subset, query_id))
    found: dict[Key, Path] = {}
    for subset in sorted({key[0] for key in keys.values()}):
        for name in dict.fromkeys((subset, file_name(subset))):
            for place in sorted((folder / "samples" / name).glob("*/")):
                key = keys.get(place.relative_to(folder / "samples"))
                if key is not None:
                    found.setdefault(key, place)
    return list(found.items())


def _clips(place: Path, left_out: list[str]) -> list[Path]:
    paths = []
    for path in sorted(place.glob("*.flac")):
        try:
            parse_condition(path.stem)
        except (UnknownNameError, UsageError):
            left_out.append(f"{place.name}/{path.name}: not named after a condition")
        else:
            paths.append(path)
    return sorted(paths, key=lambda path: severity(path.stem))


def _sample(section: Section, key: Key, paths: Sequence[Path], left_out: list[str]) -> tuple[Sample, int]:
    clips, used = [], 0
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror or error}.", hint="Check the file.") from error
        if not content.startswith(b"fLaC"):
            left_out.append(f"{key[1]}/{path.name}: not a FLAC file")
            continue
        encoded = base64.b64encode(content).decode("ascii")
        used += len(encoded)
        clips.append(Clip(path.stem, f"data:audio/flac;base64,{encoded}", _heard(section, key, path.stem)))
    text = next((str(run.value(key, "text")) for run in section.runs if key in run.rows), "")
    return Sample(key, text, tuple(clips)), used


def _heard(section: Section, key: Key, condition: str) -> tuple[Heard, ...]:
    """What each transcriber heard, once where systems share it."""
    heard: dict[Heard, None] = {}
    for system in section.systems:
        run = system.run(condition)
        if run is not None and not system.without_words and key in run.rows:
            text, error = run.value(key, "transcript") or "", run.value(key, "error") or ""
            heard.setdefault(Heard(system.transcriber, text, error))
    return tuple(heard)
