"""The values that the parts of the package exchange: queries, documents, judgments, clean speech, spoken queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
"""Mono audio, shape (T,), float32, nominally within [-1, 1]."""

SAMPLE_RATE = 24_000
"""Sample rate of stored audio in Hz unless a recipe has another (SQuTR, arXiv 2602.12783, section 3.2)."""

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Query:
    """A typed query, or the transcript of an utterance. `id` is unique within its subset.

    It is the same in every condition, but where an utterance has several RIRs or draws of noise: then a row's `id` is
    `<utterance>@<rir>` or, from the second draw on, `<utterance>#<draw>`, and `utterance_id` names the utterance. Where
    several people speak one text, each is an utterance `<query>~<speaker>`, and `query_id` names what is judged.
    """

    id: str
    subset: str
    language: str
    text: str
    group: str = ""
    """What to stratify by when only some queries are taken (for `mini`: its domain); "" if nothing."""
    utterance_id: str = ""
    query_id: str = ""

    @property
    def utterance(self) -> str:
        return self.utterance_id or self.id

    @property
    def cluster(self) -> str:
        """What is judged, and what is drawn together in statistics: the query that this is one utterance of."""
        return self.query_id or self.utterance

    def of_utterance(self) -> Query:
        return replace(self, id=self.utterance_id, utterance_id="") if self.utterance_id else self


@dataclass(frozen=True, slots=True)
class Row:
    """A row to be rendered: `query` has the row's own id; `rir_id` is "" where the RIR is drawn for the utterance
    alone, or where there is none; `draw` counts the draws of noise of an utterance from 0."""

    query: Query
    rir_id: str = ""
    draw: int = 0


@dataclass(frozen=True, slots=True)
class Take:
    """An utterance with the ids of the RIRs that a plan gave it (one "" where a RIR is drawn for it alone), and the
    number of times that noise is drawn for it."""

    query: Query
    rir_ids: tuple[str, ...] = ("",)
    draws: int = 1

    def rows(self, *, reverb: bool, noise: bool) -> list[Row]:
        """The rows of the utterance under a condition with reverberation, with noise, with both or without.

        >>> take = Take(Query("q", "s", "en", "text"), ("r1", "r2"), draws=2)
        >>> [row.query.id for row in take.rows(reverb=True, noise=True)]
        ['q@r1', 'q@r1#2', 'q@r2', 'q@r2#2']
        >>> [row.query.id for row in take.rows(reverb=False, noise=False)]
        ['q']
        """
        return [
            Row(self._named(rir_id, draw), rir_id, draw)
            for rir_id in (self.rir_ids if reverb else ("",))
            for draw in range(self.draws if noise else 1)
        ]

    def _named(self, rir_id: str, draw: int) -> Query:
        id_ = row_id(self.query.id, rir_id, draw)
        return self.query if id_ == self.query.id else replace(self.query, id=id_, utterance_id=self.query.id)


def row_id(utterance_id: str, rir_id: str, draw: int) -> str:
    """The id of a row: that of its utterance, with the RIR that a plan gave it, and the number of a further draw."""
    return utterance_id + (f"@{rir_id}" if rir_id else "") + (f"#{draw + 1}" if draw else "")


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    title: str
    text: str

    @property
    def contents(self) -> str:
        """Title and text joined by one blank, what retrievers index (as published)."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class Qrel:
    """One relevance judgment; `score` is the grade (0 is judged not relevant)."""

    query_id: str
    document_id: str
    score: int


@dataclass(frozen=True, slots=True)
class CleanSpeech:
    """A query spoken without noise or reverberation: (T,) float32 at `SAMPLE_RATE` or the rate asked for.

    `tts_error_rate` is the WER (CER for zh) of an ASR model on it, NaN if not measured or not synthetic; `tts_takes` is
    how many takes it was selected from (0 if not known), by the model `tts_transcriber` ("" if by none).
    """

    samples: Samples
    speaker: str = ""
    voice: str = ""
    tts_error_rate: float = NAN
    tts_takes: int = 0
    tts_transcriber: str = ""


@dataclass(frozen=True, slots=True)
class SpokenQuery:
    """One row of a built data set: one utterance under one condition.

    `audio` is a complete mono FLAC file (16 bit) at the recipe's rate. What does not apply is NaN for numbers and ""
    for strings. Times in s, levels in dB.

    - `utterance_id`: pairs the rows of one utterance across conditions, RIRs and draws of noise; the same as `id` but
      where an utterance has several of them.
    - `query_id`: the query of the judgments; the same as `utterance_id` but where several speakers speak one query.
    - `snr_db`: the SNR asked for; `snr_active_db`: the one measured over the active part of the speech.
    - `rt60_s` (with `rt60_method` "T30" or "T20"), `edt_s`, `drr_db`, `c50_db`, `c80_db`: measured on the whole RIR
      (see `rir_measures`); `source_rt60_s`, `source_drr_db`, `source_c50_db`: what its publisher says.
    - `room_id`: the room of the RIR; `stratum`: the group of RIRs that it was drawn from.
    - `onset_samples`: what was cut from the RIR before its direct path (0 without a RIR).
    - `gain_db`: the joint gain that kept the peak at or below 0.9 (0 when none was needed).
    """

    id: str
    subset: str
    language: str
    text: str
    audio: bytes
    duration_s: float
    condition: str
    utterance_id: str = ""
    query_id: str = ""
    snr_db: float = NAN
    snr_active_db: float = NAN
    noise_id: str = ""
    noise_family: str = ""
    noise_offset_s: float = NAN
    rir_id: str = ""
    room_id: str = ""
    rt60_s: float = NAN
    rt60_method: str = ""
    edt_s: float = NAN
    drr_db: float = NAN
    c50_db: float = NAN
    c80_db: float = NAN
    source_rt60_s: float = NAN
    source_drr_db: float = NAN
    source_c50_db: float = NAN
    stratum: str = ""
    onset_samples: int = 0
    gain_db: float = 0.0
    speaker: str = ""
    voice: str = ""
    tts_error_rate: float = NAN
    tts_takes: int = 0
    tts_transcriber: str = ""
    seed: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Columns that steps of the user's own have added."""

    def __post_init__(self) -> None:
        if not self.utterance_id:
            object.__setattr__(self, "utterance_id", self.id)
        if not self.query_id:
            object.__setattr__(self, "query_id", self.utterance_id)


class Source(Protocol):
    """Where texts and clean speech come from.

    A source is cheap to construct and to pickle; it reads on demand. Subset names are unique within a source and
    contain no underscore, because config names join subset and condition with one.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Version of its content; enters recipes and results."""
        ...

    @property
    def license(self) -> str: ...

    @property
    def subsets(self) -> Mapping[str, str]:
        """Subset name to language code, in publication order."""
        ...

    def queries(self, subset: str) -> Sequence[Query]:
        """All queries, in publication order. Raises `UnknownNameError`, `DataError`."""
        ...

    def documents(self, subset: str) -> Iterable[Document]: ...

    def qrels(self, subset: str) -> Sequence[Qrel]: ...

    def speech(self, query: Query) -> CleanSpeech:
        """The clean recording of `query`. Raises `AudioError` naming the query if missing or unusable."""
        ...
