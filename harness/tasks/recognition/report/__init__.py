"""The report's part of the recognition task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....report.formats import (
    condition_words,
    full_rate_words,
    interval,
    measure_of,
    number,
    plural,
    points,
    signed_percent,
    where_words,
)
from ....report.rendering import drawing, markup
from ....report.robustness import facts, group_tables, robustness, robustness_table
from ....report.sections import Section, System
from ....report.tables import failed_lines
from ....report.task_report import Chain, Context, Prose, Step, Strong, TaskReport, View, few
from ..terminal import section_table
from .effects import effect_tables, effect_verdicts
from .players import pair_players
from .plots import bin_plot, size_plot, speed_plot
from .tables import (
    all_rates_table,
    change_point_table,
    cost_table,
    details_of,
    hardest_condition,
    kinds_table,
    map_tables,
    rates_table,
    spread_table,
)

if TYPE_CHECKING:
    from markupsafe import Markup

_OPEN_MAPS = 2


def view(section: Section, context: Context) -> View:
    if "robustness" not in context.cache:
        context.cache["robustness"] = robustness(context.sections)
    return View(_chains(section), _lede(section), _facts(section), _warnings(section), _body(section, context))


def _body(section: Section, context: Context) -> Markup:
    players, left_out = pair_players(section, context)
    metric = section.metric.upper()
    return markup(
        "tasks/recognition/report/templates/section.html",
        section=section,
        metric=metric,
        rates=rates_table(section),
        all_rates=all_rates_table(section),
        robustness=robustness_table(section, context.cache["robustness"]),
        kinds=kinds_table(section),
        groups=group_tables(section),
        bin_plots=[
            (f"Δ{metric} by {measure_of(measure)[0]}, {condition_words(condition)}", drawing(drawn))
            for condition in section.spoken
            for measure in ("rt60_s", "drr_db")
            if (drawn := bin_plot(section, condition, measure))
        ],
        change_point=change_point_table(section),
        maps=map_tables(section),
        open_maps=_OPEN_MAPS,
        spread=spread_table(section),
        cost=cost_table(section),
        cost_plots=[
            (f"Δ{metric} {words}", drawing(drawn))
            for words, drawn in (("by size", size_plot(section)), ("by speed", speed_plot(section)))
            if drawn
        ],
        verdicts=effect_verdicts(section),
        effects=effect_tables(section),
        players=players,
        left_out=", ".join(left_out),
    )


def _chains(section: Section) -> list[Chain]:
    hardest = hardest_condition(section)
    found = []
    for system in section.systems:
        steps = []
        for condition in dict.fromkeys(("clean", hardest)):
            run = system.run(condition)
            score = None if run is None else run.score()
            if run is not None and score is not None:
                loss = run.loss("clean")
                small = "" if loss is None else f"Δ {points(loss)}"
                words = "clean" if condition == "clean" else where_words(condition)
                steps.append(Step(full_rate_words(score), words, small))
        found.append(Chain(system.name, system.index, section.metric.upper(), steps))
    return found


def _lede(section: Section) -> Prose:
    """What the hardest condition costs the best system on clean speech, and from which RT60 on."""
    plain = [s for s in section.systems if "front_end" not in s.info.components] or section.systems
    scored: list[tuple[float, System]] = [
        (score.ordered_by, system)
        for system in plain
        for run in system.runs[:1]
        if (score := run.score()) is not None and score.value is not None and score.ordered_by is not None
    ]
    if not scored:
        return ["No utterance could be scored."]
    _, best = min(scored, key=lambda pair: (pair[0], pair[1].index))
    metric, condition = section.metric.upper(), hardest_condition(section)
    mildest = best.runs[0]
    ends = f"{full_rate_words(mildest.score())} {interval(mildest.score(), 1, as_percent=True)}"
    parts: list[str] = [Strong(best.name), f" has a {metric} of {ends} {_of(mildest.condition)}"]
    run = best.run(condition)
    loss = None if run is None else run.loss("clean")
    if run is None or run is mildest:
        return [*parts, "."]
    score = run.score()
    parts.append(f" and of {full_rate_words(score)} {interval(score, 1, as_percent=True)} {where_words(condition)}")
    if loss is not None:
        parts += [": ", Strong(f"Δ{metric} {points(loss)}"), " percentage points"]
        if loss.relative.value is not None:
            parts.append(f", {signed_percent(loss.relative.value)} against clean speech")
    parts.append(". ")
    found = details_of(run).change_point
    if found is not None and found.threshold_s == 0:
        parts.append("The loss grows from the shortest RT60 on.")
    elif found is not None and found.threshold_s is not None:
        high = "open" if found.high_s is None else number(found.high_s, 2)
        parts.append(f"It begins at an RT60 of {number(found.threshold_s, 2)} s [{number(found.low_s, 2)}, {high}].")
    elif found is not None:
        parts.append("No reverberation time was found at which a loss begins.")
    return parts


def _of(condition: str) -> str:
    return "on clean speech" if condition == "clean" else where_words(condition)


def _facts(section: Section) -> list[str]:
    first, data = section.first, section.first.data
    rirs = {
        rir for run in section.runs if "rir_id" in run.record.items.column_names
        for rir in run.record.items.column("rir_id").to_pylist() if rir
    }  # fmt: skip
    found = [f"{section.size_words} items of {plural(data.clusters, 'utterance')}"]
    if rirs:
        found.append(plural(len(rirs), "RIR"))
    found.append(f"source {data.source} {data.source_version[:12]}".rstrip())
    found += [f"normalizer {first.system.normalizer} {first.system.normalizer_version}", f"seed {first.seed}"]
    return [*found, f"{first.benchmark} benchmark {first.benchmark_version}"]


def _warnings(section: Section) -> list[str]:
    found = few(section.first.data.clusters, "utterance")
    if any(name.startswith("source_") for run in section.runs for name in run.result.data.edges):
        found.append("RT60 and DRR are the publisher's: there are no impulse responses to measure.")
    if "clean" not in section.conditions:
        found.append("The condition clean was not evaluated, so there are no losses.")
    if failed := failed_lines(section, section.metric):
        found.append(f"An item that failed is in no error rate: {'; '.join(failed)}.")
    return found


REPORT = TaskReport(
    title="Speech recognition, clean and degraded",
    aim="The same utterances clean and degraded: changes of the error rate in percentage points, with 95 % intervals.",
    reading="tasks/recognition/report/templates/reading.html",
    view=view,
    terminal=section_table,
    as_json=facts,
)
