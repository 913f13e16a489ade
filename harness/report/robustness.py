"""How steady a system is over conditions: σ within a language and pooled, SNR at a given loss, loss by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..metrics.attribution import Estimate
from ..metrics.curves import SnrAtLoss, snr_at_loss
from ..metrics.registry import metric_of
from ..metrics.stability import Item, Stability, stability
from ..results.envelope import Group
from .formats import group_words, in_room, interval, language_name, measure_of, number, percent, snr_of
from .sections import Run, Section, System
from .tables import NONE, Cell, Head, Row, Rows, Table, loss_cell, named, points_cell, text_table

SHARES = (0.1, 0.2)
"""Of the clean score: at which SNR they are lost."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """Of one system over the sections that it is in; `snr` is by section and share."""

    system: str
    metric: str
    sigma: Stability
    snr: Mapping[tuple[str, float], SnrAtLoss]

    def as_json(self, sections: Sequence[Section]) -> dict[str, Any]:
        """As `squtr report --json` prints it; an SNR beyond the levels that were measured is null with a `reached`."""
        titles = {section.anchor: section.title for section in sections}
        return {
            "system": self.system,
            "metric": self.metric,
            "sigma_within": {language: _plain(one) for language, one in self.sigma.within.items()},
            "sigma_pooled": _plain(self.sigma.pooled),
            "snr_at_loss": [
                {
                    "section": titles[anchor],
                    "share": share,
                    "snr_db": _finite(found.snr_db),
                    "low": _finite(found.interval.low),
                    "high": _finite(found.interval.high),
                    "reached": found.snr_db != -math.inf,
                    "n": found.n,
                }
                for (anchor, share), found in self.snr.items()
            ],
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(estimate: Estimate) -> dict[str, Any]:
    bounds = estimate.interval
    ends = {"low": _finite(bounds.low), "high": _finite(bounds.high)}
    return {"value": _finite(estimate.value), **ends, "n": estimate.n}


def robustness(sections: Sequence[Section]) -> dict[str, Robustness]:
    """Every measured system with two conditions or more, by name. Systems of one name are one over all languages."""
    found = {}
    measured = [section for section in sections if not section.imported]
    for name in dict.fromkeys(system.name for section in measured for system in section.systems):
        own = [(section, system) for section in measured for system in section.systems if system.name == name]
        scores: dict[tuple[str, str], Mapping[str, Mapping[str, Item]]] = {}
        for section, system in own:
            for run in system.runs:
                scores.setdefault((section.language, run.condition), _items(section, run))
        if len(scores) < 2:
            continue
        seed, metric = own[0][0].first.seed, own[0][0].metric
        levels = {
            (section.anchor, share): at
            for section, system in own
            for share in SHARES
            if (at := _snr_at_loss(section, system, share)) is not None
        }
        found[name] = Robustness(name, metric, stability(scores, seed=seed), levels)
    return found


def _items(section: Section, run: Run) -> dict[str, dict[str, Item]]:
    """By subset and id; of a corpus rate errors and reference length, all subsets together."""
    if section.metric in ("wer", "cer"):
        errors, lengths = run.error_counts("word" if section.metric == "wer" else "char")
        pairs = {f"{s}/{i}": (float(errors[row]), float(lengths[row])) for (s, i), row in run.rows.items()}
        return {"": {id_: pair for id_, pair in pairs.items() if math.isfinite(sum(pair))}}
    found: dict[str, dict[str, Item]] = {}
    scores = run.numbers(section.metric)
    for (subset, id_), row in run.rows.items():
        if math.isfinite(scores[row]):
            found.setdefault(subset, {})[id_] = (float(scores[row]), 1.0)
    return found


def _snr_at_loss(section: Section, system: System, share: float) -> SnrAtLoss | None:
    """None without `clean` and two levels of noise alone, and for what is better when lower."""
    clean = system.run("clean")
    noisy = {snr: run for run in system.runs if not in_room(run.condition) and (snr := snr_of(run.condition)) is not None}
    if clean is None or len(noisy) < 2 or metric_of(section.metric).better == "lower":
        return None
    values = {level: _values(section, run) for level, run in {math.inf: clean, **noisy}.items()}
    common = [key for key in values[math.inf] if all(key in own for own in values.values())]
    if not common:
        return None
    kept = {level: {key: own[key] for key in common} for level, own in values.items()}
    return snr_at_loss({x: kept[x] for x in noisy}, kept[math.inf], share=share, seed=section.first.seed)


def _values(section: Section, run: Run) -> dict[str, float]:
    scores = run.numbers(section.metric)
    return {f"{s}/{i}": float(scores[row]) for (s, i), row in run.rows.items() if math.isfinite(scores[row])}


def robustness_table(section: Section, found: Mapping[str, Robustness]) -> Table:
    """σ in this language and pooled over all, and the SNR at which a share of the clean score is lost."""
    own = [(system, found[system.name]) for system in section.systems if system.name in found and system.runs]
    rates = section.metric in ("wer", "cer")
    several = any(len(one.sigma.within) > 1 for _, one in own)
    shares = [share for share in SHARES if any((section.anchor, share) in one.snr for _, one in own)]
    columns = [(f"σ, {language_name(section.language)}", "over conditions")]
    columns += [("σ pooled", "over languages and conditions")] if several else []
    columns += [(f"SNR at {percent(share, 0)} loss", "dB, against clean") for share in shares]
    rows = [
        Row(
            named(system),
            [
                _sigma_cell(one.sigma.within.get(section.language), rates),
                *([_sigma_cell(one.sigma.pooled, rates)] if several else []),
                *(_level_cell(one.snr.get((section.anchor, share)), system) for share in shares),
            ],
        )
        for system, one in own
    ]
    note = (
        f"{'In percentage points. ' if rates else ''}σ: sample standard deviation of the condition means; small is steady, and says nothing about how good. "
        "Intervals resample items."
    )
    groups = [Rows(rows)] if rows else []
    return Table(f"Robustness, {section.title}", "System", columns, groups, note=note)


def _sigma_cell(estimate: Estimate | None, rates: bool) -> Cell:
    if estimate is None or not math.isfinite(estimate.value):
        return NONE
    factor, digits = (100, 1) if rates else (1, 3)
    bounds = estimate.interval
    known = math.isfinite(bounds.low) and math.isfinite(bounds.high)
    shown = f"[{number(factor * bounds.low, digits)}, {number(factor * bounds.high, digits)}]" if known else ""
    return Cell(number(factor * estimate.value, digits), (shown,) if shown else ())


def _level_cell(found: SnrAtLoss | None, system: System) -> Cell:
    """An SNR beyond the levels that were measured is a bound."""
    if found is None or math.isnan(found.snr_db):
        return NONE
    levels = [snr for run in system.runs if (snr := snr_of(run.condition)) is not None]

    def shown(snr_db: float) -> str:
        if math.isinf(snr_db):
            return f">{number(max(levels), 0)}" if snr_db > 0 else f"<{number(min(levels), 0)}"
        return number(snr_db, 1)

    bounds = found.interval
    known = not (math.isnan(bounds.low) or math.isnan(bounds.high))
    return Cell(shown(found.snr_db), (f"[{shown(bounds.low)}, {shown(bounds.high)}]",) if known else ())


def robustness_text(section: Section, found: Mapping[str, Robustness]) -> str:
    """The same for a terminal; "" without anything."""
    table = robustness_table(section, found)
    rows = [
        [row.head.name, *(" ".join((str(cell.text), *cell.below)) for cell in row.cells)]
        for group in table.groups
        for row in group.rows
    ]
    return text_table(["robustness", *(name for name, _ in table.columns)], rows) if rows else ""


def breakdowns(section: Section) -> Iterator[str]:
    """The columns that results are broken down by, crossed ones and one that has a single group left out."""
    names = dict.fromkeys(name for run in section.runs for name in run.result.by_group if "|" not in name)
    for name in names:
        if any(len(run.result.by_group.get(name, ())) > 1 for run in section.runs):
            yield name


def group_tables(section: Section, baseline: str = "") -> list[Table]:
    """By each breakdown the loss against a baseline, by system and condition; without `baseline` text, or else clean."""
    if not baseline:
        baseline = next((b for b in ("text", "clean") if any(run.loss(b) for run in section.runs)), "clean")
    return [table for name in breakdowns(section) if (table := group_table(section, name, baseline))]


def group_table(section: Section, breakdown: str, baseline: str) -> Table:
    """One breakdown: systems × groups in rows, conditions in columns; a loss, below it the score."""
    conditions = [c for c in section.spoken if any(_groups(s.run(c), breakdown) for s in section.systems)]
    rates = metric_of(section.metric).scale == "share"
    groups = []
    for system in section.systems:
        by_condition = {c: _groups(system.run(c), breakdown) for c in conditions}
        labels = list(dict.fromkeys(label for own in by_condition.values() for label in own))
        rows = []
        for label in labels:
            cells = [_group_cell(section, by_condition[c].get(label), baseline, rates) for c in conditions]
            first = next(own[label] for own in by_condition.values() if label in own)
            rows.append(Row(Head(group_words(first, breakdown), f"n = {first.n}"), cells))
        if rows:
            groups.append(Rows(rows, named(system)))
    title = f"By {_lower(measure_of(breakdown)[0])}"
    unit = "percentage points" if rates else "absolute, relative"
    note = f"Loss against {baseline} over the same items, with its 95 % interval; below it the score."
    columns = [(condition, unit) for condition in conditions]
    return Table(f"{title}, {section.title}", "Group", columns, groups, caption=title, note=note)


def _lower(name: str) -> str:
    return name if name.isupper() or name[:2].isupper() else name[:1].lower() + name[1:]


def _groups(run: Run | None, breakdown: str) -> dict[str, Group]:
    return {} if run is None else {group.label: group for group in run.result.by_group.get(breakdown, ())}


def _group_cell(section: Section, group: Group | None, baseline: str, rates: bool) -> Cell:
    if group is None:
        return NONE
    score = group.scores.get(section.metric)
    value = "" if score is None else percent(score.value) if rates else number(score.value)
    loss = group.losses.get(baseline, {}).get(section.metric)
    if loss is None:
        return NONE if not value else Cell(value, (interval(score, 1 if rates else 3, as_percent=rates),))
    if rates:
        return points_cell(loss.absolute, p_value=loss.p_holm, more=value)
    cell = loss_cell(loss)
    return Cell(cell.text, (*cell.below, value), beside=cell.beside)
