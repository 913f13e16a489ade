"""Runs arranged for a report: sections of comparable runs, systems within a section, conditions within a system."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..results.comparable import aspects, coverage_words, has_words, refuse_mixture
from ..results.envelope import TEXT_CONDITION, Loss, Result, RunRecord, Score, SystemInfo
from ..results.item_numbers import ItemNumbers, item_numbers
from ..text.languages import is_written_without_spaces
from .formats import language_name, severity

Key = tuple[str, str]
"""Subset and item id."""


@dataclass(frozen=True, eq=False)
class Run:
    record: RunRecord

    @property
    def result(self) -> Result:
        return self.record.result

    @property
    def condition(self) -> str:
        return self.record.result.data.condition

    @cached_property
    def rows(self) -> dict[Key, int]:
        items = self.record.items
        keys = zip(items.column("subset").to_pylist(), items.column("id").to_pylist(), strict=True)
        return {key: row for row, key in enumerate(keys)}

    def value(self, key: Key, column: str) -> Any:
        """One cell; None if the item is not in this run, or the table has no such column."""
        row = self.rows.get(key)
        if row is None or column not in self.record.items.column_names:
            return None
        return self.record.items.column(column)[row].as_py()

    def numbers(self, column: str) -> NDArray[np.float64]:
        """A numeric column, (n,) float64, NaN where absent."""
        if column not in self.record.items.column_names:
            return np.full(self.record.items.num_rows, np.nan)
        values = self.record.items.column(column).to_pylist()
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)

    @cached_property
    def items(self) -> ItemNumbers:
        return item_numbers(self.record.items)

    def score(self, metric: str = "") -> Score | None:
        return self.result.scores.get(metric or self.result.main_metric)

    def loss(self, baseline: str, metric: str = "") -> Loss | None:
        return self.result.losses.get(baseline, {}).get(metric or self.result.main_metric)


@dataclass(frozen=True, eq=False)
class System:
    """A system with its runs, mildest condition first; `index` decides its color and shape.

    `text` is the run of the same retriever on the typed queries.
    """

    name: str
    index: int
    runs: tuple[Run, ...]
    text: Run | None = None

    @property
    def shown(self) -> tuple[Run, ...]:
        return self.runs if self.text is None else (self.text, *self.runs)

    def run(self, condition: str) -> Run | None:
        return next((run for run in self.shown if run.condition == condition), None)

    @property
    def info(self) -> SystemInfo:
        """What it is made of: of a spoken run where there is one, since a typed query meets no transcriber."""
        return self.shown[-1].result.system

    @property
    def has_transcripts(self) -> bool:
        return bool(self.runs) and "transcriber" in self.runs[0].result.system.components

    @property
    def rtfx(self) -> float | None:
        """Seconds of audio per second of the stages that take audio, over all its spoken runs."""
        known = [
            (t.audio_s, t.audio_s / t.rtfx)
            for t in (run.result.timing for run in self.runs)
            if t.audio_s is not None and t.rtfx
        ]
        taken = sum(seconds for _, seconds in known)
        return sum(audio for audio, _ in known) / taken if taken else None


@dataclass(frozen=True, eq=False)
class Section:
    """Runs that may share a table: same task, benchmark, data, normalizer and seed.

    `mark` says what sets it apart from other sections of the same scope, "" if there is none.
    """

    anchor: str
    scope: str
    systems: tuple[System, ...]
    mark: str = ""

    @property
    def runs(self) -> Iterator[Run]:
        """All runs, a typed run that several systems share once."""
        yield from dict.fromkeys(run for system in self.systems for run in system.shown)

    @property
    def first(self) -> Result:
        return next(self.runs).result

    @property
    def language(self) -> str:
        return self.first.data.language

    @property
    def title(self) -> str:
        name, split = language_name(self.language), self.first.data.split
        whole = name if self.scope == self.language else f"{name}: {self.scope}"
        whole = whole if split == "test" else f"{whole}, {split}"
        return f"{whole} ({self.mark})" if self.mark else whole

    @property
    def metric(self) -> str:
        return self.first.main_metric

    @property
    def imported(self) -> bool:
        return self.first.origin == "imported"

    @property
    def part(self) -> str:
        """What share of the items partial runs cover, "" if they cover all."""
        parts = [(r.data.n, r.data.n_total) for r in (run.result for run in self.runs) if r.data.partial]
        return coverage_words(*max(parts)) if parts else ""

    @property
    def by_character(self) -> bool:
        return is_written_without_spaces(self.language)

    @property
    def error_metric(self) -> str:
        return "cer" if self.by_character else "wer"

    @property
    def conditions(self) -> list[str]:
        return sorted({run.condition for run in self.runs}, key=severity)

    @property
    def spoken(self) -> list[str]:
        return [condition for condition in self.conditions if condition != TEXT_CONDITION]

    @property
    def sizes(self) -> list[int]:
        return sorted({run.result.data.n for run in self.runs})

    @property
    def size_words(self) -> str:
        sizes = self.sizes
        return f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"

    @property
    def same_items(self) -> bool:
        return len({frozenset(run.rows) for run in self.runs}) == 1


def scope_of(result: Result) -> str:
    """Language or subset of a config: what is left of it without the condition (`zh_medium_noise`: `zh`).

    The configs of questions name no condition: they are scopes themselves.
    """
    data = result.data
    if result.system.kind == "answerer":
        return data.config
    scope = data.config.removesuffix(f"_{data.condition}")
    if scope == data.config or not scope:
        raise DataError(
            f"config {data.config!r} of {result.system.name!r} does not end in its condition {data.condition!r}.",
            hint="Run the evaluation again.",
        )
    return scope


def sections(records: Iterable[RunRecord]) -> list[Section]:
    """Runs grouped into comparable sections, ordered by task and scope; [] for none.

    Different tasks, benchmarks, data, normalizers, versions or seeds never share a section, nor do measured and
    imported results. Raises `DataError` if full and partial runs are mixed, or two runs are the same system on the
    same config.
    """
    records = list(records)
    refuse_mixture(record.result for record in records)
    groups: dict[_Group, list[Run]] = {}
    wordless: list[Run] = []
    for record in records:
        if has_words(record.result):
            groups.setdefault(_Group.of(record.result), []).append(Run(record))
        else:
            wordless.append(Run(record))
    # A system without transcripts has no use for a normalizer: it joins those that are compared otherwise alike.
    worded = list(groups)
    for run in wordless:
        own = _Group.of(run.result)
        fitting = [group for group in worded if group.base == own.base and group.scope == own.scope]
        groups.setdefault(own if own in fitting or not fitting else fitting[0], []).append(run)
    ordered = sorted(groups.items(), key=lambda group: group[0].order)
    marks = _marks([group for group, _ in ordered])
    return [
        Section(f"s{place}", group.scope, _systems(runs), mark)
        for place, ((group, runs), mark) in enumerate(zip(ordered, marks, strict=True), start=1)
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
        """By task, measured before imported."""
        base = dict(self.base)
        return base["task"], self.scope, base["origin"] == "imported", self.base, self.words


def _marks(groups: Sequence[_Group]) -> list[str]:
    marks = []
    for group in groups:
        own = dict(group.base + group.words)
        if own["origin"] == "imported":
            marks.append("imported")
            continue
        others = [dict(g.base + g.words) for g in groups if g.scope == group.scope and g != group]
        others = [other for other in others if other["origin"] == own["origin"] and other["task"] == own["task"]]
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
    for own in sorted(spoken.values(), key=lambda own: _order(own[0].result.system)):
        own.sort(key=lambda run: severity(run.condition))
        name = own[0].result.system.name
        found.append(System(name, len(found), tuple(own), _text_run(name, own[0], typed)))
    # A typed run whose retriever no spoken system uses stands for itself.
    searchers = [_searcher(run) for own in spoken.values() for run in own]
    for run in typed:
        if _searcher(run) not in searchers:
            found.append(System(run.result.system.name, len(found), (), run))
    return tuple(found)


def _order(info: SystemInfo) -> tuple[Any, ...]:
    """Competitors before references; transcribers by size, each followed by itself behind front ends; then by name."""
    if info.kind != "transcriber":
        return info.reference, info.name
    size = float("inf") if info.parameters is None else info.parameters
    component = json.dumps(info.components.get("transcriber"), sort_keys=True)
    return (
        info.reference,
        size,
        info.component_name("transcriber"),
        component,
        "front_end" in info.components,
        info.name,
    )


def _text_run(name: str, spoken: Run, typed: list[Run]) -> Run | None:
    """The typed run of the same retriever, one of the same name first."""
    fitting = [run for run in typed if _searcher(run) == _searcher(spoken)]
    return next((run for run in fitting if run.result.system.name == name), fitting[0] if fitting else None)


def _searcher(run: Run) -> tuple[Any, Any]:
    """What searches: the retriever of a cascade, the encoder of an end-to-end system."""
    components = run.result.system.components
    return components.get("retriever"), components.get("encoder")
