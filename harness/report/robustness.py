"""How steady a system is over conditions: σ within a language and pooled, SNR at a given loss, loss by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..metrics.attribution import Estimate
from ..metrics.registry import metric_of
from ..metrics.robustness import Item, SnrAtLoss, Stability, snr_at_loss, stability
from ..results.comparable import aspects
from ..results.envelope import Group
from .formats import group_words, in_room, interval, language_name, measure_of, number, percent, snr_of
from .sections import Run, Section, System
from .tables import NONE, Cell, Head, Row, Rows, Table, loss_cell, named, points_cell

SHARES = (0.1, 0.2)
"""Of the clean score: at which SNR they are lost."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """Of one system over the sections `anchors` that it is in; `snr` is by section and share."""

    system: str
    metric: str
    anchors: frozenset[str]
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
                    "relative": metric_of(self.metric).better != "lower",
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


def robustness(sections: Sequence[Section]) -> list[Robustness]:
    """Every measured system with two conditions or more: one over all languages whose results are comparable."""
    found = []
    for own in _comparable([section for section in sections if not section.imported]):
        for name in dict.fromkeys(system.name for section in own for system in section.systems):
            pairs = [(section, system) for section in own for system in section.systems if system.name == name]
            scores: dict[tuple[str, str], dict[str, dict[str, Item]]] = {}
            for section, system in pairs:
                for run in system.runs:
                    merged = scores.setdefault((section.language, run.condition), {})
                    for subset, items in _items(section, run).items():
                        merged.setdefault(subset, {}).update(items)
            if len(scores) < 2:
                continue
            levels = {
                (section.anchor, share): at
                for section, system in pairs
                for share in SHARES
                if (at := _snr_at_loss(section, system, share)) is not None
            }
            anchors = frozenset(section.anchor for section, _ in pairs)
            sigma = stability(scores, seed=own[0].first.seed)
            found.append(Robustness(name, own[0].metric, anchors, sigma, levels))
    return found


def _comparable(sections: Sequence[Section]) -> list[list[Section]]:
    """Sections of the same data and versions, each scope once."""
    groups: dict[tuple[object, ...], list[Section]] = {}
    for section in sections:
        key: tuple[object, ...] = (*aspects(section.first, words=False).items(), section.first.seed)
        while any(other.scope == section.scope for other in groups.get(key, ())):
            key = (*key, section.mark)
        groups.setdefault(key, []).append(section)
    return list(groups.values())


def _items(section: Section, run: Run) -> dict[str, dict[str, Item]]:
    """By subset and utterance, all its RIRs together; of a corpus rate errors and reference length, in one subset."""
    unit = {"wer": "word", "cer": "char"}.get(section.metric)
    found: dict[str, dict[str, Item]] = {}
    for key, row in run.items.items.items():
        value = row.get(f"{unit}_errors" if unit else section.metric, math.nan)
        weight = row.get(f"{unit}_reference_length", math.nan) if unit else 1.0
        if math.isfinite(value + weight):
            subset = run.items.subsets[key]
            own = found.setdefault("" if unit else subset, {})
            cluster = run.items.clusters[key]
            before = own.get(cluster, (0.0, 0.0))
            own[cluster] = (before[0] + value, before[1] + weight)
    return found


def _snr_at_loss(section: Section, system: System, share: float) -> SnrAtLoss | None:
    """None without `clean` and two levels of noise alone. Of rates, `share` is in points, not by the clean rate."""
    clean = system.run("clean")
    noisy = {
        snr: run for run in system.runs if not in_room(run.condition) and (snr := snr_of(run.condition)) is not None
    }
    if clean is None or len(noisy) < 2:
        return None
    better = metric_of(section.metric).better
    found = snr_at_loss(
        {snr: _items(section, run) for snr, run in noisy.items()},
        _items(section, clean),
        loss=share,
        relative=better != "lower",
        better=better,
        seed=section.first.seed,
    )
    return found if found.n else None


def robustness_table(section: Section, found: Sequence[Robustness]) -> Table:
    """σ in this language and pooled over all, and the SNR at which a given loss against clean is reached."""
    by_name = {one.system: one for one in found if section.anchor in one.anchors}
    own = [(system, by_name[system.name]) for system in section.systems if system.runs and system.name in by_name]
    rates = section.metric in ("wer", "cer")
    several = any(len(one.sigma.within) > 1 for _, one in own)
    shares = [share for share in SHARES if any((section.anchor, share) in one.snr for _, one in own)]
    columns = [(f"σ, {language_name(section.language)}", "over conditions")]
    columns += [("σ pooled", "over languages and conditions")] if several else []
    columns += [
        (f"SNR at {f'+{100 * share:g} points' if rates else f'{percent(share, 0)} loss'}", "dB, against clean")
        for share in shares
    ]
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
        "σ: sample standard deviation of the condition means; a small σ is a steady score, not a good one. Intervals "
        "resample items."
    )
    note = f"In percentage points. {note}" if rates else note
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


def breakdowns(section: Section) -> Iterator[str]:
    """The columns that results are broken down by, crossed ones and one that has a single group left out."""
    names = dict.fromkeys(name for run in section.runs for name in run.result.by_group if "|" not in name)
    for name in names:
        if any(len(run.result.by_group.get(name, ())) > 1 for run in section.runs):
            yield name


def group_tables(section: Section, baseline: str = "") -> list[Table]:
    """By each breakdown the loss against a baseline (by default text, or else clean), by system and condition."""
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
    if any(g.losses.get(baseline, {}).get(section.metric) and g.losses[baseline][section.metric].p_holm is not None
           for run in section.runs for g in run.result.by_group.get(breakdown, ())):  # fmt: skip
        note += " p is corrected over the groups (Holm); bold: below 0.05."
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
