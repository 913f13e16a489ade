"""The rewriting stage: what a rewriter makes of transcripts, each distinct one once, kept by content."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from ...errors import ModelError, SqutrError, StorageError
from ..components import checked
from ..processes import complete, gather_long
from ..progress import counting
from ..protocols import Rewriter, Rewritten, Transcript
from ..results.envelope import TEXT_CONDITION
from ..systems.system import System
from .cells import take_in
from .inference import Cell, Inferred, Outputs, model_of
from .outage import failed_tail, stopped
from .plan import SpeechPlan
from .task import Forecast
from .tools import Tools

UNIT, TIMED = 64, 4
"""Queries that are rewritten and kept together (what a kill loses at most), and that are timed for a forecast."""

Given = tuple[str, ...]
"""The transcripts of one query that a rewriter is given, best first; () where there is nothing to rewrite."""
Key = tuple[str, str]
"""A rewriter's fingerprint, and the language."""
NOTHING = Rewritten("")


def rewriter_of(system: System, language: str) -> Rewriter | None:
    return cast("Rewriter | None", system.for_language(language).rewriter)


def given_of(system: System, transcript: Transcript) -> Given:
    """Of a failed or empty transcript nothing: words that were not recognized are not made up."""
    if transcript.error or not transcript.text.strip():
        return ()
    best = [h.text for h in transcript.hypotheses[: system.n_best]] if system.n_best > 1 else []
    return tuple(text for text in best if text.strip()) or (transcript.text,)


@dataclass(slots=True)
class Rewrites:
    """What rewriters made of transcripts, or why one failed on a language."""

    made: dict[Key, dict[Given, Rewritten]] = field(default_factory=dict)
    failed: dict[Key, SqutrError] = field(default_factory=dict)
    tails: dict[Key, dict[Given, str]] = field(default_factory=dict)
    """What was rewritten last, where all of it failed: the cells that it belongs to fail."""

    def applied(self, system: System, language: str, rows: Sequence[Inferred]) -> list[Inferred] | None:
        """The rows with what the system's rewriter made of their transcripts; None while that is not known.

        Raises why it failed.
        """
        rewriter = rewriter_of(system, language)
        if rewriter is None:
            return list(rows)
        key = rewriter.spec.fingerprint, language
        if key in self.failed:
            raise self.failed[key]
        made = {(): NOTHING, **self.made.get(key, {})}
        given = [given_of(system, one.transcript) for one in rows]
        if any(one not in made for one in given):
            return None
        tail = self.tails.get(key, {})
        if any(one in tail for one in given):
            raise stopped(rewriter.spec.name, tail)
        return [replace(row, rewritten=made[one]) for row, one in zip(rows, given, strict=True)]


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is known of spoken queries before anything is searched: outputs by model, and what was rewritten."""

    outputs: Mapping[str, Outputs]
    rewrites: Rewrites

    def rows(self, plan: SpeechPlan, system: System, cell: Cell) -> list[Inferred]:
        """The rows of a cell with what a system's model and rewriter gave. Raises why one failed on it."""
        language = plan.language(cell[0])
        rows = self.rewrites.applied(system, language, self.outputs[model_of(system, language).key].of(cell))
        if rows is None:
            raise ModelError(f"{' under '.join(cell)} was not rewritten for {system.name}.")
        return rows

    def known_rows(self, plan: SpeechPlan, system: System, cell: Cell) -> list[Inferred] | None:
        """The same; None where something failed, or is not known yet."""
        language = plan.language(cell[0])
        rows = self.outputs[model_of(system, language).key].cells.get(cell)
        if rows is None:
            return None
        try:
            return self.rewrites.applied(system, language, rows)
        except SqutrError:
            return None


def rewrite_cells(plan: SpeechPlan, outputs: Mapping[str, Outputs], tools: Tools) -> Rewrites:
    """Everything that the systems' rewriters are to do; all processes must call it. One that fails is noted.

    Raises `StorageError` at once.
    """
    found = Rewrites()
    for key, (rewriter, wanted) in requests(plan, outputs).items():
        try:
            found.made[key], tail = _rewritten(rewriter, wanted, key[1], tools)
            if plan.options.max_failed < 1:
                found.tails[key] = tail
        except StorageError:
            raise
        except SqutrError as error:
            found.failed[key] = error
    return found


def requests(plan: SpeechPlan, outputs: Mapping[str, Outputs]) -> dict[Key, tuple[Rewriter, list[Given]]]:
    """What every rewriter is to rewrite, of the cells whose transcripts are known."""
    wanted: dict[Key, tuple[Rewriter, dict[Given, None]]] = {}
    for system in plan.systems:
        for subset, condition in plan.cells(system):
            language = plan.language(subset)
            rewriter = rewriter_of(system, language)
            if rewriter is None or condition == TEXT_CONDITION:
                continue
            rows = outputs[model_of(system, language).key].cells.get((subset, condition), ())
            _, own = wanted.setdefault((rewriter.spec.fingerprint, language), (rewriter, {}))
            own.update((given, None) for one in rows if (given := given_of(system, one.transcript)))
    return {key: (rewriter, list(own)) for key, (rewriter, own) in wanted.items()}


def digest_of(given: Given) -> str:
    return hashlib.sha256(json.dumps(given, ensure_ascii=True).encode("ascii")).hexdigest()


def known_rewrites(rewriter: Rewriter, wanted: Sequence[Given], language: str, tools: Tools) -> dict[Given, Rewritten]:
    if tools.store is None:
        return {}
    digests = {digest_of(given): given for given in wanted}
    kept = tools.store.rewrites(rewriter.spec.fingerprint, language, digests)
    return {digests[digest]: rewritten for digest, rewritten in kept.items()}


def _rewritten(
    rewriter: Rewriter, wanted: Sequence[Given], language: str, tools: Tools
) -> tuple[dict[Given, Rewritten], dict[Given, str]]:
    """What became of all that is wanted, and of that the last, if all of it failed."""
    processes = tools.processes
    mine = known_rewrites(rewriter, wanted, language, tools) if processes.rank == 0 else {}
    known: dict[Given, Rewritten] = dict(gather_long(processes, list(mine.items()))[0])
    units = [(start, wanted[start : start + UNIT]) for start in range(0, len(wanted), UNIT)]
    advance = counting(tools.tell, f"rewriting with {rewriter.spec.name}", len(wanted))
    advance(len(known))
    done: list[tuple[int, Rewritten]] = []
    failure: SqutrError | None = None
    try:
        # Units are of all that is wanted: so each is rewritten with the same others in any number of processes.
        for start, unit in units[processes.rank :: processes.size]:
            places = [start + i for i, given in enumerate(unit) if given not in known]
            if not places:
                continue
            with advance.within(len(places), processes=processes.size):
                made = rewrite(rewriter, [wanted[place] for place in places], language)
            if tools.store is not None:
                kept = {digest_of(wanted[place]): one for place, one in zip(places, made, strict=True)}
                tools.store.keep_rewrites(rewriter.spec.fingerprint, language, kept)
            done += zip(places, made, strict=True)
            advance(min(len(made) * processes.size, len(wanted)))
    except SqutrError as error:
        failure = error
    failures = [failed for failed in processes.gather(failure) if failed is not None]
    for failed in sorted(failures, key=lambda failed: not isinstance(failed, StorageError)):
        raise failed
    done += ((place, known[given]) for place, given in enumerate(wanted) if processes.rank == 0 and given in known)
    every = complete(gather_long(processes, done), len(wanted), "rewritten texts")
    if len(known) < len(wanted):
        take_in(tools)
    made_of = dict(zip(wanted, every, strict=True))
    tail = failed_tail([(given, one.error) for given, one in made_of.items()])
    return made_of, tail


def rewrite(rewriter: Rewriter, given: Sequence[Given], language: str) -> list[Rewritten]:
    """What a rewriter makes of the transcripts of some queries, checked. A text without words is a failure."""
    started = time.perf_counter()
    made = checked.rewrite(rewriter, given, language=language)
    share = (time.perf_counter() - started) / max(1, len(made))
    return [one if one.seconds else replace(one, seconds=share) for one in made]


def rewritten_now(system: System, transcript: Transcript, language: str) -> Rewritten | None:
    """What a system's rewriter makes of one transcript, nothing kept; None without a rewriter."""
    rewriter, given = rewriter_of(system, language), given_of(system, transcript)
    if rewriter is None:
        return None
    return rewrite(rewriter, [given], language)[0] if given else NOTHING


def forecast_rewriting(
    plan: SpeechPlan, outputs: Mapping[str, Outputs], tools: Tools
) -> tuple[list[Forecast], Rewrites]:
    """One line per rewriter and language, and what is known of its texts.

    Of cells that are not transcribed yet, every query counts as one that is left. Where no rate is known, a few typed
    queries are rewritten to measure one.
    """
    lines: list[Forecast] = []
    known = Rewrites()
    for (fingerprint, language), (rewriter, wanted) in requests(plan, outputs).items():
        found = known_rewrites(rewriter, wanted, language, tools)
        known.made[fingerprint, language] = found
        left = _untranscribed(plan, outputs, fingerprint, language)
        total = len(wanted) + left
        before = None if tools.store is None else tools.store.rewriting_s(fingerprint)
        rate = before
        if rate is None and len(found) < total:
            rate = _seconds_each(plan, rewriter, language)
        seconds = (total - len(found)) * (rate or 0.0)
        measured = "" if len(found) == total else "now" if before is None else "before"
        lines.append(Forecast("rewrite", rewriter.spec.name, language, total, len(found), seconds, measured))
    return lines, known


def _untranscribed(plan: SpeechPlan, outputs: Mapping[str, Outputs], fingerprint: str, language: str) -> int:
    """How many queries a rewriter will get when they are transcribed."""
    cells = {
        (key, cell)
        for system in plan.systems
        for cell in plan.cells(system)
        if plan.language(cell[0]) == language and cell[1] != TEXT_CONDITION
        and (rewriter := rewriter_of(system, language)) is not None and rewriter.spec.fingerprint == fingerprint
        and cell not in outputs[key := model_of(system, language).key].cells
    }  # fmt: skip
    return sum(len(plan.rows(cell)) for _, cell in cells)


def _seconds_each(plan: SpeechPlan, rewriter: Rewriter, language: str) -> float:
    """The time that a query takes, measured on a few typed ones after as many that warm up."""
    subset = next(subset for subset, own in plan.data.subsets.items() if own == language)
    some = [(query.text,) for query in plan.queries(subset)[: 2 * TIMED] if query.text.strip()]
    half = max(1, len(some) // 2)
    timed = some[half:] or some
    if not timed:
        return 0.0
    started = 0.0
    for given in (some[:half], timed):
        started = time.perf_counter()
        rewrite(rewriter, given, language)
    return (time.perf_counter() - started) / len(timed)


def rewriting_stage(system: System, rows: Sequence[Inferred]) -> dict[str, float]:
    """The stage `rewrite` of a run's timing: the seconds of its distinct transcripts; {} without a rewriter."""
    if system.rewriter is None:
        return {}
    seconds = {given_of(system, one.transcript): one.rewritten.seconds for one in rows if one.rewritten is not None}
    return {"rewrite": math.fsum(seconds.values())}
