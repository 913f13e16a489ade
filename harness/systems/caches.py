"""Where components keep what they make of a corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..components.encoders.cache import DirectoryEmbeddingCache, EmbeddingCache
from .options import accepts

CACHE = "cache"
EMBEDDINGS = "embeddings"


class Caches:
    def __init__(self, folder: Path | None) -> None:
        self._embeddings: EmbeddingCache | None = None
        if folder is not None:
            self._embeddings = DirectoryEmbeddingCache(folder / EMBEDDINGS)

    def of(self, constructor: Callable[..., object]) -> dict[str, EmbeddingCache]:
        """The argument `cache` for a constructor that has it."""
        if self._embeddings is None or not accepts(constructor, CACHE):
            return {}
        return {CACHE: self._embeddings}
