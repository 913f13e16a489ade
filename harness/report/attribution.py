"""Whose loss it is: of what each run falls short of a perfect ranking, the retriever's part and the recognizer's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...errors import MissingExtraError
from ..metrics.alignment import align
from ..metrics.attribution import Attribution, Estimate, TokenClassLoss, attribute_rates, loss_by_token_class
from ..metrics.error_counts import default_unit, tokens
from ..metrics.key_tokens import capitalized_words, key_token_errors
from ..results.old import MAIN_METRIC, Score
from ..text.normalizers import recorded_normalizer
from .data import Key, Run, Section, System
from .formats import UNDEFINED, condition_words, escape, interval, number, percent
from .tables import breakable, scrollable, swatch


@dataclass(frozen=True, slots=True)
class RunAttribution:
    """One spoken run against its typed run. `classes` is None where its normalizer is not installed."""

    system: System
    run: Run
    found: Attribution
    classes: TokenClassLoss | None


def attributions(section: Section) -> list[RunAttribution]:
    """Every spoken run whose retriever has a typed run, over the queries that both have scored.

    Systems without words have no recognizer that could be at fault: they are left out.
    """
    found = [_attribute(section, system, run) for system in section.systems for run in system.runs]
    return [one for one in found if one is not None]


def _attribute(section: Section, system: System, run: Run) -> RunAttribution | None:
    if system.text is None or system.without_words:
        return None
    typed, spoken = system.text.numbers(MAIN_METRIC), run.numbers(MAIN_METRIC)
    keys = [
        key
        for key, row in run.rows.items()
        if key in system.text.rows and math.isfinite(spoken[row] + typed[system.text.rows[key]])
    ]
    if not keys:
        return None
    names = {key: f"{key[0]}/{key[1]}" for key in keys}
    unit = "char" if section.by_character else "word"
    errors, lengths = run.numbers(f"{unit}_errors"), run.numbers(f"{unit}_reference_length")
    with_transcript = {names[key]: float(spoken[run.rows[key]]) for key in keys}
    with_text = {names[key]: float(typed[system.text.rows[key]]) for key in keys}
    rates = {names[key]: _ratio(errors[run.rows[key]], lengths[run.rows[key]]) for key in keys}
    found = attribute_rates(
        rates,
        with_transcript,
        with_text,
        subsets={names[key]: key[0] for key in keys},
        seed=run.result.seed,
    )
    try:
        wrong = _wrong_tokens(section, run, [key for key in keys if math.isfinite(rates[names[key]])])
    except MissingExtraError:
        return RunAttribution(system, run, found, None)
    wrong_by_name = {names[key]: value for key, value in wrong.items()}
    classes = (
        loss_by_token_class(
            wrong_by_name,
            {name: with_transcript[name] for name in wrong_by_name},
            {name: with_text[name] for name in wrong_by_name},
            seed=run.result.seed,
        )
        if wrong_by_name
        else None
    )
    return RunAttribution(system, run, found, classes)


def _ratio(errors: float, length: float) -> float:
    return float(errors) / float(length) if length else math.nan


def _wrong_tokens(section: Section, run: Run, keys: Sequence[Key]) -> dict[Key, tuple[int, int]]:
    """Errors in names and numbers, and elsewhere, of every query with a transcript."""
    normalize = recorded_normalizer(run.result.system.normalizer, section.language)
    unit = default_unit(section.language)
    texts, transcripts = (run.record.items.column(name).to_pylist() for name in ("text", "transcript"))
    found = {}
    for key in keys:
        row = run.rows[key]
        said, heard = normalize(texts[row] or ""), normalize(transcripts[row] or "")
        if said == heard:
            found[key] = (0, 0)
            continue
        names = {part for name in capitalized_words(texts[row]) for part in normalize(name).split()}
        steps = align(tokens(said, unit, section.language), tokens(heard, unit, section.language))
        found[key] = key_token_errors(steps, names)
    return found


def attribution_json(found: Sequence[RunAttribution]) -> list[dict[str, Any]]:
    """One object per run, undefined numbers null, as `squtr report --json` prints them."""
    return [
        {
            "system": one.system.name,
            "config": one.run.result.data.config,
            "condition": one.run.condition,
            "metric": MAIN_METRIC,
            **_plain(asdict(one.found)),
            "loss_by_error": None if one.classes is None else _plain(asdict(one.classes)),
        }
        for one in found
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def attribution_tables(section: Section, found: Sequence[RunAttribution]) -> str:
    """Both tables of a section: the parts of the shortfall, and the loss by what was misheard."""
    if not found:
        return '<p class="note">No typed run is there to compare with.</p>'
    head = (
        '<thead><tr><th scope="col">Condition</th><th scope="col" class="num">n</th>'
        '<th scope="col" class="num">Shortfall<small>1 − nDCG@10</small></th>'
        '<th scope="col" class="num">Retriever\'s part<small>typed query, too</small></th>'
        '<th scope="col" class="num">Recognizer\'s part<small>95 % interval</small></th>'
        '<th scope="col" class="num">Recognizer\'s share</th>'
        '<th scope="col" class="num">Perfect transcript<small>finds nothing</small></th>'
        '<th scope="col" class="num">Imperfect transcript<small>loses nothing</small></th>'
        f'<th scope="col" class="num">Loss per 1.0 of {section.error_metric.upper()}<small>95 % interval</small></th>'
        '<th scope="col" class="num">Rank correlation<small>error rate, loss</small></th></tr></thead>'
    )
    parts = _grouped(section, found, head, _parts_row, "Whose loss it is")
    note = (
        "<p class='note'>The shortfall from a perfect ranking is the retriever's part, which the typed query falls "
        "short by as well, plus the recognizer's part, which is lost between text and transcript. A perfect transcript "
        "that finds nothing is the retriever's fault; an imperfect one may lose nothing.</p>"
    )
    wordless = [system.name for system in section.systems if system.without_words]
    if wordless:
        note += f"<p class='note'>Left out, since they have no words: {escape(', '.join(wordless))}.</p>"
    classed = [one for one in found if one.classes is not None]
    if not classed:
        return f"{parts}{note}<p class='note'>Errors are not told apart: the normalizer is not installed here.</p>"
    what = "numbers" if section.by_character else "names and numbers"
    head = (
        '<thead><tr><th scope="col">Condition</th>'
        f'<th scope="col" class="num">Errors in {what}<small>mean loss of nDCG@10, queries</small></th>'
        '<th scope="col" class="num">Errors in other words only<small>mean loss, queries</small></th>'
        '<th scope="col" class="num">No error<small>mean loss, queries</small></th></tr></thead>'
    )
    classes = _grouped(section, classed, head, _classes_row, f"Loss by error: {what}, other words")
    return f"{parts}{note}{classes}"


def _grouped(
    section: Section, found: Sequence[RunAttribution], head: str, row: Callable[[RunAttribution], str], title: str
) -> str:
    columns = head.count("<th ")
    bodies = []
    for system in section.systems:
        own = [one for one in found if one.system is system]
        if own:
            name = f"{swatch(system)}{escape(system.name)}"
            group = f'<tr class="group"><th scope="rowgroup" colspan="{columns}"><span>{name}</span></th></tr>'
            bodies.append(f"<tbody>{group}{''.join(row(one) for one in own)}</tbody>")
    table = f"<table><caption>{escape(title)}</caption>{head}{''.join(bodies)}</table>"
    return scrollable(table, f"{title}, {section.title}")


def _condition(one: RunAttribution) -> str:
    condition = one.run.condition
    return f'<th scope="row">{breakable(condition)}<small>{condition_words(condition)}</small></th>'


def _score(estimate: Estimate) -> Score:
    bounds = estimate.interval
    known = math.isfinite(bounds.low) and math.isfinite(bounds.high)
    return Score(
        value=estimate.value if math.isfinite(estimate.value) else None,
        low=bounds.low if known else None,
        high=bounds.high if known else None,
        n=estimate.n,
    )


def _cell(estimate: Estimate, css: str = "") -> str:
    bounds = interval(_score(estimate))
    return f'<td class="num {css}">{number(estimate.value)}{f"<small>{bounds}</small>" if bounds else ""}</td>'


def _of(estimate: Estimate, share: float) -> str:
    """Mean score, number of queries, and the share of them that fail or succeed."""
    if not estimate.n:
        return f'<td class="num none">{UNDEFINED}</td>'
    return f'<td class="num">{percent(share)}<small>of {estimate.n}, mean {number(estimate.value)}</small></td>'


def _parts_row(one: RunAttribution) -> str:
    found = one.found
    return (
        f'<tr>{_condition(one)}<td class="num">{found.n}</td>{_cell(found.shortfall)}{_cell(found.retriever)}'
        f'{_cell(found.recognizer, "main")}<td class="num">{percent(found.recognizer_share)}</td>'
        f"{_of(found.perfect, found.perfect_fails)}{_of(found.imperfect, found.imperfect_succeeds)}"
        f'{_cell(found.slope)}<td class="num">{number(found.rank_correlation, 2)}</td></tr>'
    )


def _classes_row(one: RunAttribution) -> str:
    cells = []
    for estimate in (one.classes.key, one.classes.other, one.classes.none) if one.classes is not None else ():
        bounds = interval(_score(estimate))
        below = f"{bounds} n = {estimate.n}" if bounds else f"n = {estimate.n}"
        cells.append(f'<td class="num">{number(estimate.value)}<small>{below}</small></td>')
    return f"<tr>{_condition(one)}{''.join(cells)}</tr>"
