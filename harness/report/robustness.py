"""How steady a system is over conditions: σ within a language and pooled, SNR at a given loss, loss by group."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..metrics.attribution import Estimate
from ..metrics.registry import metric_of
from ..metrics.robustness import Item, SnrAtLoss, Stability, snr_at_loss, stability
from ..results.comparable import aspects
from ..results.envelope import Group, Score, finite
from .formats import full_rate_words, group_words, in_room, interval, language_name, measure_of, number, percent, snr_of
from .sections import Run, Section, System
from .tables import (
    NONE,
    Cell,
    Head,
    Row,
    Rows,
    Table,
    any_failed,
    clip,
    loss_cell,
    named,
    plain_table,
    points_cell,
    score_cell,
)

SHARES = (0.1, 0.2)
"""Of the clean score: at which SNR they are lost."""
_TERMINAL_SYSTEMS, _TERMINAL_NAME, _TERMINAL_GROUPS = 3, 24, 8
"""Side by side, columns of a name, and groups of a breakdown; the page has them all."""


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
            "sigma_within": {language: _score(one).model_dump() for language, one in self.sigma.within.items()},
            "sigma_pooled": _score(self.sigma.pooled).model_dump(),
            "snr_at_loss": [
                {
                    "section": titles[anchor],
                    "share": share,
                    "relative": metric_of(self.metric).better != "lower",
                    "snr_db": finite(found.snr_db),
                    "low": finite(found.interval.low),
                    "high": finite(found.interval.high),
                    "reached": found.snr_db != -math.inf,
                    "n": found.n,
                }
                for (anchor, share), found in self.snr.items()
            ],
        }


def _score(estimate: Estimate) -> Score:
    return Score.of(estimate.value, estimate.interval.low, estimate.interval.high, estimate.n)


def facts(sections: Sequence[Section]) -> dict[str, Any]:
    """What `squtr report --json` prints of σ, SNR at a given loss, and loss by group."""
    return {
        "robustness": [one.as_json(sections) for one in robustness(sections)],
        "groups": [
            {
                "section": section.title,
                "system": run.result.system.name,
                "condition": run.condition,
                "by": name,
                "metric": section.metric,
                **group.model_dump(mode="json", exclude={"scores", "losses"}),
                "score": score.value if (score := group.scores.get(section.metric)) else None,
                **({"score_n": score.n, "bounds": score.bounds} if score and score.bounds else {}),
                "losses": {
                    baseline: loss.model_dump(mode="json")
                    for baseline, own in group.losses.items()
                    if (loss := own.get(section.metric)) is not None
                },
            }
            for section in sections
            for run in section.runs
            for name, groups in run.result.by_group.items()
            for group in groups
        ],
    }


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
                    for subset, items in run.items.weighted(section.metric).items():
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
        {snr: run.items.weighted(section.metric) for snr, run in noisy.items()},
        clean.items.weighted(section.metric),
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
    rates, failed = section.metric in ("wer", "cer"), any_failed(section)
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
                _sigma_cell(one.sigma.within.get(section.language), rates, counted=failed),
                *([_sigma_cell(one.sigma.pooled, rates, counted=failed)] if several else []),
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
    if rates and failed:
        note += " Of items with a transcript under all conditions."
    groups = [Rows(rows)] if rows else []
    return Table(f"Robustness, {section.title}", "System", columns, groups, note=note)


def _sigma_cell(estimate: Estimate | None, rates: bool, *, counted: bool) -> Cell:
    score = None if estimate is None else _score(estimate)
    if score is None or score.value is None or not rates:
        return score_cell(score)
    shown = interval(score, 1, as_percent=True)
    return Cell(number(100 * score.value, 1), tuple(filter(None, (shown, f"n = {score.n}" if counted else ""))))


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


def group_tables(section: Section) -> list[Table]:
    return [table for name in breakdowns(section) if (table := group_table(section, name, _baseline(section)))]


def _baseline(section: Section) -> str:
    return next((b for b in ("text", "clean") if any(run.loss(b) for run in section.runs)), "clean")


def robustness_text(section: Section, sections: Sequence[Section]) -> list[str]:
    """Robustness, and the loss by group under the condition that loses most, as tables for a terminal."""
    found = [plain_table(robustness_table(section, robustness(sections)))]
    for first in range(0, len(section.systems), _TERMINAL_SYSTEMS):
        shown = section.systems[first : first + _TERMINAL_SYSTEMS]
        rows = [rows for name in breakdowns(section) if (rows := _worst_groups(section, shown, name))]
        columns = [(clip(system.name, _TERMINAL_NAME), "") for system in shown]
        found.append(plain_table(Table("", f"Loss against {_baseline(section)}", columns, rows)))
    return [table for table in found if table]


def _worst_groups(section: Section, systems: Sequence[System], breakdown: str) -> Rows | None:
    """The groups under the condition with the highest mean loss of those that have them; None for very many."""
    baseline, losses = _baseline(section), dict[str, list[float]]()
    for run in section.runs:
        loss = run.loss(baseline) if _groups(run, breakdown) else None
        if loss is not None and loss.absolute.value is not None:
            losses.setdefault(run.condition, []).append(loss.absolute.value)
    worst = max(losses, key=lambda condition: statistics.fmean(losses[condition]), default="")
    own = [_groups(system.run(worst), breakdown) for system in systems]
    groups = {label: group for one in reversed(own) for label, group in one.items()}
    if not 1 < len(groups) <= _TERMINAL_GROUPS:
        return None
    rows = [
        Row(
            Head(f"{group_words(group, breakdown)}, n = {group.n}"),
            [_loss_only(section, one.get(label), baseline) for one in own],
        )
        for label, group in groups.items()
    ]
    return Rows(rows, Head(f"by {_lower(measure_of(breakdown)[0])}, {worst}"))


def _loss_only(section: Section, group: Group | None, baseline: str) -> Cell:
    loss = None if group is None else group.losses.get(baseline, {}).get(section.metric)
    rates = metric_of(section.metric).scale == "share"
    return NONE if loss is None else points_cell(loss.absolute) if rates else loss_cell(loss)


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
    value = "" if score is None else full_rate_words(score) if rates else number(score.value)
    loss = group.losses.get(baseline, {}).get(section.metric)
    if loss is None:
        return NONE if not value else Cell(value, (interval(score, 1 if rates else 3, as_percent=rates),))
    if rates:
        return points_cell(loss.absolute, p_value=loss.p_holm, more=value)
    cell = loss_cell(loss)
    return Cell(cell.text, (*cell.below, value), beside=cell.beside)
