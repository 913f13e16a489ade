"""The scores of the understanding task as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from ...report.formats import UNDEFINED, interval, number, percent, plural
from ...report.sections import Run, Section
from ...report.tables import clip, heading, text_table
from ...results.envelope import Score
from .answers.labels import PERCEPTION, REASONING
from .details import Paired
from .report.tables import COMPARISONS, details_of, difference_words, groups_of, pairs_of, with_details


def section_table(title: str, section: Section) -> str:
    """The scores with 95 % intervals, the comparisons, and accuracy by label."""
    data = section.first.data
    words = [f"{data.source}, {title}: {plural(data.n, 'question')}"]
    if data.missing_audio:
        missing = ", ".join(f"{status} {n}" for status, n in data.missing_audio.items())
        words.append(f"coverage {percent(details_of(next(section.runs)).coverage)} (missing audio: {missing})")
    lines = [heading("; ".join(words))]
    if section.part:
        lines.append(f"PARTIAL: {section.part}")
    tables = [
        _scores(section),
        _comparisons(section),
        _labels(section, "perception", list(PERCEPTION)),
        _labels(section, "reasoning", list(REASONING)),
    ]
    return "\n".join([*lines, "\n\n".join(table for table in tables if table)])


def _scores(section: Section) -> str:
    head = ("system", "MCQA accuracy", "chance", "above chance", "unparsed", "AIF followed", "instr.", "failed")
    rows = [
        (
            system.name,
            _value(run.score("mcqa_accuracy_wilson")),
            _share(run, "mcqa_chance"),
            _share(run, "mcqa_accuracy_corrected"),
            _share(run, "mcqa_unparsed"),
            _value(run.score("aif_prompt_strict_wilson")),
            _share(run, "aif_instruction_strict"),
            str(run.result.failures.get("failed", 0)),
        )
        for system, run, _ in with_details(section)
    ]
    return text_table(head, rows)


def _comparisons(section: Section) -> str:
    rows = [
        (f"{system.name}: {words}", *_pair(pairs[name][0]), *_pair(pairs[name][1]))
        for system, _, details in with_details(section)
        for pairs in (pairs_of(details),)
        for name, _, words in COMPARISONS
        if name in pairs
    ]
    return text_table(("comparison, in points", "MCQA", "p", "n", "AIF", "p", "n"), rows) if rows else ""


def _labels(section: Section, breakdown: str, known: Sequence[str]) -> str:
    found = [groups_of(run, breakdown) for _, run, _ in with_details(section)]
    names = [name for name in known if any(name in own for own in found)]
    rows = []
    for name in names:
        scores = [own[name].scores["mcqa_accuracy_wilson"] if name in own else None for own in found]
        n = max(score.n for score in scores if score is not None)
        rows.append((name, str(n), *map(_value, scores)))
    head = (f"MCQA by {breakdown}", "n", *(clip(system.name, 26) for system in section.systems))
    return text_table(head, rows) if rows else ""


def _pair(found: Paired | None) -> tuple[str, str, str]:
    if found is None:
        return UNDEFINED, UNDEFINED, UNDEFINED
    return difference_words(found.difference), number(found.p_value), str(found.n)


def _share(run: Run, metric: str) -> str:
    score = run.score(metric)
    return percent(None if score is None else score.value)


def _value(score: Score | None) -> str:
    if score is None:
        return UNDEFINED
    return f"{percent(score.value)} {interval(score, 1, as_percent=True)}".strip()
