"""The report's part of the retrieval task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....report.formats import metric_name, plural
from ....report.rendering import drawing, markup
from ....report.robustness import facts as robustness_facts
from ....report.robustness import group_tables, robustness, robustness_table
from ....report.sections import Section
from ....report.task_report import Context, TaskReport, View
from ..terminal import section_table
from .attribution import TITLE, attributions, classes_table, parts_table
from .clips import choose_clips
from .curves import axis_top, curve_panels
from .headline import chains, facts, lede, warnings
from .rewriting import most_changed, rewriting_table, rewritings
from .scatter import scatter
from .scores import score_table, speed
from .variants import answers, variants
from .worst import worst_cases

if TYPE_CHECKING:
    from markupsafe import Markup

_TEMPLATE = "tasks/retrieval/report/templates/section.html"


def view(section: Section, context: Context) -> View:
    """A section of the page; of imported results the scores alone."""
    if section.imported:
        template = "tasks/retrieval/report/templates/imported.html"
        body = markup(template, anchor=section.anchor, scores=score_table(section))
        return View(chains(section), [], facts(section), warnings(section), body)
    return View(chains(section), lede(section), facts(section), warnings(section), _body(section, context))


def _body(section: Section, context: Context) -> Markup:
    top = axis_top(context.sections)
    if "clips" not in context.cache:
        context.cache["clips"] = choose_clips(context.folder, context.sections, context.audio)
        context.cache["robustness"] = robustness(context.sections)
    cases = worst_cases(section, context.max_worst)
    found, rewritten = attributions(section), rewritings(section)
    return markup(
        _TEMPLATE,
        section=section,
        metric=metric_name(section.metric),
        scores=score_table(section),
        robustness=robustness_table(section, context.cache["robustness"]),
        panels=[(caption, drawing(one)) for caption, one in curve_panels(section, top)],
        groups=group_tables(section),
        attribution=parts_table(section, found),
        attribution_title=TITLE,
        classes=classes_table(section, found),
        answers=answers(section, variants(section)),
        rewriting=rewriting_table(section, rewritten) if rewritten else None,
        rewritten=most_changed(rewritten, context.max_worst),
        cases=cases,
        case_systems=sorted({case.system.index: case.system.name for case in cases}.items()),
        case_conditions=[c for c in section.conditions if any(case.condition == c for case in cases)],
        max_worst=context.max_worst,
        clips=context.cache["clips"][section.anchor],
        **_scatter(section, top),
        **_speed(section, top),
    )


def _scatter(section: Section, top: float) -> Mapping[str, Any]:
    drawn = scatter(section, top)
    if drawn is None:
        return {"scatter": None}
    note = (
        "Numbers beside the points are SNR in dB, R is reverberation; dotted lines are the typed query of each "
        "system, at an error rate of 0."
    )
    if drawn.unlabeled:
        note += f" {drawn.unlabeled} of {plural(drawn.points, 'label')} would overlap and are left out."
    if drawn.left_out:
        note += f" Left out without error rates: {', '.join(drawn.left_out)}."
    shown = [system for system in section.systems if system.name not in drawn.left_out]
    return {"scatter": drawing(drawn.drawing), "scatter_note": note, "scatter_systems": shown}


def _speed(section: Section, top: float) -> Mapping[str, Any]:
    drawn = speed(section, top)
    if drawn is None:
        return {"speed": None}
    note = f"Mean {metric_name(section.metric)} over the conditions that all share: {', '.join(drawn.conditions)}."
    note += " The time of the search is not in RTFx."
    if drawn.left_out:
        note += f" Left out without RTFx or score: {plural(len(drawn.left_out), 'system')}"
        note += f" ({', '.join(drawn.left_out)})."
    return {"speed": drawing(drawn.drawing), "speed_table": drawn.table(section.metric), "speed_note": note}


def as_json(sections: Sequence[Section]) -> dict[str, Any]:
    return {
        **robustness_facts(sections),
        "attribution": [one.as_json() for section in sections for one in attributions(section)],
    }


REPORT = TaskReport(
    title="Retrieval from spoken queries, in noise and reverberation",
    aim="What is lost between typing a query and speaking it, with 95 % intervals.",
    reading="tasks/retrieval/report/templates/reading.html",
    view=view,
    terminal=section_table,
    as_json=as_json,
)
