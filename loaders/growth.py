"""Whether one recipe is another and more, and what both hold together.

A set may grow by conditions and subsets; everything else must agree, versions of sources and banks included, because
what is there stays as it is. With a plan of RIRs only conditions may grow: the plan is made over all subsets. Where
splits are divided, subsets of other sources may not be added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .origins import KINDS, Kind, Origin, origins

Recipe = Mapping[str, Any]
"""A recipe as JSON object, as a manifest has it."""

_GROWING = {"subsets", "conditions", "steps", "benchmark", *KINDS}
_OF_SUBSET = {"sources": "the source", "noise": "the noise", "rirs": "the RIRs"}


@dataclass(frozen=True, slots=True)
class Differences:
    """What a recipe `new` lacks of a recipe `held`, and in what they disagree, a phrase for each."""

    lacking_conditions: tuple[str, ...] = ()
    lacking_subsets: tuple[str, ...] = ()
    disagreeing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lacking_conditions or self.lacking_subsets or self.disagreeing)

    @property
    def lacking(self) -> str:
        """
        >>> Differences(("clean",), ("fiqa", "nq")).lacking
        'the condition clean and the subsets fiqa, nq'
        """
        parts = [
            f"the {what}{'s' if len(names) > 1 else ''} {', '.join(names)}"
            for what, names in (("condition", self.lacking_conditions), ("subset", self.lacking_subsets))
            if names
        ]
        return " and ".join(parts)


def grows(held: Recipe, new: Recipe) -> Differences:
    """Why `new` is not `held` and more: falsy where it is, and where they are the same."""
    if "sources" not in held:
        return Differences(disagreeing=("it was written by an earlier version of squtr",))
    return Differences(
        tuple(name for name in held["conditions"] if name not in new["conditions"]),
        tuple(name for name in held["subsets"] if name not in new["subsets"]),
        tuple(_disagreeing(held, new)),
    )


def _disagreeing(held: Recipe, new: Recipe) -> Iterator[str]:
    for key in sorted((held.keys() | new.keys()) - _GROWING):
        if held.get(key) != new.get(key):
            yield f"{key} {held.get(key)!r} there, {new.get(key)!r} here"
    for name in held["conditions"]:
        if name in new["conditions"] and held["steps"][name] != new["steps"][name]:
            yield f"other steps of the condition {name}"
    common = [name for name in held["subsets"] if name in new["subsets"]]
    for subset in common:
        if held["subsets"][subset] != new["subsets"][subset]:
            languages = held["subsets"][subset], new["subsets"][subset]
            yield f"the language of {subset} {languages[0]!r} there, {languages[1]!r} here"
    told: list[str] = []
    for kind in KINDS:
        for subset in common:
            told += _other_origin(kind, subset, held, new)
    yield from dict.fromkeys(told)
    same_subsets = held["subsets"].keys() == new["subsets"].keys()
    if held.get("stratify") and not same_subsets:
        yield "subsets differ, and the plan of RIRs (stratify) is made over all of them: only conditions can be added"
    names = [{source.name for source in origins(recipe)} for recipe in (held, new)]
    if held.get("divided") and names[0] != names[1]:
        yield "other sources, and the splits are divided over all of them: only their own subsets and conditions fit"
    marks = held.get("benchmark", ""), new.get("benchmark", "")
    if marks[0] != marks[1] and (same_subsets or all(marks)):
        yield f"benchmark {marks[0]!r} there, {marks[1]!r} here"


def _other_origin(kind: Kind, subset: str, held: Recipe, new: Recipe) -> Iterator[str]:
    there, here = (next(iter(origins(recipe, kind, [subset])), None) for recipe in (held, new))
    # A bank that no condition needed yet says nothing.
    if there is None or here is None:
        return
    for name in ("name", "version", "split", "license", "attribution"):
        one, two = getattr(there, name), getattr(here, name)
        if one != two:
            yield f"{kind}: {_OF_SUBSET[kind]} of {subset} has the {name} {one!r} there, {two!r} here"
            return


def uncovered(held: Recipe, new: Recipe) -> list[tuple[str, str]]:
    """The pairs of a subset and a condition of the union that neither recipe has."""
    return [
        (subset, condition)
        for subset in union_of(held["subsets"], new["subsets"])
        for condition in union_of(held["conditions"], new["conditions"])
        if not any(subset in recipe["subsets"] and condition in recipe["conditions"] for recipe in (held, new))
    ]


def united(held: Recipe, new: Recipe) -> dict[str, Any]:
    """The recipe of the union of two that agree (see `grows`): what `held` has first, then what `new` adds."""
    subsets = dict(held["subsets"]) | dict(new["subsets"])
    result = {**new, "subsets": subsets, "conditions": union_of(held["conditions"], new["conditions"])}
    result["steps"] = {**held["steps"], **new["steps"]}
    marks = {recipe.get("benchmark", "") for recipe in (held, new)}
    result["benchmark"] = marks.pop() if len(marks) == 1 else ""
    for kind in KINDS:
        result[kind] = [_row(origin) for origin in _joined_origins(kind, held, new)]
    # A recipe that was read from a file has lost the order of its subsets; its sources have not.
    result["subsets"] = {name: subsets[name] for source in origins(result) for name in source.subsets}
    return result


def union_of(first: Collection[str], second: Collection[str]) -> list[str]:
    """
    >>> union_of(["clean", "snr_5"], ["snr_0", "clean"])
    ['clean', 'snr_5', 'snr_0']
    """
    return list(dict.fromkeys([*first, *second]))


def _joined_origins(kind: Kind, *recipes: Recipe) -> list[Origin]:
    served: dict[Origin, list[str]] = {}
    taken: set[str] = set()
    for recipe in recipes:
        for origin in origins(recipe, kind):
            own = [subset for subset in origin.subsets if subset not in taken]
            taken.update(own)
            if own:
                served.setdefault(Origin(**{**asdict(origin), "subsets": ()}), []).extend(own)
    return [Origin(**{**asdict(origin), "subsets": tuple(own)}) for origin, own in served.items()]


def _row(origin: Origin) -> dict[str, Any]:
    return {**asdict(origin), "subsets": list(origin.subsets)}
