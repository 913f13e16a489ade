"""What a recipe says of its sources and banks: names, versions, licenses, and which subsets each of them serves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["sources", "noise", "rirs"]
KINDS: tuple[Kind, ...] = ("sources", "noise", "rirs")
VERSION = "version"

JOINT = " + "


@dataclass(frozen=True, slots=True)
class Origin:
    """A source or a bank: its name, the version of its content, its license, and the subsets that it serves.

    `split` is the part of a source's texts that was taken ("dev"), "" where it has no parts. `attribution` is whom to
    name, "" where nobody asks for it. `selection` says, as JSON object, how synthesized speech was selected ("": it was
    not, see `sources.selection`).
    """

    name: str
    version: str = ""
    license: str = ""
    subsets: tuple[str, ...] = ()
    split: str = ""
    attribution: str = ""
    selection: str = ""


def origins(recipe: Mapping[str, Any], kind: Kind = "sources", subsets: Collection[str] = ()) -> list[Origin]:
    """The sources or banks that a recipe, as JSON object, names: all, or those that serve some of `subsets`."""
    found = [Origin(**{**row, "subsets": tuple(row.get("subsets", ()))}) for row in recipe.get(kind) or ()]
    return [origin for origin in found if not subsets or set(subsets) & set(origin.subsets)]


def joined(values: Iterable[str]) -> str:
    """Names, versions or licenses as one text, each once; "" for none.

    >>> joined(["mini", "beir:fiqa", "mini"])
    'mini + beir:fiqa'
    """
    return JOINT.join(dict.fromkeys(filter(None, values)))


def licenses(recipe: Mapping[str, Any]) -> list[str]:
    """The licenses of all that a recipe is made from, each once."""
    return list(dict.fromkeys(origin.license for kind in KINDS for origin in origins(recipe, kind) if origin.license))


def without_versions(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with nothing that changes when files of its sources and banks are mended."""
    kept = {key: value for key, value in recipe.items() if key != "rir_measures"}
    for kind in KINDS:
        kept[kind] = [{key: value for key, value in row.items() if key != VERSION} for row in recipe.get(kind) or ()]
    return kept
