"""A second stage: a cross-encoder of sentence-transformers reads query and document together (Nogueira and Cho 2019,
arXiv 1901.04085) and reorders the best documents of a first retriever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError
from ...protocols import ComponentSpec, DocumentLookup, Hit, Retriever, Setting
from ..batches import in_token_batches
from ..encoders.cache import EmbeddingCache
from ..encoders.st_model import SentenceTransformersModel
from .composite import Composite, checked_rankings
from .ranking import checked_k

_Pair = tuple[str, str]


class RerankedRetriever(Composite):
    """The best `depth` documents of `first` (a retriever or its name), in the order of a cross-encoder's scores.

    `model` is a path or a Hub repository with one score per pair. Scores are the model's own before any activation: a
    sigmoid would make ties of the highest ones. Documents below `depth` follow in their old order, with scores that
    only say so: each 1 below the one before it.

    `prompt` is what the model is told before each pair (None: the model's own). With a `cache`, a pair is scored once.
    The other options are those of `SentenceTransformersModel`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        first: Retriever | str,
        depth: int = 50,
        prompt: str | None = None,
        cache: EmbeddingCache | None = None,
        **torch: Any,
    ) -> None:
        self._model = SentenceTransformersModel(model, "CrossEncoder", **torch)
        super().__init__([first], depth)
        self._prompt = prompt
        self._cache = cache

    @cached_property
    def spec(self) -> ComponentSpec:
        reranker = self._reranker
        first = self._parts[0].spec
        settings: dict[str, Setting] = {**reranker.settings, "depth": self._depth, "first": first.as_dict()}
        name = f"{first.name} > {reranker.name}"
        return ComponentSpec("retriever", "rerank", name, reranker.model, reranker.revision, settings)

    def combine(
        self, queries: Sequence[str], rankings: Sequence[Sequence[Sequence[Hit]]], documents: DocumentLookup, *, k: int
    ) -> list[list[Hit]]:
        checked_k(k)
        checked_rankings(queries, rankings, self._parts)
        (ranked,) = rankings
        heads = [own[: self._depth] if query.strip() else () for query, own in zip(queries, ranked, strict=True)]
        ids = list(dict.fromkeys(hit.document_id for head in heads for hit in head))
        contents = {document.id: document.contents for document in documents.by_id(ids)} if ids else {}
        wanted = [(query, hit.document_id) for query, head in zip(queries, heads, strict=True) for hit in head]
        distinct = dict.fromkeys((query, contents[document_id]) for query, document_id in wanted)
        scores = self._scores(list(distinct), {contents[id_]: id_ for id_ in reversed(ids)})
        return [
            _reordered(
                [Hit(hit.document_id, scores[query, contents[hit.document_id]]) for hit in head], own[len(head) :], k
            )
            if head
            else []
            for query, head, own in zip(queries, heads, ranked, strict=True)
        ]

    @cached_property
    def _reranker(self) -> ComponentSpec:
        """The cross-encoder alone: what scores are kept by."""
        settings = {**self._model.settings, "activation": "none", "prompt": self._prompt}
        return self._model.described("reranker", "rerank", settings)

    def _scores(self, pairs: list[_Pair], names: dict[str, str]) -> dict[_Pair, float]:
        if self._cache is None:
            return dict(zip(pairs, self._computed(pairs, names), strict=True))
        space = f"{self._reranker.fingerprint}-pairs"
        keys = [_pair_key(pair) for pair in pairs]
        kept = {key: float(value[0]) for key, value in self._cache.get_many(space, keys).items()}
        missing = [i for i, key in enumerate(keys) if key not in kept]
        if missing:
            computed = self._computed([pairs[i] for i in missing], names)
            self._cache.put_many(space, [keys[i] for i in missing], np.array(computed, dtype=np.float32)[:, None])
            kept.update(zip((keys[i] for i in missing), computed, strict=True))
        return {pair: kept[key] for pair, key in zip(pairs, keys, strict=True)}

    def _computed(self, pairs: list[_Pair], names: dict[str, str]) -> list[float]:
        """The scores of query and document, float32 as the model gives them."""
        if not pairs:
            return []
        import torch

        model = self._model.model
        if model.num_labels != 1:
            raise ModelError(
                f"{self._model.name} gives {model.num_labels} scores per pair.",
                hint="A reranker gives one: use another model.",
            )
        identity = torch.nn.Identity()

        def work(batch: list[_Pair]) -> list[float]:
            scores: NDArray[Any] = model.predict(
                batch,
                prompt=self._prompt,
                batch_size=len(batch),
                show_progress_bar=False,
                activation_fn=identity,
                convert_to_numpy=True,
            )
            return [float(score) for score in np.asarray(scores, dtype=np.float32).reshape(len(batch))]

        scores = in_token_batches(pairs, self._model.lengths(pairs), self._model.budget(), work, who=self._model.name)
        for (query, text), score in zip(pairs, scores, strict=True):
            if not np.isfinite(score):
                raise ModelError(
                    f"{self._model.name} gave document {names[text]!r} the score {score} for the query {query[:80]!r}.",
                    hint="The model cannot read this pair, or not in its number type.",
                )
        return scores


def _reordered(head: list[Hit], rest: Sequence[Hit], k: int) -> list[Hit]:
    head.sort(key=lambda hit: (hit.score, hit.document_id), reverse=True)
    lowest = head[-1].score
    below = [Hit(hit.document_id, lowest - place) for place, hit in enumerate(rest, start=1)]
    return [*head, *below][:k]


def _pair_key(pair: _Pair) -> str:
    """The sha256 of both texts, the length of the first before them."""
    query, text = (part.encode("utf-8", "surrogatepass") for part in pair)
    return hashlib.sha256(len(query).to_bytes(8, "big") + query + text).hexdigest()
