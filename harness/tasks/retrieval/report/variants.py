"""Does one part help? Pairs of systems that differ in exactly that part, compared query by query."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....metrics.compare_items import MetricComparison, compare_items, correct, metric_names
from ....report.formats import interval, metric_name, number, p_words, percent, plural
from ....report.sections import Run, Section, System
from ....report.systems import component_name, described, parts_of
from ....report.tables import NONE, SIGNIFICANT, Cell, Head, Row, Rows, Table, conditioned
from ....report.task_report import Prose, Strong
from ....results.envelope import Score

QUESTIONS = {
    "front end": "Does the front end help?",
    "rewriter": "Does the rewriter help?",
    "n-best": "Do more transcripts help?",
    "reranker": "Does the reranker help?",
    "hybrid": "Does combining retrievers help?",
}
"""The parts that a system may have or not, in the order shown."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One condition of a pair: with minus without, paired by query.

    `error` is None where one has no transcripts, or both have the same. It is over the queries that have a transcript
    on both sides: fewer than `score` where some `failed`.
    """

    condition: str
    score: MetricComparison
    error: MetricComparison | None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Variant:
    """Two systems of which `changed` has `part` where `plain` has `base`; conditions that both have, mildest first."""

    question: str
    part: str
    base: str
    plain: System
    changed: System
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    title: str
    verdicts: Sequence[Prose]
    table: Table


def variants(section: Section) -> list[Variant]:
    """All pairs of a section that differ in one optional part, question by question.

    p-values are corrected (Holm) over all conditions and metrics of a question.
    """
    found = [
        Variant(question, part, base, plain, changed, ())
        for plain in section.systems
        for changed in section.systems
        if plain.runs and changed.runs and (pair := _difference(plain, changed)) is not None
        for question, part, base in (pair,)
    ]
    answered = []
    for question in QUESTIONS:
        own = [replace(one, effects=tuple(_effects(section, one))) for one in found if one.question == question]
        answered.extend(_corrected([one for one in own if one.effects]))
    return answered


def _canonical(value: Any, *without: str) -> str:
    """A component without its display name and without some settings, at every depth."""

    def plain(inner: Any) -> Any:
        if isinstance(inner, Mapping):
            drop = {"name", *without} if "backend" in inner else set(without)
            return {key: plain(v) for key, v in inner.items() if key not in drop}
        return [plain(v) for v in inner] if isinstance(inner, list | tuple) else inner

    return json.dumps(plain(value), sort_keys=True, ensure_ascii=False)


def _difference(plain: System, changed: System) -> tuple[str, str, str] | None:
    """The question that a pair answers, the part and what stands for it; None unless exactly that part differs."""
    a, b = plain.info, changed.info
    # A transcriber that gives more transcripts is the same transcriber.
    roles = {role: "n_best" if role == "transcriber" else "" for role in (*a.components, *b.components)}
    differing = [
        role
        for role, without in roles.items()
        if _canonical(a.components.get(role), without) != _canonical(b.components.get(role), without)
    ]
    n_best = ("n_best", "n_best_fusion")
    if [a.settings.get(name) for name in n_best] != [b.settings.get(name) for name in n_best]:
        differing.append("n-best")
    if (a.kind, _canonical(a.settings, *n_best)) != (b.kind, _canonical(b.settings, *n_best)):
        differing.append("rest")
    if differing == ["front_end"] and "front_end" not in a.components:
        return "front end", component_name(b.components["front_end"]), "no front end"
    if differing == ["rewriter"] and "rewriter" not in a.components:
        return "rewriter", component_name(b.components["rewriter"]), "no rewriter"
    if differing == ["n-best"] and a.settings.get("n_best", 1) == 1:
        return "n-best", f"The {b.settings['n_best']} best transcripts", "the best one"
    if differing == ["retriever"] and "retriever" in a.components and "retriever" in b.components:
        first, second = a.components["retriever"], b.components["retriever"]
        parts = parts_of(second)
        if _canonical(first) in map(_canonical, parts):
            words = described(second)
            question = "reranker" if len(parts) == 1 else "hybrid"
            return question, words[:1].upper() + words[1:], described(first)
    return None


def _effects(section: Section, one: Variant) -> list[Effect]:
    found = []
    for run in one.changed.runs:
        other = next((r for r in one.plain.runs if r.condition == run.condition), None)
        if other is not None and (effect := _effect(section, other, run)) is not None:
            found.append(effect)
    # Where the transcripts are the same, there are no error rates to compare.
    moved = any(
        e.error is not None and (e.error.comparison.difference or e.error.comparison.p_value < 1) for e in found
    )
    return found if moved else [replace(e, error=None) for e in found]


def _effect(section: Section, plain: Run, changed: Run) -> Effect | None:
    a, b = changed.items.items, plain.items.items
    common = [key for key in a if key in b]
    known = metric_names({key: a[key] for key in common}, {key: b[key] for key in common}) if common else []
    # An error rate needs a reference that is not empty, and two transcripts.
    unit = "char" if section.by_character else "word"
    countable = any(
        a[key][f"{unit}_reference_length"] > 0 and math.isfinite(a[key][f"{unit}_errors"] + b[key][f"{unit}_errors"])
        for key in common
    )
    wanted = [m for m in (section.metric, section.error_metric) if m in known and (m == section.metric or countable)]
    if section.metric not in wanted:
        return None
    rows = compare_items(a, b, wanted, subsets=changed.items.subsets, on="intersection", seed=changed.result.seed)
    failed = any(run.result.failures.get("failed", 0) for run in (plain, changed))
    return Effect(changed.condition, rows[0], rows[1] if len(rows) > 1 else None, failed)


def _corrected(found: Sequence[Variant]) -> list[Variant]:
    rows = [row for one in found for e in one.effects for row in (e.score, e.error) if row is not None]
    fixed = iter(correct(rows))
    return [
        replace(
            one,
            effects=tuple(
                replace(e, score=next(fixed), error=None if e.error is None else next(fixed)) for e in one.effects
            ),
        )
        for one in found
    ]


def answers(section: Section, found: Sequence[Variant]) -> list[Answer]:
    shown = []
    for question, title in QUESTIONS.items():
        own = [one for one in found if one.question == question]
        if own:
            shown.append(Answer(title, [_verdict(section, one) for one in own], _table(section, own, title)))
    return shown


def _verdict(section: Section, one: Variant) -> Prose:
    """In one sentence what the part does to retrieval and transcripts, and in another what it costs."""
    words = [f"{metric_name(section.metric)} {_changes([e.score for e in one.effects], more_is_better=True)}"]
    errors = [e.error for e in one.effects if e.error is not None]
    if errors:
        words.append(f"{section.error_metric.upper()} {_changes(errors, more_is_better=False)}")
    cost = _cost(one)
    tail = f" against {one.base}, in {one.plain.name}: {'; '.join(words)}.{f' {cost}' if cost else ''}"
    return [Strong(one.part), tail]


def _changes(rows: Sequence[MetricComparison], *, more_is_better: bool) -> str:
    clear = [row.comparison.difference for row in rows if row.p_holm < SIGNIFICANT]
    better = sum((difference > 0) == more_is_better for difference in clear)
    total = plural(len(rows), "condition")
    if not clear:
        return f"shows no difference in {'the' if len(rows) == 1 else 'any of'} {total}"
    worse = len(clear) - better
    clauses = [f"is better in {better}"] if better else []
    clauses += [f"{'' if clauses else 'is '}worse in {worse}"] if worse else []
    return f"{' and '.join(clauses)} of {total}"


def _cost(one: Variant) -> str:
    """What the part costs in time, as far as it was measured."""
    clauses = []
    if one.question in ("front end", "n-best"):
        clauses.append(_goes("RTFx", one.plain.rtfx, one.changed.rtfx))
    if one.question not in ("front end", "rewriter"):
        clauses.append(_goes("The time of a search", _search_ms(one.plain), _search_ms(one.changed), " ms per query"))
    return " ".join(filter(None, clauses))


def _goes(what: str, before: float | None, after: float | None, unit: str = "") -> str:
    """How a number changes, as a sentence; "" if one of the two is not known.

    >>> _goes("RTFx", 10.0, 5.72), _goes("RTFx", 10.01, 10.0)
    ('RTFx goes from 10.0 to 5.7.', 'RTFx stays at 10.0.')
    """
    if before is None or after is None:
        return ""
    left, right = number(before, 1), number(after, 1)
    return f"{what} stays at {left}{unit}." if left == right else f"{what} goes from {left} to {right}{unit}."


def _search_ms(system: System) -> float | None:
    known = [(run.result.timing.stages.get("search"), run.result.data.n) for run in system.runs]
    timed = [(seconds, n) for seconds, n in known if seconds is not None]
    total = sum(n for _, n in timed)
    return 1e3 * sum(seconds for seconds, _ in timed) / total if total else None


def _table(section: Section, found: Sequence[Variant], title: str) -> Table:
    metric, error = metric_name(section.metric), section.error_metric.upper()
    with_errors = any(e.error is not None for one in found for e in one.effects)
    columns = [("n", ""), (metric, "without"), (metric, "with"), ("Difference", "95 % interval"), ("p", "corrected")]
    if with_errors:
        columns += [
            *((error, "without"), (error, "with"), (f"{error} difference", "percentage points"), ("p", "corrected"))
        ]
    groups = [
        Rows(
            [Row(conditioned(e.condition), _cells(e, with_errors)) for e in one.effects],
            Head(f"{one.changed.name} against {one.plain.name}", mark=one.changed.index),
        )
        for one in found
    ]
    return Table(f"{title} {section.title}", "Condition", columns, groups, caption=title, css="pairs")


def _cells(effect: Effect, with_errors: bool) -> list[Cell]:
    cells = [Cell(str(effect.score.comparison.n)), *_comparison(effect.score, False)]
    if with_errors:
        cells.extend([NONE] * 4 if effect.error is None else _comparison(effect.error, True, counted=effect.failed))
    return cells


def _comparison(row: MetricComparison, as_percent: bool, *, counted: bool = False) -> list[Cell]:
    test = row.comparison
    # A difference of percentages is in percentage points.
    difference = number(100 * test.difference, 1) if as_percent else number(test.difference)
    bounds = Score.of(test.difference, test.interval.low, test.interval.high, test.n)
    shown = interval(bounds, 1 if as_percent else 3, as_percent=as_percent)
    sign = "+" if test.difference > 0 and difference.strip("0.") else ""
    css = "main" if row.p_holm < SIGNIFICANT else ""
    return [
        *(Cell(percent(x) if as_percent else number(x)) for x in (row.b, row.a)),
        Cell(f"{sign}{difference}{f' of {test.n}' if counted else ''}", (shown,) if shown else (), css=css),
        Cell(p_words(test.p_value), (p_words(row.p_holm),), css=css),
    ]
