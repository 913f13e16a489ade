"""Components of every protocol whose outputs a test can spoil: right without a fault, and the same by their specs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.protocols import AnswerRequest, ComponentSpec, Document, Hit, Reply, Rewritten, Transcript

from .encoders_for_tests import HashedWordsEncoder

WORDS = "river stone lamp garden bridge winter copper violin harbour meadow falcon engine".split()
Fault = Callable[[Any], Any]
SENTENCES: Mapping[str, str] = {
    "transcribe": "Transcribes.transcribe", "encode": "Encodes.encode", "encode_audio": "EncodesAudio.encode_audio",
    "search": "Searches.search", "index": "Searches.index", "enhance": "Enhances.enhance",
    "rewrite": "Rewrites.rewrite", "answer": "Answers.answer", "transcripts": "Given.transcripts",
    "hits": "Ranked.hits",
}  # fmt: skip
"""The method by what a fault is written for."""


class Faults:
    """What goes wrong now: a fault by method, applied to what the method would have returned."""

    now: ClassVar[dict[str, Fault]] = {}
    calls: ClassVar[int] = 0

    @classmethod
    def apply(cls, method: str, right: Any) -> Any:
        cls.calls += 1
        return cls.now[method](right) if method in cls.now else right


def word_of(clip: np.ndarray) -> str:
    digest = hashlib.sha256(np.round(np.abs(clip), 3).astype(np.float32).tobytes()).hexdigest()
    return " ".join(WORDS[int(digest[i], 16) % len(WORDS)] for i in range(3))


class _Part:
    kind: ClassVar[Any]
    sample_rate = 16_000

    def __init__(self) -> None:
        name = type(self).__name__.lower()
        self.spec = ComponentSpec(self.kind, "class", name, revision="1")

    def supports(self, language: str) -> bool:
        return True


class Transcribes(_Part):
    kind = "transcriber"

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        found = [Transcript(word_of(clip), seconds=0.25, confidence=0.5) for clip in clips]
        return Faults.apply("transcribe", found)  # type: ignore[no-any-return]


class Enhances(_Part):
    kind = "front_end"

    def enhance(self, clips: Sequence[np.ndarray]) -> list[np.ndarray]:
        return Faults.apply("enhance", [-clip for clip in clips])  # type: ignore[no-any-return]


class Rewrites(_Part):
    kind = "rewriter"

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        found = [Rewritten(f"{own[0]} river", seconds=0.25) for own in transcripts]
        return Faults.apply("rewrite", found)  # type: ignore[no-any-return]


class Searches(_Part):
    """Ranks by shared words."""

    kind = "retriever"

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        Faults.apply("index", None)
        self._documents = list(documents)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        found = []
        for query in queries:
            terms = set(query.split())
            hits = [Hit(d.id, float(len(terms & set(d.contents.split())))) for d in self._documents]
            hits = sorted((h for h in hits if h.score), key=lambda h: (h.score, h.document_id), reverse=True)
            found.append(hits[:k])
        return Faults.apply("search", found)  # type: ignore[no-any-return]


class Encodes(_Part):
    kind = "encoder"
    words = HashedWordsEncoder()

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> np.ndarray:
        return Faults.apply("encode", self.words.encode(texts, role=role))  # type: ignore[no-any-return]


def dense() -> DenseRetriever:
    """A dense retriever with such an encoder."""
    return DenseRetriever(encoder=Encodes())


class EncodesAudio(_Part):
    kind = "audio_text_encoder"
    words = HashedWordsEncoder()

    def encode_audio(self, clips: Sequence[np.ndarray], *, language: str) -> np.ndarray:
        found = self.words.encode([word_of(clip) for clip in clips], role="query")
        return Faults.apply("encode_audio", found)  # type: ignore[no-any-return]

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> np.ndarray:
        return self.words.encode(texts, role=role)


class Answers(_Part):
    kind = "answerer"

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        return Faults.apply("answer", [Reply("A", seconds=0.25) for _ in requests])  # type: ignore[no-any-return]


class Given(_Part):
    """Precomputed transcripts."""

    kind = "transcriber"

    def transcripts(self, subset: str, condition: str, query_ids: Sequence[str]) -> list[Transcript]:
        found = [Transcript(WORDS[len(id_ + condition) % len(WORDS)]) for id_ in query_ids]
        return Faults.apply("transcripts", found)  # type: ignore[no-any-return]


class Ranked(_Part):
    """A precomputed run."""

    kind = "retriever"

    def hits(self, subset: str, condition: str, query_ids: Sequence[str], *, k: int) -> list[list[Hit]]:
        found = [[Hit("d1", 2.0), Hit("d0", 1.0)][:k] for _ in query_ids]
        return Faults.apply("hits", found)  # type: ignore[no-any-return]
