"""What every retriever is asked: which texts, and which sounds of end-to-end systems, of which subset."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from ..protocols import CompositeRetriever, Retriever
from ..results.old import TEXT_CONDITION
from ..systems.system import Cascade, EndToEnd, System
from .asking import search_texts
from .listeners import Listened, Tools, Vector, listener_of
from .plan import Cell, Plan


@dataclass(frozen=True, slots=True)
class Need:
    """One retriever at one depth."""

    retriever: Retriever
    depth: int

    @property
    def key(self) -> tuple[str, int]:
        """What its rankings are shared by."""
        return self.retriever.spec.fingerprint, self.depth


def end_to_end_key(system: EndToEnd, depth: int) -> tuple[str, int]:
    """What the rankings of an end-to-end system's sounds are shared by."""
    return f"{listener_of(system).key}-sound", depth


Demands = dict[tuple[str, int], tuple[Need, dict[str, dict[str, None]]]]


def text_demands(plan: Plan, listened: Mapping[str, Listened], depth: int, tools: Tools) -> Demands:
    """Which texts every retriever is asked, by subset; parts are asked what the whole is asked."""
    demands: Demands = {}

    def demand(retriever: Retriever, k: int, subset: str, texts: Sequence[str]) -> None:
        need = Need(retriever, k)
        _, by_subset = demands.setdefault(need.key, (need, {}))
        by_subset.setdefault(subset, {}).update(dict.fromkeys(texts))
        if is_composite(retriever):
            for part in retriever.parts:
                demand(part, retriever.part_depth(k), subset, texts)

    for system in plan.systems:
        retriever = searcher_of(system, tools)
        if retriever is None:
            continue
        for cell in plan.cells(system):
            texts = _cell_texts(plan, system, cell, listened)
            if texts:
                demand(retriever, depth, cell[0], texts)
    return demands


@dataclass(frozen=True, slots=True)
class Sounds:
    """The sounds, by subset, that an end-to-end system searches with, and their vectors."""

    key: tuple[str, int]
    by_subset: Mapping[str, Mapping[str, None]]
    vectors: Mapping[str, Vector]


def sound_demands(
    plan: Plan, listened: Mapping[str, Listened], depth: int, tools: Tools
) -> Mapping[tuple[str, int], list[Sounds]]:
    """What end-to-end systems search with in all conditions, by the key of the dense retriever that answers."""
    demands: dict[tuple[str, int], dict[tuple[str, int], Sounds]] = {}
    for system in plan.systems:
        if not isinstance(system, EndToEnd):
            continue
        heard = listened[listener_of(system).key]
        by_subset: dict[str, dict[str, None]] = {}
        for cell in plan.cells(system):
            sounds = (h.audio_sha256 for h in heard.cells.get(cell, ()) if not h.transcript.error)
            by_subset.setdefault(cell[0], {}).update(dict.fromkeys(sounds))
        key = end_to_end_key(system, depth)
        same = demands.setdefault(Need(tools.dense_of(system), depth).key, {})
        same.setdefault(key, Sounds(key, by_subset, heard.vectors))
    return {key: list(same.values()) for key, same in demands.items()}


def searcher_of(system: System, tools: Tools) -> Retriever | None:
    """What a system searches texts with: a cascade's retriever, an end-to-end system's encoder as a dense retriever."""
    if isinstance(system, Cascade):
        return system.searcher
    return tools.dense_of(system) if isinstance(system, EndToEnd) else None


def _cell_texts(plan: Plan, system: System, cell: Cell, listened: Mapping[str, Listened]) -> list[str]:
    """The distinct texts that a system searches with in a cell; [] where listening failed or gives none."""
    subset, condition = cell
    if condition == TEXT_CONDITION:
        return list(dict.fromkeys(query.text for query in plan.queries[subset]))
    if not isinstance(system, Cascade):
        return []
    heard = listened[listener_of(system).key].cells.get(cell, ())
    language = plan.data.subsets[subset]
    return list(dict.fromkeys(t for h in heard for t in search_texts(system, h.transcript, language).texts))


def bottom_up(demands: Demands) -> list[Need]:
    """All needs, parts before what is made of them."""
    order: dict[tuple[str, int], Need] = {}

    def visit(need: Need) -> None:
        if is_composite(need.retriever):
            for part in need.retriever.parts:
                visit(Need(part, need.retriever.part_depth(need.depth)))
        order.setdefault(need.key, need)

    for need, _ in demands.values():
        visit(need)
    return list(order.values())


def all_needs(need: Need) -> list[Need]:
    """A retriever and all that it is made of, each once."""
    found = {need.key: need}
    if is_composite(need.retriever):
        for part in need.retriever.parts:
            found.update({n.key: n for n in all_needs(Need(part, need.retriever.part_depth(need.depth)))})
    return list(found.values())


def is_composite(retriever: Retriever) -> TypeGuard[CompositeRetriever]:
    """Whether a retriever is made of others."""
    return hasattr(retriever, "combine") and hasattr(retriever, "parts")


def text_sha256(text: str) -> str:
    """The sha256 of a text in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
