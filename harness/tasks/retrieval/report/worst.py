"""The queries that lose most against typing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....report.differences import marked
from ....report.formats import UNDEFINED, condition_words, level, number, severity
from ....report.sections import Key, Run, Section, System
from ....results.envelope import TEXT_CONDITION

if TYPE_CHECKING:
    from markupsafe import Markup

LEAST_PER_PAIR = 3
POOL = 10
"""How many times `most` cases a section holds at most, so that every filter finds some."""


@dataclass(frozen=True, slots=True)
class View:
    """One way a query reached the retriever: what was searched, the score, and what was found.

    `text` is the transcript, None where the system searches without words; `rewritten` what was searched with in its
    place, "" without a rewriter. `rank` is that of the first relevant document, 0 if none was
    found.
    """

    text: str | None
    error: str
    score: float
    rank: int | None
    top_document: str
    rewritten: str = ""

    @property
    def failure(self) -> str:
        """What went wrong, "" if nothing did."""
        if not self.error:
            return ""
        return self.error if self.text else f"not decoded: {self.error}"

    @property
    def score_words(self) -> str:
        return number(self.score)

    @property
    def rank_words(self) -> str:
        return UNDEFINED if self.rank is None else str(self.rank) if self.rank > 0 else "none"

    def marked(self, reference: str, by_character: bool) -> Markup:
        return marked(reference, self.text or "", by_character=by_character)

    def marked_rewritten(self, by_character: bool) -> Markup:
        """With its differences from the transcript."""
        return marked(self.text or "", self.rewritten, by_character=by_character)


@dataclass(frozen=True, slots=True)
class Case:
    """One query, system and condition. `clean` is None where that condition was not run."""

    query_id: str
    subset: str
    system: System
    condition: str
    loss: float
    typed: View
    clean: View | None
    noisy: View
    noise_id: str
    noise_family: str
    snr_db: float
    rt60_s: float
    voice: str

    @property
    def lost(self) -> str:
        return number(self.loss, 2)

    @property
    def words(self) -> str:
        return condition_words(self.condition)

    @property
    def views(self) -> list[tuple[str, View, str | None]]:
        """How the query was searched in each condition, with the text that the transcript is compared with."""
        found: list[tuple[str, View, str | None]] = [("typed", self.typed, None)]
        if self.clean is not None and self.condition != "clean":
            found.append(("clean", self.clean, self.typed.text or ""))
        return [*found, (self.condition, self.noisy, self.typed.text or "")]

    @property
    def origin(self) -> list[str]:
        parts = [f"query {self.query_id}", f"subset {self.subset}"]
        if self.noise_id:
            parts.append(f"noise {self.noise_id}{f' ({self.noise_family})' if self.noise_family else ''}")
        if math.isfinite(self.snr_db):
            parts.append(f"SNR {level(self.snr_db)}")
        if math.isfinite(self.rt60_s):
            parts.append(f"RT60 {number(self.rt60_s, 2)} s")
        return [*parts, f"voice {self.voice}"] if self.voice else parts


def worst_cases(section: Section, most: int) -> list[Case]:
    """Cases with a loss above 0, largest first.

    The first `most` are the worst over all systems and conditions; behind them follow more of every pair of system and
    condition (an equal share, at least three), for the filters. Equal losses go to the more severe condition first.
    """
    pairs = [(system, run, system.text) for system in section.systems for run in system.runs if system.text is not None]
    share = max(LEAST_PER_PAIR, min(most, POOL * most // max(1, len(pairs))))
    ranked = sorted((loss for pair in pairs for loss in _losses(*pair)), key=_order)
    taken: dict[tuple[int, str], int] = {}
    chosen = []
    for place, candidate in enumerate(ranked):
        pair = candidate.system.index, candidate.run.condition
        taken[pair] = taken.get(pair, 0) + 1
        if place < most or taken[pair] <= share:
            chosen.append(_case(candidate))
    return chosen


@dataclass(frozen=True, slots=True)
class _Loss:
    value: float
    system: System
    run: Run
    typed: Run
    key: Key


def _order(loss: _Loss) -> tuple[float, int, float, Key, str]:
    group, level, _ = severity(loss.run.condition)
    return -round(loss.value, 9), -group, -level, loss.key, loss.system.name


def _losses(system: System, run: Run, typed: Run) -> list[_Loss]:
    metric = run.result.main_metric
    here, there = run.numbers(metric), typed.numbers(metric)
    found = []
    for key, row in run.rows.items():
        other = typed.rows.get(key)
        if other is None:
            continue
        value = float(there[other] - here[row])
        if math.isfinite(value) and value > 1e-9:
            found.append(_Loss(value, system, run, typed, key))
    return found


def _view(run: Run, key: Key) -> View:
    documents: Sequence[str] = run.value(key, "documents") or ()
    score = run.value(key, run.result.main_metric)
    wordless = run.condition != TEXT_CONDITION and "transcriber" not in run.result.system.components
    return View(
        text=None if wordless else run.value(key, "text" if run.condition == TEXT_CONDITION else "transcript") or "",
        error=run.value(key, "error") or "",
        score=math.nan if score is None else score,
        rank=run.value(key, "first_relevant_rank"),
        top_document=documents[0] if documents else "",
        rewritten=run.value(key, "rewritten") or "",
    )


def _case(loss: _Loss) -> Case:
    run, key = loss.run, loss.key
    clean = loss.system.run("clean")

    def measured(column: str) -> float:
        value = run.value(key, column)
        return math.nan if value is None else float(value)

    subset, query_id = key
    return Case(
        query_id=query_id,
        subset=subset,
        system=loss.system,
        condition=run.condition,
        loss=loss.value,
        typed=_view(loss.typed, key),
        clean=None if clean is None or key not in clean.rows else _view(clean, key),
        noisy=_view(run, key),
        noise_id=run.value(key, "noise_id") or "",
        noise_family=run.value(key, "noise_family") or "",
        snr_db=measured("snr_db"),
        rt60_s=measured("rt60_s"),
        voice=run.value(key, "voice") or "",
    )
