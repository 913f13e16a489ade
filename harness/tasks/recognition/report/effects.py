"""Does a front end help, by how much, at what cost, for which RIRs: paired against no front end."""

from __future__ import annotations

from ....report.formats import group_words, measure_of, metric_name, number, where_words
from ....report.robustness import breakdowns
from ....report.sections import Run, Section, System
from ....report.tables import (
    NONE,
    SIGNIFICANT,
    Cell,
    Head,
    Row,
    Rows,
    Table,
    by_system,
    conditioned,
    named,
    points_cell,
)
from ....report.task_report import Prose, Strong
from ....results.envelope import Group, Loss
from .tables import details_of

BASELINE = "no-front-end"


def _found(section: Section) -> list[tuple[System, list[Run]]]:
    found = [(system, [run for run in system.runs if run.loss(BASELINE)]) for system in section.systems]
    return [(system, runs) for system, runs in found if runs]


def effect_verdicts(section: Section) -> list[Prose]:
    return [_verdict(section, system, runs) for system, runs in _found(section)]


def _verdict(section: Section, system: System, runs: list[Run]) -> Prose:
    info = system.info
    parts: list[str] = [Strong(info.component_name("front_end")), f" before {info.component_name('transcriber')}: "]
    clauses = [f"{_where(run.condition)} it {_does(section, run.loss(BASELINE))}" for run in reversed(runs)]
    parts.append("; ".join(clauses) + ".")
    for run in runs:
        for better, verb in ((True, "helps"), (False, "harms")):
            bins = _bins_that(section, run, better=better)
            if bins:
                place = "in every bin of RT60" if len(bins) == len(_bins(run)) else f"where RT60 is {' or '.join(bins)}"
                parts.append(f" {_where(run.condition).capitalize()} it clearly {verb} {place}.")
    cost = next((cost for run in runs if (cost := details_of(run).front_end_cost) is not None), None)
    if cost is not None:
        parts.append(f" It takes {number(cost, 3)} s per second of audio.")
    return parts


def _where(condition: str) -> str:
    return "on clean speech" if condition == "clean" else where_words(condition)


def _does(section: Section, loss: Loss | None) -> str:
    value = None if loss is None else loss.absolute.value
    if loss is None or value is None:
        return "cannot be judged"
    if not value:
        return f"leaves {section.metric.upper()} unchanged"
    size = f"{number(100 * abs(value), 1)} points {_size_interval(loss, value)}".strip()
    change = f"{'lowers' if value < 0 else 'raises'} {section.metric.upper()} by {size}"
    return change if _clear(loss) else f"{change}, which may be chance (p {number(loss.p_value, 2)})"


def _size_interval(loss: Loss, value: float) -> str:
    low, high = loss.absolute.low, loss.absolute.high
    if low is None or high is None:
        return ""
    low, high = (low, high) if value >= 0 else (-high, -low)
    return f"[{number(100 * low, 1)}, {number(100 * high, 1)}]"


def _clear(loss: Loss) -> bool:
    return loss.p_value is not None and loss.p_value < SIGNIFICANT


def _bins(run: Run) -> list[str]:
    return [group.label for group in run.result.by_group.get("rt60_s", ()) if BASELINE in group.losses]


def _bins_that(section: Section, run: Run, *, better: bool) -> list[str]:
    found = []
    for group in run.result.by_group.get("rt60_s", ()):
        loss = group.losses.get(BASELINE, {}).get(section.metric)
        if loss is not None and _clear(loss) and ((loss.absolute.value or 0.0) < 0) == better:
            found.append(group_words(group, "rt60_s"))
    return found


def effect_tables(section: Section) -> list[Table]:
    found = _found(section)
    if not found:
        return []
    metrics = [name for name in section.first.scores if not name.endswith("_macro")]
    rows = []
    for system, runs in found:
        for run in runs:
            details = details_of(run)
            change = details.loss_change.get(section.metric)
            cells = [_cell(run.loss(BASELINE, name)) for name in metrics]
            cells += [_cell(change), Cell(number(details.front_end_cost, 3)), Cell(number(run.result.timing.rtfx, 1))]
            rows.append((system, Row(conditioned(run.condition), cells)))
    columns = [(metric_name(name), "points") for name in metrics]
    columns += [
        (f"Δ{section.metric.upper()}", "loss against clean, points"),
        ("Cost", "s per s of audio"),
        ("RTFx", ""),
    ]
    note = (
        "With minus without the front end, over the same items: below 0 it helps. Intervals resample utterances; p is "
        "the two-sided sign-flip test. Bold: p below 0.05, of single tests, not corrected over the table."
    )
    whole = Table(f"Front ends, {section.title}", "Condition", columns, by_system(section, rows), note=note)
    return [whole, *(table for name in breakdowns(section) if (table := _by_group(section, name)))]


def _by_group(section: Section, breakdown: str) -> Table:
    rows: list[tuple[Head, dict[str, Group]]] = []
    heads: dict[str, tuple[str, str]] = {}
    for system, runs in _found(section):
        for run in runs:
            groups = {g.label: g for g in run.result.by_group.get(breakdown, ()) if BASELINE in g.losses}
            heads |= {label: (group_words(g, breakdown), f"n = {g.n}") for label, g in groups.items()}
            rows.append((named(system, run.condition), groups))
    body = [
        Row(head, [_cell(own[label].losses[BASELINE].get(section.metric)) if label in own else NONE for label in heads])
        for head, own in rows
        if own
    ]
    title = f"Change of {section.metric.upper()} by {measure_of(breakdown)[0]}"
    groups_ = [Rows(body)] if body else []
    return Table(f"{title}, {section.title}", "Front end and transcriber", list(heads.values()), groups_, caption=title)


def _cell(loss: Loss | None) -> Cell:
    return NONE if loss is None else points_cell(loss.absolute, p_value=loss.p_value)
