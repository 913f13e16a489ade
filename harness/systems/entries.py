"""How a system is written down, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..protocols import Setting

Role = Literal["transcriber", "retriever", "front_end", "encoder"]

ROLE_NAMES: Mapping[Role, str] = {
    "transcriber": "transcriber",
    "retriever": "retriever",
    "front_end": "front end",
    "encoder": "audio and text encoder",
}
"""As errors call them."""


@dataclass(frozen=True, slots=True)
class ComponentEntry:
    """A component as it is written: `options` are its constructor's, JSON values only.

    `parts` are the retrievers that a hybrid combines, or the one that a reranker reorders. `place` says where it is
    written ("robust.yaml: systems[0].retriever"), for errors; "" for a short form.
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
        if self.parts:
            written["parts"] = [part.as_dict() for part in self.parts]
        return written


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A system as it is written: `transcriber` and `retriever`, or `encoder`, or `run` alone."""

    transcriber: ComponentEntry | None = None
    retriever: ComponentEntry | None = None
    encoder: ComponentEntry | None = None
    run: ComponentEntry | None = None
    front_end: ComponentEntry | None = None
    script: str = "auto"
    normalizer: str = "default"
    n_best: int = 1
    n_best_fusion: str = "rrf"
    name: str = ""
    place: str = field(default="", compare=False)


Origins = tuple[tuple[object, ComponentEntry], ...]
"""The components of a system with what each was made from."""
