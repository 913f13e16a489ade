"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...loaders.pages import asset, write_page
from ..results.comparable import partial_folders, runs_folder
from ..results.envelope import RunRecord, read_runs
from .formats import plural
from .origin import Origin
from .rendering import markup
from .sections import Section, sections
from .systems import system_cards
from .task_report import AudioBudget, Context, TaskReport, View, load_task_report
from .timing import timing_tables

MAX_AUDIO_BYTES = 6_000_000
MAX_WORST = 20
SEVERAL_TASKS = "Evaluation of speech systems"
_STYLES = Path(__file__).resolve().parent / "templates"


@dataclass(frozen=True, slots=True)
class Report:
    path: Path
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Shown:
    section: Section
    title: str
    view: View


def write_report(
    folder: Path, out: Path, *, title: str = "", max_worst: int = MAX_WORST, max_audio_bytes: int = MAX_AUDIO_BYTES
) -> Path:
    """Write the report on all runs below `folder` to the file `out` and return `out`.

    Where `folder` holds no full runs, the report is on the partial ones in its one `partial-…` folder.
    `out` is one HTML file without links to anything outside it; the same runs give the same bytes. `title` "" is the
    task's. `max_worst` is how many of the worst items are shown at a time, `max_audio_bytes` how many bytes of base64
    the players may take. Raises `DataError` if there are no results, they contradict each other, or full and partial
    ones are mixed; `UsageError` for limits below 0 and several folders of partial runs; `StorageError` if the disk
    refuses.
    """
    return make_report(folder, out, title=title, max_worst=max_worst, max_audio_bytes=max_audio_bytes).path


def make_report(
    folder: Path, out: Path, *, title: str = "", max_worst: int = MAX_WORST, max_audio_bytes: int = MAX_AUDIO_BYTES
) -> Report:
    for name, value in (("max_worst", max_worst), ("max_audio_bytes", max_audio_bytes)):
        if value < 0:
            raise UsageError(f"{name} is {value}.", hint="Give 0 or more.")
    if out.is_dir():
        raise UsageError(f"{out} is a folder.", hint="Give the path of the HTML file to write.")
    place = runs_folder(folder)
    # A page names the first document alone.
    found = sections(read_runs(place, documents=1))
    tasks = _tasks(found)
    audio = AudioBudget(max_audio_bytes)
    aside = [] if place != folder else [path.name for path in partial_folders(folder)]
    groups: list[dict[str, Any]] = []
    every: list[_Shown] = []
    facts: dict[str, Any] = {"tasks": [task for task, _, _ in tasks]}
    for _, report, own in tasks:
        context = Context(own, place, audio, max_worst)
        shown = [_Shown(section, report.section_title(section), report.view(section, context)) for section in own]
        groups.append({"aim": report.aim, "reading": report.reading, "sections": shown})
        every += shown
        facts |= report.as_json(own)
    page = markup(
        "report/templates/page.html",
        title=title or (tasks[0][1].title if len(tasks) == 1 else SEVERAL_TASKS),
        style=asset(_STYLES, "style.css"),
        script=asset(_STYLES, "script.js"),
        groups=groups,
        partial=_partial(every),
        cards=system_cards(found),
        tables=timing_tables(found),
        origin=Origin.of(found),
        aside=", ".join(aside),
        clips=f"{plural(audio.clips, 'clip')}: {audio.used / 1e6:.1f} MB of this file" if audio.clips else "",
    )
    return Report(write_page(out, page), facts)


def _tasks(found: Sequence[Section]) -> list[tuple[str, TaskReport, list[Section]]]:
    names = list(dict.fromkeys(section.first.task for section in found))
    return [(name, load_task_report(name), [s for s in found if s.first.task == name]) for name in names]


def _partial(shown: Sequence[_Shown]) -> str:
    """What goes on top of everything: that these are not the benchmark's numbers. "" if all runs are full."""
    parts = {one.title: one.section.part for one in shown if one.section.part}
    # Once where all sections have the same part.
    if len(set(parts.values())) == 1:
        return next(iter(parts.values()))
    return "; ".join(f"{title}: {words}" for title, words in parts.items())


def summary_table(records: Sequence[RunRecord]) -> str:
    """The scores as plain text, one table per section: of at most 110 columns, without a final line end; "" for none.

    Partial and imported results are marked. Raises `DataError` if full and partial runs are mixed.
    """
    return "\n\n".join(report.terminal(section, own) for _, report, own in _tasks(sections(records)) for section in own)
