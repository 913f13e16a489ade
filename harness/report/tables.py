"""Tables as values, which templates and terminals print, and the cells that all tasks have."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..results.envelope import Loss, Score
from .formats import (
    NARROW_SPACE,
    UNDEFINED,
    bounds_words,
    condition_words,
    full_rate_words,
    interval,
    number,
    p_words,
    percent,
    plural,
    points_bounds_words,
    points_words,
    rate_words,
    signed_percent,
)
from .sections import Run, Section, System

if TYPE_CHECKING:
    from markupsafe import Markup

SIGNIFICANT = 0.05
MOST_COLUMNS = 110
"""Of a terminal."""
_NAME = 40


@dataclass(frozen=True, slots=True)
class Cell:
    text: str | Markup
    below: tuple[str, ...] = ()
    beside: str = ""
    css: str = ""
    title: str = ""
    is_text: bool = False


NONE = Cell(UNDEFINED, css="none")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a row or a group: a system's marker (or None), a name, and a small text."""

    name: str
    small: str = ""
    mark: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row; `css` "typed" sets it apart from the others."""

    head: Head
    cells: Sequence[Cell]
    css: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that belong together, under a head of their own if there is one."""

    rows: Sequence[Row]
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a scrolling region. `columns` are names with what stands small beneath, `first` is over the heads."""

    title: str
    first: str
    columns: Sequence[tuple[str, str]]
    groups: Sequence[Rows]
    caption: str = ""
    css: str = "bins"
    box: str = ""
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.groups) and bool(self.columns)


def named(system: System, small: str = "") -> Head:
    return Head(system.name, small, system.index)


def conditioned(condition: str, small: str = "") -> Head:
    return Head(condition, small or condition_words(condition))


def value_cell(value: float | None, digits: int = 3, css: str = "", below: str = "") -> Cell:
    return Cell(number(value, digits), (below,) if below else (), css=css) if value is not None else NONE


def score_cell(score: Score | None, css: str = "", digits: int = 3) -> Cell:
    if score is None or score.value is None:
        return NONE
    return Cell(number(score.value, digits), _nonempty(interval(score, digits)), css=css)


def rate_cell(score: Score | None, css: str = "", *, below: str = "") -> Cell:
    if score is None or score.value is None:
        return NONE
    shown = " · ".join(filter(None, (interval(score, 1, as_percent=True), below)))
    return Cell(rate_words(score), _nonempty(shown, bounds_words(score)), css=css)


def loss_cell(loss: Loss | None) -> Cell:
    if loss is None:
        return NONE
    relative = "" if loss.relative.value is None else percent(loss.relative.value)
    return Cell(number(loss.absolute.value), _nonempty(interval(loss.absolute)), beside=relative)


def points_cell(score: Score | None, css: str = "", *, p_value: float | None = None, more: str = "") -> Cell:
    """A difference of rates in percentage points, with its interval; bold where p is below 0.05 if that is given."""
    if score is None or score.value is None:
        return NONE
    clear = p_value is not None and p_value < SIGNIFICANT
    below = (
        interval(score, 1, as_percent=True),
        points_bounds_words(score),
        f"p {p_words(p_value)}" if p_value is not None else "",
        more,
    )
    return Cell(points_words(score), _nonempty(*below), css="main" if clear else css)


def relative_cell(loss: Loss | None) -> Cell:
    if loss is None or loss.relative.value is None:
        return NONE
    return Cell(signed_percent(loss.relative.value), _nonempty(interval(loss.relative, 0, as_percent=True)))


def p_cell(value: float | None, below: str = "") -> Cell:
    return Cell(p_words(value), _nonempty(below))


def _nonempty(*texts: str) -> tuple[str, ...]:
    return tuple(text for text in texts if text)


FAILURE_WORDS: Mapping[str, str] = {
    "failed": "failed", "undecodable": "not decoded", "loop": "loop", "truncated": "truncated", "empty": "empty",
    "hallucination": "hallucinated", "missing": "found nothing", "no_relevant": "without relevant document",
    "audio_truncated": "audio cut", "invalid_text": "with lost characters", "missing_audio": "without audio",
}  # fmt: skip
"""Failure counts in the order shown, in words; other counts (documents without judgment) are no failures."""


def failure_words(failures: Mapping[str, int], n: int = 0) -> str:
    """The counts that are not 0, with their share of `n` where that is given; "" if all are.

    >>> failure_words({"undecodable": 1, "loop": 2}), failure_words({"empty": 0})
    ('1 not decoded, 2 loops', '')
    """
    parts = []
    for field, words in FAILURE_WORDS.items():
        if count := failures.get(field, 0):
            share = f" ({percent(count / n)})" if n else ""
            parts.append((plural(count, words) if words == "loop" else f"{count} {words}") + share)
    return ", ".join(parts)


def any_failed(section: Section) -> bool:
    """Whether items failed in a run of the section: its tables then have a column of their number."""
    return any(run.result.failures.get("failed", 0) for run in section.runs)


def failed_cell(run: Run) -> Cell:
    """How many items of a run failed, with their share."""
    failed, n = run.result.failures.get("failed", 0), run.result.data.n
    return Cell(str(failed), (percent(failed / n),) if failed and n else ())


def run_words(run: Run) -> str:
    """A run at the head of a line."""
    return f"{clip(run.result.system.name, _NAME)}, {run.condition}"


def failed_lines(section: Section, metric: str) -> list[str]:
    """One line per run in which items failed: how many, and what they leave open of the error rate `metric`.

    [] where none failed.
    """
    lines = []
    for run in section.runs:
        failed, n = run.result.failures.get("failed", 0), run.result.data.n
        if not failed:
            continue
        words = f"{run_words(run)}: {failed} of {n} failed"
        score = run.score(metric)
        rate = "" if score is None else f"; {metric.upper()} {full_rate_words(score)}"
        lines.append(words + rate.replace(NARROW_SPACE, " "))
    return lines


def by_system(section: Section, row: Sequence[tuple[System, Row]]) -> list[Rows]:
    found = [(system, [one for own, one in row if own is system]) for system in section.systems]
    return [Rows(rows, named(system)) for system, rows in found if rows]


def runs_of(section: Section, *, without: str = "") -> list[tuple[System, Run]]:
    """Every spoken run with its system, those under the condition `without` left out."""
    return [(system, run) for system in section.systems for run in system.runs if run.condition != without]


# Terminal


def display_width(text: str) -> int:
    """Columns that `text` takes in a terminal: two for wide characters, none for combining and formatting ones.

    >>> display_width("nDCG"), display_width("中文"), display_width("e\\u0301")
    (4, 4, 1)
    """
    width = 0
    for c in text:
        if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf", "Cc"):
            continue
        width += 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return width


def clip(text: str, columns: int) -> str:
    """`text` in at most `columns`, cut with an ellipsis.

    >>> clip("中文检索", 5)
    '中文…'
    """
    if display_width(text) <= columns:
        return text
    while text and display_width(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def printable(text: str) -> str:
    """`text` without control characters, which a terminal would obey."""
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cf") else "\ufffd" for c in text)


def heading(text: str) -> str:
    return clip(printable(text.replace(NARROW_SPACE, " ")), MOST_COLUMNS)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str] | str], most: int = MOST_COLUMNS) -> str:
    """A table as plain text of at most `most` columns, numbers to the right; a row that is one text is a heading.

    The first column gives way where a line would be too long.
    """
    cells = [[printable(cell.replace(NARROW_SPACE, " ")) for cell in row] for row in rows if not isinstance(row, str)]
    widths = [max(display_width(row[k]) for row in (head, *cells)) for k in range(len(head))]
    widths[0] = max(8, min(widths[0], most - 2 - sum(widths[1:]) - 2 * (len(head) - 1)))
    lines = [_line(head, widths), "  " + "─" * (sum(widths) + 2 * (len(widths) - 1))]
    shown = iter(cells)
    lines += [clip(printable(row), most) if isinstance(row, str) else _line(next(shown), widths) for row in rows]
    return "\n".join(lines)


def plain_table(table: Table, pick: Sequence[int] = (), *, small: bool = False) -> str:
    """A table for a terminal: all columns, or those at `pick`; `small`: with the small texts of the heads."""
    chosen = list(pick) or list(range(len(table.columns)))
    rows: list[Sequence[str] | str] = []
    for group in table.groups:
        if group.head is not None:
            rows.append(f"{group.head.name} {group.head.small}".rstrip())
        for row in group.rows:
            name = f"{row.head.name}: {row.head.small}" if small and row.head.small else row.head.name
            rows.append([name, *(_plain_cell(row.cells[k]) for k in chosen)])
    return text_table([table.first, *(table.columns[k][0] for k in chosen)], rows) if rows else ""


def _plain_cell(cell: Cell) -> str:
    return " ".join([str(cell.text), *(text.partition(" · ")[0] for text in cell.below[:1] if text.startswith("["))])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = clip(cells[0], widths[0])
    parts = [first + " " * (widths[0] - display_width(first))]
    parts.extend(" " * (width - display_width(cell)) + cell for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  " + "  ".join(parts)
