"""Sample pairs to listen to: clean, reverberant, dereverberated, each with what was heard, and the room's decay."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....errors import StorageError
from ...results.files import file_name
from ...rir_mega.samples import ROOM_FILE, SampleRoom, read_room
from ..differences import marked
from ..formats import escape, number
from .data import NARROW_SPACE, Section, swatch
from .plots import decay_plot

CLEAN, REVERB = "clean", "reverb"


@dataclass(frozen=True, slots=True)
class Sample:
    """A pair: its room, and its clips by name (`clean`, `reverb`, or a front end) as data URIs."""

    room: SampleRoom
    clips: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Samples:
    """The pairs by section, the bytes they take in the page, and which were left out for their size."""

    by_section: Mapping[str, Sequence[Sample]]
    embedded_bytes: int
    left_out: Sequence[str]


def choose_samples(folder: Path, found: Sequence[Section], limit_bytes: int) -> Samples:
    """Pairs from dry to reverberant, whole or not at all, until the next would pass `limit_bytes` of base64.

    Raises `DataError` for a room that cannot be read, `StorageError` for a clip.
    """
    rooms = {path.parent: read_room(path) for path in sorted((folder / "samples").glob(f"*/{ROOM_FILE}"))}
    ordered = sorted(rooms.items(), key=lambda item: (item[1].rt60_s is None, item[1].rt60_s or 0.0, item[1].sample_id))
    chosen: dict[str, list[Sample]] = {section.anchor: [] for section in found}
    left_out, total = [], 0
    for section in found:
        names = [CLEAN, REVERB, *dict.fromkeys(entry.front_end for entry in section.entries if entry.front_end)]
        for place, room in ordered:
            if room.sample_id not in section.entries[0].rows:
                continue
            paths = {name: path for name in names if (path := place / f"{file_name(name)}.flac").is_file()}
            size = sum(4 * (-(-path.stat().st_size // 3)) for path in paths.values())
            if total + size > limit_bytes:
                left_out.append(room.sample_id)
                continue
            total += size
            chosen[section.anchor].append(Sample(room, {name: _uri(path) for name, path in paths.items()}))
    return Samples(chosen, total, left_out)


def _uri(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}.", hint="Check the file.") from error
    return f"data:audio/flac;base64,{base64.b64encode(content).decode('ascii')}"


def sample_list(section: Section, samples: Sequence[Sample]) -> str:
    """Players of each pair with the room's decay curve."""
    parts = [_sample(section, sample, f"{section.anchor}-decay-{i}") for i, sample in enumerate(samples)]
    return "".join(parts) or '<p class="note">The folder holds no sample clips.</p>'


def _sample(section: Section, sample: Sample, identity: str) -> str:
    room = sample.room
    text = str(section.entries[0].cell(room.sample_id, "text") or "")
    clips = "".join(_clip(section, sample, name, text) for name in sample.clips)
    about = [f"room {escape(room.rir_id)}"]
    if room.rt60_s is not None:
        about.append(f"RT60 {number(room.rt60_s, 2)}{NARROW_SPACE}s")
    if room.drr_db is not None:
        about.append(f"DRR {number(room.drr_db, 1)}{NARROW_SPACE}dB")
    drawing = decay_plot(identity, room)
    figure = (
        f'<li><figure class="decay"><figcaption>Energy decay</figcaption>{drawing}</figure></li>' if drawing else ""
    )
    return (
        f'<article class="sample"><h4><span {section.lang}>{escape(text)}</span> '
        f"<small>{' · '.join(about)}</small></h4>"
        f"<ul>{clips}{figure}</ul></article>"
    )


def _clip(section: Section, sample: Sample, name: str, text: str) -> str:
    words = {CLEAN: "clean", REVERB: "in the room"}.get(name, f"in the room, behind {name}")
    # What stands behind another front end heard another sound.
    hearers = [e for e in section.entries if e.front_end == ("" if name in {CLEAN, REVERB} else name)]
    column = CLEAN if name == CLEAN else REVERB
    heard = []
    for entry in hearers:
        error = str(entry.cell(sample.room.sample_id, f"{column}_error") or "")
        transcript = str(entry.cell(sample.room.sample_id, f"{column}_transcript") or "")
        if error:
            shown = f'<em class="failed">not decoded: {escape(error)}</em>'
        elif not transcript.strip():
            shown = '<em class="failed">nothing heard</em>'
        else:
            shown = f"<span {section.lang}>{marked(text, transcript, by_character=section.by_character)}</span>"
        heard.append(f"<p><small>{swatch(entry)}{escape(entry.name)}</small> {shown}</p>")
    label = escape(f"{sample.room.sample_id}, {words}")
    return (
        f'<li><h5>{escape(words)}</h5><audio controls preload="none" src="{sample.clips[name]}" aria-label="{label}">'
        f"</audio>{''.join(heard)}</li>"
    )
