"""Chat models of audio and text as answerers: a message with clips goes in through the processor's chat template."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ...protocols import AnswerRequest, ComponentSpec
from ..batches import BatchSize
from ..generation import TEMPLATE_DATE
from ..torch_models import read_config
from .adapters import SpeechAdapter
from .chat_inputs import ChatInputs
from .common import AudioLimit, LongAudio, Written, in_pieces
from .generating import GeneratingAnswerer
from .models import AnswerModel, answer_model


class ChatAnswerer(GeneratingAnswerer):
    """A model of transformers whose processor takes audio in messages (Qwen2-Audio, Qwen-Omni, Voxtral, Gemma 3n, …).

    Models are known by their `model_type`; another is refused unless `model_class` is given.

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
            "max_new_tokens": self._max_new_tokens,
            "model_class": self._class_name,
            "sample_rate": self.sample_rate,
            "system_prompt": self._system_prompt,
            "template_date": TEMPLATE_DATE,
            **self._limit.settings(),
            **self._torch.settings(device=True),
        }
        return self.described("answerer", "chat", settings)

    @property
    def sample_rate(self) -> int:
        return self._inputs.sample_rate

    @cached_property
    def _facts(self) -> AnswerModel:
        config = read_config(self._found.path)
        facts = answer_model(str(config.get("model_type")), self._asked_class)
        if "audio_config" in config and config["audio_config"] is None:
            raise UsageError(
                f"{self._name} takes no audio: its config.json has no audio_config.",
                hint="Give a model of the family that does, or ask it as an LLM (… + llm:MODEL).",
            )
        return facts

    @property
    def _class_name(self) -> str:
        return self._asked_class or self._facts.model_class

    @property
    def _system_prompt(self) -> str:
        return self._facts.system_prompt if self._asked_prompt is None else self._asked_prompt

    @cached_property
    def _limit(self) -> AudioLimit:
        limits = (self._inputs.window_s, self._max_seconds)
        window = min((limit for limit in limits if limit is not None), default=None)
        return AudioLimit(window, self._total_seconds, self._policy)

    @cached_property
    def _inputs(self) -> ChatInputs:
        return ChatInputs(
            self._found.path,
            self._facts,
            self._torch,
            template=self._chat_template,
            system=self._system_prompt,
            name=self._name,
        )

    @cached_property
    def _model(self) -> Any:
        return self._torch.load_model(self._class_name, self._found.path, name=self._name, adapter=True)

    @cached_property
    def _adapter(self) -> SpeechAdapter | None:
        folder = self._found.path / self._facts.adapter
        wanted = self._facts.adapter or read_config(self._found.path).get("has_lora_adapter")
        # With a peft that it takes, transformers has switched on Granite's itself.
        if not wanted or getattr(self._model, "_hf_peft_config_loaded", False):
            return None
        return SpeechAdapter(self._model, folder, name=self._name)

    @property
    def _tokenizer(self) -> Any:
        return self._inputs.tokenizer

    @cached_property
    def _batches(self) -> BatchSize:
        return BatchSize(1) if self._facts.alone else self._first_batch_size(self._model)

    def _fault(self, request: AnswerRequest) -> str:
        most = self._facts.max_clips
        if most is not None and len(in_pieces(request, self._limit, self.sample_rate)[0]) > most:
            return f"{self._name} takes {most} clip in a message, and this request has more"
        return super()._fault(request)

    def _write(self, requests: list[AnswerRequest]) -> list[Written]:
        clips = [in_pieces(request, self._limit, self.sample_rate) for request in requests]
        inputs = self._inputs.written(
            [(pieces, request.prompt) for request, (pieces, _) in zip(requests, clips, strict=True)]
        ).to(self._model.device, dtype=self._model.dtype)
        if self._adapter is not None:
            self._adapter.on = bool(requests[0].audios)  # a batch has audio in all requests or in none
        texts = self._generated(inputs)
        return [Written(text, truncated, cut) for (text, truncated), (_, cut) in zip(texts, clips, strict=True)]
