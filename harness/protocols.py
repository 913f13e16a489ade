"""What is pluggable in the harness, and the values that pass between its parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..loaders.records import Document, Samples

Setting = str | int | float | bool | None | Sequence["Setting"] | Mapping[str, "Setting"]
"""A JSON value."""


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """Everything that decides what a component returns: it names the component in results and keys the caches.

    `kind` is what it is, `backend` the name in the table of backends, `name` the short name shown in tables, `model`
    where the weights came from, `revision` a commit, a package version or a sha256 of the weights ("" for a component
    without weights), `settings` the decode settings, prompts and options, JSON values only.
    """

    kind: Literal["transcriber", "encoder", "retriever"]
    backend: str
    name: str
    model: str = ""
    revision: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Setting]:
        """As JSON object, keys sorted."""
        return {
            "backend": self.backend,
            "kind": self.kind,
            "model": self.model,
            "name": self.name,
            "revision": self.revision,
            "settings": dict(sorted(self.settings.items())),
        }

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the sha256 of the canonical JSON, without the display name.

        >>> a = ComponentSpec("retriever", "bm25", "BM25", settings={"k1": 0.9})
        >>> a.fingerprint == ComponentSpec("retriever", "bm25", "other", settings={"k1": 0.9}).fingerprint
        True
        """
        content = {key: value for key, value in self.as_dict().items() if key != "name"}
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a transcriber heard.

    A failed utterance has `error` set and empty `text`: it is counted, never scored as words. `loop`: the text repeats
    itself; `truncated`: the length cap cut it. `seconds` is the decoding time (a batch's time is shared equally).
    """

    text: str
    error: str = ""
    loop: bool = False
    truncated: bool = False
    seconds: float = 0.0


class Transcriber(Protocol):
    """Speech to text."""

    @property
    def spec(self) -> ComponentSpec:
        """What decides the transcripts. Must not load the weights' tensors."""
        ...

    @property
    def sample_rate(self) -> int:
        """The rate in Hz at which `transcribe` wants sound."""
        ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language (code such as "zh")."""
        ...

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        """One transcript per clip ((T,) float32 at `sample_rate`), in order; [] for no clips.

        The language is forced. A clip that cannot be decoded gives a `Transcript` with `error`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved document."""

    document_id: str
    score: float


class Retriever(Protocol):
    """Text query to ranked documents."""

    @property
    def spec(self) -> ComponentSpec:
        """What decides the ranking."""
        ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language (code such as "zh")."""
        ...

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        """Replace the corpus. Raises `DataError` for an empty corpus or a duplicate id."""
        ...

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by document id descending (trec_eval's order).

        An empty query has no hits; a document with zero lexical score is not a hit.
        """
        ...


class TextEncoder(Protocol):
    """Text to vectors, for dense retrieval."""

    @property
    def spec(self) -> ComponentSpec:
        """What decides the vectors, prompts included."""
        ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language."""
        ...

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """(len(texts), D) float32, rows of unit length; (0, D) for no texts."""
        ...
