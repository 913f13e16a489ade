"""The scores of the recognition task as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from ...report.formats import plural
from ...report.robustness import robustness_text
from ...report.sections import Section
from ...report.tables import failed_lines, heading, plain_table
from .report.tables import failure_lines, rates_table, terminal_columns


def section_table(section: Section, sections: Sequence[Section]) -> str:
    utterances, normalizer = section.first.data.clusters, section.first.system.normalizer
    title = f"{section.title}: {section.metric.upper()} of {plural(utterances, 'utterance')}, normalizer {normalizer}"
    lines = [heading(title)]
    if section.part:
        lines.append(f"PARTIAL: {section.part}")
    lines.append(plain_table(rates_table(section), terminal_columns(section)))
    lines += [*failed_lines(section, section.metric), *failure_lines(section)]
    return "\n\n".join(["\n".join(lines), *(robustness_text(section, sections) if len(section.spoken) > 1 else [])])
