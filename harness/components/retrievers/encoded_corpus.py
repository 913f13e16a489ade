"""What retrievers over an encoded corpus share, whatever a model makes of a text: blocks, languages, how to search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from ....errors import UsageError
from ....loaders.corpus import Corpus, as_corpus
from ....loaders.records import Document
from ...protocols import ComponentSpec, Hit, Setting
from ..encoders.cache import EmbeddingCache
from ..encoders.prompts import Role
from ..encoders.st_model import GPU_TOKENS, SentenceTransformersModel
from ..st_loading import ModelKind
from .corpus_blocks import Block, CorpusBlocks
from .ranking import Best, checked_k, hits_of


class EncodedCorpusRetriever(ABC):
    """Exact search in what a model of sentence-transformers made of a corpus, `block_documents` documents at a time.

    `label` names the kind in errors and progress, `kept` what is kept of a corpus. `gpu_tokens` are those of a
    batch on a GPU, if `token_budget` is None. `languages` are those that the model was made for (None: any).
    """

    backend: ClassVar[str]
    model_kind: ClassVar[ModelKind]
    label: ClassVar[str]
    kept: ClassVar[str]
    block_documents: ClassVar[int]
    gpu_tokens: ClassVar[int] = GPU_TOKENS

    def __init__(
        self,
        model: str | Path,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        languages: Sequence[str] | None = None,
        cache: EmbeddingCache | None = None,
        **torch: Any,
    ) -> None:
        self._model = SentenceTransformersModel(model, self.model_kind, **torch)
        self._prompts: dict[Role, str | None] = {"query": query_prompt, "document": document_prompt}
        self._languages = None if languages is None else frozenset(languages)
        self._cache = cache
        self._corpus: Corpus | None = None

    @cached_property
    def spec(self) -> ComponentSpec:
        prompts = {f"{role}_prompt": prompt for role, prompt in self._prompts.items()}
        return self._model.described("retriever", self.backend, {**self._model.settings, **prompts, **self._settings})

    @property
    @abstractmethod
    def _settings(self) -> Mapping[str, Setting]:
        """What else decides the ranking."""

    @abstractmethod
    def _block(self, documents: Sequence[Document]) -> Block:
        """What is kept of documents that stand one after the other."""

    @abstractmethod
    def _best(self, texts: list[str], corpus: Corpus, k: int) -> list[Best]:
        """The best `k` documents of the corpus for each text; there is at least one, all distinct, none blank."""

    def supports(self, language: str) -> bool:
        return self._languages is None or language in self._languages

    def prepare(self, documents: Sequence[Document], *, language: str, rank: int = 0, size: int = 1) -> None:
        self._check(language)
        self._blocks.prepare(as_corpus(documents), rank=rank, size=size, what=f"encoding ({self.label})")

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        self._corpus = None
        self._check(language)
        corpus = as_corpus(documents)
        corpus.check_ids()
        self._blocks.open(corpus, what=f"encoding ({self.label})")
        self._corpus = corpus

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        checked_k(k)
        if self._corpus is None:
            raise UsageError(
                f"{self.label} was asked to search before a corpus was indexed.", hint="Call index() first."
            )
        asked = {query: i for i, query in enumerate(dict.fromkeys(q for q in queries if q.strip()))}
        found = self._best(list(asked), self._corpus, k) if asked else []
        hits = hits_of(found, self._corpus.ids)
        return [list(hits[asked[query]]) if query.strip() else [] for query in queries]

    @cached_property
    def _blocks(self) -> CorpusBlocks:
        folder = None if self._cache is None else self._cache.root / f"{self.spec.fingerprint}-{self.kept}"
        return CorpusBlocks(folder, self._block, documents=self.block_documents)

    @property
    def _budget(self) -> int:
        return self._model.budget(self.gpu_tokens)

    def _check(self, language: str) -> None:
        if not self.supports(language):
            raise UsageError(
                f"{self._model.name} was not made for language {language!r}.", hint="Use another model for it."
            )


def query_names(texts: Sequence[str]) -> list[str]:
    return [f"the query {text[:80]!r}" for text in texts]
