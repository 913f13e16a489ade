"""The scores of the recognition task as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from ...report.formats import UNDEFINED, interval, number, p_words, percent, plural, points, signed_percent
from ...report.robustness import robustness, robustness_text
from ...report.sections import Run, Section
from ...report.tables import failure_words, heading, text_table


def section_table(section: Section, sections: Sequence[Section]) -> str:
    """Systems × conditions with the error rate, its loss against clean, failures and RTFx; σ below."""
    data, metric = section.first.data, section.metric.upper()
    head = ("condition", "n", f"{metric} [95 % interval]", f"Δ{metric}, points [95 %]", "relative", "p", "RTFx")
    rows: list[Sequence[str] | str] = []
    for system in section.systems:
        failed = {run.condition: failure_words(run.result.failures, run.result.data.n) for run in system.runs}
        words = "; ".join(f"{condition}: {text}" for condition, text in failed.items() if text)
        rows.append(f"{system.name}{f' ({words})' if words else ''}")
        rows.extend(_cells(run) for run in system.runs)
    normalizer = section.first.system.normalizer
    title = f"{section.title}: {metric} of {plural(data.clusters, 'utterance')}, normalizer {normalizer}"
    lines = [heading(title)]
    if section.part:
        lines.append(f"PARTIAL: {section.part}")
    lines.append(text_table(head, rows))
    below = robustness_text(section, robustness(sections)) if len(section.spoken) > 2 else ""
    return "\n".join([*lines, *([below] if below else [])])


def _cells(run: Run) -> tuple[str, ...]:
    score, loss = run.score(), run.loss("clean")
    value = percent(None if score is None else score.value)
    return (
        run.condition,
        str(run.result.data.n),
        f"{value} {interval(score, 1, as_percent=True)}".strip(),
        points(loss),
        UNDEFINED if loss is None else signed_percent(loss.relative.value),
        UNDEFINED if loss is None else p_words(loss.p_value),
        number(run.result.timing.rtfx, 1),
    )
