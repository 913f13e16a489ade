"""What listens, and what it made of what it heard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import SqutrError
from ...loaders.records import Query, SpokenQuery
from ..components.encoders.cache import EmbeddingCache
from ..components.retrievers.dense import DenseRetriever
from ..processes import Processes
from ..progress import Progress
from ..protocols import AudioTextEncoder, FrontEnd, PrecomputedTranscripts, Transcriber, Transcript
from ..systems.system import Cascade, EndToEnd, System
from .plan import Cell
from .store import Store

Failure = SqutrError
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Heard:
    """A spoken query without its sound, with what was made of it.

    An encoder gives no words: its transcript is empty, or says why there is no vector. `audio_sha256` is "" where the
    sound was not heard here (ready transcripts, ready runs).
    """

    query: SpokenQuery
    audio_sha256: str
    transcript: Transcript


class Listener(Protocol):
    """What turns the sound of a cell into `Heard`."""

    @property
    def key(self) -> str:
        """What its work is shared by."""
        ...

    @property
    def name(self) -> str:
        """As shown in progress."""
        ...


@dataclass(frozen=True, slots=True)
class Ear:
    """A listener that hears: a transcriber or an encoder, behind a front end or not."""

    model: Transcriber | AudioTextEncoder
    front_end: FrontEnd | None

    @property
    def key(self) -> str:
        """The fingerprint of the model, with that of the front end."""
        own = self.model.spec.fingerprint
        return own if self.front_end is None else f"{own}-{self.front_end.spec.fingerprint}"

    @property
    def name(self) -> str:
        """The names of its parts."""
        own = self.model.spec.name
        return own if self.front_end is None else f"{self.front_end.spec.name} | {own}"

    @property
    def transcriber(self) -> Transcriber | None:
        """The transcriber, None for an encoder."""
        return cast(Transcriber, self.model) if hasattr(self.model, "transcribe") else None

    @property
    def encoder(self) -> AudioTextEncoder | None:
        """The encoder, None for a transcriber."""
        return None if hasattr(self.model, "transcribe") else self.model


@dataclass(frozen=True, slots=True)
class Ready:
    """A listener that reads what was made elsewhere; without transcripts it only says which queries there are."""

    transcripts: PrecomputedTranscripts | None

    @property
    def key(self) -> str:
        """The fingerprint of the transcripts, `none` without any."""
        return "none" if self.transcripts is None else self.transcripts.spec.fingerprint

    @property
    def name(self) -> str:
        """The name of the transcripts."""
        return "ready runs" if self.transcripts is None else self.transcripts.spec.name


def listener_of(system: System) -> Ear | Ready:
    """What listens for a system."""
    if isinstance(system, Cascade):
        if system.listener is None:
            return Ready(system.precomputed_transcripts)
        return Ear(system.listener, system.front_end)
    return Ear(system.encoder, system.front_end) if isinstance(system, EndToEnd) else Ready(None)


@dataclass(slots=True)
class Listened:
    """What one listener made of its cells, or why it failed on a cell; vectors of an encoder by sound.

    `seconds` is the time that this evaluation listened, `waiting_s` the part of it in which the model waited for sound,
    both of the main process; 0 if everything was known.
    """

    cells: dict[Cell, list[Heard]] = field(default_factory=dict)
    failed: dict[Cell, Failure] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    seconds: float = 0.0
    waiting_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Tools:
    """What the stages work with. `keeper` gives, for the queries of a subset, what keeps the clips for players."""

    processes: Processes
    store: Store | None
    embeddings: EmbeddingCache | None
    keeper: Callable[[Sequence[Query]], Callable[[SpokenQuery], None]]
    tell: Progress
    _dense: dict[str, DenseRetriever] = field(default_factory=dict)
    _spoken: dict[Cell, list[SpokenQuery]] = field(default_factory=dict)

    def shared(self, cell: Cell, heard: list[Heard]) -> list[Heard]:
        """`heard` with the queries of those who heard the cell before: they are held once."""
        spoken = self._spoken.setdefault(cell, [h.query for h in heard])
        return [replace(h, query=query) for h, query in zip(heard, spoken, strict=True)]

    def dense_of(self, system: EndToEnd) -> DenseRetriever:
        """An end-to-end system's encoder as a dense retriever, the same whenever it is asked for."""
        key = system.encoder.spec.fingerprint
        if key not in self._dense:
            self._dense[key] = DenseRetriever(encoder=system.encoder, cache=self.embeddings)
        return self._dense[key]
