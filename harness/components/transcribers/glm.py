"""GLM-ASR with transformers: https://huggingface.co/zai-org/GLM-ASR-Nano-2512."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting, Transcript
from ..batches import BatchSize, require_positive
from .chat_requests import RequestModel
from .common import Decoded, primary_code, require_language, transcribe_batches
from .torch_transcriber import TorchTranscriber

LANGUAGES = ("zh", "en", "yue")


class GLMASRTranscriber(TorchTranscriber):
    """GLM-ASR.

    `model` is a folder or a Hub repository (with `revision`). `batch_size` and the options of torch are those of
    `BatchedTorchComponent`. bfloat16 and 500 new tokens are as published. `prompt` is the instruction, "" for the
    model's own ("Please transcribe this audio into text"). The model takes no language: `languages` only says which it
    may be asked for.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        max_new_tokens: int = 500,
        prompt: str = "",
        languages: Sequence[str] = LANGUAGES,
        dtype: str = "bfloat16",
        **torch: Any,
    ) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        super().__init__(model, dtype=dtype, **torch)
        self._max_new_tokens = max_new_tokens
        self._prompt = prompt
        self._given_languages = tuple(primary_code(language) for language in languages)

    @property
    def _languages(self) -> Sequence[str]:
        return self._given_languages

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            "language": "not forced",
            "max_new_tokens": self._max_new_tokens,
            "num_beams": 1,
            "padding": "longest of the batch, left, masked",
            "prompt": self._prompt or str(self._model.processor.default_transcription_prompt),
        }
        return self._spec("glm-asr", settings)

    @cached_property
    def sample_rate(self) -> int:
        return self._model.sample_rate

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        require_language(language, self._languages, str(self._requested))
        if not clips:
            return []
        longest = self._model.processor.max_audio_len * self.sample_rate

        def decode(batch: list[Samples]) -> list[Decoded]:
            written = self._model.write(batch, prompt=self._prompt or None)
            return [
                Decoded(self._text(one.tokens), one.cut or clip.size > longest, confidence=one.confidence)
                for one, clip in zip(written, batch, strict=True)
            ]

        return transcribe_batches(clips, size=self._batch_size, decode=decode, engine="GLM-ASR")

    def _text(self, tokens: list[int]) -> str:
        return str(self._model.processor.tokenizer.decode(tokens, skip_special_tokens=True))

    @cached_property
    def _batch_size(self) -> BatchSize:
        return self._first_batch_size(self._model.model)

    @cached_property
    def _model(self) -> RequestModel:
        folder = self._found.path
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder} is no model for transformers: it lacks config.json.", hint="Check the path.")
        return RequestModel(folder, "GlmAsr", self._torch, self._max_new_tokens, name=self._name)
