"""The scores as plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ...rir_mega.results import PairRecord
from ..formats import number, percent, plural
from ..terminal import clip, display_width, printable
from .data import NARROW_SPACE, Entry, Section, bounds, p_words, sections, signed, signed_percent

MOST_COLUMNS = 110


def summary_table(records: Sequence[PairRecord]) -> str:
    """One table per language: recognizers with the rate clean and in a room, and what the room costs.

    At most 110 columns, counted as a terminal does; no final line end; "" for no records. Raises `DataError` if results
    on all pairs and on parts are mixed.
    """
    return "\n\n".join(_table(section) for section in sections(records))


def _table(section: Section) -> str:
    data = section.first.data
    head = ("recognizer", "clean", "in a room", f"Δ{section.metric}, points [95 %]", "relative", "p", "RTFx")
    rows = [head, *(_cells(entry) for entry in section.entries)]
    widths = [max(display_width(row[k]) for row in rows) for k in range(len(head))]
    widths[0] = min(widths[0], MOST_COLUMNS - 2 - sum(widths[1:]) - 2 * (len(head) - 1))
    title = (
        f"{section.title}: {section.metric} of {plural(data.n, 'pair')}, {plural(data.utterances, 'utterance')} in "
        f"{plural(data.rooms_used, 'room')}, normalizer {section.first.system.normalizer}"
    )
    lines = [clip(printable(title), MOST_COLUMNS)]
    if section.part:
        lines.append(f"PARTIAL: {section.part}")
    lines += [_line(rows[0], widths), "  " + "─" * (sum(widths) + 2 * (len(widths) - 1))]
    lines += [_line(row, widths) for row in rows[1:]]
    return "\n".join(lines)


def _cells(entry: Entry) -> tuple[str, ...]:
    main = entry.main
    delta = main.delta
    cells = (
        printable(entry.name),
        percent(main.clean.value),
        percent(main.reverb.value),
        f"{signed(delta.absolute.value)} {bounds(delta.absolute)}".strip(),
        signed_percent(delta.relative.value),
        p_words(delta.p_value),
        number(entry.result.timing.rtfx, 1),
    )
    return tuple(cell.replace(NARROW_SPACE, " ") for cell in cells)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = clip(cells[0], widths[0])
    parts = [first + " " * (widths[0] - display_width(first))]
    parts.extend(" " * (width - display_width(cell)) + cell for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  " + "  ".join(parts)
