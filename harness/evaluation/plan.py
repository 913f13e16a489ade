"""What an evaluation on speech data will do: which systems are run on which configs, and on which rows."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, cast

from ...errors import DataError, UsageError, unknown_name
from ...loaders.corpus import Corpus, as_corpus
from ...loaders.data import SpeechData, config_subsets
from ...loaders.origins import joined, origins
from ...loaders.partial import PartialData, SelectedData, held_out
from ...loaders.records import Query
from ..results.envelope import TEXT_CONDITION, DataInfo
from ..systems.system import System, check_systems
from .inference import AudioModel, Cell, Precomputed, model_of
from .options import Options
from .task import Request, Run


@dataclass(frozen=True, slots=True)
class SpeechPlan:
    """`configs` maps each config to its subsets and condition, `runnable` the name of each system to its configs.

    `dev` is the part of the data that is held out: nothing is scored on it.
    """

    request: Request
    data: SpeechData
    configs: Mapping[str, tuple[Sequence[str], str]]
    runnable: Mapping[str, Sequence[str]]
    dev: SpeechData | None = None
    _queries: dict[str, Sequence[Query]] = field(default_factory=dict)
    _rows: dict[Cell, Sequence[Query]] = field(default_factory=dict)
    _qrels: dict[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    _corpora: dict[str, Corpus] = field(default_factory=dict)

    @property
    def systems(self) -> Sequence[System]:
        return self.request.systems

    @property
    def options(self) -> Options:
        return self.request.options

    @property
    def runs(self) -> Sequence[Run]:
        return [Run(system.name, config) for system in self.systems for config in self.runnable[system.name]]

    def system(self, name: str) -> System:
        return next(system for system in self.systems if system.name == name)

    def condition(self, config: str) -> str:
        return self.configs[config][1]

    def language_of(self, config: str) -> str:
        return self.language(self.configs[config][0][0])

    def without(self, left_out: Collection[Run]) -> Self:
        """The same without these runs."""
        kept = {
            system: [config for config in configs if Run(system, config) not in left_out]
            for system, configs in self.runnable.items()
        }
        return replace(self, runnable=kept)

    def scope(self, config: str) -> str:
        return config.removesuffix(f"_{self.condition(config)}")

    def baselines(self, run: Run) -> Mapping[str, Run]:
        """The same system under `clean` and `text`, as far as it is evaluated there."""
        condition = self.condition(run.config)
        found = {
            name: f"{self.scope(run.config)}_{name}"
            for name in ("clean", TEXT_CONDITION)
            if condition not in {name, TEXT_CONDITION}
        }
        return {name: Run(run.system, c) for name, c in found.items() if c in self.runnable[run.system]}

    def cells_of(self, config: str) -> list[Cell]:
        subsets, condition = self.configs[config]
        return [(subset, condition) for subset in subsets]

    def cells(self, system: System) -> list[Cell]:
        return list(dict.fromkeys(cell for config in self.runnable[system.name] for cell in self.cells_of(config)))

    def queries(self, subset: str) -> Sequence[Query]:
        if subset not in self._queries:
            self._queries[subset] = _distinct(self.data.queries(subset), subset)
        return self._queries[subset]

    def rows(self, cell: Cell) -> Sequence[Query]:
        if cell[1] == TEXT_CONDITION:
            return self.queries(cell[0])
        if cell not in self._rows:
            self._rows[cell] = _distinct(self.data.rows(*cell), cell[0])
        return self._rows[cell]

    def language(self, subset: str) -> str:
        return self.data.subsets[subset]

    def qrels(self, subset: str) -> Mapping[str, Mapping[str, int]]:
        """The judgments of a subset, read once: every run on it is scored against the same."""
        if subset not in self._qrels:
            self._qrels[subset] = self.data.qrels(subset)
        return self._qrels[subset]

    def corpus(self, subset: str) -> Corpus:
        """The corpus of a subset, opened once."""
        if subset not in self._corpora:
            self._corpora[subset] = as_corpus(self.data.documents(subset))
        return self._corpora[subset]

    def total(self, cell: Cell) -> int:
        """How many rows the whole cell has, also when only some are taken."""
        if not isinstance(self.data, SelectedData):
            return len(self.rows(cell))
        return self.data.total(cell[0]) if cell[1] == TEXT_CONDITION else self.data.total_rows(*cell)

    def data_info(self, config: str) -> DataInfo:
        """What a run on a config reads."""
        data, cells, recipe = self.data, self.cells_of(config), dict(self.data.recipe)
        sources = origins(recipe, subsets=[subset for subset, _ in cells]) or origins(recipe)
        rows = [row for cell in cells for row in self.rows(cell)]
        return DataInfo(
            source=joined(source.name for source in sources),
            source_version=joined(source.version for source in sources),
            revision=data.revision,
            license=joined(source.license for source in sources),
            config=config,
            language=self.language(cells[0][0]),
            condition=self.condition(config),
            split=data.split,
            subsets=[subset for subset, _ in cells],
            n=len(rows),
            n_total=sum(map(self.total, cells)),
            clusters=len({(row.subset, row.cluster) for row in rows}),
            partial=self.options.partial,
            edges={column: list(edges) for column, edges in data.edges.items()},
            manifest_sha256=data.manifest_sha256,
            recipe=recipe,
        )

    def models(self) -> dict[str, tuple[AudioModel | Precomputed, list[Cell]]]:
        """Every model with the cells that its systems need, by its key."""
        jobs: dict[str, tuple[AudioModel | Precomputed, dict[Cell, None]]] = {}
        for system in self.systems:
            for cell in self.cells(system):
                if cell[1] != TEXT_CONDITION:
                    model = model_of(system, self.language(cell[0]))
                    jobs.setdefault(model.key, (model, {}))[1][cell] = None
        return {key: (model, list(cells)) for key, (model, cells) in jobs.items()}


def make_plan(
    request: Request, *, fits: Callable[[System, str], bool] = lambda system, condition: True, with_text: bool = False
) -> SpeechPlan:
    """Check the names and plan. `fits` says whether a system can be run under a condition that was not asked for.

    With `with_text`, every scope's `text` config is there too. Raises `UsageError`, `DataError` if no system fits.
    """
    check_systems(request.systems)
    if request.judges:
        raise UsageError("judges mark replies, and there are none here.", hint="Leave --judge out.")
    options, whole = request.options, cast(SpeechData, request.data)
    data: SpeechData = whole
    dev: SpeechData | None = None
    if options.limit or options.fraction < 1:
        data = PartialData(whole, limit=options.limit, fraction=options.fraction, seed=options.seed)
    if options.dev_fraction:
        data, dev = held_out(data, options.dev_fraction, options.seed)
    named = expand_configs(data, request.configs) if request.configs is not None else all_configs(data)
    wanted = {name: config_subsets(data, name) for name in named}
    if with_text:
        wanted = _with_text(wanted)

    def runs(system: System, config: str) -> bool:
        subsets, condition = wanted[config]
        if config not in named and not fits(system, condition):
            return False
        return all(system.supports(data.subsets[subset]) for subset in subsets)

    runnable = {system.name: [name for name in wanted if runs(system, name)] for system in request.systems}
    if not any(runnable.values()):
        raise DataError(
            f"no system supports the languages of {', '.join(named)}.", hint="Choose other systems or configs."
        )
    return SpeechPlan(request, data, wanted, runnable, dev)


def _distinct(rows: Sequence[Query], subset: str) -> Sequence[Query]:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise DataError(f"id {row.id!r} occurs twice in {subset}.", hint="Ids must be unique in a subset.")
        seen.add(row.id)
    return rows


def expand_configs(data: SpeechData, names: Sequence[str]) -> list[str]:
    """The configs that these names and patterns (`zh_*`) mean, in order, once each. Raises `UnknownNameError`.

    A pattern means configs of whole languages; of subsets only if it matches no language's.
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


def all_configs(data: SpeechData) -> list[str]:
    """Every language under every condition at hand."""
    languages = list(dict.fromkeys(data.subsets.values()))
    return [f"{language}_{condition}" for language in languages for condition in data.conditions]


def _with_text(wanted: Mapping[str, tuple[list[str], str]]) -> dict[str, tuple[list[str], str]]:
    full: dict[str, tuple[list[str], str]] = {}
    for name, (subsets, condition) in wanted.items():
        full.setdefault(f"{name.removesuffix(f'_{condition}')}_{TEXT_CONDITION}", (subsets, TEXT_CONDITION))
        full.setdefault(name, wanted[name])
    return full
