"""Does one part help? Pairs of systems that differ in exactly that part, compared query by query."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..metrics.compare_items import MetricComparison, compare_items, correct, metric_names
from ..results.old import MAIN_METRIC, TEXT_CONDITION, Score
from .data import Run, Section, System, component_name
from .formats import UNDEFINED, condition_words, escape, interval, number, percent, plural
from .systems import described, parts_of
from .tables import breakable, scrollable, swatch

SIGNIFICANT = 0.05
QUESTIONS = {
    "front end": "Does the front end help?",
    "n-best": "Do more transcripts help?",
    "reranker": "Does the reranker help?",
    "hybrid": "Does combining retrievers help?",
}
"""The parts that a system may have or not, in the order shown."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One condition of a pair: with minus without, paired by query.

    `error` is None where one has no words, or both hear the same.
    """

    condition: str
    score: MetricComparison
    error: MetricComparison | None


@dataclass(frozen=True, slots=True)
class Variant:
    """Two systems of which `changed` has `part` where `plain` has `base`; conditions that both have, mildest first."""

    question: str
    part: str
    base: str
    plain: System
    changed: System
    effects: tuple[Effect, ...]


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
    same = {
        "front end": _canonical(a.front_end) == _canonical(b.front_end),
        # A recognizer that is asked for more transcripts is the same recognizer.
        "transcriber": _canonical(a.transcriber, "n_best") == _canonical(b.transcriber, "n_best"),
        "encoder": _canonical(a.encoder) == _canonical(b.encoder),
        "retriever": _canonical(a.retriever) == _canonical(b.retriever),
        "n-best": (a.n_best, a.n_best_fusion) == (b.n_best, b.n_best_fusion),
        "rest": (a.kind, a.script_folding, a.depth) == (b.kind, b.script_folding, b.depth),
    }
    differing = [name for name, equal in same.items() if not equal]
    if differing == ["front end"] and a.front_end is None:
        return "front end", component_name(b.front_end), "no front end"
    if differing == ["n-best"] and a.n_best == 1:
        return "n-best", f"The {b.n_best} best transcripts", "the best one"
    if differing == ["retriever"] and a.retriever is not None and b.retriever is not None:
        parts = parts_of(b.retriever)
        if _canonical(a.retriever) in map(_canonical, parts):
            return (
                ("reranker" if len(parts) == 1 else "hybrid"),
                _capital(described(b.retriever)),
                described(a.retriever),
            )
    return None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _effects(section: Section, one: Variant) -> list[Effect]:
    found = []
    for run in one.changed.runs:
        other = next((r for r in one.plain.runs if r.condition == run.condition), None)
        if other is not None and (effect := _effect(section, other, run)) is not None:
            found.append(effect)
    # Where the recognizer hears the same, there are no error rates to compare.
    moved = any(
        e.error is not None and (e.error.comparison.difference or e.error.comparison.p_value < 1) for e in found
    )
    return found if moved else [replace(e, error=None) for e in found]


def _effect(section: Section, plain: Run, changed: Run) -> Effect | None:
    unit = "char" if section.by_character else "word"
    fields = (MAIN_METRIC, f"{unit}_errors", f"{unit}_reference_length")
    a, b = _items(changed, fields), _items(plain, fields)
    common = [key for key in a if key in b]
    known = metric_names({key: a[key] for key in common}, {key: b[key] for key in common}) if common else []
    # An error rate needs a reference that is not empty.
    lengths = [a[key][fields[2]] + b[key][fields[2]] for key in common]
    countable = any(length > 0 for length in lengths if not math.isnan(length))
    wanted = [m for m in (MAIN_METRIC, section.error_metric) if m in known and (m == MAIN_METRIC or countable)]
    if MAIN_METRIC not in wanted:
        return None
    rows = compare_items(
        a,
        b,
        wanted,
        subsets={f"{subset}/{query_id}": subset for subset, query_id in changed.rows},
        on="intersection",
        seed=changed.result.seed,
    )
    return Effect(changed.condition, rows[0], rows[1] if len(rows) > 1 else None)


def _items(run: Run, fields: Sequence[str]) -> dict[str, dict[str, float]]:
    columns = {name: run.numbers(name) for name in fields}
    return {
        f"{subset}/{query_id}": {name: float(columns[name][row]) for name in fields}
        for (subset, query_id), row in run.rows.items()
    }


def _corrected(found: Sequence[Variant]) -> list[Variant]:
    rows = [row for one in found for e in one.effects for row in (e.score, e.error) if row is not None]
    fixed = iter(correct(rows))
    return [
        replace(
            one,
            effects=tuple(
                Effect(e.condition, next(fixed), None if e.error is None else next(fixed)) for e in one.effects
            ),
        )
        for one in found
    ]


def variant_tables(section: Section, found: Sequence[Variant]) -> str:
    """A part of the section for each question that has an answer; "" for none."""
    parts = []
    for place, (question, title) in enumerate(QUESTIONS.items()):
        own = [one for one in found if one.question == question]
        if own:
            parts.append(
                f'<h3 id="{section.anchor}-variant-{place}">{title}</h3>'
                f"{''.join(f'<p>{_verdict(section, one)}</p>' for one in own)}{_table(section, own, title)}"
            )
    if parts:
        parts.append(
            '<p class="note">A difference is with minus without, over the same queries: more nDCG@10 and a lower error '
            "rate are better. p: two-sided sign-flip test; below it corrected after Holm over all rows and metrics of "
            "a table. Bold, and counted in the sentence: a corrected p below 0.05.</p>"
        )
    return "".join(parts)


def _verdict(section: Section, one: Variant) -> str:
    """In one sentence what the part does to retrieval and recognition, and in another what it costs."""
    words = [f"nDCG@10 {_changes([e.score for e in one.effects], more_is_better=True)}"]
    errors = [e.error for e in one.effects if e.error is not None]
    if errors:
        words.append(f"{section.error_metric.upper()} {_changes(errors, more_is_better=False)}")
    cost = _cost(one)
    return (
        f"<strong>{escape(one.part)}</strong> against {escape(one.base)}, in {escape(one.plain.name)}: "
        f"{'; '.join(words)}.{f' {cost}' if cost else ''}"
    )


def _changes(rows: Sequence[MetricComparison], *, more_is_better: bool) -> str:
    clear = [row.comparison.difference for row in rows if row.p_holm < SIGNIFICANT]
    better = sum((difference > 0) == more_is_better for difference in clear)
    total = plural(len(rows), "condition")
    if not clear:
        return f"shows no difference in {'the' if len(rows) == 1 else 'any of'} {total}"
    worse = len(clear) - better
    said = [f"is better in {better}"] if better else []
    said += [f"{'' if said else 'is '}worse in {worse}"] if worse else []
    return f"{' and '.join(said)} of {total}"


def _cost(one: Variant) -> str:
    """What the part costs in time, as far as it was measured."""
    said = []
    if one.question in ("front end", "n-best"):
        said.append(_goes("RTFx", one.plain.rtfx, one.changed.rtfx))
    if one.question != "front end":
        said.append(_goes("The time of a search", _search_ms(one.plain), _search_ms(one.changed), " ms per query"))
    return " ".join(filter(None, said))


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
    """Time of search per query in ms, over the spoken runs where it was measured."""
    known = [(run.result.timing.search_s, run.result.data.n) for run in system.runs]
    timed = [(seconds, n) for seconds, n in known if seconds is not None]
    total = sum(n for _, n in timed)
    return 1e3 * sum(seconds for seconds, _ in timed) / total if total else None


def _table(section: Section, found: Sequence[Variant], title: str) -> str:
    name = section.error_metric.upper()
    with_errors = any(e.error is not None for one in found for e in one.effects)
    columns = [("nDCG@10", "without"), ("nDCG@10", "with"), ("Difference", "95 % interval"), ("p", "corrected")]
    if with_errors:
        columns += [(name, "without"), (name, "with"), (f"{name} difference", "percentage points"), ("p", "corrected")]
    head = "".join(f'<th scope="col" class="num">{first}<small>{second}</small></th>' for first, second in columns)
    bodies = []
    for one in found:
        group = f"{swatch(one.changed)}{escape(one.changed.name)} against {swatch(one.plain)}{escape(one.plain.name)}"
        rows = [f'<tr class="group"><th scope="rowgroup" colspan="{2 + len(columns)}"><span>{group}</span></th></tr>']
        rows.extend(_row(effect, with_errors) for effect in one.effects)
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    table = (
        f'<table class="pairs"><caption>{title}</caption><thead><tr><th scope="col">Condition</th>'
        f'<th scope="col" class="num">n</th>{head}</tr></thead>{"".join(bodies)}</table>'
    )
    return scrollable(table, f"{title} {section.title}")


def _row(effect: Effect, with_errors: bool) -> str:
    words = "" if effect.condition == TEXT_CONDITION else condition_words(effect.condition)
    cells = [
        f'<th scope="row">{breakable(effect.condition)}<small>{words}</small></th>',
        f'<td class="num">{effect.score.comparison.n}</td>',
        *_cells(effect.score, as_percent=False),
    ]
    if with_errors:
        none = [f'<td class="num none">{UNDEFINED}</td>'] * 4
        cells.extend(none if effect.error is None else _cells(effect.error, as_percent=True))
    return f"<tr>{''.join(cells)}</tr>"


def _cells(row: MetricComparison, *, as_percent: bool) -> list[str]:
    # A difference of percentages is in percentage points.
    difference = number(100 * row.comparison.difference, 1) if as_percent else number(row.comparison.difference)
    test = row.comparison
    known = math.isfinite(test.interval.low) and math.isfinite(test.interval.high)
    bounds = Score(
        value=test.difference,
        low=test.interval.low if known else None,
        high=test.interval.high if known else None,
        n=test.n,
    )
    shown = interval(bounds, 1 if as_percent else 3, as_percent=as_percent)
    sign = "+" if test.difference > 0 and difference.strip("0.") else ""
    css = " main" if row.p_holm < SIGNIFICANT else ""
    return [
        *(f'<td class="num">{percent(x) if as_percent else number(x)}</td>' for x in (row.b, row.a)),
        f'<td class="num{css}">{sign}{difference}{f"<small>{shown}</small>" if shown else ""}</td>',
        f'<td class="num{css}">{_p(test.p_value)}<small>{_p(row.p_holm)}</small></td>',
    ]


def _p(value: float) -> str:
    """A p-value as HTML; small ones as a bound.

    >>> _p(0.00009), _p(0.0312)
    ('&lt;0.001', '0.031')
    """
    return "&lt;0.001" if value < 0.001 else number(value)
