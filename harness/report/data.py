"""Runs arranged for a report: sections of comparable runs, systems within a section, conditions within a system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..results.old_comparable import aspects, has_words, refuse_mixture
from ..results.old import MAIN_METRIC, TEXT_CONDITION, Loss, Result, RunRecord, Score, SystemInfo
from ..text.languages import is_written_without_spaces
from .formats import escape, language_name, severity

Key = tuple[str, str]
"""Subset and query id."""


@dataclass(frozen=True, eq=False)
class Run:
    """One system under one condition."""

    record: RunRecord

    @property
    def result(self) -> Result:
        """The summary."""
        return self.record.result

    @property
    def condition(self) -> str:
        """The condition's name."""
        return self.record.result.data.condition

    @cached_property
    def rows(self) -> dict[Key, int]:
        """Row number of every query."""
        items = self.record.items
        keys = zip(items.column("subset").to_pylist(), items.column("id").to_pylist(), strict=True)
        return {key: row for row, key in enumerate(keys)}

    def value(self, key: Key, column: str) -> Any:
        """One cell; None if the query is not in this run."""
        row = self.rows.get(key)
        return None if row is None else self.record.items.column(column)[row].as_py()

    def numbers(self, column: str) -> NDArray[np.float64]:
        """A numeric column, (n,) float64, NaN where absent."""
        values = self.record.items.column(column).to_pylist()
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)

    def score(self, metric: str) -> Score | None:
        """A score, or None if it does not apply."""
        return self.result.scores.get(metric)

    def loss(self, baseline: str, metric: str = MAIN_METRIC) -> Loss | None:
        """The loss against a baseline, or None if that baseline was not evaluated."""
        return self.result.losses.get(baseline, {}).get(metric)


@dataclass(frozen=True, eq=False)
class System:
    """A system with its runs in order of severity. `text` is the run of the same retriever on the typed queries."""

    name: str
    index: int
    runs: tuple[Run, ...]
    text: Run | None

    @property
    def shown(self) -> tuple[Run, ...]:
        """The typed run, if there is one, and the spoken ones."""
        return self.runs if self.text is None else (self.text, *self.runs)

    def run(self, condition: str) -> Run | None:
        """The run under one condition."""
        return next((run for run in self.shown if run.condition == condition), None)

    @property
    def info(self) -> SystemInfo:
        """What it is made of: of a spoken run, where there is one, since a typed query meets no recognizer."""
        return self.shown[-1].result.system

    @property
    def transcriber(self) -> str:
        """The transcriber's short name; "" without one."""
        return component_name(self.runs[0].result.system.transcriber) if self.runs else ""

    @property
    def without_words(self) -> bool:
        """Whether it searches without a transcript: with the sound itself, or as a ready ranking."""
        return bool(self.runs) and self.runs[0].result.system.transcriber is None

    @property
    def rtfx(self) -> float | None:
        """Seconds of sound per second of front end and transcriber (or encoder) over all its spoken runs."""
        known = [
            (t.audio_s, t.audio_s / t.rtfx)
            for t in (run.result.timing for run in self.runs)
            if t.audio_s is not None and t.rtfx
        ]
        taken = sum(seconds for _, seconds in known)
        return sum(audio for audio, _ in known) / taken if taken else None

    @property
    def worst(self) -> Run | None:
        """The spoken run with the lowest main score other than `clean`; the last of equals."""
        scored = [(s.value, run) for run in self.runs if (s := run.score(MAIN_METRIC)) and s.value is not None]
        harder = [(value, run) for value, run in scored if run.condition != "clean"]
        return min(reversed(harder), key=lambda pair: pair[0])[1] if harder else None


@dataclass(frozen=True, eq=False)
class Section:
    """Runs that may share a table: same benchmark, collection, normalizer and seed.

    `mark` says what sets it apart from other sections of the same scope, "" if there is none.
    """

    anchor: str
    language: str
    scope: str
    systems: tuple[System, ...]
    mark: str = ""

    @property
    def runs(self) -> Iterator[Run]:
        """All runs, a typed run that several systems share once."""
        yield from dict.fromkeys(run for system in self.systems for run in system.shown)

    @property
    def first(self) -> Result:
        """Any result, for what all share."""
        return next(self.runs).result

    @property
    def title(self) -> str:
        """The language, and the subset where the runs cover only one."""
        name = language_name(self.language)
        whole = name if self.scope == self.language else f"{name}: {self.scope}"
        return f"{whole} ({self.mark})" if self.mark else whole

    @property
    def imported(self) -> bool:
        """Whether these are another tool's aggregates, without intervals and records."""
        return self.first.origin == "imported"

    @property
    def part(self) -> tuple[int, int] | None:
        """How many queries of how many a partial run of it covers at most; None if the runs are full."""
        return max(
            ((r.data.n, r.data.n_total) for r in (run.result for run in self.runs) if r.data.partial), default=None
        )

    @property
    def by_character(self) -> bool:
        """Whether errors are counted by character."""
        return is_written_without_spaces(self.language)

    @property
    def error_metric(self) -> str:
        """`cer` or `wer`."""
        return "cer" if self.by_character else "wer"

    @property
    def conditions(self) -> list[str]:
        """All conditions, mildest first."""
        return sorted({run.condition for run in self.runs}, key=severity)

    @property
    def sizes(self) -> list[int]:
        """The numbers of queries that occur, ascending."""
        return sorted({run.result.data.n for run in self.runs})

    @property
    def same_queries(self) -> bool:
        """Whether every run covers the same queries."""
        sets = {frozenset(run.rows) for run in self.runs}
        return len(sets) == 1

    @property
    def lang(self) -> str:
        """A `lang` attribute for text of this language."""
        return f'lang="{escape(self.language)}"'


def component_name(spec: dict[str, Any] | None) -> str:
    """The short name in a component's JSON; "" without one."""
    return "" if spec is None else str(spec.get("name") or spec.get("model") or spec.get("backend") or "")


def scope_of(result: Result) -> str:
    """Language or subset of a config.

    The condition is known, so the scope is the rest: `zh_medium_noise` under `medium_noise` is `zh`.
    """
    data = result.data
    scope = data.config.removesuffix(f"_{data.condition}")
    if scope == data.config or not scope:
        raise DataError(
            f"config {data.config!r} of {result.system.name!r} does not end in its condition {data.condition!r}.",
            hint="Run the evaluation again.",
        )
    return scope


def sections(records: Sequence[RunRecord]) -> list[Section]:
    """Runs grouped into comparable sections, ordered by scope; [] for none.

    Different benchmarks, data, normalizers, versions or seeds never share a section, nor do measured and imported
    results. Raises `DataError` if full and partial runs are mixed, or two runs are the same system on the same config.
    """
    refuse_mixture(record.result for record in records)
    groups: dict[_Group, list[Run]] = {}
    wordless: list[Run] = []
    for record in records:
        if has_words(record.result):
            groups.setdefault(_Group.of(record.result), []).append(Run(record))
        else:
            wordless.append(Run(record))
    # A system without words has no use for a normalizer: it joins those that are compared otherwise in the same way.
    worded = list(groups)
    for run in wordless:
        own = _Group.of(run.result)
        fitting = [group for group in worded if group.base == own.base]
        groups.setdefault(own if own in fitting or not fitting else fitting[0], []).append(run)
    ordered = sorted(groups.items(), key=lambda group: group[0].order)
    marks = _marks([group for group, _ in ordered])
    return [
        Section(f"s{number}", runs[0].result.data.language, group.scope, _systems(runs), mark)
        for number, ((group, runs), mark) in enumerate(zip(ordered, marks, strict=True), start=1)
    ]


@dataclass(frozen=True)
class _Group:
    """What the runs of a section have in common: scope, and the aspects by name, those of words apart."""

    scope: str
    base: tuple[tuple[str, str], ...]
    words: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, result: Result) -> _Group:
        base = {**aspects(result, words=False), "seed": str(result.seed)}
        words = {name: value for name, value in aspects(result).items() if name not in base}
        return cls(scope_of(result), tuple(base.items()), tuple(words.items()))

    @property
    def order(self) -> tuple[Any, ...]:
        """Measured before imported."""
        return self.scope, ("origin", "imported") in self.base, self.base, self.words


def _marks(groups: Sequence[_Group]) -> list[str]:
    """What sets each group apart from the others of its scope."""
    marks = []
    for group in groups:
        own = dict(group.base + group.words)
        if own["origin"] == "imported":
            marks.append("imported")
            continue
        others = [dict(g.base + g.words) for g in groups if g.scope == group.scope and g != group]
        others = [other for other in others if other["origin"] == own["origin"]]
        names = [name for name in own if any(other.get(name) != own[name] for other in others)]
        words = ", ".join(f"{name} {own[name]}" for name in names)
        marks.append(words or ("other data" if others else ""))
    return marks


def _systems(runs: Iterable[Run]) -> tuple[System, ...]:
    spoken: dict[str, list[Run]] = {}
    typed: list[Run] = []
    seen: set[tuple[str, str]] = set()
    for run in runs:
        if run.result.key in seen:
            name, config = run.result.key
            raise DataError(f"there are two results of {name!r} on {config!r}.", hint="Remove one of them.")
        seen.add(run.result.key)
        if run.condition == TEXT_CONDITION:
            typed.append(run)
        else:
            spoken.setdefault(run.result.system.name, []).append(run)
    found: list[System] = []
    for name in sorted(spoken):
        own = sorted(spoken[name], key=lambda run: severity(run.condition))
        found.append(System(name, len(found), tuple(own), _text_run(name, own[0], typed)))
    # A typed run whose retriever no spoken system uses stands for itself.
    searchers = [_searcher(run) for runs_ in spoken.values() for run in runs_]
    for run in typed:
        if _searcher(run) not in searchers:
            found.append(System(run.result.system.name, len(found), (), run))
    return tuple(found)


def _text_run(name: str, spoken: Run, typed: list[Run]) -> Run | None:
    """The typed run of the same retriever, one of the same name first."""
    fitting = [run for run in typed if _searcher(run) == _searcher(spoken)]
    return next((run for run in fitting if run.result.system.name == name), fitting[0] if fitting else None)


def _searcher(run: Run) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What searches: the retriever of a cascade, the encoder of an end-to-end system."""
    return run.result.system.retriever, run.result.system.encoder
