"""Models of sentence-transformers (6 and later) that take audio as well as text."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting
from ..tokenizer_marks import lost_marks
from ..torch_models import tightest
from .audio_common import BatchedEncoder, require_positive_or_none, window_of
from .audio_models import UNKNOWN, published_audio_model
from .prompts import Role, prompt_of, published_prompts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ProcessingOptions = dict[str, dict[str, Any]]


class MultimodalEncoder(BatchedEncoder):
    """A sentence-transformers model that takes audio.

    `model` is a folder or a Hub repository (with `revision`). A prompt that is None is the published one of a known
    model (`prompts.PUBLISHED`), else the one that the model's own configuration names, else "". A spoken query
    gets the prompt of a typed one unless `audio_prompt` says otherwise. A model with a chat template gets a prompt as
    system message; a model without one takes audio without a prompt, and then `audio_prompt` must be left out.

    `max_tokens` cuts a text, `max_seconds` keeps only the beginning of a longer clip; None is the model's own limit.
    `batch_size` and the options of torch are those of `BatchedTorchComponent`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        audio_prompt: str | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        **torch: Any,
    ) -> None:
        super().__init__(model, **torch)
        require_positive_or_none(max_seconds=max_seconds, max_tokens=max_tokens)
        self._prompts = {"query": query_prompt, "document": document_prompt}
        self._asked_audio_prompt = audio_prompt
        self._facts = published_audio_model(str(model)) or UNKNOWN
        self._max_tokens = self._facts.max_tokens if max_tokens is None else max_tokens
        self._max_seconds = self._facts.max_seconds if max_seconds is None else max_seconds

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            "audio_prompt": self._audio_prompt,
            "document_prompt": self._prompt("document"),
            "long_clips": "truncate",
            "max_seconds": self._max_seconds,
            "max_tokens": self._max_tokens,
            "query_prompt": self._prompt("query"),
            **self._torch.settings(device=False),
        }
        if marks := lost_marks(self._found.path):
            settings["restored_tokens"] = list(marks)
        return self.described("audio_text_encoder", "sentence-transformers-audio", settings)

    @cached_property
    def sample_rate(self) -> int:
        return int(self._extractor.sampling_rate)

    def supports(self, language: str) -> bool:
        prompts = published_prompts(str(self._requested))
        return self._facts.supports(language) and (prompts is None or prompts.supports(language))

    def _prompt(self, role: Role) -> str:
        return prompt_of(role, self._prompts[role], self._requested, self._found.path)

    @property
    def _audio_prompt(self) -> str:
        return self._prompt("query") if self._asked_audio_prompt is None else self._asked_audio_prompt

    @cached_property
    def _model(self) -> SentenceTransformer:
        model: SentenceTransformer = self._torch.load_sentence_transformer(
            "SentenceTransformer", self._found.path, name=self._name
        )
        modalities: tuple[Literal["audio"], Literal["text"]] = ("audio", "text")
        for modality in modalities:
            if not model.supports(modality):
                raise ModelError(
                    f"{self._name} takes {', '.join(map(str, model.modalities))}, but not {modality}.",
                    hint="Give a model of audio and text, or use it behind a transcriber as dense:<model>.",
                )
        if self._asked_audio_prompt and not model.supports("message"):
            raise ModelError(
                f"{self._name} has no chat template, so audio cannot have the prompt {self._asked_audio_prompt!r}.",
                hint="Leave audio_prompt out.",
            )
        return model

    @cached_property
    def _extractor(self) -> Any:
        processor = getattr(self._model[0], "processor", None)
        extractor = getattr(processor, "feature_extractor", processor)
        if not hasattr(extractor, "sampling_rate"):
            raise ModelError(
                f"{self._name} does not say its sample rate ({type(processor).__name__}).",
                hint="Give a model saved with its processor.",
            )
        if getattr(extractor, "truncation", None) == "fusion":
            raise ModelError(
                f"{self._name} fuses windows of audio, and sentence-transformers would draw at random which clips.",
                hint="Use it as clap:<model>, which does not.",
            )
        return extractor

    @cached_property
    def _window(self) -> int | None:
        return window_of(self._extractor, self._max_seconds)

    def _audio_rows(self, clips: list[Samples]) -> NDArray[Any]:
        # As a named field: a bare array or text would be guessed at (a text that is a URL of a clip, for one).
        items = [{"audio": {"array": clip[: self._window], "sampling_rate": self.sample_rate}} for clip in clips]
        # Audio becomes tokens of the message: a limit that is meant for texts would cut them off.
        whole: ProcessingOptions = {"text": {"truncation": False}} if self._model.supports("message") else {}
        return self._rows(items, prompt=self._audio_prompt, task="query", processing=whole)

    def _text_rows(self, texts: list[str], role: Role) -> NDArray[Any]:
        limit = self._max_tokens
        cut: ProcessingOptions = {} if limit is None else {"text": {"truncation": True, "max_length": limit}}
        return self._rows([{"text": text} for text in texts], prompt=self._prompt(role), task=role, processing=cut)

    def _rows(
        self, items: list[dict[str, Any]], *, prompt: str, task: Role, processing: ProcessingOptions
    ) -> NDArray[Any]:
        with self._torch.inference(self._model):
            rows = self._model.encode(
                items,
                prompt=prompt,
                task=task,
                processing_kwargs=processing or None,
                batch_size=len(items),
                convert_to_numpy=True,
                normalize_embeddings=False,
                show_progress_bar=False,
            )
        return np.asarray(rows)

    def _text_costs(self, texts: list[str]) -> list[int]:
        tokenizer = getattr(self._model, "tokenizer", None)
        if not callable(tokenizer):  # a model without a transformers tokenizer: characters will do
            return [len(text) + 1 for text in texts]
        limit = tightest(self._max_tokens, self._model.max_seq_length)
        encoded = tokenizer(texts, truncation=limit is not None, max_length=limit, padding=False)
        return [len(ids) + 32 for ids in encoded["input_ids"]]
