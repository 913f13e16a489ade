"""Chat models of audio and text as answerers: a message with clips goes in through the processor's chat template."""

from __future__ import annotations

import base64
import io
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from ....errors import ModelError
from ....loaders.records import Samples
from ...protocols import AnswerRequest, ComponentSpec
from ..batches import BatchSize
from ..generation import Message, conversation, without_marks
from ..torch_models import quiet, read_config, reason
from .common import AudioLimit, LongAudio, Written, in_pieces
from .generating import GeneratingAnswerer
from .models import AnswerModel, answer_model


class ChatAnswerer(GeneratingAnswerer):
    """A model of transformers whose processor takes audio in messages (Qwen2-Audio, Qwen-Omni, Voxtral, Gemma 3n, …).

    A request is one user message: each clip, with its name before it, then the prompt. `system_prompt` goes before it;
    None is the one that `models` lists for the model. `chat_template` replaces the model's own (Jinja).
    `model_class` is a class of transformers; None is the listed one. Decoding is greedy, with at most `max_new_tokens`
    new tokens.

    `max_seconds` is the longest clip that goes in whole; None is the model's own window. A longer one is cut off
    (`long_audio` "truncate") or cut into pieces that follow each other in the message ("chunks"). `total_seconds` caps
    the audio of one message (None: no cap): what does not fit into the model's context or memory fails.

    `batch_size` is the number of requests that are answered together. It and the options of torch are those of
    `BatchedTorchComponent`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        system_prompt: str | None = None,
        chat_template: str | None = None,
        model_class: str | None = None,
        long_audio: LongAudio = "truncate",
        max_seconds: float | None = None,
        total_seconds: float | None = None,
        **torch: Any,
    ) -> None:
        # Checked here, so that a wrong option is an error before weights are looked for.
        AudioLimit(max_seconds, total_seconds, long_audio)
        super().__init__(model, **torch)
        self._asked_prompt, self._chat_template, self._asked_class = system_prompt, chat_template, model_class
        self._policy: LongAudio = long_audio
        self._max_seconds, self._total_seconds = max_seconds, total_seconds

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "adapter": self._facts.adapter,
            "chat_template": self._chat_template,
            "generate": dict(self._facts.generate),
            "max_new_tokens": self._max_new_tokens,
            "model_class": self._class_name,
            "sample_rate": self.sample_rate,
            "system_prompt": self._system_prompt,
            **self._limit.settings(),
            **self._torch.settings(device=True),
        }
        return self.described("answerer", "chat", settings)

    @cached_property
    def sample_rate(self) -> int:
        return int(self._processor.feature_extractor.sampling_rate)

    @cached_property
    def _facts(self) -> AnswerModel:
        return answer_model(str(read_config(self._found.path).get("model_type")))

    @property
    def _class_name(self) -> str:
        return self._asked_class or self._facts.model_class

    @property
    def _system_prompt(self) -> str:
        return self._facts.system_prompt if self._asked_prompt is None else self._asked_prompt

    @cached_property
    def _limit(self) -> AudioLimit:
        window = self._facts.window_s
        if window is not None:
            # A smaller model of the family may take less: its own extractor says so.
            own = getattr(self._processor.feature_extractor, "n_samples", None)
            window = window if own is None else min(window, float(own) / self.sample_rate)
        limits = [limit for limit in (window, self._max_seconds) if limit is not None]
        return AudioLimit(min(limits) if limits else None, self._total_seconds, self._policy)

    @cached_property
    def _processor(self) -> Any:
        processor = self._torch.load_processor(self._found.path, name=self._name)
        # Voxtral's tokenizer has its template within itself.
        own = getattr(processor, "chat_template", None) or self._facts.audio_as == "base64"
        if self._chat_template is None and not own:
            raise ModelError(
                f"the processor of {self._name} has no chat template.",
                hint="Give one as chat_template, or another model.",
            )
        return processor

    @cached_property
    def _model(self) -> Any:
        model = self._torch.load_model(self._class_name, self._found.path, name=self._name)
        if self._facts.adapter:
            self._switch_on(model)
        return model

    def _switch_on(self, model: Any) -> None:
        try:
            model.load_adapter(
                str(self._found.path), adapter_name="speech", adapter_kwargs={"subfolder": self._facts.adapter}
            )
            model.set_adapter("speech")
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            raise ModelError(
                f"the adapter {self._facts.adapter!r} of {self._name} cannot be loaded ({reason(error)}).",
                hint="Install peft, and check that the folder holds the adapter.",
            ) from error

    @property
    def _tokenizer(self) -> Any:
        return self._processor.tokenizer

    @cached_property
    def _batches(self) -> BatchSize:
        return BatchSize(1) if self._facts.alone else self._first_batch_size(self._model)

    def _write(self, requests: list[AnswerRequest]) -> list[Written]:
        clips = [in_pieces(request, self._limit, self.sample_rate) for request in requests]
        conversations = []
        for request, (pieces, _) in zip(requests, clips, strict=True):
            content: list[Message] = []
            for piece in pieces:
                if piece.name:
                    content.append({"type": "text", "text": piece.name})
                content.append(self._audio(piece.samples))
            content.append({"type": "text", "text": without_marks(request.prompt, self._marks)})
            conversations.append(conversation(content, self._system_prompt))
        with quiet():
            inputs = self._processor.apply_chat_template(
                conversations,
                chat_template=self._chat_template,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                # On the left: what is written follows the last token of the prompt.
                processor_kwargs={"text_kwargs": {"padding": True, "padding_side": "left"}},
            ).to(self._model.device, dtype=self._model.dtype)
        texts = self._generated(inputs, **self._facts.generate)
        return [Written(text, truncated, cut) for (text, truncated), (_, cut) in zip(texts, clips, strict=True)]

    def _audio(self, samples: Samples) -> Message:
        if self._facts.audio_as == "array":
            return {"type": "audio", "audio": samples}
        buffer = io.BytesIO()
        soundfile.write(buffer, samples.astype(np.float32), self.sample_rate, format="WAV", subtype="FLOAT")
        return {"type": "audio", "base64": base64.b64encode(buffer.getvalue()).decode("ascii")}
