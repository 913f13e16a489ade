"""Text embeddings from a server with OpenAI's `/embeddings`: OpenAI, vLLM, text-embeddings-inference, Infinity, …"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError
from ...protocols import ComponentSpec
from ..server_answers import ContentRefusedError
from ..server_component import ServerComponent
from .prompts import Role, published_prompts

EncodingFormat = Literal["float", "base64"]
_SHOWN = 80


class ServerEncoder(ServerComponent):
    """A text encoder behind a URL.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). A prompt that is None is the published one
    of a known model (`prompts.PUBLISHED`), else ""; the spec records both. `dimensions` asks for shorter vectors from a
    model that has them, `extra` are further fields of the request.

    A request holds at most `batch_size` texts and about `token_budget` tokens, estimated from characters.
    `encoding_format` "base64" saves two thirds of what is sent back. None of these is part of the spec. The other
    options are those of `ServerComponent`.
    """

    own_fields = frozenset({"dimensions", "encoding_format", "input", "model"})

    def __init__(
        self,
        model: str,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        dimensions: int | None = None,
        encoding_format: EncodingFormat = "float",
        batch_size: int = 32,
        token_budget: int = 16_384,
        **server: Any,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("token_budget", token_budget), ("dimensions", dimensions)):
            if value is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}.")
        if encoding_format not in ("float", "base64"):
            raise UsageError(f"unknown encoding_format {encoding_format!r}.", hint="Known: float, base64.")
        super().__init__(model, **server)
        published = published_prompts(model)
        self._published = published
        self._prompts = {
            "query": query_prompt if query_prompt is not None else published.query if published else "",
            "document": document_prompt if document_prompt is not None else published.document if published else "",
        }
        self._dimensions = dimensions
        self._encoding_format: EncodingFormat = encoding_format
        self._batch_size = batch_size
        self._token_budget = token_budget

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "dimensions": self._dimensions,
            "document_prompt": self._prompts["document"],
            "query_prompt": self._prompts["query"],
            **self._server_settings,
        }
        return ComponentSpec("encoder", "server", self._name, self._model, self._revision, settings)

    def supports(self, language: str) -> bool:
        return self._published is None or self._published.supports(language)

    def encode(self, texts: Sequence[str], *, role: Role) -> NDArray[np.float32]:
        """As `TextEncoder.encode`; a batch that the server refuses is halved, down to the text that it refuses."""
        prompt = self._prompts[role]
        distinct = list(dict.fromkeys(texts))
        vectors = np.empty((len(distinct), self._width), dtype=np.float32)
        batches = list(self._batches([len(prompt) + len(text) for text in distinct], distinct))
        encoded = self._server.each(batches, lambda batch: self._encoded([prompt + distinct[i] or " " for i in batch]))
        for batch, rows in zip(batches, encoded, strict=True):
            vectors[batch] = rows
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]

    @cached_property
    def _width(self) -> int:
        return self._dimensions or self._rows(["a"]).shape[1]

    def _batches(self, lengths: Sequence[int], texts: Sequence[str]) -> Iterator[list[int]]:
        """Positions in `texts`, longest first."""
        batch: list[int] = []
        tokens = 0
        for i in sorted(range(len(texts)), key=lambda position: (-lengths[position], position)):
            size = _tokens(texts[i], lengths[i])
            if batch and (len(batch) == self._batch_size or tokens + size > self._token_budget):
                yield batch
                batch, tokens = [], 0
            batch.append(i)
            tokens += size
        if batch:
            yield batch

    def _encoded(self, texts: list[str]) -> NDArray[np.float32]:
        """(len(texts), D) float32 rows of unit length, of texts with their prompt."""
        try:
            rows = self._rows(texts)
        except ContentRefusedError as error:
            if len(texts) == 1:
                raise ModelError(
                    f"{error.message} The text has {len(texts[0])} characters: {texts[0][:_SHOWN]!r}.",
                    hint="Shorten it, or let the server cut long texts (vLLM: extra truncate_prompt_tokens).",
                ) from error
            half = len(texts) // 2
            return np.concatenate([self._encoded(texts[:half]), self._encoded(texts[half:])])
        if rows.shape[1] != self._width:
            raise self._wrong(texts[0], f"gave a vector of width {rows.shape[1]} instead of {self._width}")
        norms = np.sqrt(np.sum(rows * rows, axis=1))
        # NaN fails every comparison.
        bad = np.flatnonzero(~((norms > 0) & (norms < np.inf)))
        if len(bad):
            first = int(bad[0])
            raise self._wrong(texts[first], f"gave a vector of length {norms[first]}")
        return cast("NDArray[np.float32]", (rows / norms[:, None]).astype(np.float32))

    def _rows(self, texts: list[str]) -> NDArray[np.float64]:
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": self._encoding_format}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        answer = self._server.post("embeddings", body | self._extra)
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self._server.without("embeddings", "embeddings")
        if len(items) != len(texts):
            raise self._wrong(texts[0], f"gave {len(items)} vectors for {len(texts)} texts", more=len(texts) - 1)
        places = [item.get("index", i) for i, item in enumerate(items)]
        if sorted(places, key=str) != sorted(range(len(texts)), key=str):
            raise self._wrong(texts[0], f"numbers its {len(items)} vectors wrongly", more=len(texts) - 1)
        ordered = [
            item.get("embedding") for _, item in sorted(zip(places, items, strict=True), key=lambda pair: pair[0])
        ]
        rows = [self._vector(text, value) for text, value in zip(texts, ordered, strict=True)]
        for text, row in zip(texts, rows, strict=True):
            if len(row) != len(rows[0]):
                raise self._wrong(text, f"gave a vector of width {len(row)} instead of {len(rows[0])}")
        return np.stack(rows)

    def _vector(self, text: str, value: object) -> NDArray[np.float64]:
        try:
            if isinstance(value, str):
                vector = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float64)
            else:
                vector = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError, binascii.Error):
            vector = np.zeros(0)
        if vector.ndim != 1 or not len(vector):
            raise self._wrong(text, "gave something that is no vector")
        return vector

    def _wrong(self, text: str, what: str, *, more: int = 0) -> ModelError:
        others = f" and {more} more" if more else ""
        return ModelError(
            f"{self._model} at {self._server.url} {what}, for the text {text[:_SHOWN]!r}{others}.",
            hint="Look into the server's log, and check its model and options.",
        )


def _tokens(text: str, length: int) -> int:
    """About how many tokens: four characters of ASCII are one, any other character is one.

    >>> _tokens("what is this", 12), _tokens("这是什么", 4)
    (4, 5)
    """
    others = len(text.encode("utf-8")) - len(text)
    # Every character beyond ASCII takes two to four bytes: counting the bytes beyond the first is quick and near.
    beyond = min(len(text), (others + 1) // 2)
    return (length - beyond) // 4 + beyond + 1
