"""The scores as plain text, for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ..results.old import MAIN_METRIC, TEXT_CONDITION, RunRecord
from .data import Run, Section, sections
from .formats import UNDEFINED, interval, number, percent, plural
from .headline import IMPORTED, part_words

MOST_COLUMNS = 110
_NARROW_SPACE = "\u202f"


def summary_table(records: Sequence[RunRecord]) -> str:
    """One table per language: systems × conditions with nDCG@10, loss against text, WER or CER, and RTFx where known.

    Partial and imported results are marked. Raises `DataError` if full and partial runs are mixed.

    At most 110 columns, counted as a terminal does (East Asian characters take two); no final line end; "" for no runs.
    """
    return "\n\n".join(_table(section) for section in sections(records))


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


def _table(section: Section) -> str:
    error = section.error_metric.upper()
    timed = any(run.result.timing.rtfx is not None for run in section.runs)
    names = ("condition", "n", "nDCG@10 [95 % interval]", "loss against text", "relative", error)
    head: tuple[str, ...] = (*names, "RTFx") if timed else names
    rows: list[tuple[str, ...] | str] = []
    for system in section.systems:
        rows.append(clip(printable(system.name), MOST_COLUMNS))
        rows.extend(_cells(section, run)[: len(head)] for run in system.shown)
    cells = [head, *(row for row in rows if isinstance(row, tuple))]
    widths = [max(display_width(row[k]) for row in cells) for k in range(len(head))]
    # Two columns of indent and two between cells; the condition's name gives way if a line would be too long.
    widths[0] = min(widths[0], MOST_COLUMNS - 2 - sum(widths[1:]) - 2 * (len(head) - 1))
    sizes = section.sizes
    n = plural(sizes[0], "query") if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} queries"
    lines = [clip(f"{printable(section.title)} ({section.language}), {n}", MOST_COLUMNS)]
    if part := part_words(section):
        lines.append(f"PARTIAL: {part}")
    if section.imported:
        lines.append(IMPORTED)
    lines.append(_line(head, widths))
    lines.append("  " + "─" * (sum(widths) + 2 * (len(widths) - 1)))
    lines.extend(row if isinstance(row, str) else _line(row, widths) for row in rows)
    return "\n".join(lines)


def _cells(section: Section, run: Run) -> tuple[str, ...]:
    score = run.score(MAIN_METRIC)
    main = f"{number(None if score is None else score.value)} {interval(score)}".strip()
    rate = run.score(section.error_metric)
    loss = None if run.condition == TEXT_CONDITION else run.loss("text")
    lost, relative = UNDEFINED, UNDEFINED
    if loss is not None:
        lost = f"{number(loss.absolute.value)} {interval(loss.absolute)}".strip()
        relative = percent(loss.relative.value)
    shown = UNDEFINED if run.condition == TEXT_CONDITION or rate is None else percent(rate.value)
    fast = number(run.result.timing.rtfx, 1)
    cells = (printable(run.condition), str(run.result.data.n), main, lost, relative, shown, fast)
    return tuple(cell.replace(_NARROW_SPACE, " ") for cell in cells)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = clip(cells[0], widths[0])
    parts = [first + " " * (widths[0] - display_width(first))]
    parts.extend(" " * (width - display_width(cell)) + cell for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  " + "  ".join(parts)


def printable(text: str) -> str:
    """`text` without control characters, which a terminal would obey."""
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cf") else "\ufffd" for c in text)
