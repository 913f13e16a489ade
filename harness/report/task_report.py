"""What a task adds to a report: the parts of a section, the words that explain them, and a table for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import StorageError, unknown_name
from ...loaders.pages import audio_url
from .formats import plural
from .sections import Section

if TYPE_CHECKING:
    from markupsafe import Markup

TASK_REPORTS: Mapping[str, str] = {
    "retrieval": "retrieval.report:REPORT",
    "recognition": "recognition.report:REPORT",
    "understanding": "understanding.report:REPORT",
}
"""Name of the task to dotted path below `harness.tasks`."""

FEW = 30


class Strong(str):
    """A part of a sentence that is set in bold."""

    __slots__ = ()
    strong = True


Prose = Sequence[str]
"""The parts of a paragraph; some may be `Strong`."""


@dataclass(frozen=True, slots=True)
class Step:
    value: str
    words: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    name: str
    mark: int
    metric: str
    steps: Sequence[Step]
    between: str = "→"


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    text: str | Markup
    failed: bool = False
    mark: int | None = None
    verdict: str = ""
    right: bool = False


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip as a `data:` address, with what systems made of it."""

    title: str
    url: str
    label: str
    small: str = ""
    outputs: Sequence[Output] = ()


@dataclass(frozen=True, slots=True)
class Player:
    """An item with its clips; a drawing, options and outputs that belong to all clips."""

    text: str
    small: str
    language: str
    clips: Sequence[Clip]
    drawing: Markup | None = None
    options: Sequence[tuple[str, bool]] = ()
    note: str = ""
    outputs: Sequence[Output] = ()


@dataclass(frozen=True, slots=True)
class View:
    chains: Sequence[Chain]
    lede: Prose
    facts: Sequence[str]
    warnings: Sequence[str]
    body: Markup


@dataclass(slots=True)
class AudioBudget:
    """How many bytes of base64 the clips of a page may take; an item comes with all its clips or not at all."""

    limit: int
    used: int = 0
    clips: int = 0

    def take(self, paths: Sequence[Path]) -> list[str] | None:
        """The files as `data:` addresses, None if they would pass the limit. Raises `StorageError`."""
        size = self.size(paths)
        if self.used + size > self.limit:
            return None
        urls = []
        for path in paths:
            try:
                urls.append(audio_url(path.read_bytes()))
            except OSError as error:
                raise StorageError(f"cannot read {path}: {error.strerror or error}.", hint="Check the file.") from error
        self.used += size
        self.clips += len(paths)
        return urls

    def size(self, paths: Sequence[Path]) -> int:
        return sum(4 * (-(-path.stat().st_size // 3)) for path in paths)


@dataclass(frozen=True, slots=True)
class Context:
    """What a task needs beside a section: all sections of the task, the folder of the runs, and limits."""

    sections: Sequence[Section]
    folder: Path
    audio: AudioBudget
    max_worst: int
    cache: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A task's part of a report.

    `title` is the page's where all results are of this task, `aim` what the overview shows, `reading` is the template
    that says what the numbers mean. `view` makes a section of the page, `terminal` one as plain text (it gets all
    sections of the task, too), `as_json` what `squtr report --json` prints beside the page's path.
    """

    title: str
    aim: str
    reading: str
    view: Callable[[Section, Context], View]
    terminal: Callable[[Section, Sequence[Section]], str]
    as_json: Callable[[Sequence[Section]], dict[str, Any]]
    section_title: Callable[[Section], str] = lambda section: section.title


def few(n: int, noun: str) -> list[str]:
    """A warning where there are few items."""
    if n >= FEW:
        return []
    return [f"Only {plural(n, noun)}: intervals are wide, and differences of less than their width may be chance."]


def load_task_report(task: str) -> TaskReport:
    """The report of a task. Raises `UnknownNameError` that lists the choices."""
    if task not in TASK_REPORTS:
        raise unknown_name("task", task, TASK_REPORTS)
    module, _, attribute = TASK_REPORTS[task].partition(":")
    found: TaskReport = getattr(import_module(f"...tasks.{module}", __name__), attribute)
    return found
