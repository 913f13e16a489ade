"""What rewriters made of transcripts: how many they changed, at what error rate, and which queries changed most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....report.differences import marked
from ....report.formats import condition_words, percent, severity
from ....report.sections import Key, Run, Section, System
from ....report.tables import NONE, Cell, Row, Table, by_system, conditioned

if TYPE_CHECKING:
    from markupsafe import Markup

TITLE = "Rewritten transcripts"
_KINDS = ("substitutions", "deletions", "insertions")
_NOTE = (
    "Error rates before and after are of the queries that were rewritten. What a rewriter does to retrieval shows "
    "beside the same chain without it."
)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One query whose transcript was changed, with the errors of both texts."""

    key: Key
    system: System
    condition: str
    text: str
    transcript: str
    rewritten: str
    before: int
    after: int

    @property
    def words(self) -> str:
        return condition_words(self.condition)

    def marked_transcript(self, by_character: bool) -> Markup:
        return marked(self.text, self.transcript, by_character=by_character)

    def marked_rewritten(self, by_character: bool) -> Markup:
        """With its differences from the transcript."""
        return marked(self.transcript, self.rewritten, by_character=by_character)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What a rewriter did in one run."""

    system: System
    run: Run
    n: int
    failed: int
    changed: Sequence[Rewritten]
    rates: tuple[float, float]
    better: int
    worse: int


def rewritings(section: Section) -> list[Rewriting]:
    """Every spoken run of a system with a rewriter."""
    return [
        _rewriting(section, system, run)
        for system in section.systems
        for run in system.runs
        if "rewritten" in run.record.items.column_names
    ]


def _rewriting(section: Section, system: System, run: Run) -> Rewriting:
    unit = "char" if section.by_character else "word"
    before, after = _errors(run, unit), _errors(run, f"rewritten_{unit}")
    lengths = run.numbers(f"{unit}_reference_length")
    both = np.isfinite(before) & np.isfinite(after)
    total = float(lengths[both].sum())
    rates = [float(errors[both].sum()) / total if total else float("nan") for errors in (before, after)]
    items = run.record.items
    failed = sum("rewriter failed" in (error or "") for error in items.column("error").to_pylist())
    texts = {name: items.column(name).to_pylist() for name in ("text", "transcript", "rewritten")}
    pairs = list(zip(texts["text"], texts["transcript"], texts["rewritten"], strict=True))
    changed = [
        Rewritten(key, system, run.condition, *pairs[row], int(before[row]), int(after[row]))
        for key, row in run.rows.items()
        if both[row] and pairs[row][2] not in ("", pairs[row][1])
    ]
    return Rewriting(
        system,
        run,
        sum(bool(made) for made in texts["rewritten"]),
        failed,
        changed,
        (rates[0], rates[1]),
        sum(one.after < one.before for one in changed),
        sum(one.after > one.before for one in changed),
    )


def _errors(run: Run, unit: str) -> NDArray[np.float64]:
    return np.asarray(np.sum([run.numbers(f"{unit}_{kind}") for kind in _KINDS], axis=0), dtype=np.float64)


def rewriting_table(section: Section, found: Sequence[Rewriting]) -> Table:
    error = section.error_metric.upper()
    columns = [
        ("Rewritten", "queries"),
        ("Changed", "queries, share"),
        ("Fewer errors", "queries"),
        ("More errors", "queries"),
        (error, "transcript"),
        (error, "rewritten"),
        ("Failed", "queries"),
    ]
    rows = [(one.system, Row(conditioned(one.run.condition), _cells(one))) for one in found]
    return Table(f"{TITLE}, {section.title}", "Condition", columns, by_system(section, rows), caption=TITLE, note=_NOTE)


def _cells(one: Rewriting) -> list[Cell]:
    share = percent(len(one.changed) / one.n) if one.n else ""
    rates = [Cell(percent(rate)) if np.isfinite(rate) else NONE for rate in one.rates]
    return [
        Cell(str(one.n)),
        Cell(str(len(one.changed)), (share,) if share else ()),
        Cell(str(one.better)),
        Cell(str(one.worse)),
        *rates,
        Cell(str(one.failed)),
    ]


def most_changed(found: Sequence[Rewriting], most: int) -> list[Rewritten]:
    """The changed queries whose number of errors changed most, more errors before fewer; at most `most`."""

    def order(one: Rewritten) -> tuple[int, int, tuple[int, float, str], Key, str]:
        change = one.after - one.before
        return -abs(change), -change, severity(one.condition), one.key, one.system.name

    return sorted(_changed(found), key=order)[:most]


def _changed(found: Sequence[Rewriting]) -> Iterator[Rewritten]:
    for one in found:
        yield from one.changed
