"""Questions whose audio was kept, with what every system replied."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....report.sections import Section
from ....report.task_report import Clip, Context, Output, Player
from ..samples import FOLDER

_LONGEST_REPLY = 400
_WRONG = {"parsed": "another option", "ambiguous": "several options", "absent": "no option"}
"""How a page calls a reply that is not right, by its status."""


def question_players(section: Section, context: Context) -> tuple[list[Player], int]:
    shown: set[str] = context.cache.setdefault("questions", set())
    questions: dict[str, Mapping[str, Any]] = {}
    replies: dict[str, list[Output]] = {}
    for system in section.systems:
        for row in system.runs[0].record.items.to_pylist():
            if not row["spoken"] and not row["order"] and row["id"] not in shown:
                questions.setdefault(row["id"], row)
                replies.setdefault(row["id"], []).append(_output(system.name, system.index, row))
    players, left_out = [], 0
    for id_, row in questions.items():
        paths = [context.folder / FOLDER / f"{audio}.flac" for audio in row["audios"]]
        if not paths or not all(path.is_file() for path in paths):
            continue
        urls = context.audio.take(paths)
        if urls is None:
            left_out += 1
            continue
        shown.add(id_)
        players.append(_player(section.language, row, paths, urls, replies[id_]))
    return players, left_out


def _player(language: str, row: Mapping[str, Any], paths: list[Path], urls: list[str], outputs: list[Output]) -> Player:
    names = [f"Audio {place}" if len(paths) > 1 else "Audio" for place in range(1, len(paths) + 1)]
    clips = [Clip(name, url, f"{row['id']}, {name}") for name, url in zip(names, urls, strict=True)]
    letters = [chr(65 + place) for place in range(len(row["options"]))]
    options = [(f"{a}) {text}", a == row["answer"]) for a, text in zip(letters, row["options"], strict=True)]
    labels = ", ".join([*row["perception"], *row["reasoning"]]).replace("_", " ")
    note = f"checked: {', '.join(row['verifiers'])}" if row["verifiers"] else ""
    small = f"{row['id']} · {labels}" if labels else row["id"]
    return Player(row["question"], small, language, clips, options=options, note=note, outputs=outputs)


def _output(name: str, index: int, row: Mapping[str, Any]) -> Output:
    if row["error"]:
        return Output(name, f"failed: {row['error']}", failed=True, mark=index)
    right = row["correct"] == 1
    verdict = "✓" if right else f"✗ {_WRONG.get(row['status'], row['status'])}".strip()
    text = row["reply"] if len(row["reply"]) <= _LONGEST_REPLY else row["reply"][:_LONGEST_REPLY] + "…"
    if not text.strip():
        return Output(name, "empty reply", failed=True, mark=index, verdict=verdict, right=right)
    return Output(name, text, mark=index, verdict=verdict, right=right)
