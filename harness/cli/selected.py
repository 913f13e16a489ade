"""Warnings where a system is scored on speech that was selected by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..components.families import family_of
from ..results.envelope import SystemInfo


def selected_lines(recipe: Mapping[str, Any], systems: Sequence[SystemInfo]) -> list[str]:
    """A line for each transcriber that chose the takes of this data and is, or is a relative of, one that is scored.

    `recipe` is that of the data: each of its sources may have a `selection` (see `loaders.origins`).
    """
    lines: dict[str, None] = {}
    for source in recipe.get("sources") or ():
        selection = json.loads(source.get("selection") or "{}")
        for judge in selection.get("transcribers") or ():
            name = str(judge).partition("@")[0]
            for info in systems:
                spec = info.components.get("transcriber") or info.components.get("encoder") or {}
                scored = f"{spec.get('backend', '')}:{info.component_name('transcriber')}"
                if not spec or family_of(scored) != family_of(name):
                    continue
                kin = "is the transcriber" if scored == name else f"is of the family of the transcriber {name}"
                lines[
                    f"{info.name} {kin} that chose the speech of {source.get('name', '')}: what it understood was kept "
                    f"({selection.get('accepted', '?')} of {selection.get('queries', '?')} queries), so its scores are "
                    "too good against others."
                ] = None
    return list(lines)
