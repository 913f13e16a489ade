"""What an evaluation will do: which systems meet which configs, on which queries."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import DataError, unknown_name
from ...loaders.corpus import Corpus, as_corpus
from ...loaders.paired import PairedData, config_subsets
from ...loaders.partial import PartialData
from ...loaders.records import Query
from ..results.old import TEXT_CONDITION
from ..systems.system import Cascade, RunOnly, System, check_systems

Cell = tuple[str, str]
"""Subset and condition."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`configs` maps each config to its subsets and condition, `runnable` the name of each system to its configs."""

    systems: Sequence[System]
    data: PairedData
    configs: Mapping[str, tuple[list[str], str]]
    runnable: Mapping[str, Sequence[str]]
    queries: Mapping[str, Sequence[Query]]
    qrels: Mapping[str, Mapping[str, Mapping[str, int]]]
    _corpora: dict[str, Corpus] = field(default_factory=dict)

    def cells(self, system: System) -> list[Cell]:
        """The distinct (subset, condition) that a system meets, in order."""
        pairs = ((s, condition) for n in self.runnable[system.name] for s, condition in self.cells_of(n))
        return list(dict.fromkeys(pairs))

    def cells_of(self, config: str) -> list[Cell]:
        """The cells of a config."""
        subsets, condition = self.configs[config]
        return [(subset, condition) for subset in subsets]

    def expected(self, cell: Cell) -> Sequence[Query]:
        """The queries of a cell."""
        return self.queries[cell[0]]

    def language(self, cell: Cell) -> str:
        """The language of a cell."""
        return self.data.subsets[cell[0]]

    def corpus(self, subset: str) -> Corpus:
        """The corpus of a subset, opened once."""
        if subset not in self._corpora:
            self._corpora[subset] = as_corpus(self.data.documents(subset))
        return self._corpora[subset]

    def total(self, subset: str) -> int:
        """How many queries the whole subset has, also when only some are taken."""
        return self.data.total(subset) if isinstance(self.data, PartialData) else len(self.queries[subset])


def make_plan(systems: Sequence[System], data: PairedData, configs: Sequence[str] | None) -> Plan:
    """Check the names and plan. Raises `UsageError` for wrong names, `DataError` if no system supports any config."""
    check_systems(systems)
    names = expand_configs(data, configs) if configs is not None else all_configs(data)
    wanted = _with_text({name: config_subsets(data, name) for name in names})
    languages = dict(data.subsets)

    def runs(system: System, config: str) -> bool:
        # A ready run says what was found for spoken queries; for typed ones only where that is asked for.
        if wanted[config][1] == TEXT_CONDITION and config not in names and _is_ready_run(system):
            return False
        return all(system.supports(languages[subset]) for subset in wanted[config][0])

    runnable = {system.name: [name for name in wanted if runs(system, name)] for system in systems}
    if not any(runnable.values()):
        raise DataError(
            f"no system supports the languages of {', '.join(names)}.", hint="Choose other systems or configs."
        )
    used = dict.fromkeys(subset for subsets, _ in wanted.values() for subset in subsets)
    queries = {subset: _distinct(data.queries(subset), subset) for subset in used}
    # Read once: every run on a subset is scored against the same judgments.
    return Plan(systems, data, wanted, runnable, queries, {subset: data.qrels(subset) for subset in used})


def _distinct(queries: Sequence[Query], subset: str) -> list[Query]:
    """The queries, if each has an id of its own: records, judgments and pairs are told apart by it."""
    seen: set[str] = set()
    for query in queries:
        if query.id in seen:
            raise DataError(f"query id {query.id!r} occurs twice in {subset}.", hint="Ids must be unique in a subset.")
        seen.add(query.id)
    return list(queries)


def _is_ready_run(system: System) -> bool:
    return isinstance(system, RunOnly) or (isinstance(system, Cascade) and system.precomputed_run is not None)


def expand_configs(data: PairedData, names: Sequence[str]) -> list[str]:
    """The configs that these names and patterns (`zh_*`) mean, in order, once each.

    A pattern means configs of whole languages; of subsets only if it matches no language's. Raises `UnknownNameError`
    for a pattern that matches nothing.
    """
    subsets = [f"{subset}_{condition}" for subset in data.subsets for condition in data.conditions]
    found: dict[str, None] = {}
    for name in names:
        if not any(sign in name for sign in "*?["):
            found[name] = None
            continue
        matched = fnmatch.filter(all_configs(data), name) or fnmatch.filter(subsets, name)
        if not matched:
            raise unknown_name("pattern of configs", name, [*all_configs(data), *subsets])
        found.update(dict.fromkeys(matched))
    return list(found)


def all_configs(data: PairedData) -> list[str]:
    """Every language under every condition at hand."""
    languages = list(dict.fromkeys(data.subsets.values()))
    return [f"{language}_{condition}" for language in languages for condition in data.conditions]


def _with_text(wanted: Mapping[str, tuple[list[str], str]]) -> dict[str, tuple[list[str], str]]:
    """Every scope's `text` config before its others: the upper bound is always evaluated."""
    full: dict[str, tuple[list[str], str]] = {}
    for name, (subsets, _) in wanted.items():
        full.setdefault(f"{name.partition('_')[0]}_{TEXT_CONDITION}", (subsets, TEXT_CONDITION))
        full.setdefault(name, wanted[name])
    return full
