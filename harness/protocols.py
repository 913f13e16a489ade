"""What is pluggable in the harness, and the values that pass between its parts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..loaders.records import Document, Samples

Setting = str | int | float | bool | None | Sequence["Setting"] | Mapping[str, "Setting"]


Kind = Literal[
    "transcriber", "encoder", "retriever", "reranker", "front_end", "audio_text_encoder", "answerer", "rewriter"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """Everything that decides what a component returns: it names the component in results and keys the caches.

    `kind` is what it is, `backend` the name in the table of backends, `name` the short name shown in tables, `model`
    where the weights came from, `revision` a commit, a package version or a sha256 of the weights ("" for a component
    without weights), `settings` the decode settings, prompts and options, JSON values only.
    """

    kind: Kind
    backend: str
    name: str
    model: str = ""
    revision: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Setting]:
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

        Of a user's own class (backend `class`) the name counts: often nothing else tells two of them apart.

        >>> a = ComponentSpec("retriever", "bm25", "BM25", settings={"k1": 0.9})
        >>> a.fingerprint == ComponentSpec("retriever", "bm25", "other", settings={"k1": 0.9}).fingerprint
        True
        """
        content = {key: value for key, value in self.as_dict().items() if key != "name" or self.backend == "class"}
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One of the n best transcripts: `score` is its log-probability as the transcriber ranks it, higher is better."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a transcriber wrote for one clip.

    A failed utterance has `error` and empty `text`: it is never scored as words. `loop`: the text repeats itself;
    `truncated`: the length cap cut it. `seconds` is the decoding time (a batch's is shared equally),
    `front_end_seconds` that of a front end. `hypotheses` are the n best, `text` the first of them; () where they were
    not asked for. `confidence` is the geometric mean of the probabilities that the transcriber gave the tokens of
    `text`, in [0, 1]; NaN where it does not tell, and of a text without tokens.
    """

    text: str
    error: str = ""
    loop: bool = False
    truncated: bool = False
    seconds: float = 0.0
    front_end_seconds: float = 0.0
    hypotheses: tuple[Hypothesis, ...] = ()
    confidence: float = math.nan


class Transcriber(Protocol):
    """Speech to text."""

    @property
    def spec(self) -> ComponentSpec: ...

    @property
    def sample_rate(self) -> int:
        """The rate in Hz of the clips that `transcribe` takes."""
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
class Rewritten:
    """What a rewriter made of one query's transcripts.

    A failed one has `error` and empty `text`: it is counted, and nothing is searched with. `seconds` is the time it
    took (a batch's is shared equally).
    """

    text: str
    error: str = ""
    seconds: float = 0.0


class Rewriter(Protocol):
    """Transcripts to the text that is searched with: a correction, between transcriber and retriever."""

    @property
    def spec(self) -> ComponentSpec: ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language (code such as "zh")."""
        ...

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        """One text per query, in order; [] for no queries.

        `transcripts` are of each query its transcript, or its n best, best first (`System.n_best`), none of them empty.
        A query that cannot be rewritten gives a `Rewritten` with `error`. A rewriter that is made for a number of
        transcripts has it as its member `n_best`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    document_id: str
    score: float


class Retriever(Protocol):
    """Text query to ranked documents."""

    @property
    def spec(self) -> ComponentSpec: ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language (code such as "zh")."""
        ...

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        """Replace the corpus. Raises `DataError` for an empty corpus or a duplicate id."""
        ...

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by id descending (as trec_eval); none for an empty query."""
        ...


class TextEncoder(Protocol):
    """Text to vectors, for dense retrieval."""

    @property
    def spec(self) -> ComponentSpec: ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language."""
        ...

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """(len(texts), D) float32, rows of unit length; (0, D) for no texts."""
        ...


class FrontEnd(Protocol):
    """Audio to audio before recognition: dereverberation, denoising."""

    @property
    def spec(self) -> ComponentSpec: ...

    @property
    def sample_rate(self) -> int:
        """The rate in Hz of the clips that `enhance` takes and gives."""
        ...

    def enhance(self, clips: Sequence[Samples]) -> list[Samples]:
        """One clip per clip, (T,) float32 at `sample_rate`, as long. Raises `AudioError` for an unusable one."""
        ...


class AudioTextEncoder(Protocol):
    """Spoken queries and typed documents to vectors in one space, for retrieval without a transcript."""

    @property
    def spec(self) -> ComponentSpec: ...

    @property
    def sample_rate(self) -> int:
        """The rate in Hz of the clips that `encode_audio` takes."""
        ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language."""
        ...

    def encode_audio(self, clips: Sequence[Samples], *, language: str) -> NDArray[np.float32]:
        """(len(clips), D) float32, rows of unit length, for clips (T,) float32 at `sample_rate`; (0, D) for no clips.

        A row of NaN is a clip that could not be encoded: it is counted as failed, and finds nothing.
        """
        ...

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """As `TextEncoder.encode`: documents, and typed queries for the upper bound."""
        ...


class DocumentLookup(Protocol):
    def by_id(self, ids: Sequence[str]) -> list[Document]:
        """These documents, in order. Raises `DataError` that names an unknown id."""
        ...


class CompositeRetriever(Retriever, Protocol):
    """A retriever made of others (a hybrid, a reranker); the pipeline searches each part once, whatever uses it."""

    @property
    def parts(self) -> Sequence[Retriever]: ...

    def part_depth(self, k: int) -> int: ...

    def combine(
        self, queries: Sequence[str], rankings: Sequence[Sequence[Sequence[Hit]]], documents: DocumentLookup, *, k: int
    ) -> list[list[Hit]]:
        """As `search`, from the parts' rankings: `rankings[part][query]` is best first, with `part_depth(k)` hits."""
        ...


class Preparable(Protocol):
    """A retriever whose work on a corpus processes share before `index`, and which then searches in every process.

    It may also have `prepared(documents, *, language) -> int`, how many documents are done (for a dry run), and the
    context `encoding_anew()`, in which no kept vector of a query is used (for timing).
    """

    def prepare(self, documents: Sequence[Document], *, language: str, rank: int, size: int) -> None: ...


class PrecomputedRun(Protocol):
    """A precomputed ranking (a TREC run file): hits by query id instead of by text."""

    @property
    def spec(self) -> ComponentSpec: ...

    def supports(self, language: str) -> bool: ...

    def hits(self, subset: str, condition: str, query_ids: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` hits per query; none for a query that the run lacks. Raises `DataError` if there is no file."""
        ...


class PrecomputedTranscripts(Protocol):
    """Precomputed transcripts: by query id instead of from audio."""

    @property
    def spec(self) -> ComponentSpec: ...

    def supports(self, language: str) -> bool: ...

    def transcripts(self, subset: str, condition: str, query_ids: Sequence[str]) -> list[Transcript]:
        """One per query, in order; a query that the file lacks has `error`. Raises `DataError` if there is no file."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A question about audio.

    `audios` are clips (T,) float32 at the answerer's rate, () for a question without audio; `audio_names` is what the
    prompt calls each of them ("" where it needs no name). `prompt` is all that is written to the answerer. With
    `spoken_question` the last clip is the question itself, and `question` is "".

    `question` and `options` (as shown, the first is A) are the parts of the prompt, for an answerer that compares
    texts; `transcripts` are those of a cascade, one for each of its clips. `language` is a code such as "es".
    """

    prompt: str
    audios: tuple[Samples, ...] = ()
    audio_names: tuple[str, ...] = ()
    question: str = ""
    options: tuple[str, ...] = ()
    spoken_question: bool = False
    transcripts: tuple[str, ...] = ()
    language: str = "es"


@dataclass(frozen=True, slots=True)
class Reply:
    """What an answerer replied.

    A failed request has `error` set and empty `text`. `truncated`: the length cap cut the reply; `audio_truncated`:
    audio beyond what the answerer takes was cut. `seconds` is the time it took (a batch's time is shared equally).
    """

    text: str
    error: str = ""
    truncated: bool = False
    audio_truncated: bool = False
    seconds: float = 0.0


class Answerer(Protocol):
    """Audio and a question to a reply in words."""

    @property
    def spec(self) -> ComponentSpec: ...

    @property
    def sample_rate(self) -> int:
        """The rate in Hz of the clips that `answer` takes."""
        ...

    def supports(self, language: str) -> bool:
        """Whether it was made for this language (code such as "es")."""
        ...

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        """One reply per request, in order; [] for no requests. One that cannot be answered gives a reply with `error`.

        An answerer that takes no audio has a member `uses_audio` that is False: it is given no clips.
        """
        ...
