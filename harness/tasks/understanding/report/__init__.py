"""The report's part of the understanding task."""

from __future__ import annotations

from collections.abc import Sequence

from ....report.formats import number, percent, plural
from ....report.rendering import markup
from ....report.sections import Section, System
from ....report.task_report import Chain, Context, Step, TaskReport, View, few
from ..terminal import section_table
from .players import question_players
from .tables import (
    HEAT_WORDS,
    breakdown_tables,
    comparison_table,
    details_of,
    judge_notes,
    judge_table,
    label_maps,
    order_table,
    score_table,
    section_title,
    verifier_table,
)


def view(section: Section, context: Context) -> View:
    tables = {
        "scores": score_table(section),
        "comparisons": comparison_table(section),
        "breakdowns": breakdown_tables(section),
        "orders": order_table(section),
        "verifiers": verifier_table(section),
        "judges": judge_table(section),
    }
    players, left_out = question_players(section, context)
    body = markup(
        "tasks/understanding/report/templates/section.html",
        section=section,
        maps=label_maps(section),
        heat_words=HEAT_WORDS,
        judge_notes=judge_notes(section),
        players=players,
        left_out=f"{plural(left_out, 'question')} that would make this file too large" if left_out else "",
        errors=_errors(section),
        **tables,
    )
    warnings = few(section.sizes[0], "question")
    return View([_chain(system) for system in section.systems], [], _facts(section), warnings, body)


def _chain(system: System) -> Chain:
    run = system.runs[0]
    steps = []
    for metric, words in (("mcqa_accuracy_wilson", "multiple choice"), ("aif_prompt_strict_wilson", "instructions")):
        score = run.score(metric)
        if score is not None and score.value is not None:
            ends = "" if score.low is None or score.high is None else f"[{percent(score.low)}, {percent(score.high)}]"
            steps.append(Step(percent(score.value), words, ends))
    return Chain(system.name, system.index, "accuracy", steps, between="·")


def _facts(section: Section) -> list[str]:
    data, first = section.first.data, section.first
    details = details_of(next(section.runs))
    found = [data.source, plural(data.n, "question")]
    if data.audio_s is not None:
        found.append(f"{number(data.audio_s / 60, 1)} min of audio")
    if details.coverage is not None:
        found.append(f"coverage {percent(details.coverage)}")
    if data.missing_audio:
        found.append("missing audio: " + ", ".join(f"{name} {n}" for name, n in data.missing_audio.items()))
    found += [f"prompts {details.prompts_version}", f"seed {first.seed}"]
    return [*found, f"{first.benchmark} benchmark {first.benchmark_version}"]


def _errors(section: Section) -> list[tuple[str, Sequence[tuple[str, int]]]]:
    found = [(system.name, list(details_of(system.runs[0]).errors.items())) for system in section.systems]
    return [(name, errors) for name, errors in found if errors]


REPORT = TaskReport(
    title="Audio understanding: questions and instructions",
    aim="Accuracy of multiple choice, and the share of instructions followed, with 95 % intervals.",
    reading="tasks/understanding/report/templates/reading.html",
    view=view,
    terminal=section_table,
    as_json=lambda _: {},
    section_title=section_title,
)
