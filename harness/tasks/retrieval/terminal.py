"""The scores of the retrieval task as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from ...report.formats import UNDEFINED, interval, metric_name, number, percent, plural, rate_words
from ...report.robustness import robustness_text
from ...report.sections import Run, Section
from ...report.tables import any_failed, failed_cell, failed_lines, heading, text_table
from ...results.envelope import TEXT_CONDITION

IMPORTED = "imported: aggregates only, no intervals"


def section_table(section: Section, sections: Sequence[Section]) -> str:
    error = section.error_metric.upper()
    timed = any(run.result.timing.rtfx is not None for run in section.runs)
    metric = f"{metric_name(section.metric)} [95 % interval]"
    rewritten = f"{section.error_metric}_rewritten"
    changes = any(rewritten in run.result.scores for run in section.runs)
    failed = any_failed(section)
    head = (
        "condition", "n", *(("failed",) if failed else ()), metric, "loss against text", "relative", error,
        *((f"{error}, rewritten",) if changes else ()), *(("RTFx",) if timed else ()),
    )  # fmt: skip
    rows: list[Sequence[str] | str] = []
    for system in section.systems:
        rows.append(system.name)
        rows.extend(_cells(section, run, changes, failed=failed)[: len(head)] for run in system.shown)
    sizes = section.sizes
    n = plural(sizes[0], "query") if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} queries"
    lines = [heading(f"{section.title} ({section.language}), {n}")]
    if section.part:
        lines.append(f"PARTIAL: {section.part}")
    if section.imported:
        lines.append(IMPORTED)
    lines.append(text_table(head, rows))
    lines.extend(failed_lines(section, section.error_metric))
    return "\n\n".join(["\n".join(lines), *robustness_text(section, sections)])


def _cells(section: Section, run: Run, changes: bool, *, failed: bool) -> tuple[str, ...]:
    after = run.score(f"{section.error_metric}_rewritten")
    score, rate = run.score(), run.score(section.error_metric)
    loss = None if run.condition == TEXT_CONDITION else run.loss("text")
    lost, relative = UNDEFINED, UNDEFINED
    if loss is not None:
        lost = f"{number(loss.absolute.value)} {interval(loss.absolute)}".strip()
        relative = percent(loss.relative.value)
    return (
        run.condition,
        str(run.result.data.n),
        *([str(failed_cell(run).text)] if failed else ()),
        f"{number(None if score is None else score.value)} {interval(score)}".strip(),
        lost,
        relative,
        UNDEFINED if run.condition == TEXT_CONDITION else rate_words(rate),
        *([rate_words(after)] if changes else ()),
        number(run.result.timing.rtfx, 1),
    )
