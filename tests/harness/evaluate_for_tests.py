"""Components that the tests of `squtr evaluate` name by dotted path. What they did is counted on the class."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from squtr.harness.protocols import ComponentSpec, Document, Hit, Transcript

WORDS = "river stone lamp garden bridge winter copper violin harbour meadow falcon engine".split()


class Hears:
    """Says a word that follows from the sound."""

    sample_rate = 16_000
    heard: ClassVar[Counter[str]] = Counter()
    calls_left: ClassVar[int] = 10**9

    def __init__(self, *, name: str = "hears", fails_on: str = "", errors: int = 0) -> None:
        self.fails_on, self.errors = fails_on, errors
        self.spec = ComponentSpec("transcriber", "class", name, revision="1", settings={"errors": errors})

    def supports(self, language: str) -> bool:
        return True

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        if language == self.fails_on:
            raise ValueError(f"no {language} today")
        if not Hears.calls_left:
            raise KeyboardInterrupt
        Hears.calls_left -= 1
        keys = [hashlib.sha256(clip.tobytes()).hexdigest() for clip in clips]
        Hears.heard.update(keys)
        found = [Transcript(WORDS[int(key[:8], 16) % len(WORDS)], seconds=0.5) for key in keys]
        return [Transcript("", error="too loud") if i < self.errors else t for i, t in enumerate(found)]


class Finds:
    """Ranks by shared words, as `WordRetriever`."""

    indexed: ClassVar[Counter[str]] = Counter()
    searched: ClassVar[Counter[str]] = Counter()

    def __init__(self, *, name: str = "finds", fails_on: str = "") -> None:
        self.fails_on = fails_on
        self.spec = ComponentSpec("retriever", "class", name, revision="1")
        self._documents: list[Document] = []

    def supports(self, language: str) -> bool:
        return True

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        if language == self.fails_on:
            raise OSError(28, "No space left on the index")
        Finds.indexed[language] += len(documents)
        self._documents = list(documents)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        Finds.searched.update(queries)
        found = []
        for query in queries:
            terms = set(query.split())
            hits = [Hit(d.id, float(len(terms & set(d.contents.split())))) for d in self._documents]
            hits = sorted((h for h in hits if h.score), key=lambda h: (h.score, h.document_id), reverse=True)
            found.append(hits[:k])
        return found


class Chinese(Finds):
    """Fails on Chinese."""

    def __init__(self) -> None:
        super().__init__(name="english-only", fails_on="zh")


class DeafToChinese(Hears):
    """Fails on Chinese."""

    def __init__(self) -> None:
        super().__init__(name="deaf-to-chinese", fails_on="zh")


class Faulty(Hears):
    """The longest clip of each batch cannot be heard."""

    def __init__(self) -> None:
        super().__init__(name="faulty", errors=1)


def reset() -> None:
    """Forget what was counted."""
    Hears.heard.clear()
    Finds.indexed.clear()
    Finds.searched.clear()
    Hears.calls_left = 10**9
