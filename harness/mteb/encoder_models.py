"""Encoders of the harness as encoders of `mteb`, for any of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import AudioError
from ...loaders.records import Samples
from ..components import checked
from ..evaluation.options import DEFAULT_MAX_FAILED
from ..protocols import AudioTextEncoder, FrontEnd, TextEncoder
from .meta import Description
from .model_common import Model, languages_of, model_input, mono, task_language, tell_failed

Role = Literal["query", "document"]
TEXTS_PER_STEP = 4096


class _EncoderModel(Model):
    def similarity(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """(N, M) cosines of (N, D) and (M, D)."""
        return _no_likeness(np.atleast_2d(_plain(embeddings1)) @ np.atleast_2d(_plain(embeddings2)).T)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """(N,) cosines of (N, D) and (N, D), row by row."""
        return _no_likeness(np.sum(_plain(embeddings1) * _plain(embeddings2), axis=1))


class TextModel(_EncoderModel):
    def __init__(self, encoder: TextEncoder, *, name: str = "", meta: Mapping[str, Any] | None = None) -> None:
        components = {"encoder": encoder.spec.as_dict()}
        super().__init__(Description(name or encoder.spec.name, components, languages_of(encoder), audio=False), meta)
        self._encoder = encoder

    def encode(self, inputs: Any, *, prompt_type: Any = None, **_: Any) -> NDArray[np.float32]:
        """(N, D) float32 for a data loader of N rows with `text`; without a prompt type they are queries."""
        return _encoded_texts(self._encoder, (text for batch in inputs for text in batch["text"]), prompt_type)


class AudioTextModel(_EncoderModel):
    def __init__(
        self,
        encoder: AudioTextEncoder,
        *,
        front_end: FrontEnd | None = None,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        max_failed: float = DEFAULT_MAX_FAILED,
    ) -> None:
        components = {"encoder": encoder.spec.as_dict()}
        if front_end is not None:
            components["front_end"] = front_end.spec.as_dict()
        super().__init__(Description(name or encoder.spec.name, components, languages_of(encoder), audio=True), meta)
        self._encoder, self._front_end, self._max_failed = encoder, front_end, max_failed

    def encode(
        self, inputs: Any, *, task_metadata: Any, hf_subset: str, prompt_type: Any = None, **_: Any
    ) -> NDArray[np.float32]:
        """(N, D) float32 for a data loader of N rows with `audio` or `text`; NaN for audio that cannot be encoded."""
        texts: list[str] = []
        parts: list[NDArray[np.float32]] = []
        for batch in inputs:
            if "audio" not in batch:
                texts += batch["text"]
                continue
            clips = [(item["array"], int(item["sampling_rate"])) for item in batch["audio"]]
            parts.append(self._rows(clips, task_language(task_metadata, hf_subset)))
        if not parts:
            return _encoded_texts(self._encoder, iter(texts), prompt_type)
        vectors = self._stacked(parts)
        lost = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        failed = {f"clip {i}": "it has no finite vector" for i in lost.tolist()}
        tell_failed(failed, len(vectors), self.description.name, self._max_failed)
        return vectors

    def _rows(self, clips: Sequence[tuple[Any, int]], language: str) -> NDArray[np.float32]:
        """A row per clip; (len(clips), 0) if none of them can be encoded."""
        inputs: dict[int, Samples] = {}
        for i, (array, rate) in enumerate(clips):
            try:
                inputs[i] = model_input(mono(array), rate, self._front_end, self._encoder.sample_rate)
            except AudioError:
                continue  # its row stays NaN, which finds nothing
        if not inputs:
            return np.empty((len(clips), 0), dtype=np.float32)
        vectors = checked.encode_audio(self._encoder, list(inputs.values()), language=language)
        rows = np.full((len(clips), vectors.shape[1]), np.nan, dtype=np.float32)
        rows[list(inputs)] = vectors
        return rows

    def _stacked(self, parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """All rows; those of a batch in which nothing could be encoded are NaN as wide as the others."""
        width = max(part.shape[1] for part in parts) or self._encoder.encode(["."], role="query").shape[1]
        wide = [part if part.shape[1] else np.full((len(part), width), np.nan, dtype=np.float32) for part in parts]
        return np.concatenate(wide)


def _encoded_texts(
    encoder: TextEncoder | AudioTextEncoder, texts: Iterator[str], prompt_type: Any
) -> NDArray[np.float32]:
    role: Role = "document" if getattr(prompt_type, "value", prompt_type) == "document" else "query"
    every = list(texts)
    steps = range(0, max(len(every), 1), TEXTS_PER_STEP)
    return np.concatenate([checked.encode(encoder, every[s : s + TEXTS_PER_STEP], role=role) for s in steps])


def _plain(vectors: Any) -> NDArray[np.float32]:
    return np.asarray(vectors.detach().cpu() if hasattr(vectors, "detach") else vectors, dtype=np.float32)


def _no_likeness(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """NaN, from a row that could not be encoded, as minus infinity: no hit."""
    return np.where(np.isnan(cosines), np.float32(-np.inf), cosines)
