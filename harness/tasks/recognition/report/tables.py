"""The tables: rates, kinds of error, the map, the change point, spread over RIRs, size and speed."""

from __future__ import annotations

from collections.abc import Sequence

from ....report.formats import (
    NARROW_SPACE,
    UNDEFINED,
    condition_words,
    group_words,
    interval,
    memory_words,
    metric_name,
    number,
    parameter_words,
    percent,
    points,
    signed,
)
from ....report.sections import Run, Section, System
from ....report.tables import (
    NONE,
    Cell,
    Head,
    Row,
    Rows,
    Table,
    any_failed,
    by_system,
    conditioned,
    failed_cell,
    failure_words,
    named,
    p_cell,
    points_cell,
    rate_cell,
    relative_cell,
    run_words,
    runs_of,
)
from ....results.envelope import Loss, Score
from ..details import KindRate, RecognitionDetails

HEAT_STEPS = 8
FEW = 10
"""A cell of the map with fewer items is shown pale: its value rests on a handful of utterances."""
KIND_WORDS = {"substitutions": "Substituted", "deletions": "Deleted", "insertions": "Inserted"}
UNIT_WORDS = {"word": "words", "char": "characters"}
MAP = "rt60_s|drr_db"


def details_of(run: Run) -> RecognitionDetails:
    return RecognitionDetails.model_validate(run.result.details)


def terminal_columns(section: Section) -> Sequence[int]:
    """What a terminal has room for of the table of rates: where items failed no relative change, and lines below it."""
    return (0, 1, 2, 3, 5, 6) if any_failed(section) else range(7)


def failure_lines(section: Section) -> list[str]:
    """Where items failed, what else went wrong, one line per run; [] where none failed."""
    if not any_failed(section):
        return []
    found = [(run, failure_words({**run.result.failures, "failed": 0}, run.result.data.n)) for run in section.runs]
    return [f"{run_words(run)}: {words.replace(NARROW_SPACE, ' ')}" for run, words in found if words]


def hardest_condition(section: Section) -> str:
    """The degraded condition with the highest mean error rate, of those that most systems share; `clean` alone."""
    degraded = [condition for condition in section.spoken if condition != "clean"]

    def key(condition: str) -> tuple[int, float]:
        runs = [run for system in section.systems if (run := system.run(condition)) is not None]
        values = [score.value for run in runs if (score := run.score()) is not None and score.value is not None]
        return len(values), sum(values) / len(values) if values else 0.0

    return max(degraded, key=key) if degraded else section.spoken[0]


def rates_table(section: Section) -> Table:
    """Every system under every condition: the main rate, its loss against clean, the other rates, failures."""
    others, failed = [name for name in _rates(section) if name != section.metric], any_failed(section)
    columns = [
        ("n", ""),
        *([("Failed", "items")] if failed else ()),
        (section.metric.upper(), "95 % interval"),
        (f"Δ{section.metric.upper()}", "percentage points"),
        ("Relative", "Δ / clean"),
        ("p", "sign flips"),
        ("RTFx", "audio / time"),
        ("Failures", "items"),
        *((metric_name(name), "mean of items" if name.endswith("_macro") else "all items") for name in others),
    ]
    rows = []
    for system, run in runs_of(section):
        loss, n = run.loss("clean"), run.result.data.n
        cells = [
            Cell(str(n)),
            *([failed_cell(run)] if failed else ()),
            rate_cell(run.score(), "main"),
            NONE if loss is None else points_cell(loss.absolute, "main"),
            relative_cell(loss),
            NONE if loss is None else p_cell(loss.p_value),
            Cell(number(run.result.timing.rtfx, 1)),
            Cell(failure_words({**run.result.failures, "failed": 0}, n) or "0", css="failures", is_text=True),
            *(rate_cell(run.score(name)) for name in others),
        ]
        rows.append((system, Row(conditioned(run.condition), cells)))
    title = f"Error rates, {section.title}"
    return Table(title, "Condition", columns, by_system(section, rows), css="scores", box="long")


def _rates(section: Section) -> list[str]:
    return list(dict.fromkeys(name for run in section.runs for name in run.result.scores))


def all_rates_table(section: Section) -> Table:
    """Every rate, also under other normalizers, with its loss against clean: rates in rows, conditions in columns."""
    groups = []
    for system in section.systems:
        rows = [
            Row(Head(metric_name(name)), [_with_loss(run, name) for run in _aligned(section, system)])
            for name in _rates(section)
        ]
        found = {run.condition: details_of(run).other_normalizers for run in system.runs}
        for normalizer, name in dict.fromkeys(
            (n, m) for own in found.values() for n, rates in own.items() for m in rates
        ):
            cells = []
            for condition in section.spoken:
                other = found.get(condition, {}).get(normalizer, {}).get(name)
                cells.append(NONE if other is None else _rate_with(other.rate, other.loss))
            rows.append(Row(Head(metric_name(name), f"normalizer {normalizer}"), cells))
        groups.append(Rows(rows, named(system)))
    columns = [(condition, "Δ in percentage points") for condition in section.spoken]
    return Table(f"All rates, {section.title}", "Rate", columns, groups)


def _aligned(section: Section, system: System) -> list[Run | None]:
    return [system.run(condition) for condition in section.spoken]


def _with_loss(run: Run | None, metric: str) -> Cell:
    if run is None:
        return NONE
    return _rate_with(run.score(metric), run.loss("clean", metric))


def _rate_with(score: Score | None, loss: Loss | None) -> Cell:
    cell = rate_cell(score)
    return cell if loss is None or score is None else Cell(cell.text, (*cell.below, f"Δ {points(loss)}"))


def kinds_table(section: Section) -> Table:
    """What kind of error a condition adds, per reference token: the change, and below it the rate."""
    found = [(system, run, details_of(run).kinds) for system, run in runs_of(section, without="clean")]
    kinds = list(dict.fromkeys((unit, kind) for _, _, own in found for unit, of in own.items() for kind in of))
    rows = [
        (system, Row(conditioned(run.condition), [_kind_cell(own.get(unit, {}).get(kind)) for unit, kind in kinds]))
        for system, run, own in found
        if own
    ]
    columns = [(f"{KIND_WORDS[kind]} {UNIT_WORDS[unit]}", "points") for unit, kind in kinds]
    note = "Change against clean in percentage points of the reference length, with its interval; below it the rate."
    return Table(f"Kinds of error, {section.title}", "Condition", columns, by_system(section, rows), note=note)


def _kind_cell(found: KindRate | None) -> Cell:
    if found is None:
        return NONE
    change = Cell(UNDEFINED) if found.change is None else points_cell(found.change)
    return Cell(change.text, (*change.below, percent(found.rate.value)))


def map_tables(section: Section) -> list[tuple[str, Table]]:
    """RT60 × DRR of every run that has both, with what its table is of."""
    runs = [(system, run) for system, run in runs_of(section, without="clean") if run.result.by_group.get(MAP)]
    losses = {
        id(run): {g.label: (g, g.losses["clean"][section.metric].absolute) for g in run.result.by_group[MAP]
                  if section.metric in g.losses.get("clean", {})}
        for _, run in runs
    }  # fmt: skip
    most = max((abs(s.value) for own in losses.values() for _, s in own.values() if s.value is not None), default=0.0)
    found = []
    for system, run in runs:
        own = losses[id(run)]
        first, second = (
            [g for g in run.result.by_group.get(name, ()) if g.low is not None or g.high is not None]
            for name in MAP.split("|")
        )
        rows = [
            Row(
                Head(group_words(row, "rt60_s")),
                [_map_cell(own.get(f"{row.label}|{column.label}"), most) for column in second],
            )
            for row in first
        ]
        words = f"{system.name}, {condition_words(run.condition)}"
        caption = f"{words}: Δ{section.metric.upper()} in percentage points"
        columns = [(group_words(column, "drr_db"), "") for column in second]
        title = f"RT60 and DRR, {words}, {section.title}"
        found.append((words, Table(title, "RT60 ↓ DRR →", columns, [Rows(rows)], caption=caption, css="heat")))
    return [(words, table) for words, table in found if table.columns]


def _map_cell(found: tuple[object, Score] | None, most: float) -> Cell:
    if found is None:
        return Cell("no item", css="none", is_text=True)
    _, loss = found
    css = f"{heat(loss.value, most)}{' few' if loss.n < FEW else ''}"
    below = tuple(filter(None, (interval(loss, 0, as_percent=True), f"n = {loss.n}")))
    return Cell(signed(loss.value), below, css=css, is_text=True)


def heat(value: float | None, most: float) -> str:
    """The class of a cell's color: h0 to h8 for a loss, g1 to g8 for a gain.

    >>> heat(0.2, 0.2), heat(0.0, 0.2), heat(-0.1, 0.2), heat(None, 0.2)
    ('h8', 'h0', 'g4', '')
    """
    if value is None:
        return ""
    step = round(HEAT_STEPS * abs(value) / most) if most else 0
    return f"{'g' if value < 0 and step else 'h'}{step}"


def change_point_table(section: Section) -> Table:
    rows = []
    for system, run in runs_of(section, without="clean"):
        found = details_of(run).change_point
        if found is None:
            continue
        point, slope = Cell("none found", css="main"), UNDEFINED
        if found.threshold_s is not None:
            high = "open" if found.high_s is None else number(found.high_s, 2)
            at = "from the shortest RT60 on" if found.threshold_s == 0 else f"{number(found.threshold_s, 2)} s"
            point, slope = Cell(at, (f"[{number(found.low_s, 2)}, {high}]",), css="main"), signed(found.slope_per_s)
        from_ = found.significant_from_s
        first = "no bin" if from_ is None else "all bins" if from_ == 0 else f"over {number(from_, 2)} s"
        cells = [point, Cell(slope), p_cell(found.p_value), Cell(first), Cell(str(found.n))]
        rows.append((system, Row(conditioned(run.condition), cells)))
    columns = [
        ("Change point", "RT60, 95 % interval"),
        ("Slope beyond", "percentage points per s"),
        ("p", "one-sided"),
        ("Bins that lose", "RT60, fixed-sequence test"),
        ("n", ""),
    ]
    return Table(f"Change point, {section.title}", "Condition", columns, by_system(section, rows))


def spread_table(section: Section) -> Table:
    rows = [
        (
            system,
            Row(
                conditioned(run.condition),
                [_spread(score) for score in (found.within_utterances, found.between_rirs, found.rir_component)],
            ),
        )
        for system, run in runs_of(section, without="clean")
        if (found := details_of(run).spread) is not None
    ]
    columns = [
        ("One utterance, several RIRs", "σ, percentage points"),
        ("Between RIRs", "σ as observed"),
        ("Between RIRs, chance removed", "σ, variance component"),
    ]
    return Table(f"Spread over RIRs, {section.title}", "Condition", columns, by_system(section, rows))


def _spread(score: Score) -> Cell:
    if score.value is None:
        return NONE
    shown = interval(score, 1, as_percent=True)
    return Cell(number(100 * score.value, 1), tuple(filter(None, (shown, f"n = {score.n}"))))


def cost_table(section: Section) -> Table:
    condition = hardest_condition(section)
    front = pareto(section)
    rows = []
    for system in section.systems:
        loss = loss_of(system, condition)
        timings = [run.result.timing for run in system.runs]
        latency = next((timing.latency for timing in timings if timing.latency is not None), None)
        alone = next((timing.isolated for timing in timings if timing.isolated is not None), None)
        cells = [
            Cell(parameter_words(system.info.parameters)),
            NONE if loss is None else points_cell(loss),
            Cell(number(system.rtfx, 1), css="main"),
            Cell(number(None if latency is None else latency.p50_s, 2)),
            Cell(number(None if latency is None else latency.p95_s, 2)),
            Cell(memory_words(None if alone is None else alone.peak_memory_mb)),
            Cell(memory_words(None if alone is None else alone.peak_gpu_memory_mb)),
        ]
        best = "Pareto front" if system in front and len(section.systems) > 1 else ""
        rows.append(Row(named(system, best), cells))
    columns = [
        ("Parameters", "transcriber"),
        (f"Δ{section.metric.upper()}", condition_words(condition)),
        ("RTFx", "audio / time"),
        ("Latency", "p50, s"),
        ("Latency", "p95, s"),
        ("Memory", "host, peak"),
        ("Memory", "GPU, peak"),
    ]
    note = (
        "RTFx: seconds of audio per second of front end and transcriber, over all clips. Latency and memory: clips "
        "transcribed one at a time by a process that holds this system alone; a dash: not measured (--latency). The "
        "dotted line in the plot joins the systems that no other beats in both speed and loss."
    )
    return Table(f"Cost, {section.title}", "System", columns, [Rows(rows)], note=note)


def loss_of(system: System, condition: str) -> Score | None:
    run = system.run(condition)
    loss = None if run is None else run.loss("clean")
    return None if loss is None else loss.absolute


def pareto(section: Section) -> Sequence[System]:
    """The systems that no other beats in both: as fast and a smaller loss, or faster and as small a loss.

    With failed items a loss is the largest that it can be.
    """
    condition = hardest_condition(section)
    placed = [
        (system, rtfx, loss.ordered_by)
        for system in section.systems
        if (rtfx := system.rtfx)
        and (loss := loss_of(system, condition)) is not None
        and loss.value is not None
        and loss.ordered_by is not None
    ]

    def beaten(rtfx: float, loss: float) -> bool:
        return any(a >= rtfx and b <= loss and (a > rtfx or b < loss) for _, a, b in placed)

    return [system for system, rtfx, loss in placed if not beaten(rtfx, loss)]
