"""Scores and losses by system and condition, and quality against speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....report import svg
from ....report.formats import condition_words, metric_name, number
from ....report.sections import Run, Section, System
from ....report.tables import (
    NONE,
    Cell,
    Row,
    Rows,
    Table,
    any_failed,
    by_system,
    conditioned,
    failed_cell,
    failure_words,
    loss_cell,
    named,
    rate_cell,
    score_cell,
    value_cell,
)
from ....results.envelope import TEXT_CONDITION

FRAME = svg.Frame()
LEAST_SYSTEMS = 2
"""Below this there is nothing to compare."""


def score_table(section: Section) -> Table:
    """Systems × conditions: main metric, losses, error rates, the other ranking metrics, failures."""
    error = section.error_metric
    others = list(dict.fromkeys(m for run in section.runs for m in run.result.scores if "_at_" in m))
    others = [metric for metric in others if metric != section.metric]
    failed = any_failed(section)
    columns = [
        ("n", ""),
        *([("Failed", "queries")] if failed else ()),
        (metric_name(section.metric), "95 % interval"),
        ("Loss against text", "absolute, relative"),
        ("Loss against clean", "absolute, relative"),
        (f"{error.upper()}, corpus", "95 % interval"),
        (f"{error.upper()}, macro", "mean of queries"),
        *((metric_name(metric), "") for metric in others),
        ("Failures", "queries"),
    ]
    rows = [(system, _row(section, run, others, failed=failed)) for system in section.systems for run in system.shown]
    title = f"Scores by system and condition, {section.title}"
    return Table(title, "Condition", columns, by_system(section, rows), caption=title, css="scores", box="long")


def _row(section: Section, run: Run, others: Sequence[str], *, failed: bool) -> Row:
    typed, error = run.condition == TEXT_CONDITION, section.error_metric
    macro = run.score(f"{error}_macro")
    cells = [
        Cell(str(run.result.data.n)),
        *([failed_cell(run)] if failed else ()),
        score_cell(run.score(), "main"),
        NONE if typed else loss_cell(run.loss("text")),
        NONE if typed or run.condition == "clean" else loss_cell(run.loss("clean")),
        NONE if typed else rate_cell(run.score(error)),
        NONE if typed or macro is None else rate_cell(macro.model_copy(update={"low": None, "high": None})),
        *(value_cell(None if (score := run.score(metric)) is None else score.value) for metric in others),
        Cell(failure_words({**run.result.failures, "failed": 0}) or "0", css="failures", is_text=True),
    ]
    words = condition_words(run.condition)
    return Row(
        conditioned(run.condition, f"{words}: upper bound" if typed else words), cells, css="typed" if typed else ""
    )


@dataclass(frozen=True, slots=True)
class Point:
    system: System
    rtfx: float
    value: float


@dataclass(frozen=True, slots=True)
class Speed:
    """The drawing, its points, the conditions averaged over, and the systems without RTFx (or a score on them)."""

    drawing: str
    points: tuple[Point, ...]
    conditions: tuple[str, ...]
    left_out: tuple[str, ...]

    def table(self, metric: str) -> Table:
        """The points in numbers, fastest first; it is the chart's legend too."""
        rows = [
            Row(named(point.system), [Cell(number(point.rtfx, 1)), value_cell(point.value, css="main")])
            for point in sorted(self.points, key=lambda point: -point.rtfx)
        ]
        return Table("Speed and quality", "System", [("RTFx", ""), (metric_name(metric), "mean")], [Rows(rows)])


def speed(section: Section, top: float) -> Speed | None:
    """The main metric over RTFx, None if fewer than two systems have both.

    The score is the mean over the spoken conditions that all systems drawn share, so that none gains by leaving a hard
    one out. `top` is the upper end of the vertical axis.
    """
    timed = [system for system in section.systems if system.rtfx is not None]
    own = [{run.condition for run in system.runs} for system in timed]
    shared = set.intersection(*own) if own else set()
    conditions = tuple(c for c in section.conditions if c in shared)
    points = [p for system in timed if (p := _point(system, conditions)) is not None]
    if len(points) < LEAST_SYSTEMS:
        return None
    shown = {point.system.name for point in points}
    left_out = tuple(system.name for system in section.systems if system.name not in shown)
    return Speed(_drawing(section, points, conditions, top), tuple(points), conditions, left_out)


def _drawing(section: Section, points: Sequence[Point], conditions: Sequence[str], top: float) -> str:
    metric = metric_name(section.metric)
    x, across = FRAME.decades([p.rtfx for p in points], "RTFx: seconds of audio per second, faster to the right")
    y, upwards = FRAME.share_axis(top, metric)
    parts = [upwards, across]
    words = [f"{p.system.name}: RTFx {number(p.rtfx, 1)}, {metric} {number(p.value)}" for p in points]
    for point, tip in zip(points, words, strict=True):
        parts.append(svg.marker(point.system.index, x(point.rtfx), y(point.value), title=tip, radius=5.2))
    mean = ", ".join(condition_words(c) for c in conditions)
    title = f"{metric} over RTFx, mean over {mean}, {section.title}"
    return FRAME.figure(f"{section.anchor}-speed", title, ". ".join(words) + ".", "".join(parts))


def _point(system: System, conditions: Sequence[str]) -> Point | None:
    scores = [run.score() for run in system.runs if run.condition in conditions]
    values = [score.value for score in scores if score is not None and score.value is not None]
    if system.rtfx is None or not values or len(values) < len(conditions):
        return None
    return Point(system, system.rtfx, math.fsum(values) / len(values))
