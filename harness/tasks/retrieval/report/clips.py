"""Sample clips for the players: the same query in every condition, with what each transcriber made of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ....report.differences import transcript_output
from ....report.formats import condition_words, is_known, severity
from ....report.sections import Key, Section
from ....report.task_report import AudioBudget, Clip, Output, Player
from ....results.files import file_name


@dataclass(slots=True)
class Clips:
    players: list[Player] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def choose_clips(folder: Path, sections: Sequence[Section], budget: AudioBudget) -> dict[str, Clips]:
    """Players by section anchor, taken turn by turn from each section until the next would pass the budget.

    A query comes with all its clips or not at all. Files that are no FLAC, or not named after a condition, are left out
    and named.
    """
    found = {section.anchor: Clips() for section in sections}
    waiting = {section.anchor: _queries(folder, section) for section in sections}
    for turn in range(max((len(queries) for queries in waiting.values()), default=0)):
        for section in sections:
            if turn < len(waiting[section.anchor]):
                _take(section, *waiting[section.anchor][turn], budget, found[section.anchor])
    return found


def _take(section: Section, key: Key, place: Path, budget: AudioBudget, found: Clips) -> None:
    paths = _paths(place, section.conditions, found.left_out)
    if not paths:
        return
    urls = budget.take(paths)
    if urls is None:
        size = budget.size(paths) / 1e6
        found.left_out.append(f"query {key[1]}: {size:.1f} MB more would pass the limit")
        return
    text = next((str(run.value(key, "text")) for run in section.runs if key in run.rows), "")
    clips = [_clip(section, key, path.stem, url, text) for path, url in zip(paths, urls, strict=True)]
    found.players.append(Player(text, key[1], section.language, clips))


def _queries(folder: Path, section: Section) -> list[tuple[Key, Path]]:
    """The queries of a section that have a sample folder, in path order."""
    keys: dict[Path, Key] = {}
    for run in section.runs:
        for subset, query_id in run.rows:
            keys.setdefault(Path(file_name(subset), file_name(query_id)), (subset, query_id))
    places = sorted(
        place for subset in {path.parent for path in keys} for place in (folder / "samples" / subset).glob("*/")
    )
    found = [(keys.get(place.relative_to(folder / "samples")), place) for place in places]
    return [(key, place) for key, place in found if key is not None]


def _paths(place: Path, conditions: Collection[str], left_out: list[str]) -> list[Path]:
    paths = []
    for path in sorted(place.glob("*.flac")):
        if path.stem not in conditions and not is_known(path.stem):
            left_out.append(f"{place.name}/{path.name}: not named after a condition")
            continue
        with path.open("rb") as file:
            if file.read(4) != b"fLaC":
                left_out.append(f"{place.name}/{path.name}: not a FLAC file")
                continue
        paths.append(path)
    return sorted(paths, key=lambda path: severity(path.stem))


def _clip(section: Section, key: Key, condition: str, url: str, text: str) -> Clip:
    """Outputs once where systems share them."""
    outputs: dict[tuple[str, str, str], Output] = {}
    for system in section.systems:
        run = system.run(condition)
        if run is not None and system.has_transcripts and key in run.rows:
            name = run.result.system.component_name("transcriber")
            transcript, error = run.value(key, "transcript") or "", run.value(key, "error") or ""
            output = transcript_output(name or "transcript", text, transcript, error, by_character=section.by_character)
            outputs.setdefault((name, transcript, error), output)
    words = condition_words(condition)
    shown = list(outputs.values()) or [Output("", "no transcript of this condition", failed=True)]
    return Clip(condition, url, f"{key[1]}, {words}", words, shown)
