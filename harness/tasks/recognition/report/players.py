"""Sample items: clean, degraded, enhanced, each with its transcripts, and the decay of the RIR."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....report.differences import transcript_output
from ....report.formats import NARROW_SPACE, condition_words, number, where_words
from ....report.rendering import drawing
from ....report.sections import Key, Run, Section
from ....report.task_report import Clip, Context, Output, Player
from ....results.files import file_name
from ..samples import RIR_FILE, SampleRir, read_rir, sample_folder
from .plots import decay_plot


@dataclass(frozen=True, slots=True)
class _Item:
    key: Key
    place: Path
    run: Run
    rir: SampleRir | None

    @property
    def order(self) -> tuple[bool, float, Key]:
        """From dry to reverberant, items without RT60 last."""
        rt60 = None if self.rir is None else self.rir.rt60_s
        return rt60 is None, rt60 or 0.0, self.key


def pair_players(section: Section, context: Context) -> tuple[list[Player], list[str]]:
    """Items from dry to reverberant, whole or not at all, and the ids of those that would pass the budget.

    Raises `DataError` for an RIR that cannot be read, `StorageError` for a clip.
    """
    players: list[Player] = []
    left_out: list[str] = []
    for item in sorted(_items(section, context.folder), key=lambda item: item.order):
        paths = _paths(section, item)
        urls = context.audio.take([path for _, _, path in paths])
        if urls is None:
            left_out.append(item.key[1])
            continue
        clips = [_clip(section, item, name, front, url) for (name, front, _), url in zip(paths, urls, strict=True)]
        if clips:
            players.append(_player(section, item, clips, f"{section.anchor}-decay-{len(players)}"))
    return players, left_out


def _items(section: Section, folder: Path) -> list[_Item]:
    """Those of degraded conditions first: several RIRs of an utterance are items of their own."""
    found: dict[Path, _Item] = {}
    for run in sorted(section.runs, key=lambda run: run.condition == "clean"):
        for key in run.rows:
            place = sample_folder(folder, *key)
            if place not in found and place.is_dir():
                path = place / RIR_FILE
                found[place] = _Item(key, place, run, read_rir(path) if path.is_file() else None)
    return list(found.values())


def _paths(section: Section, item: _Item) -> list[tuple[str, str, Path]]:
    """Condition, front end ("" for none) and file of the clips that are there, mildest first."""
    fronts = dict.fromkeys(system.info.component_name("front_end") for system in section.systems)
    names = [(condition, front) for condition in section.spoken for front in dict.fromkeys(("", *fronts))]
    paths = [
        (condition, front, item.place / (f"{condition}.{file_name(front)}.flac" if front else f"{condition}.flac"))
        for condition, front in names
    ]
    return [entry for entry in paths if entry[2].is_file()]


def _player(section: Section, item: _Item, clips: list[Clip], identity: str) -> Player:
    about, drawn = [item.key[1]], ""
    if item.rir is not None:
        rir = item.rir
        about.append(f"RIR {rir.rir_id}")
        if rir.rt60_s is not None:
            about.append(f"RT60 {number(rir.rt60_s, 2)}{NARROW_SPACE}s")
        if rir.drr_db is not None:
            about.append(f"DRR {number(rir.drr_db, 1)}{NARROW_SPACE}dB")
        drawn = decay_plot(identity, rir.rir_id, rir.rt60_s, rir.decay_db, rir.step_s)
    text = str(item.run.value(item.key, "text") or "")
    small = " · ".join(about)
    return Player(text, small, section.language, clips, drawing=drawing(drawn) if drawn else None)


def _clip(section: Section, item: _Item, condition: str, front: str, url: str) -> Clip:
    words = f"{where_words(condition)}, after {front}" if front else condition_words(condition)
    title = f"{condition}, after {front}" if front else condition
    return Clip(title, url, f"{item.key[1]}, {words}", words, _outputs(section, item, condition, front))


def _outputs(section: Section, item: _Item, condition: str, front: str) -> list[Output]:
    """The transcripts of the systems that got this very clip: those behind this front end, or without one."""
    outputs = []
    for system in section.systems:
        run = system.run(condition)
        if run is None or system.info.component_name("front_end") != front:
            continue
        key = item.key if item.key in run.rows else (item.key[0], item.run.value(item.key, "cluster"))
        if key in run.rows:
            text, transcript, error = (str(run.value(key, name) or "") for name in ("text", "transcript", "error"))
            mark, by_character = system.index, section.by_character
            output = transcript_output(system.name, text, transcript, error, by_character=by_character, mark=mark)
            outputs.append(output)
    return outputs
