"""The tables of a section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....report.formats import interval, number, percent, points
from ....report.sections import Run, Section, System
from ....report.tables import NONE, Cell, Head, Row, Rows, Table, named, p_cell, rate_cell
from ....results.envelope import Group, Loss, Score
from ..answers.labels import PERCEPTION, REASONING
from ..details import Paired, UnderstandingDetails

FEW = 10
"""A cell of the map with fewer items is in italics: its interval is wider than what it could say."""
HEAT_WORDS = ((0, "far below chance"), (2, "below"), (3, "above"), (5, "far above chance"))
_HEAT_EDGES = (-0.3, -0.1, 0.0, 0.2, 0.5)
_BREAKDOWNS: Mapping[str, str] = {
    "perception": "By label of perception", "reasoning": "By label of reasoning", "options": "By number of options",
    "comparative": "One clip or two (comparative)", "duration": "By length of the audio",
    "question": "Written or spoken question", "aetiology": "Non-normative speech: aetiology",
    "intelligibility": "Non-normative speech: intelligibility", "sex": "Non-normative speech: sex of the speaker",
}  # fmt: skip
TERMINAL_BREAKDOWNS = ("perception", "reasoning")
TERMINAL_COLUMNS = (1, 2, 6, 7, 9)
COMPARISONS = (
    ("text-only", "audio against text only"),
    ("shuffled", "own order of options against another"),
    ("spoken", "spoken question against the written one"),
)


_CONFIGS = {
    "all": "All questions",
    "mcqa": "Multiple choice",
    "aif": "Instructions",
    "comparative": "Two clips compared",
    "spoken": "Spoken questions",
    "non_normative": "Non-normative speech",
}


def section_title(section: Section) -> str:
    name = _CONFIGS.get(section.scope, section.scope)
    return f"{name} ({section.mark})" if section.mark else name


def details_of(run: Run) -> UnderstandingDetails:
    return UnderstandingDetails.model_validate(run.result.details)


def with_details(section: Section) -> Iterator[tuple[System, Run, UnderstandingDetails]]:
    for system in section.systems:
        yield system, system.runs[0], details_of(system.runs[0])


def score_table(section: Section) -> Table:
    columns = [
        ("All", "mean of all items"),
        ("Multiple choice", "accuracy"),
        ("Chance", ""),
        ("Above chance", "(acc − c) / (1 − c)"),
        ("Among parsed", ""),
        ("Unparsed", "ambiguous, absent, empty, missing"),
        ("Instructions", "all followed, strict"),
        ("Loose", ""),
        ("Single instruction", "strict"),
        ("Failed", "cut reply, cut audio"),
    ]
    rows = [_score_row(*one) for one in with_details(section)]
    return Table("Scores", "System", columns, [Rows(rows)], css="scores")


def _score_row(system: System, run: Run, details: UnderstandingDetails) -> Row:
    counts = details.mcqa.counts if details.mcqa else {}
    failures = run.result.failures
    reference = run.result.system.reference
    cut = f"{failures.get('truncated', 0)}, {failures.get('audio_truncated', 0)}"
    cells = [
        rate_cell(run.score("accuracy")),
        rate_cell(run.score("mcqa_accuracy_wilson"), "main"),
        rate_cell(run.score("mcqa_chance")),
        rate_cell(run.score("mcqa_accuracy_corrected")),
        rate_cell(run.score("mcqa_accuracy_parsed")),
        rate_cell(run.score("mcqa_unparsed"), below=", ".join(str(n) for n in counts.values())),
        rate_cell(run.score("aif_prompt_strict_wilson"), "main"),
        rate_cell(run.score("aif_prompt_loose")),
        rate_cell(run.score("aif_instruction_strict")),
        Cell(str(failures.get("failed", 0)), (cut,)),
    ]
    return Row(named(system, "text-only baseline" if reference else ""), cells, css="typed" if reference else "")


def pairs_of(details: UnderstandingDetails) -> dict[str, tuple[Paired | None, Paired | None]]:
    """The comparisons of a system by name: of multiple choice and of instructions."""
    found = {name: (one.mcqa, one.aif) for name, one in details.baselines.items()}
    spoken = (details.mcqa.spoken if details.mcqa else None, details.aif.spoken if details.aif else None)
    return {**found, "spoken": spoken} if any(spoken) else found


def comparison_table(section: Section) -> Table:
    kinds = ("Multiple choice", "Instructions")
    columns = [column for name in kinds for column in ((name, "difference, points"), ("p", ""), ("n", ""))]
    rows = [
        Row(named(system, words), [cell for pair in pairs[name] for cell in _pair(pair)])
        for system, _, details in with_details(section)
        for pairs in (pairs_of(details),)
        for name, words in COMPARISONS
        if name in pairs
    ]
    return Table("Comparisons", "Comparison", columns, [Rows(rows)] if rows else [], css="scores")


def _pair(pair: Paired | None) -> list[Cell]:
    if pair is None:
        return [NONE] * 3
    shown = f"{percent(pair.first)} against {percent(pair.second)}"
    return [Cell(difference_words(pair.difference), (shown,)), p_cell(pair.p_value), Cell(str(pair.n))]


def difference_words(score: Score) -> str:
    """A difference in percentage points with its interval and its sign.

    >>> difference_words(Score(value=0.125, low=-0.01, high=0.26, n=8))
    '+12.5 [−1.0, 26.0]'
    """
    return points(Loss(absolute=score, relative=Score(value=None, n=score.n)))


def groups_of(run: Run, breakdown: str) -> dict[str, Group]:
    return {g.label: g for g in run.result.by_group.get(breakdown, ()) if "mcqa_accuracy_wilson" in g.scores}


def breakdown_tables(section: Section, names: Sequence[str] = ()) -> list[Table]:
    """Accuracy of multiple choice in every group of these breakdowns (all if []), systems side by side."""
    found = []
    for name, title in _BREAKDOWNS.items():
        if names and name not in names:
            continue
        own = [groups_of(run, name) for _, run, _ in with_details(section)]
        rows = []
        for label in dict.fromkeys(label for each in own for label in each):
            first = next(each[label] for each in own if label in each)
            missing = first.counts.get("missing_audio", 0)
            small = f"n = {first.scores['mcqa_accuracy_wilson'].n}" + (f", {missing} without audio" if missing else "")
            rows.append(Row(Head(label.replace("_", " "), small), [_group_cell(each.get(label)) for each in own]))
        if rows:
            found.append(Table(title, title.removeprefix("By "), _names(section), [Rows(rows)], caption=title))
    return found


def _names(section: Section) -> list[tuple[str, str]]:
    return [(system.name, "") for system in section.systems]


def _group_cell(group: Group | None) -> Cell:
    if group is None:
        return NONE
    chance = group.scores.get("mcqa_chance")
    words = "" if chance is None else f"chance {percent(chance.value, 0)}"
    return rate_cell(group.scores["mcqa_accuracy_wilson"], below=words)


def label_maps(section: Section) -> list[Table]:
    """Perception × reasoning of every system: accuracy, colored by how far it is above chance."""
    found = []
    for system, run, _ in with_details(section):
        groups = groups_of(run, "perception|reasoning")
        pairs = [label.split("|") for label in groups]
        rows = [name for name in PERCEPTION if any(one == name for one, _ in pairs)]
        columns = [name for name in REASONING if any(other == name for _, other in pairs)]
        if not rows:
            continue
        body = [
            Row(Head(row.replace("_", " ")), [_map_cell(groups.get(f"{row}|{column}")) for column in columns])
            for row in rows
        ]
        heads = [(column.replace("_", " "), "") for column in columns]
        found.append(Table(f"Map of {system.name}", "", heads, [Rows(body)], caption=system.name, css="map"))
    return found


def _map_cell(group: Group | None) -> Cell:
    if group is None or not group.n:
        return NONE
    score, above = group.scores["mcqa_accuracy_wilson"], group.scores["mcqa_accuracy_corrected"].value
    css = f"{heat(above)}{' few' if score.n < FEW else ''}"
    ends = f"{interval(score, 0, as_percent=True)} %"
    return Cell(percent(score.value, 0), (f"n = {score.n}",), css=css, title=ends, is_text=True)


def heat(above_chance: float | None) -> str:
    """The color class of an accuracy above chance: orange below it, blue above.

    >>> heat(-0.5), heat(0.0), heat(0.9), heat(None)
    ('heat0', 'heat3', 'heat5', '')
    """
    return "" if above_chance is None else f"heat{sum(above_chance >= edge for edge in _HEAT_EDGES)}"


def verifier_table(section: Section) -> Table:
    own = [{g.label: g for g in d.aif.verifiers} if d.aif else {} for _, _, d in with_details(section)]
    rows = []
    for name in dict.fromkeys(name for each in own for name in each):
        n = next(each[name].n for each in own if name in each)
        cells = [rate_cell(each[name].scores["instruction_strict"]) if name in each else NONE for each in own]
        rows.append(Row(Head(name.replace("_", " "), f"n = {n}"), cells))
    return Table("Instructions", "Instruction", _names(section), [Rows(rows)] if rows else [])


def order_table(section: Section) -> Table:
    columns = [
        ("Places chosen", "and right"),
        ("RStd of recalls", ""),
        ("p", "no preference"),
        ("Same option in two orders", ""),
        ("Right in all orders", ""),
    ]
    rows = []
    for system, run, details in with_details(section):
        bias = details.mcqa.position_bias if details.mcqa else None
        if bias is None:
            continue
        chosen, right = (" ".join(f"{letter} {n}" for letter, n in bias[side].items()) for side in ("chosen", "right"))
        cells = [
            Cell(chosen, (f"right: {right}",), is_text=True),
            Cell(number(bias["rstd"])),
            Cell(number(bias["p_value"])),
            rate_cell(run.score("mcqa_consistency")),
            rate_cell(run.score("mcqa_accuracy_all_orders")),
        ]
        rows.append(Row(named(system), cells))
    return Table("Option orders", "System", columns, [Rows(rows)] if rows else [], css="scores")


def judge_table(section: Section) -> Table:
    columns = [("Mean mark", "1 to 5"), ("n", ""), ("No mark", "replies")]
    rows = [
        Row(
            named(system, f"judge {judge.name}"),
            [
                Cell(number(judge.mark.value, 2), tuple(filter(None, (interval(judge.mark, 2),)))),
                Cell(str(judge.n)),
                Cell(str(judge.failed)),
            ],
        )
        for system, _, details in with_details(section)
        if details.open_ended is not None
        for judge in details.open_ended.judges
    ]
    return Table("Judges", "System", columns, [Rows(rows)] if rows else [])


def judge_notes(section: Section) -> Sequence[str]:
    return [
        f"{system.name}: {one.first} and {one.second} give the same mark to {percent(one.equal)} of {one.n}, weighted "
        f"kappa {number(one.kappa, 2)}."
        for system, _, details in with_details(section)
        if details.open_ended is not None
        for one in details.open_ended.agreement
    ]
