"""What the benchmark judges: a transcriber, alone or behind a front end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ...errors import UsageError
from ..evaluation.listeners import Ear, Ready
from ..protocols import FrontEnd, PrecomputedTranscripts, Transcriber
from ..results.files import file_name
from ..systems.building import Builder, Overrides
from ..systems.entries import ComponentEntry
from ..systems.short_form import parse_component

NO_FRONT_END = "none"
_NAMED = re.compile(r"([^=:/\\]+)=(.+)")


@dataclass(frozen=True, slots=True)
class Recognizer:
    """A transcriber (or ready transcripts), behind a front end or not.

    `display_name` replaces the transcriber's name in tables. `preset` names the published decode settings that it was
    made with. `transcriber_entry` and `front_end_entry` say how it was written, which lets another process make it
    again; None for objects.

    Raises `UsageError` for a front end before ready transcripts.
    """

    transcriber: Transcriber | PrecomputedTranscripts
    front_end: FrontEnd | None = None
    display_name: str = ""
    preset: str = ""
    transcriber_entry: ComponentEntry | None = field(default=None, compare=False, repr=False)
    front_end_entry: ComponentEntry | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.front_end is not None and self.listener is None:
            raise UsageError(
                f"a front end ({self.front_end.spec.name}) has nothing to work on before ready transcripts.",
                hint="Leave the front end out, or give a transcriber.",
            )

    @property
    def listener(self) -> Transcriber | None:
        """The transcriber, None for ready transcripts."""
        return cast(Transcriber, self.transcriber) if hasattr(self.transcriber, "transcribe") else None

    @property
    def ear(self) -> Ear | Ready:
        """What listens for it."""
        if self.listener is None:
            return Ready(cast(PrecomputedTranscripts, self.transcriber))
        return Ear(self.listener, self.front_end)

    @property
    def plain_name(self) -> str:
        """The name without the front end."""
        return self.display_name or self.transcriber.spec.name

    @property
    def name(self) -> str:
        """As shown in tables."""
        return self.plain_name if self.front_end is None else f"{self.front_end.spec.name} | {self.plain_name}"

    @property
    def plain(self) -> Recognizer:
        """The same without its front end."""
        return replace(self, front_end=None, front_end_entry=None)

    def supports(self, language: str) -> bool:
        """Whether the transcriber was made for this language."""
        return self.transcriber.supports(language)

    def as_dict(self) -> dict[str, Any]:
        """Every field as JSON object, components as their specs."""
        return {
            "name": self.name,
            "front_end": None if self.front_end is None else self.front_end.spec.as_dict(),
            "transcriber": self.transcriber.spec.as_dict(),
            "preset": self.preset,
        }


def load_recognizers(
    transcribers: Sequence[str],
    front_ends: Sequence[str] = (),
    *,
    preset: str = "",
    options: Overrides | None = None,
) -> list[Recognizer]:
    """Every transcriber without a front end and behind each of `front_ends`, in their short forms.

    A transcriber is written as in a system (`whisper-base`, `openai-whisper:base`, `class:my_module:Mine`,
    `transcripts:mine.jsonl`), or `NAME=TRANSCRIBER`: what tables call it. `preset` decodes all of them as published;
    `options` go to every component that has them. Ready transcripts stand behind no front end.

    Raises `UsageError` for what cannot be, `UnknownNameError` for a component or option that no table knows.
    """
    builder = Builder(overrides=options)
    found: list[Recognizer] = []
    made_front_ends = [
        builder.component("front_end", parse_component("front_end", text))
        for text in dict.fromkeys(front_ends)
        if text != NO_FRONT_END
    ]
    for text in transcribers:
        named = _NAMED.fullmatch(text)
        name, written = (named[1].strip(), named[2]) if named else ("", text)
        entry = replace(parse_component("transcriber", written.strip()), preset=preset)
        made = builder.component("transcriber", entry)
        plain = Recognizer(made.component, display_name=name or made.label, preset=preset, transcriber_entry=made.entry)
        found.append(plain)
        if plain.listener is not None:
            found += [
                replace(plain, front_end=front.component, front_end_entry=front.entry) for front in made_front_ends
            ]
    builder.check_used()
    return check_recognizers(found)


def check_recognizers(recognizers: Sequence[Recognizer]) -> list[Recognizer]:
    """`recognizers`, if there are any and their names differ (a name is a row of the table and a folder of results)."""
    if not recognizers:
        raise UsageError("no transcriber is given.", hint="For example: whisper-base.")
    seen: dict[str, str] = {}
    for name in (one.name for one in recognizers):
        folder = file_name(name)
        if not folder:
            raise UsageError(f"the name {name!r} has no letter or digit.", hint="Give another name.")
        if folder in seen:
            other = seen[folder]
            said = f"called {name!r}" if other == name else f"called {other!r} and {name!r}, which is one folder"
            raise UsageError(
                f"two recognizers are {said}.", hint="Leave one out, or name it: 'other=openai-whisper:base'."
            )
        seen[folder] = name
    return list(recognizers)
