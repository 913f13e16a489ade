"""What an evaluation will do: which systems meet which configs, on which queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import DataError
from ...loaders.paired import PairedData, config_subsets
from ...loaders.records import Query
from ..protocols import Retriever, Transcriber
from ..results import TEXT_CONDITION
from .system import Cascade, check_systems

Cell = tuple[str, str]
"""Subset and condition."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`configs` maps each config to its subsets and condition, `runnable` the name of each system to its configs."""

    systems: Sequence[Cascade]
    data: PairedData
    configs: Mapping[str, tuple[list[str], str]]
    runnable: Mapping[str, Sequence[str]]
    queries: Mapping[str, Sequence[Query]]
    qrels: Mapping[str, Mapping[str, Mapping[str, int]]]

    def cells(self, system: Cascade) -> list[Cell]:
        """The distinct (subset, condition) that a system meets, in order."""
        pairs = ((s, condition) for n in self.runnable[system.name] for s, condition in self._cells_of(n))
        return list(dict.fromkeys(pairs))

    def _cells_of(self, config: str) -> list[Cell]:
        subsets, condition = self.configs[config]
        return [(subset, condition) for subset in subsets]


def make_plan(systems: Sequence[Cascade], data: PairedData, configs: Sequence[str] | None) -> Plan:
    """Check the names and plan. Raises `UsageError` for wrong names, `DataError` if no system supports any config."""
    check_systems(systems)
    names = list(dict.fromkeys(configs)) if configs is not None else _all_configs(data)
    wanted = _with_text({name: config_subsets(data, name) for name in names})
    languages = dict(data.subsets)
    runnable = {
        system.name: [n for n, (subsets, _) in wanted.items() if all(system.supports(languages[s]) for s in subsets)]
        for system in systems
    }
    if not any(runnable.values()):
        raise DataError(
            f"no system supports the languages of {', '.join(names)}.", hint="Choose other systems or configs."
        )
    queries = {subset: list(data.queries(subset)) for subsets, _ in wanted.values() for subset in subsets}
    # Read once: every run on a subset is scored against the same judgements.
    return Plan(systems, data, wanted, runnable, queries, {subset: data.qrels(subset) for subset in queries})


def _all_configs(data: PairedData) -> list[str]:
    languages = list(dict.fromkeys(data.subsets.values()))
    return [f"{language}_{condition}" for language in languages for condition in data.conditions]


def _with_text(wanted: Mapping[str, tuple[list[str], str]]) -> dict[str, tuple[list[str], str]]:
    """Every scope's `text` config before its others: the upper bound is always evaluated."""
    full: dict[str, tuple[list[str], str]] = {}
    for name, (subsets, _) in wanted.items():
        full.setdefault(f"{name.partition('_')[0]}_{TEXT_CONDITION}", (subsets, TEXT_CONDITION))
        full.setdefault(name, wanted[name])
    return full


def fingerprint(part: Transcriber | Retriever) -> str:
    """What a component's work is shared by."""
    return part.spec.fingerprint
