"""What is added to a built folder: the options that it was built with, and the conditions that a new subset needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from .growth import union_of
from .manifest import read_manifest
from .recipe import choose_subsets, open_recipe, open_source
from .records import Source
from .sources.joined import parts_of

_ITS_OWN = frozenset(("subsets", "conditions", "noise", "rirs", "steps", "benchmark", "splits"))
"""What of a recipe is not the same, or has another form, in the options of `open_recipe`."""


def options_to_add(
    folder: Path, source: str | Source | Sequence[str | Source], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of `open_recipe`, `source` opened, for what `options` add to `folder` (see `build`).

    What is not given is as the folder has it, the subsets of a source too, unless it has none of them. Where there is a
    subset that the folder lacks, all conditions of both are built, else those that are given. Raises `DataError` if the
    folder was not built.
    """
    recipe = read_manifest(folder).recipe
    opened = open_source(source, options.get("on_bad", "refuse"), options.get("speech_channel"))
    languages, named = options.get("languages"), options.get("subsets")
    if languages is None and named is None:
        # Of a source that the folder has, what it has; of another, all.
        named = [subset for part in parts_of(opened) for subset in _held(part, recipe) or part.subsets]
    subsets = choose_subsets(opened, languages, named)
    given = options.get("conditions", ())
    known = set(subsets) <= set(recipe["subsets"])
    taken = {name: recipe[name] for name in signature(open_recipe).parameters if name in recipe.keys() - _ITS_OWN}
    if recipe["stratify"]:
        taken["splits"] = len(recipe["splits"]) > 1
    if known:
        taken["benchmark"] = recipe["benchmark"]
    # Several rows of an utterance are defined where there is a condition that has them.
    alone = given and known and not recipe["stratify"] and recipe.get("draws", 1) == 1
    conditions = list(given) if alone else union_of(recipe["conditions"], given)
    own = {name: value for name, value in options.items() if name != "speech_channel"}
    return {**taken, **own, "source": opened, "subsets": named, "conditions": conditions}


def _held(source: Source, recipe: Mapping[str, Any]) -> list[str]:
    return [subset for subset in source.subsets if subset in recipe["subsets"]]
