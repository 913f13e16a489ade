"""Qwen3-ASR (arXiv 2601.21337): with transformers, or with its authors' package `qwen-asr`, by the form of the weights.

The package reads them as first published; it needs an older transformers and so an environment of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ....errors import MissingExtraError, ModelError, UsageError
from ....loaders.records import Samples
from ...metrics.flags import repeats_itself
from ...protocols import ComponentSpec, Setting, Transcript
from ..batches import BatchSize, require_positive
from ..torch_models import imported_torch, read_config
from .chat_requests import RequestModel, Written
from .common import SAMPLE_RATE, Decoded, minor_version, require_language, transcribe_batches
from .torch_transcriber import TorchTranscriber

Engine = Literal["auto", "qwen-asr", "transformers"]
LANGUAGES: Mapping[str, str] = {
    **{"ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish"},
    **{"fa": "Persian", "fi": "Finnish", "fil": "Filipino", "fr": "French", "hi": "Hindi", "hu": "Hungarian"},
    **{"id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "mk": "Macedonian", "ms": "Malay"},
    **{"nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish"},
    **{"th": "Thai", "tr": "Turkish", "vi": "Vietnamese", "yue": "Cantonese", "zh": "Chinese"},
}
_AUTO_BATCH = 32
_ASR_TEXT = "<asr_text>"


class QwenASRTranscriber(TorchTranscriber):
    """Qwen3-ASR.

    `model` is a folder or a Hub repository (with `revision`). `engine` "auto" takes the one that reads the form of the
    weights. bfloat16 and 256 new tokens are as published. `context` is the system prompt, "" for none. `batch_size` and
    the options of torch are those of `BatchedTorchComponent`; a transcript may depend a little on longer clips beside
    it.

    One character, or a group of up to 20, that is repeated more than 20 times is written once, as published; only
    transformers still marks such a transcript as a loop, and tells that the cap cut one.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        engine: Engine = "auto",
        max_new_tokens: int = 256,
        context: str = "",
        dtype: str = "bfloat16",
        **torch: Any,
    ) -> None:
        if engine not in ("auto", "qwen-asr", "transformers"):
            raise UsageError(f"unknown engine {engine!r} of Qwen3-ASR.", hint="Known: auto, qwen-asr, transformers.")
        require_positive(max_new_tokens=max_new_tokens)
        super().__init__(model, dtype=dtype, **torch)
        self._asked_engine: Engine = engine
        self._max_new_tokens = max_new_tokens
        self._context = context

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            **self._versions,
            "context": self._context,
            "engine": self._engine,
            "max_new_tokens": self._max_new_tokens,
            "num_beams": 1,
            "padding": "longest of the batch, left, masked",
            "repetitions": "more than 20 in a row are written once",
        }
        return self._spec("qwen-asr", settings, transformers=False)

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        name = LANGUAGES[require_language(language, self._languages, str(self._requested))]
        if not clips:
            return []
        looped: set[int] = set()

        def decode(batch: list[Samples]) -> list[Decoded]:
            if self._engine == "qwen-asr":
                return self._packaged(batch, name)
            found = []
            for clip, written in zip(batch, self._requests(batch, name), strict=True):
                processor = self._native.processor
                # The name and the mark that end the request were given, so what follows is all text.
                raw = processor.tokenizer.decode(written.tokens, skip_special_tokens=True)
                text = str(processor.extract_transcription(f"language {name}{_ASR_TEXT}{raw}"))
                found.append(Decoded(text, written.cut, confidence=written.confidence))
                if repeats_itself(raw):
                    looped.add(id(clip))
            return found

        with self._torch.running():
            results = transcribe_batches(clips, size=self._batch_size, decode=decode, engine="Qwen3-ASR")
        return [replace(r, loop=True) if id(clip) in looped else r for clip, r in zip(clips, results, strict=True)]

    _languages = tuple(LANGUAGES)

    def _requests(self, batch: list[Samples], name: str) -> list[Written]:
        return self._native.write(batch, language=name, prompt=self._context or None)

    def _packaged(self, batch: list[Samples], name: str) -> list[Decoded]:
        try:
            answers = self._package.transcribe(
                audio=[(clip.astype("float32", copy=False), SAMPLE_RATE) for clip in batch],
                context=self._context,
                language=[name] * len(batch),
            )
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        return [Decoded(str(answer.text)) for answer in answers]

    @cached_property
    def _engine(self) -> Engine:
        if self._asked_engine != "auto":
            return self._asked_engine
        config = read_config(self._found.path)
        return "qwen-asr" if "thinker_config" in config else "transformers"

    @property
    def _versions(self) -> dict[str, Setting]:
        if self._engine == "transformers":
            return {"transformers": minor_version("transformers", "transformers", "torch")}
        try:
            return {"qwen_asr": minor_version("qwen-asr", "qwen_asr", "qwen-asr")}
        except MissingExtraError as error:
            raise self._missing(error) from error

    @cached_property
    def _batch_size(self) -> BatchSize:
        if self._engine == "transformers":
            return self._first_batch_size(self._native.model)
        return BatchSize(_AUTO_BATCH if self._asked_batch_size == "auto" else self._asked_batch_size)

    @cached_property
    def _native(self) -> RequestModel:
        return RequestModel(self._found.path, "Qwen3ASR", self._torch, self._max_new_tokens, name=self._name)

    @cached_property
    def _package(self) -> Any:
        torch = imported_torch()
        try:
            from qwen_asr import Qwen3ASRModel
        except ImportError as error:
            raise self._missing(error) from error
        place = self._torch.device_map if self._torch.device_map is not None else self._torch.resolved_device()
        try:
            loaded = Qwen3ASRModel.from_pretrained(
                str(self._found.path),
                dtype=getattr(torch, self._torch.dtype),
                device_map=place,
                max_inference_batch_size=-1,  # the batches are made here
                max_new_tokens=self._max_new_tokens,
            )
            # It passes on no decode settings, so they are set where generation looks for them.
            loaded.model.thinker.generation_config.update(do_sample=False, num_beams=1)
            return loaded
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            raise ModelError(
                f"the model in {self._found.path} cannot be loaded by qwen-asr: {error}.",
                hint="Check device and dtype, or give the form for transformers (its name ends in -hf).",
            ) from error

    def _missing(self, error: ImportError) -> MissingExtraError:
        return MissingExtraError(
            f"the weights {self._found.model} are in the form that the package qwen-asr reads, which is not installed "
            f"({getattr(error, 'name', None) or 'qwen_asr'}).",
            hint="Run: pip install 'squtr[qwen-asr]' in an environment of its own, or give the form for transformers "
            "(Qwen/Qwen3-ASR-1.7B-hf).",
        )
