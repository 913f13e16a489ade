"""Loss attribution: of what each run falls short of a perfect ranking, the retriever's part and the ASR's."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .....errors import MissingExtraError
from ....metrics.alignment import align
from ....metrics.attribution import Attribution, Estimate, TokenClassLoss, attribute, loss_by_token_class
from ....metrics.error_counts import default_unit, tokens
from ....metrics.key_tokens import capitalized_words, key_token_errors
from ....report.formats import interval, metric_name, number, percent
from ....report.sections import Run, Section, System
from ....report.tables import NONE, Cell, Row, Table, by_system, conditioned, score_cell
from ....results.envelope import Score
from ....text.normalizers import recorded_normalizer

TITLE = "Loss attribution (ASR or retriever)"
_NOTE = (
    "The shortfall from a perfect ranking is the retriever's part, which the typed query falls short by as well, plus "
    "the ASR's part, which is lost between text and transcript. A perfect transcript that finds nothing is the "
    "retriever's failure; an imperfect one may lose nothing."
)


@dataclass(frozen=True, slots=True)
class RunAttribution:
    """One spoken run against its typed run. `classes` is None where its normalizer is not installed."""

    system: System
    run: Run
    found: Attribution
    classes: TokenClassLoss | None

    def as_json(self) -> dict[str, Any]:
        """As `squtr report --json` prints it, undefined numbers null."""
        return {
            "system": self.system.name,
            "config": self.run.result.data.config,
            "condition": self.run.condition,
            "metric": self.run.result.main_metric,
            **_plain(asdict(self.found)),
            "loss_by_error": None if self.classes is None else _plain(asdict(self.classes)),
        }


def attributions(section: Section) -> list[RunAttribution]:
    """Every spoken run whose retriever has a typed run, over the queries that both have scored.

    Systems without transcripts have no ASR that could cause a loss: they are left out.
    """
    found = [
        _attribute(section, system, run)
        for system in section.systems
        if system.text is not None and system.has_transcripts
        for run in system.runs
    ]
    return [one for one in found if one is not None]


def _attribute(section: Section, system: System, run: Run) -> RunAttribution | None:
    if system.text is None:
        return None
    typed, spoken = system.text.items.items, run.items.items
    scores = {name: (row[section.metric], typed[name][section.metric]) for name, row in spoken.items() if name in typed}
    scores = {name: pair for name, pair in scores.items() if math.isfinite(sum(pair))}
    if not scores:
        return None
    unit, seed = "char" if section.by_character else "word", run.result.seed
    with_transcript = {name: pair[0] for name, pair in scores.items()}
    with_text = {name: pair[1] for name, pair in scores.items()}
    rates = {name: _ratio(spoken[name][f"{unit}_errors"], spoken[name][f"{unit}_reference_length"]) for name in scores}
    found = attribute(rates, with_transcript, with_text, subsets=run.items.subsets, seed=seed)
    try:
        wrong = _wrong_tokens(section, run, {name for name in scores if math.isfinite(rates[name])})
    except MissingExtraError:
        return RunAttribution(system, run, found, None)
    classes = None
    if wrong:
        sides = ({name: side[name] for name in wrong} for side in (with_transcript, with_text))
        classes = loss_by_token_class(wrong, *sides, seed=seed)
    return RunAttribution(system, run, found, classes)


def _ratio(errors: float, length: float) -> float:
    return float(errors) / float(length) if length else math.nan


def _wrong_tokens(section: Section, run: Run, names: Collection[str]) -> dict[str, tuple[int, int]]:
    """Errors in names and numbers, and elsewhere, of the queries of these names."""
    normalize = recorded_normalizer(run.result.system.normalizer, section.language)
    unit = default_unit(section.language)
    found = {}
    for row in run.record.items.select(["subset", "id", "text", "transcript"]).to_pylist():
        name = f"{row['subset']}/{row['id']}"
        if name not in names:
            continue
        reference, hypothesis = normalize(row["text"] or ""), normalize(row["transcript"] or "")
        if reference == hypothesis:
            found[name] = (0, 0)
            continue
        capitals = {part for word in capitalized_words(row["text"]) for part in normalize(word).split()}
        steps = align(tokens(reference, unit, section.language), tokens(hypothesis, unit, section.language))
        found[name] = key_token_errors(steps, capitals)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parts_table(section: Section, found: Sequence[RunAttribution]) -> Table:
    columns = [
        ("n", ""),
        ("Shortfall", f"1 − {metric_name(section.metric)}"),
        ("Retriever's part", "typed query, too"),
        ("ASR's part", "95 % interval"),
        ("ASR's share", ""),
        ("Perfect transcript", "finds nothing"),
        ("Imperfect transcript", "loses nothing"),
        (f"Loss per 1.0 of {section.error_metric.upper()}", "95 % interval"),
        ("Rank correlation", "error rate, loss"),
    ]
    rows = [(one.system, Row(conditioned(one.run.condition), _parts(one))) for one in found]
    wordless = [system.name for system in section.systems if system.runs and not system.has_transcripts]
    note = f"{_NOTE} Left out without transcripts: {', '.join(wordless)}." if wordless else _NOTE
    return Table(f"{TITLE}, {section.title}", "Condition", columns, by_system(section, rows), caption=TITLE, note=note)


def _parts(one: RunAttribution) -> list[Cell]:
    found, failed = one.found, one.run.result.failures.get("failed", 0)
    # What failed is lost to the ASR, and has no error rate to lose it by.
    return [
        Cell(str(found.n), (f"{found.perfect.n + found.imperfect.n} with an error rate",) if failed else ()),
        score_cell(_score(found.shortfall)),
        score_cell(_score(found.retriever)),
        score_cell(_score(found.asr), "main"),
        Cell(percent(found.asr_share)),
        _of(found.perfect, found.perfect_fails),
        _of(found.imperfect, found.imperfect_succeeds),
        score_cell(_score(found.slope)),
        Cell(number(found.rank_correlation, 2)),
    ]


def classes_table(section: Section, found: Sequence[RunAttribution]) -> Table:
    metric, what = metric_name(section.metric), "numbers" if section.by_character else "names and numbers"
    columns = [
        (f"Errors in {what}", f"mean loss of {metric}, queries"),
        ("Errors in other words only", "mean loss, queries"),
        ("No error", "mean loss, queries"),
    ]
    rows = [
        (one.system, Row(conditioned(one.run.condition), [_class_cell(part) for part in parts]))
        for one in found
        if one.classes is not None
        for parts in ((one.classes.key, one.classes.other, one.classes.none),)
    ]
    title = f"Loss by error: {what}, other words"
    return Table(f"{title}, {section.title}", "Condition", columns, by_system(section, rows), caption=title)


def _score(estimate: Estimate) -> Score:
    return Score.of(estimate.value, estimate.interval.low, estimate.interval.high, estimate.n)


def _of(estimate: Estimate, share: float) -> Cell:
    """The share of queries that fail or succeed, their number and mean score."""
    return Cell(percent(share), (f"of {estimate.n}, mean {number(estimate.value)}",)) if estimate.n else NONE


def _class_cell(estimate: Estimate) -> Cell:
    return Cell(number(estimate.value), (f"{interval(_score(estimate))} n = {estimate.n}".strip(),))
