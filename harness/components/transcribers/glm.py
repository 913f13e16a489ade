"""GLM-ASR with transformers: https://huggingface.co/zai-org/GLM-ASR-Nano-2512."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ....errors import ModelError
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Transcript
from ..weights import FoundWeights, find_weights
from .chat_requests import RequestModel
from .common import (
    LOOP_SETTINGS,
    BatchSize,
    Decoded,
    minor_version,
    primary_code,
    require_language,
    require_positive,
    transcribe_batches,
)
from .torch_models import AutoBatch, TorchRuntime, require_batch_size

LANGUAGES = ("zh", "en", "yue")
"""What the model's authors name first; `languages` takes others."""


class GLMASRTranscriber:
    """GLM-ASR.

    `model` is a folder or a Hub repository (with `revision`). `device`, `dtype`, `device_map`, `threads` and
    `trust_remote_code` are those of `TorchRuntime`, `batch_size` as with `TransformersTranscriber`. bfloat16 and 500
    new tokens are as published. `prompt` is the instruction, "" for the model's own ("Please transcribe this audio into
    text"). The model takes no language: `languages` only says which it may be asked for.

    Weights are looked up at the first use of `spec`, and loaded at the first `transcribe`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "bfloat16",
        device_map: str | Mapping[str, str | int] | None = None,
        threads: int = 0,
        batch_size: int | AutoBatch = "auto",
        max_new_tokens: int = 500,
        prompt: str = "",
        languages: Sequence[str] = LANGUAGES,
        trust_remote_code: bool = False,
    ) -> None:
        require_batch_size(batch_size)
        require_positive(max_new_tokens=max_new_tokens)
        self._runtime = TorchRuntime(device, dtype, device_map, "no", threads, trust_remote_code)
        self._requested = model
        self._revision = revision
        self._asked_batch_size: int | AutoBatch = batch_size
        self._max_new_tokens = max_new_tokens
        self._prompt = prompt
        self._languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the transcripts. Raises `ModelError` if the weights are not to be found."""
        return ComponentSpec(
            "transcriber",
            "glm-asr",
            self._found.model.rsplit("/", maxsplit=1)[-1],
            self._found.model,
            self._found.revision,
            {
                **self._runtime.settings(),
                "language": "not forced",
                "max_new_tokens": self._max_new_tokens,
                "num_beams": 1,
                "padding": "longest of the batch, left, masked",
                "prompt": self._prompt or str(self._model.processor.default_transcription_prompt),
                "sample_rate": self.sample_rate,
                "torch": minor_version("torch", "torch", "torch"),
                "transformers": minor_version("transformers", "transformers", "torch"),
                **LOOP_SETTINGS,
            },
        )

    @cached_property
    def sample_rate(self) -> int:
        """What the model's feature extractor says, in Hz."""
        return self._model.sample_rate

    def supports(self, language: str) -> bool:
        """Whether it is one of `languages`."""
        return primary_code(language) in self._languages

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        """One transcript per clip ((T,) float32 at `sample_rate`), in order; [] for no clips.

        A clip that is empty, not finite or not (T,), and one that the engine fails on, has `error`. One that is longer
        than the model hears (655 s) is `truncated`. Raises `UnknownNameError` for a language that is not among
        `languages`, `ModelError` if the model cannot be loaded.
        """
        require_language(language, self._languages, str(self._requested))
        if not clips:
            return []
        longest = self._model.processor.max_audio_len * self.sample_rate

        def decode(batch: list[Samples]) -> list[Decoded]:
            written = self._model.write(batch, prompt=self._prompt or None)
            return [
                Decoded(self._text(tokens), cut or clip.size > longest)
                for (tokens, cut), clip in zip(written, batch, strict=True)
            ]

        with self._runtime.running():
            return transcribe_batches(clips, size=self._batch_size, decode=decode, engine="GLM-ASR")

    def _text(self, tokens: list[int]) -> str:
        return str(self._model.processor.tokenizer.decode(tokens, skip_special_tokens=True))

    @cached_property
    def _batch_size(self) -> BatchSize:
        return self._model.batch_size(self._asked_batch_size)

    @cached_property
    def _found(self) -> FoundWeights:
        return find_weights(self._requested, revision=self._revision)

    @cached_property
    def _model(self) -> RequestModel:
        folder = self._found.path
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder} is no model for transformers: it lacks config.json.", hint="Check the path.")
        return RequestModel(folder, "GlmAsr", self._runtime, self._max_new_tokens)
