"""Transcribers and retrievers that the tests control."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from squtr.harness.protocols import ComponentSpec, Hit, Transcript
from squtr.loaders.records import Document


class LookupTranscriber:
    """Hears what a table says for a sound, by the sha256 of its samples; counts its calls."""

    def __init__(self, table: Mapping[str, str | Transcript], name: str = "lookup", languages: str = "en zh") -> None:
        self.table = table
        self.calls = 0
        self.languages = languages.split()
        self.fail_after: int | None = None
        self.spec = ComponentSpec("transcriber", "lookup", name, revision=name)
        self.sample_rate = 24_000

    def supports(self, language: str) -> bool:
        return language in self.languages

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        if self.fail_after is not None and self.calls + len(clips) > self.fail_after:
            raise KeyboardInterrupt
        self.calls += len(clips)
        heard = [self.table[sound_key(clip)] for clip in clips]
        return [h if isinstance(h, Transcript) else Transcript(h, seconds=0.25) for h in heard]


def sound_key(samples: np.ndarray) -> str:
    return hashlib.sha256(samples.tobytes()).hexdigest()


class WordRetriever:
    """Ranks by the number of shared words; counts what it did."""

    def __init__(self, name: str = "words", languages: str = "en zh") -> None:
        self.indexed = 0
        self.searched = 0
        self.languages = languages.split()
        self.spec = ComponentSpec("retriever", "words", name, revision=name)
        self._documents: list[Document] = []

    def supports(self, language: str) -> bool:
        return language in self.languages

    def _terms(self, text: str) -> set[str]:
        return set(text.split())

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        self.indexed += 1
        self._documents = list(documents)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.searched += len(queries)
        found = []
        for query in queries:
            terms = self._terms(query)
            hits = [Hit(d.id, float(len(terms & self._terms(d.contents)))) for d in self._documents]
            hits = sorted((h for h in hits if h.score > 0), key=lambda h: (h.score, h.document_id), reverse=True)
            found.append(hits[:k])
        return found
