"""Chat models of audio and text as encoders: omni-embed-nemotron (arXiv 2510.03458), LCO (arXiv 2510.11693), …"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...protocols import ComponentSpec
from ..generation import Message, conversation, dialogue_marks, window_for, without_marks
from ..library_log import quiet
from ..loading_report import HEADS, LM_HEAD
from ..torch_models import read_config
from .audio_common import Batches, as_rows
from .audio_models import ARCHITECTURES, Architecture, Pooling
from .processor_encoder import ProcessorEncoder
from .prompts import Role


class ChatTemplateEncoder(ProcessorEncoder):
    """A chat model of transformers whose processor takes audio in messages.

    A spoken query is one user message with `audio_prefix`, the audio and `audio_suffix`; a typed query or a document is
    one with prefix, text and `text_suffix`; `system_prompt` goes before it. An option that is None is the published one
    of a known model, else that of `audio_models.UNKNOWN`. `chat_template` replaces the model's own (Jinja).

    `pooling` is "mean" over all tokens of the message or "last", the last one. `bidirectional` lets every token attend
    to every other. `model_class` is a class of transformers ("AutoModel", "AutoModelForMultimodalLM", a thinker); the
    half of a model that speaks is never used.

    `max_tokens` cuts a text, before anything is put around it; `max_seconds` keeps only the beginning of a longer clip.
    None is the model's own limit. `batch_size` and the options of torch are those of `BatchedTorchComponent`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        pooling: Pooling | None = None,
        audio_prefix: str | None = None,
        audio_suffix: str | None = None,
        text_suffix: str | None = None,
        system_prompt: str | None = None,
        add_generation_prompt: bool | None = None,
        bidirectional: bool | None = None,
        chat_template: str | None = None,
        model_class: str | None = None,
        **torch: Any,
    ) -> None:
        super().__init__(model, **torch)
        facts = self._facts
        self._pooling = facts.pooling if pooling is None else pooling
        if self._pooling not in ("mean", "last"):
            raise UsageError(f"pooling {pooling!r} is none of mean, last.")
        self._audio_prefix = facts.audio_prefix if audio_prefix is None else audio_prefix
        self._audio_suffix = facts.audio_suffix if audio_suffix is None else audio_suffix
        self._text_suffix = facts.text_suffix if text_suffix is None else text_suffix
        self._system_prompt = facts.system_prompt if system_prompt is None else system_prompt
        self._generation_prompt = (
            facts.add_generation_prompt if add_generation_prompt is None else add_generation_prompt
        )
        self._bidirectional = facts.bidirectional if bidirectional is None else bidirectional
        self._chat_template = chat_template
        self._asked_class = facts.model_class if model_class is None else model_class
        self._needs_states = False

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "add_generation_prompt": self._generation_prompt,
            "audio_prefix": self._audio_prefix,
            "audio_suffix": self._audio_suffix,
            "bidirectional": self._bidirectional,
            "chat_template": self._chat_template,
            "document_prefix": self._prefixes["document"],
            "long_clips": "truncate",
            "max_tokens": self._token_limit,
            "model_class": self._class_name,
            "pooling": self._pooling,
            "query_prefix": self._prefixes["query"],
            "sample_rate": self.sample_rate,
            "system_prompt": self._system_prompt,
            "text_suffix": self._text_suffix,
            "window_s": self._window_s,
            **self._torch.settings(device=False),
        }
        return self.described("audio_text_encoder", "chat-template", settings)

    @cached_property
    def _architecture(self) -> Architecture:
        return ARCHITECTURES.get(str(read_config(self._found.path).get("model_type")), Architecture())

    @property
    def _class_name(self) -> str:
        return self._asked_class or self._architecture.model_class

    @cached_property
    def _processor(self) -> Any:
        processor = super()._processor
        if self._chat_template is None and not getattr(processor, "chat_template", None):
            raise ModelError(
                f"the processor of {self._name} has no chat template.",
                hint="Give one as chat_template, or use another backend.",
            )
        return processor

    @cached_property
    def _model(self) -> Any:
        model = self._torch.load_model(
            self._class_name, self._found.path, name=self._name, unused=HEADS, absent=LM_HEAD
        )
        model = getattr(model, "thinker", model)
        body = getattr(model, "base_model", model)
        if self._bidirectional:
            _attend_both_ways(body)
        return body

    @cached_property
    def _audio_batches(self) -> Batches:
        size = 1 if self._architecture.alone else self._batch_size
        return Batches(size=size, budget=self._token_budget)

    @cached_property
    def _text_batches(self) -> Batches:
        size = 1 if self._architecture.alone else self._batch_size
        return Batches(size=size, budget=self._token_budget)

    def _audio_cost(self, clip: Samples) -> int:
        """What a clip costs, in tokens: the whole window where silence is encoded like any audio."""
        kept = self._kept(clip)
        if self._architecture.masks_padding or self._window is None:
            return super()._audio_cost(kept)
        return super()._audio_cost(np.broadcast_to(np.float32(0), (self._window,)))

    def _kept(self, clip: Samples) -> Samples:
        return clip if self._window is None else clip[: self._window]

    def _audio_rows(self, clips: list[Samples]) -> NDArray[np.float64]:
        kept = [self._kept(clip) for clip in clips]
        conversations = []
        for clip in kept:
            content: list[Message] = [{"type": "audio", "audio": clip}]
            if self._audio_prefix:
                content.insert(0, {"type": "text", "text": self._audio_prefix})
            if self._audio_suffix:
                content.append({"type": "text", "text": self._audio_suffix})
            conversations.append(conversation(content, self._system_prompt))
        return self._pooled(conversations, audio_options=self._audio_options(kept))

    def _audio_options(self, clips: list[Samples]) -> dict[str, Any]:
        """A batch that ends with its longest clip, where what is behind a clip does not reach the model anyway."""
        if not self._architecture.masks_padding or self._window is None:
            return {}
        return dict(window_for(self._processor.feature_extractor, clips))

    def _text_rows(self, texts: list[str], role: Role) -> NDArray[np.float64]:
        return self._pooled(
            [
                conversation(
                    [{"type": "text", "text": f"{self._prefixes[role]}{text}{self._text_suffix}"}], self._system_prompt
                )
                for text in self._cut([without_marks(text, self._marks) for text in texts])
            ]
        )

    def _cut(self, texts: list[str]) -> list[str]:
        limit = self._token_limit
        if limit is None:
            return texts
        ends = self._processor.tokenizer(
            texts, add_special_tokens=False, truncation=True, max_length=limit, return_offsets_mapping=True
        )["offset_mapping"]
        return [text[: offsets[-1][1]] if offsets else text for text, offsets in zip(texts, ends, strict=True)]

    def _text_costs(self, texts: list[str]) -> list[int]:
        limit = self._token_limit
        encoded = self._processor.tokenizer(
            texts, add_special_tokens=False, truncation=limit is not None, max_length=limit, padding=False
        )
        return [len(ids) + 32 for ids in encoded["input_ids"]]

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        return dialogue_marks(self._processor.tokenizer)

    def _pooled(
        self, conversations: list[list[Message]], *, audio_options: dict[str, Any] | None = None
    ) -> NDArray[np.float64]:
        with quiet():
            inputs = self._processor.apply_chat_template(
                conversations,
                chat_template=self._chat_template,
                add_generation_prompt=self._generation_prompt,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                processor_kwargs={
                    # On the right: the same places for a text alone and in a batch.
                    "text_kwargs": {"padding": True, "padding_side": "right"},
                    "audio_kwargs": audio_options or {},
                },
            ).to(self._model.device, dtype=self._model.dtype)
        with self._torch.inference(self._model):
            states = self._states(inputs)
            mask = inputs["attention_mask"].to(states.device)
            if self._pooling == "last":
                last = mask.shape[1] - 1 - mask.flip(dims=[1]).argmax(dim=1)
                return as_rows(states[range(len(states)), last])
            weights = mask.unsqueeze(-1).double()
            # Padding may hold anything, NaN too.
            kept = states.double().masked_fill(weights == 0, 0.0)
            return as_rows(kept.sum(dim=1) / weights.sum(dim=1))

    def _states(self, inputs: Any) -> Any:
        """(n, tokens, D): the last hidden states."""
        if not self._needs_states:
            states = getattr(self._model(**inputs), "last_hidden_state", None)
            if states is not None:
                return states
            self._needs_states = True
        states = getattr(self._model(**inputs, output_hidden_states=True), "hidden_states", None)
        if not states:
            raise ModelError(
                f"{self._name} ({type(self._model).__name__}) gives no hidden states.", hint="Give another model_class."
            )
        return states[-1]


def _attend_both_ways(model: Any) -> None:
    """Every token of the text model sees all others: transformers builds its masks from `is_causal`."""
    text_config: Any = model.config.get_text_config()
    text_config.is_causal = False
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if type(config) is type(text_config):
            config.is_causal = False
