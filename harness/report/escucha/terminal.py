"""The scores as plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ...answers.labels import PERCEPTION, REASONING
from ...escucha.results import Paired, Result, Slice
from ...results.old import Score
from ..formats import UNDEFINED, interval, number, percent, plural
from ..terminal import clip, display_width, printable
from .data import NARROW_SPACE, ordered, signed_points

MOST_COLUMNS = 118


def summary_tables(results: Sequence[Result]) -> str:
    """Per config the scores with 95 % intervals, the controls, and accuracy by label; "" for no results."""
    configs = dict.fromkeys(result.data.config for result in results)
    return "\n\n".join(_config([result for result in ordered(results) if result.data.config == c]) for c in configs)


def _config(results: Sequence[Result]) -> str:
    data = results[0].data
    words = [f"{data.name}, {data.config}: {plural(data.n, 'question')}"]
    if data.missing_audio:
        missing = ", ".join(f"{status} {n}" for status, n in data.missing_audio.items())
        words.append(f"coverage {_flat(percent(data.coverage))} (missing sound: {missing})")
    lines = ["; ".join(words)]
    if data.partial:
        lines.append(f"PARTIAL: {data.n} of {data.n_total} questions. Compare these numbers with no full result.")
    tables = [_scores(results), _controls(results), _labels(results, "perception"), _labels(results, "reasoning")]
    return "\n".join([*lines, "\n\n".join(table for table in tables if table)])


def _scores(results: Sequence[Result]) -> str:
    head = ("answerer", "MCQA accuracy", "chance", "above chance", "unparsed", "AIF followed", "instructions", "failed")
    rows = [head]
    for result in results:
        mcqa, aif = result.mcqa, result.aif
        rows.append(
            (
                printable(result.answerer.name),
                _value(mcqa.scores["accuracy_wilson"] if mcqa else None),
                _share(mcqa.scores["chance"] if mcqa else None),
                _value(mcqa.scores["accuracy_corrected"] if mcqa else None),
                _share(mcqa.scores["unparsed"] if mcqa else None),
                _value(aif.scores["prompt_strict_wilson"] if aif else None),
                _share(aif.scores["instruction_strict"] if aif else None),
                str(result.failures.failed),
            )
        )
    return _table(rows)


def _controls(results: Sequence[Result]) -> str:
    rows = [("comparison, in points", "MCQA", "p", "n", "AIF", "p", "n")]
    for result in results:
        named = {
            "sound − text alone": result.controls.get("text_only"),
            "own − other order": result.controls.get("shuffled"),
        }
        for words, control in named.items():
            if control is not None:
                rows.append((f"{printable(result.answerer.name)}: {words}", *_pair(control.mcqa), *_pair(control.aif)))
        spoken = (result.mcqa.spoken if result.mcqa else None, result.aif.spoken if result.aif else None)
        if any(spoken):
            rows.append((f"{printable(result.answerer.name)}: spoken − written", *_pair(spoken[0]), *_pair(spoken[1])))
    return _table(rows) if len(rows) > 1 else ""


def _labels(results: Sequence[Result], breakdown: str) -> str:
    known = PERCEPTION if breakdown == "perception" else REASONING
    found = [result.mcqa.breakdowns.get(breakdown, {}) if result.mcqa else {} for result in results]
    names = [name for name in known if any(name in slices for slices in found)]
    if not names:
        return ""
    rows = [(f"MCQA by {breakdown}", "n", *(clip(printable(result.answerer.name), 26) for result in results))]
    for name in names:
        n = max(slices[name].n for slices in found if name in slices)
        rows.append((name, str(n), *(_slice(slices.get(name)) for slices in found)))
    return _table(rows)


def _slice(found: Slice | None) -> str:
    return UNDEFINED if found is None else _value(found.scores["accuracy_wilson"])


def _pair(found: Paired | None) -> tuple[str, str, str]:
    if found is None:
        return UNDEFINED, UNDEFINED, UNDEFINED
    return _flat(signed_points(found.difference)), number(found.p_value), str(found.n)


def _share(score: Score | None) -> str:
    return _flat(percent(None if score is None else score.value))


def _value(score: Score | None) -> str:
    if score is None:
        return UNDEFINED
    return _flat(f"{percent(score.value)} {interval(score, 1, as_percent=True)}".strip())


def _flat(text: str) -> str:
    return text.replace(NARROW_SPACE, " ")


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(display_width(row[k]) for row in rows) for k in range(len(rows[0]))]
    widths[0] = max(12, min(widths[0], MOST_COLUMNS - 2 - sum(widths[1:]) - 2 * (len(widths) - 1)))
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "  " + "─" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = clip(cells[0], widths[0])
    parts = [first + " " * (widths[0] - display_width(first))]
    parts.extend(" " * (width - display_width(cell)) + cell for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  " + "  ".join(parts)
