"""The tables of the report: scores and losses, breakdowns."""

from __future__ import annotations

import math

from ..results.old import MAIN_METRIC, TEXT_CONDITION, Failures, Loss, Score
from . import svg
from .breakdown import Breakdown
from .data import Run, Section, System
from .formats import UNDEFINED, condition_words, escape, interval, number, percent, plural

FAILURE_WORDS = {
    "undecodable": "not decoded",
    "loops": "loop",
    "truncated": "truncated",
    "empty": "empty",
    "hallucinations": "words on silence",
    "missing": "found nothing",
    "no_relevant": "without relevant document",
}
"""Failure counts in the order shown, in words. Hits without judgment are no failure of the system."""


def swatch(system: System) -> str:
    """The system's marker as a small picture."""
    drawing = svg.marker(system.index, 7, 7)
    return f'<svg class="swatch" viewBox="0 0 14 14" aria-hidden="true">{drawing}</svg>'


def scrollable(table: str, name: str, css: str = "") -> str:
    """A table in its own scrolling region, reachable by keyboard."""
    return f'<div class="scroll {css}" role="region" tabindex="0" aria-label="{escape(name)}">{table}</div>'


def breakable(name: str) -> str:
    """A name that may wrap behind its underscores."""
    return escape(name).replace("_", "_<wbr>")


def score_table(section: Section) -> str:
    """Systems × conditions: main metric, losses, error rates, the other ranking metrics, failures."""
    error = section.error_metric.upper()
    head = (
        '<thead><tr><th scope="col">Condition</th><th scope="col" class="num">n</th>'
        '<th scope="col" class="num">nDCG@10<small>95 % interval</small></th>'
        '<th scope="col" class="num">Loss against text<small>absolute, relative</small></th>'
        '<th scope="col" class="num">Loss against clean<small>absolute, relative</small></th>'
        f'<th scope="col" class="num">{error}, corpus<small>95 % interval</small></th>'
        f'<th scope="col" class="num">{error}, macro<small>mean of queries</small></th>'
        '<th scope="col" class="num">MRR@10</th><th scope="col" class="num">Recall@10</th>'
        '<th scope="col">Failures<small>queries</small></th></tr></thead>'
    )
    bodies = []
    for system in section.systems:
        name = f"{swatch(system)}{escape(system.name)}"
        rows = [f'<tr class="group"><th scope="rowgroup" colspan="10"><span>{name}</span></th></tr>']
        rows.extend(_score_row(section, run) for run in system.shown)
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    caption = f"<caption>Scores by system and condition, {escape(section.title)}</caption>"
    table = f'<table class="scores">{caption}{head}{"".join(bodies)}</table>'
    return scrollable(table, f"Scores, {section.title}", "long")


def _score_row(section: Section, run: Run) -> str:
    typed = run.condition == TEXT_CONDITION
    error = section.error_metric
    cells = [
        f'<th scope="row">{breakable(run.condition)}<small>{_words(run)}</small></th>',
        f'<td class="num">{run.result.data.n}</td>',
        _score_cell(run.score(MAIN_METRIC), "main"),
        _not_applicable() if typed else _loss_cell(run.loss("text")),
        _not_applicable() if typed or run.condition == "clean" else _loss_cell(run.loss("clean")),
        _not_applicable() if typed else _rate_cell(run.score(error), bounds=True),
        _not_applicable() if typed else _rate_cell(run.score(f"{error}_macro"), bounds=False),
        f'<td class="num">{_value(run.score("mrr_at_10"))}</td>',
        f'<td class="num">{_value(run.score("recall_at_10"))}</td>',
        f'<td class="failures">{failure_words(run.result.failures)}</td>',
    ]
    opening = '<tr class="typed">' if typed else "<tr>"
    return f"{opening}{''.join(cells)}</tr>"


def _words(run: Run) -> str:
    words = condition_words(run.condition)
    return f"{words}: upper bound" if run.condition == TEXT_CONDITION else words


def _value(score: Score | None) -> str:
    return number(None if score is None else score.value)


def _not_applicable() -> str:
    return f'<td class="num none">{UNDEFINED}</td>'


def _score_cell(score: Score | None, css: str) -> str:
    bounds = interval(score)
    return f'<td class="num {css}">{_value(score)}{f"<small>{bounds}</small>" if bounds else ""}</td>'


def _rate_cell(score: Score | None, *, bounds: bool) -> str:
    shown = interval(score, 1, as_percent=True) if bounds else ""
    value = percent(None if score is None else score.value)
    return f'<td class="num">{value}{f"<small>{shown}</small>" if shown else ""}</td>'


def _loss_cell(loss: Loss | None) -> str:
    if loss is None:
        return _not_applicable()
    relative, bounds = loss.relative.value, interval(loss.absolute)
    beside = "" if relative is None else f' <span class="relative">{percent(relative)}</span>'
    return f'<td class="num">{number(loss.absolute.value)}{beside}{f"<small>{bounds}</small>" if bounds else ""}</td>'


def failure_words(failures: Failures) -> str:
    """The counts that are not 0, in words; "0" if all are.

    >>> failure_words(Failures(undecodable=1, loops=2, truncated=0, empty=0, hallucinations=0, missing=0,
    ...                        no_relevant=0, unjudged=0))
    '1 not decoded, 2 loops'
    """
    parts = []
    for field, words in FAILURE_WORDS.items():
        count = int(getattr(failures, field))
        if count:
            parts.append(plural(count, words) if words == "loop" else f"{count} {words}")
    return ", ".join(parts) or "0"


def breakdown_table(section: Section, breakdown: Breakdown) -> str:
    """One bin after another, the systems in each."""
    error = section.error_metric.upper()
    head = (
        '<thead><tr><th scope="col">System</th><th scope="col" class="num">n</th>'
        '<th scope="col" class="num">nDCG@10</th><th scope="col" class="num">Loss<small>against text</small></th>'
        f'<th scope="col" class="num">{error}<small>corpus</small></th></tr></thead>'
    )
    bodies = []
    marks = {system.name: swatch(system) for system in section.systems}
    for name, cells in breakdown.bins:
        rows = [f'<tr class="group"><th scope="rowgroup" colspan="5"><span>{escape(name)}</span></th></tr>']
        for cell in cells:
            bounds = interval(cell.loss)
            loss = number(None if cell.loss is None else cell.loss.value)
            rows.append(
                f'<tr><th scope="row">{marks[cell.system]}{escape(cell.system)}</th><td class="num">{cell.n}</td>'
                f'<td class="num main">{number(cell.value)}</td>'
                f'<td class="num">{loss} <span class="relative">{bounds}</span></td>'
                f'<td class="num">{percent(None if math.isnan(cell.error_rate) else cell.error_rate)}</td></tr>'
            )
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    table = f'<table class="bins"><caption>{escape(breakdown.title)}</caption>{head}{"".join(bodies)}</table>'
    pooled = ", ".join(breakdown.conditions)
    note = f"Pooled over {escape(pooled)}; n is the number of queries, intervals resample whole queries."
    if breakdown.left_out:
        note += f" Left out for too few queries: {escape(', '.join(breakdown.left_out))}."
    return f'{scrollable(table, f"{breakdown.title}, {section.title}")}<p class="note">{note}</p>'
