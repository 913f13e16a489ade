"""The tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...answers.labels import PERCEPTION, REASONING
from ...escucha.results import Aif, Paired, Result, Slice
from ...results.old import Score
from ..formats import UNDEFINED, escape, interval, number, percent
from ..tables import scrollable
from .data import signed_points

FEW = 10
"""A cell of the map with fewer items is in italics: its interval is wider than what it could say."""
_BREAKDOWNS: Mapping[str, str] = {
    "perception": "By what must be heard",
    "reasoning": "By what must be thought",
    "options": "By number of options",
    "comparative": "One sound or two (comparative)",
    "duration": "By length of the sound",
    "aetiology": "Non-normative speech: aetiology",
    "intelligibility": "Non-normative speech: intelligibility",
    "sex": "Non-normative speech: sex of the speaker",
}


def score_table(results: Sequence[Result]) -> str:
    """Answerers with all scores of both kinds, what was not parsed, and what failed."""
    head = _head(
        ("Answerer", False),
        ("All<small>mean of both kinds</small>", True),
        ("Multiple choice<small>accuracy</small>", True),
        ("Chance", True),
        ("Above chance<small>(acc − c) / (1 − c)</small>", True),
        ("Among parsed", True),
        ("Unparsed<small>ambiguous, absent, empty, missing</small>", True),
        ("Instructions<small>all followed, strict</small>", True),
        ("Loose", True),
        ("Single instruction<small>strict</small>", True),
        ("Failed<small>cut reply, cut sound</small>", True),
    )
    return scrollable(
        f'<table class="scores">{head}<tbody>{"".join(map(_score_row, results))}</tbody></table>', "Scores"
    )


def _score_row(result: Result) -> str:
    mcqa, aif, failures = result.mcqa, result.aif, result.failures
    role = {"answerer": "", "control": "<small>control: no sound</small>", "ready": "<small>made elsewhere</small>"}
    counts = mcqa.counts if mcqa else {}
    unparsed = ", ".join(str(counts[name]) for name in ("ambiguous", "absent", "empty", "missing")) if mcqa else ""
    css = ' class="typed"' if result.answerer.role == "control" else ""
    cells = [
        f'<th scope="row">{escape(result.answerer.name)}{role[result.answerer.role]}</th>',
        _cell(result.overall),
        _cell(mcqa.scores["accuracy_wilson"] if mcqa else None, "main"),
        _cell(mcqa.scores["chance"] if mcqa else None),
        _cell(mcqa.scores["accuracy_corrected"] if mcqa else None),
        _cell(mcqa.scores["accuracy_parsed"] if mcqa else None),
        _cell(mcqa.scores["unparsed"] if mcqa else None, more=unparsed),
        _cell(aif.scores["prompt_strict_wilson"] if aif else None, "main"),
        _cell(aif.scores["prompt_loose"] if aif else None),
        _cell(aif.scores["instruction_strict"] if aif else None),
        f'<td class="num">{failures.failed}<small>{failures.truncated}, {failures.audio_truncated}</small></td>',
    ]
    return f"<tr{css}>{''.join(cells)}</tr>"


def control_table(results: Sequence[Result]) -> str:
    """Paired comparisons: against the text alone, another order of options, and spoken against written questions."""
    rows = []
    for result in results:
        named = {
            "sound, against the text alone": result.controls.get("text_only"),
            "own order of options, against another": result.controls.get("shuffled"),
        }
        pairs = [(words, control.mcqa, control.aif) for words, control in named.items() if control is not None]
        spoken = (result.mcqa.spoken if result.mcqa else None, result.aif.spoken if result.aif else None)
        if any(spoken):
            pairs.append(("spoken question, against the written one", *spoken))
        for words, mcqa, aif in pairs:
            name = f'<th scope="row">{escape(result.answerer.name)}<small>{words}</small></th>'
            rows.append(f"<tr>{name}{_pair_cells(mcqa)}{_pair_cells(aif)}</tr>")
    if not rows:
        return '<p class="note">No control was asked.</p>'
    kinds = (("Multiple choice", 3), ("Instructions", 3))
    top = "".join(f'<th scope="colgroup" colspan="{n}" class="num">{name}</th>' for name, n in kinds)
    below = '<th scope="col" class="num">difference, points</th><th class="num">p</th><th class="num">n</th>' * 2
    head = f'<thead><tr><th scope="col" rowspan="2">Comparison</th>{top}</tr><tr>{below}</tr></thead>'
    return scrollable(f'<table class="scores">{head}<tbody>{"".join(rows)}</tbody></table>', "Comparisons")


def _pair_cells(pair: Paired | None) -> str:
    if pair is None:
        return f'<td class="num none">{UNDEFINED}</td>' * 3
    shown = f"<small>{percent(pair.first)} against {percent(pair.second)}</small>"
    return (
        f'<td class="num">{signed_points(pair.difference)}{shown}</td>'
        f'<td class="num">{number(pair.p_value)}</td><td class="num">{pair.n}</td>'
    )


def breakdown_tables(results: Sequence[Result]) -> str:
    """Accuracy of multiple choice in every slice, answerers side by side."""
    parts = []
    for name, title in _BREAKDOWNS.items():
        found = [result.mcqa.breakdowns.get(name, {}) if result.mcqa else {} for result in results]
        slices = list(dict.fromkeys(one for each in found for one in each))
        if not slices:
            continue
        rows = []
        for one in slices:
            first = next(each[one] for each in found if one in each)
            missing = f", {first.missing_audio} without sound" if first.missing_audio else ""
            cells = "".join(_slice_cell(each.get(one)) for each in found)
            shown = f"{escape(one.replace('_', ' '))}<small>n = {first.n}{missing}</small>"
            rows.append(f'<tr><th scope="row">{shown}</th>{cells}</tr>')
        head = _head(("", False), *((escape(result.answerer.name), True) for result in results))
        table = f'<table class="bins"><caption>{title}</caption>{head}<tbody>{"".join(rows)}</tbody></table>'
        parts.append(f"<div>{scrollable(table, title)}</div>")
    return f'<div class="panels">{"".join(parts)}</div>' if parts else ""


def _slice_cell(found: Slice | None) -> str:
    if found is None or not found.n:
        return f'<td class="num none">{UNDEFINED}</td>'
    score = found.scores["accuracy_wilson"]
    return _cell(score, more=f"chance {percent(found.scores['chance'].value, 0)}")


def label_map(result: Result) -> str:
    """Perception × reasoning: accuracy above chance, with the number of items; "" without multiple choice."""
    slices = result.mcqa.breakdowns.get("perception|reasoning", {}) if result.mcqa else {}
    if not slices:
        return ""
    pairs = [name.split("|") for name in slices]
    rows = [name for name in PERCEPTION if any(one == name for one, _ in pairs)]
    columns = [name for name in REASONING if any(other == name for _, other in pairs)]
    heads = "".join(f'<th scope="col">{escape(name.replace("_", " "))}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(row.replace("_", " "))}</th>'
        f"{''.join(_map_cell(slices.get(f'{row}|{column}')) for column in columns)}</tr>"
        for row in rows
    )
    table = f'<table class="map"><thead><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f"<h4>{escape(result.answerer.name)}</h4>{scrollable(table, f'Map of {result.answerer.name}')}"


def _map_cell(found: Slice | None) -> str:
    if found is None or not found.n:
        return f'<td class="none">{UNDEFINED}</td>'
    score, above = found.scores["accuracy_wilson"], found.scores["accuracy_corrected"].value
    rare = " few" if found.n < FEW else ""
    return (
        f'<td class="{heat(above)}{rare}" title="{escape(interval(score, 0, as_percent=True))} %">'
        f"{percent(score.value, 0)}<small>n = {found.n}</small></td>"
    )


def heat(above_chance: float | None) -> str:
    """The color class of an accuracy above chance: orange below it, blue above.

    >>> heat(-0.5), heat(0.0), heat(0.9), heat(None)
    ('heat0', 'heat3', 'heat5', '')
    """
    if above_chance is None:
        return ""
    edges = (-0.3, -0.1, 0.0, 0.2, 0.5)
    return f"heat{sum(above_chance >= edge for edge in edges)}"


def verifier_table(results: Sequence[Result]) -> str:
    """How often each kind of instruction was followed."""
    found: list[Aif] = [result.aif for result in results if result.aif is not None]
    names = list(dict.fromkeys(name for aif in found for name in aif.verifiers))
    if not names:
        return '<p class="note">No instructions were asked.</p>'
    rows = []
    for name in names:
        cells = "".join(
            _cell(aif.verifiers[name].scores["instruction_strict"])
            if name in aif.verifiers
            else f'<td class="num none">{UNDEFINED}</td>'
            for aif in found
        )
        n = next(aif.verifiers[name].n for aif in found if name in aif.verifiers)
        rows.append(f'<tr><th scope="row">{escape(name.replace("_", " "))}<small>n = {n}</small></th>{cells}</tr>')
    head = _head(("Instruction", False), *((escape(r.answerer.name), True) for r in results if r.aif is not None))
    return scrollable(f'<table class="bins">{head}<tbody>{"".join(rows)}</tbody></table>', "Instructions")


def position_table(results: Sequence[Result]) -> str:
    """Which places were chosen, and how consistent choices are over orders."""
    rows = []
    for result in results:
        bias = result.mcqa.position_bias if result.mcqa else None
        if result.mcqa is None or bias is None:
            continue
        chosen = " ".join(f"{escape(letter)} {n}" for letter, n in bias["chosen"].items())
        right = " ".join(f"{escape(letter)} {n}" for letter, n in bias["right"].items())
        rows.append(
            f'<tr><th scope="row">{escape(result.answerer.name)}</th><td>{chosen}<small>right: {right}</small></td>'
            f'<td class="num">{number(bias["rstd"])}</td><td class="num">{number(bias["p_value"])}</td>'
            f"{_cell(result.mcqa.scores.get('consistency'))}{_cell(result.mcqa.scores.get('accuracy_all_orders'))}</tr>"
        )
    if not rows:
        return ""
    head = _head(
        ("Answerer", False),
        ("Places chosen", False),
        ("RStd of recalls", True),
        ("p: no preference", True),
        ("Same option in two orders", True),
        ("Right in all orders", True),
    )
    return scrollable(f'<table class="scores">{head}<tbody>{"".join(rows)}</tbody></table>', "Places")


def judge_table(results: Sequence[Result]) -> str:
    """The marks of judges on open-ended replies, and how far they agree; "" without any."""
    rows, agreements = [], []
    for result in results:
        if result.open_ended is None:
            continue
        for judge in result.open_ended.judges:
            mark = judge.mark
            ends = interval(mark, 2)
            rows.append(
                f'<tr><th scope="row">{escape(result.answerer.name)}</th><td>{escape(judge.name)}</td>'
                f'<td class="num">{number(mark.value, 2)}<small>{ends}</small></td><td class="num">{judge.n}</td>'
                f'<td class="num">{judge.failed}</td></tr>'
            )
        agreements += [
            f"{escape(result.answerer.name)}: {escape(one.first)} and {escape(one.second)} give the same mark to "
            f"{percent(one.equal)} of {one.n}, weighted kappa {number(one.kappa, 2)}"
            for one in result.open_ended.agreement
        ]
    if not rows:
        return ""
    head = _head(("Answerer", False), ("Judge", False), ("Mean mark (1 to 5)", True), ("n", True), ("No mark", True))
    table = scrollable(f"<table>{head}<tbody>{''.join(rows)}</tbody></table>", "Judges")
    return table + "".join(f'<p class="note">{line}.</p>' for line in agreements)


def _head(*cells: tuple[str, bool]) -> str:
    """Column heads (HTML), each with whether it stands over numbers."""
    shown = "".join(f'<th scope="col"{" class=num" if is_number else ""}>{text}</th>' for text, is_number in cells)
    return f"<thead><tr>{shown}</tr></thead>"


def _cell(score: Score | None, css: str = "", *, more: str = "") -> str:
    if score is None or score.value is None:
        return f'<td class="num none">{UNDEFINED}</td>'
    ends = interval(score, 1, as_percent=True)
    small = " · ".join(part for part in (ends, more) if part)
    return f'<td class="num {css}">{percent(score.value)}{f"<small>{small}</small>" if small else ""}</td>'
