"""The scores of the understanding task as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from ...report.formats import percent, plural
from ...report.sections import Section
from ...report.tables import heading, plain_table
from .report.tables import (
    TERMINAL_BREAKDOWNS,
    TERMINAL_COLUMNS,
    breakdown_tables,
    comparison_table,
    details_of,
    score_table,
    section_title,
)


def section_table(section: Section, _: Sequence[Section]) -> str:
    data = section.first.data
    words = [f"{data.source}, {section_title(section)}: {plural(data.n, 'question')}"]
    if data.missing_audio:
        missing = ", ".join(f"{status} {n}" for status, n in data.missing_audio.items())
        words.append(f"coverage {percent(details_of(next(section.runs)).coverage)} (missing audio: {missing})")
    lines = [heading("; ".join(words))]
    if section.part:
        lines.append(f"PARTIAL: {section.part}")
    tables = [
        plain_table(score_table(section), TERMINAL_COLUMNS),
        plain_table(comparison_table(section), small=True),
        *(plain_table(table, small=True) for table in breakdown_tables(section, TERMINAL_BREAKDOWNS)),
    ]
    return "\n".join([*lines, "\n\n".join(table for table in tables if table)])
