"""How a system is written down, before any component is constructed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..protocols import Setting

Role = Literal["front_end", "transcriber", "rewriter", "retriever", "encoder", "answerer"]

ROLE_NAMES: Mapping[Role, str] = {
    "transcriber": "transcriber",
    "rewriter": "rewriter",
    "retriever": "retriever",
    "front_end": "front end",
    "encoder": "audio and text encoder",
    "answerer": "answerer",
}


@dataclass(frozen=True, slots=True)
class ComponentEntry:
    """A component as it is written: `options` are its constructor's, JSON values only; `place` says where, for errors.

    `parts` are the retrievers that a hybrid combines, the one that a reranker reorders, or the two that a route chooses
    from (`ROUTED`).
    """

    backend: str
    model: str = ""
    preset: str = ""
    parts: tuple[ComponentEntry, ...] = ()
    options: Mapping[str, Setting] = field(default_factory=dict)
    place: str = field(default="", compare=False)

    def as_dict(self) -> dict[str, Any]:
        """As it stands in a spec file; what is empty is left out."""
        written: dict[str, Any] = {"backend": self.backend}
        if self.model:
            written["model"] = self.model
        if self.preset:
            written["preset"] = self.preset
        written |= dict(self.options)
        if self.backend == ROUTE:
            written |= {name: part.as_dict() for name, part in zip(ROUTED, self.parts, strict=True)}
        elif self.parts:
            written["parts"] = [part.as_dict() for part in self.parts]
        return written


ROUTE = "route"
ROUTED = ("below", "otherwise")
"""The parts of a route, as fields of a file: for confidences below its threshold, and for others."""

LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")

Written = ComponentEntry | Mapping[str, ComponentEntry]


def entries_of(written: Written | None) -> list[ComponentEntry]:
    if written is None:
        return []
    return list(written.values()) if isinstance(written, Mapping) else [written]


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A system as it is written; the fields are those of `System`."""

    front_end: Written | None = None
    transcriber: Written | None = None
    rewriter: Written | None = None
    retriever: Written | None = None
    encoder: Written | None = None
    answerer: Written | None = None
    text_only: bool = False
    templates: Mapping[str, str] = field(default_factory=dict)
    script: str = "auto"
    normalizer: str = ""
    n_best: int = 1
    n_best_fusion: str = "rrf"
    name: str = ""
    place: str = field(default="", compare=False)


def chain_name(names: Mapping[Role, str], *, text_only: bool = False, n_best: int = 1) -> str:
    """What a system is called by the names of its components, which are in the order of the chain.

    >>> chain_name({"front_end": "wpe", "transcriber": "a", "retriever": "BM25"}, n_best=5)
    'wpe | a + BM25 (5-best)'
    """
    front = f"{names['front_end']} | " if "front_end" in names else ""
    chain = ["text-only"] * text_only + [name for role, name in names.items() if role != "front_end"]
    best = f" ({n_best}-best)" if n_best > 1 else ""
    return f"{front}{' + '.join(chain)}{best}"


Origins = tuple[tuple[object, ComponentEntry], ...]
"""The components of a system with what each was made from."""
