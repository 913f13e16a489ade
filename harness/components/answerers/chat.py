"""Chat models of sound and text as answerers: a message with clips goes in through the processor's chat template."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...protocols import AnswerRequest, ComponentSpec, Reply
from ..audio_loading import load_processor, load_whole, read_config, reason
from ..transcribers.common import BatchSize, require_positive
from ..transcribers.torch_models import AutoBatch, TorchRuntime, imported_transformers, quiet, require_batch_size
from ..weights import FoundWeights, find_weights
from .common import (
    MAX_NEW_TOKENS,
    AudioLimit,
    LongAudio,
    Written,
    answer_batches,
    end_tokens,
    ended,
    in_pieces,
)
from .models import AnswerModel, answer_model

Message = dict[str, Any]


class ChatAnswerer:
    """A model of transformers whose processor takes sound in messages (Qwen2-Audio, Qwen-Omni, Voxtral, Gemma 3n, …).

    A request is one user message: each clip, with its name before it, then the prompt. `system_prompt` goes before it;
    None is the one that `answer_models` lists for the model. `chat_template` replaces the model's own (Jinja).
    `model_class` is a class of transformers; None is the listed one. Decoding is greedy, with at most `max_new_tokens`
    new tokens.

    `max_seconds` is the longest clip that goes in whole; None is the model's own window. A longer one is cut off
    (`long_audio` "truncate") or cut into pieces that follow each other in the message ("chunks"). `total_seconds` caps
    the sound of one message (None: no cap): what does not fit into the model's context or memory fails.

    `batch_size` is the number of requests that are answered together; "auto" begins with what usually fits, and both
    are halved where memory runs out. `device`, `device_map`, `dtype` and `mixed_precision` are those of
    `asr_torch.TorchRuntime`. `trust_remote_code` lets a repository run its own code. Weights are located when `spec` is
    first read and loaded when something is first answered.

    Needs `pip install 'squtr[torch]'`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        system_prompt: str | None = None,
        chat_template: str | None = None,
        model_class: str | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        long_audio: LongAudio = "truncate",
        max_seconds: float | None = None,
        total_seconds: float | None = None,
        batch_size: int | AutoBatch = "auto",
        device: str = "auto",
        device_map: str | Mapping[str, str | int] | None = None,
        dtype: str = "float32",
        mixed_precision: str = "no",
        trust_remote_code: bool = False,
    ) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        require_batch_size(batch_size)
        # Checked here, so that a wrong option is said before weights are looked for.
        AudioLimit(max_seconds, total_seconds, long_audio)
        self._runtime = TorchRuntime(device, dtype, device_map, mixed_precision, trust_remote_code=trust_remote_code)
        self._requested, self._revision = model, revision
        self._asked_prompt, self._chat_template, self._asked_class = system_prompt, chat_template, model_class
        self._max_new_tokens = max_new_tokens
        self._policy: LongAudio = long_audio
        self._max_seconds, self._total_seconds = max_seconds, total_seconds
        self._asked_batch: int | AutoBatch = batch_size

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the replies. Raises `ModelError` if the weights are not to be found."""
        settings = {
            "adapter": self._facts.adapter,
            "chat_template": self._chat_template,
            "generate": dict(self._facts.generate),
            "max_new_tokens": self._max_new_tokens,
            "model_class": self._class_name,
            "sample_rate": self.sample_rate,
            "system_prompt": self._system_prompt,
            **self._limit.settings(),
            **self._runtime.settings(),
        }
        return ComponentSpec("answerer", "chat", self._name, self._found.model, self._found.revision, settings)

    @cached_property
    def sample_rate(self) -> int:
        """What the model's feature extractor says, in Hz."""
        return int(self._processor.feature_extractor.sampling_rate)

    def supports(self, language: str) -> bool:
        """True: these models do not tell their languages."""
        return True

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        """One reply per request, in order; see `protocols.Answerer`. A request without clips is asked without sound."""
        if not requests:
            return []
        return answer_batches(requests, size=self._batches, write=self._write, engine=self._name)

    @cached_property
    def _found(self) -> FoundWeights:
        return find_weights(self._requested, revision=self._revision)

    @property
    def _name(self) -> str:
        return self._found.model.rsplit("/", maxsplit=1)[-1]

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
            # A smaller model of the family may hear less: its own extractor says so.
            own = getattr(self._processor.feature_extractor, "n_samples", None)
            window = window if own is None else min(window, float(own) / self.sample_rate)
        limits = [limit for limit in (window, self._max_seconds) if limit is not None]
        return AudioLimit(min(limits) if limits else None, self._total_seconds, self._policy)

    @cached_property
    def _processor(self) -> Any:
        processor = load_processor(self._runtime, self._found.path, name=self._name)
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
        transformers = imported_transformers()
        model_class = getattr(transformers, self._class_name, None)
        if not callable(getattr(model_class, "from_pretrained", None)):
            raise UsageError(
                f"transformers {transformers.__version__} has no model class {self._class_name!r}.",
                hint="Give model_class as AutoModelForMultimodalLM or the name of a model.",
            )
        model = load_whole(self._runtime, model_class, self._found.path, name=self._name)
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

    @cached_property
    def _batches(self) -> BatchSize:
        return BatchSize(1) if self._facts.alone else self._runtime.batch_size(self._asked_batch, self._model)

    def _write(self, requests: list[AnswerRequest]) -> list[Written]:
        heard = [in_pieces(request, self._limit, self.sample_rate) for request in requests]
        conversations = []
        for request, (pieces, _) in zip(requests, heard, strict=True):
            content: list[Message] = []
            for piece in pieces:
                if piece.name:
                    content.append({"type": "text", "text": piece.name})
                content.append(self._sound(piece.samples))
            content.append({"type": "text", "text": self._as_text(request.prompt)})
            conversations.append(self._conversation(content))
        rows = self._generated(conversations)
        texts = self._processor.tokenizer.batch_decode([row for row, _ in rows], skip_special_tokens=True)
        return [
            Written(text, truncated, cut) for text, (_, truncated), (_, cut) in zip(texts, rows, heard, strict=True)
        ]

    def _sound(self, samples: Samples) -> Message:
        if self._facts.audio_as == "array":
            return {"type": "audio", "audio": samples}
        buffer = io.BytesIO()
        soundfile.write(buffer, samples.astype(np.float32), self.sample_rate, format="WAV", subtype="FLOAT")
        return {"type": "audio", "base64": base64.b64encode(buffer.getvalue()).decode("ascii")}

    def _conversation(self, content: list[Message]) -> list[Message]:
        user: Message = {"role": "user", "content": content}
        if not self._system_prompt:
            return [user]
        return [{"role": "system", "content": [{"type": "text", "text": self._system_prompt}]}, user]

    def _generated(self, conversations: list[list[Message]]) -> list[tuple[list[int], bool]]:
        """For each conversation the new tokens without the end, and whether the cap cut them."""
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
        with self._runtime.inference(self._model):
            output = self._model.generate(
                **inputs,
                do_sample=False,
                num_beams=1,
                max_new_tokens=self._max_new_tokens,
                **self._facts.generate,
            )
        new = output[:, inputs["input_ids"].shape[1] :].tolist()
        return [ended(row, self._ends, self._max_new_tokens) for row in new]

    @cached_property
    def _ends(self) -> frozenset[int]:
        return end_tokens(self._model) or frozenset([int(self._processor.tokenizer.eos_token_id)])

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        """What the tokenizer would take for a mark of the dialogue ("<|im_end|>") if it stood in a text."""
        return dialogue_marks(self._processor.tokenizer)

    def _as_text(self, text: str) -> str:
        return without_marks(text, self._marks)


def dialogue_marks(tokenizer: Any) -> re.Pattern[str]:
    """The special tokens of a tokenizer, longest first, as a pattern."""
    tokens = {str(token) for token in getattr(tokenizer, "all_special_tokens", ())}
    added = getattr(tokenizer, "added_tokens_decoder", {})
    tokens |= {str(token) for token in added.values() if getattr(token, "special", False)}
    longest_first = sorted((token for token in tokens if len(token) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def without_marks(text: str, marks: re.Pattern[str]) -> str:
    """The text with a blank in every mark of the dialogue, so that it is read and not obeyed."""
    return marks.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
