"""The recipe of a paired data set: everything that decides its bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..errors import UsageError, unknown_name
from .banks import load_noise_bank, load_rir_bank
from .conditions import TEXT, Condition, parse_condition
from .keyed import RECIPE_VERSION, keyed_seed
from .records import SAMPLE_RATE, Query, Source
from .render import StepContext
from .sources import load_source

Level = Literal["whole", "active"]
LEVELS: tuple[Level, ...] = ("whole", "active")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is built: a source, subsets, conditions, banks and seed, each with the version of its content.

    `noise` and `rirs` are "" when no condition needs them. `limit` is the number of queries per subset (0: all), taken
    by `choose_queries`.
    """

    source: str
    source_version: str
    license: str
    subsets: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]
    noise: str
    noise_version: str
    noise_license: str
    rirs: str
    rirs_version: str
    rirs_license: str
    seed: int
    level: Level
    limit: int
    splits: tuple[str, ...] = ("test",)
    sample_rate: int = SAMPLE_RATE
    benchmark: str = ""
    recipe_version: str = RECIPE_VERSION

    def as_dict(self) -> dict[str, Any]:
        """As JSON object."""
        return {**asdict(self), "subsets": dict(self.subsets), "conditions": list(self.conditions), "splits": list(self.splits)}

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the sha256 of the canonical JSON."""
        canonical = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class OpenedRecipe:
    """A recipe with what it is made from: the opened source and the banks."""

    recipe: Recipe
    source: Source
    context: StepContext
    _chosen: dict[str, list[Query]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def queries(self, subset: str) -> Sequence[Query]:
        """The queries that the recipe takes from `subset`, in publication order. They are chosen once."""
        if subset not in self._chosen:
            self._chosen[subset] = choose_queries(self.source.queries(subset), self.recipe.limit, self.recipe.seed)
        return self._chosen[subset]

    def __reduce__(self) -> tuple[object, ...]:
        # Every process chooses for itself: what travels stays small.
        return (OpenedRecipe, (self.recipe, self.source, self.context))


def choose_subsets(source: Source, languages: Sequence[str] | None, subsets: Sequence[str] | None) -> dict[str, str]:
    """The subsets of `source` (name to language) in these languages or with these names; all if both are None.

    Raises `UnknownNameError` that suggests the nearest.
    """
    known = dict(source.subsets)
    for language in languages or ():
        if language not in known.values():
            raise unknown_name("language", language, known.values())
    for subset in subsets or ():
        if subset not in known:
            raise unknown_name("subset", subset, known)
    return {
        subset: language
        for subset, language in known.items()
        if (languages is None or language in languages) and (subsets is None or subset in subsets)
    }


def choose_conditions(names: Sequence[str]) -> list[Condition]:
    """The parsed conditions, duplicates removed. Raises `UnknownNameError`, or `UsageError` for `text` or for none."""
    if TEXT in names:
        raise UsageError(
            "the condition 'text' is the typed query and has no sound.",
            hint="Leave it out here; an evaluation adds it by itself.",
        )
    if not names:
        raise UsageError("no condition is given.", hint="Give at least one, for example clean.")
    return [parse_condition(name) for name in dict.fromkeys(names)]


def open_recipe(
    source: str | Source = "mini",
    *,
    conditions: Sequence[str],
    languages: Sequence[str] | None = None,
    subsets: Sequence[str] | None = None,
    noise: str = "synthetic",
    rirs: str = "simulated",
    channel: int | None = None,
    seed: int = 0,
    level: str = "whole",
    limit: int = 0,
    benchmark: str = "",
) -> OpenedRecipe:
    """Open source (a name, or a source that is open) and banks, check every choice, and fix the recipe.

    `noise` and `rirs` are bank names or folders; `channel` (from 0) is taken from recordings with several channels.
    Raises `UsageError` (with the nearest name) for a wrong choice, `DataError` for an unusable source or bank.
    """
    if level not in LEVELS:
        raise unknown_name("level", level, LEVELS)
    if limit < 0:
        raise UsageError(f"the limit is {limit}.", hint="Give the number of queries per subset, or 0 for all.")
    chosen_conditions = choose_conditions(conditions)
    opened = load_source(source) if isinstance(source, str) else source
    chosen = choose_subsets(opened, languages, subsets)
    if not chosen:
        raise UsageError(
            f"no subset of {opened.name!r} is both in languages {list(languages or [])} and in {list(subsets or [])}.",
            hint="Leave one of the two options out.",
        )
    noise_bank = (
        load_noise_bank(noise, channel=channel) if any(c.snr_db is not None for c in chosen_conditions) else None
    )
    rir_bank = load_rir_bank(rirs, channel=channel) if any(c.reverb for c in chosen_conditions) else None
    recipe = Recipe(
        source=opened.name,
        source_version=opened.version,
        license=opened.license,
        subsets=tuple(chosen.items()),
        conditions=tuple(condition.name for condition in chosen_conditions),
        noise=noise_bank.name if noise_bank else "",
        noise_version=noise_bank.version if noise_bank else "",
        noise_license=noise_bank.license if noise_bank else "",
        rirs=rir_bank.name if rir_bank else "",
        rirs_version=rir_bank.version if rir_bank else "",
        rirs_license=rir_bank.license if rir_bank else "",
        seed=seed,
        level=level,
        limit=limit,
        benchmark=benchmark or getattr(opened, "benchmark", ""),
    )
    return OpenedRecipe(recipe, opened, StepContext(noise_bank, rir_bank, seed=seed, level=recipe.level))


def choose_queries(queries: Sequence[Query], limit: int, seed: int) -> list[Query]:
    """At most `limit` queries (0: all), stratified by `group`, drawn by the keyed rule, in their original order.

    Groups share the limit in proportion to their size; the remainders go to the largest fractions, ties to the first.
    """
    if limit == 0 or limit >= len(queries):
        return list(queries)
    groups: dict[str, list[Query]] = {}
    for query in queries:
        groups.setdefault(query.group, []).append(query)
    shares = share(limit, {name: len(members) for name, members in groups.items()})
    taken: set[str] = set()
    for name, members in groups.items():
        drawn = sorted(members, key=lambda q: keyed_seed(seed, "choice", q.subset, q.id))
        taken.update(query.id for query in drawn[: shares[name]])
    return [query for query in queries if query.id in taken]


def share(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Share `total` among groups in proportion to their sizes, by largest remainders.

    >>> share(5, {"a": 10, "b": 10, "c": 5})
    {'a': 2, 'b': 2, 'c': 1}
    """
    everything = sum(sizes.values())
    exact = {name: total * size / everything for name, size in sizes.items()}
    shares = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(sizes, key=lambda name: -(exact[name] - shares[name]))
    for name in by_remainder[: total - sum(shares.values())]:
        shares[name] += 1
    return shares
