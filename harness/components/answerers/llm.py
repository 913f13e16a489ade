"""LLMs of transformers: what a cascade or the text-only baseline asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ...protocols import AnswerRequest, ComponentSpec
from ..generation import TEMPLATE_DATE, dated, dialogue_marks, without_marks
from ..library_log import quiet
from ..transcribers.common import SAMPLE_RATE
from .common import Written
from .generating import GeneratingAnswerer


class TextAnswerer(GeneratingAnswerer):
    """A causal language model, asked through its tokenizer's chat template. Its requests have no clips.

    `system_prompt` goes before the prompt ("" for none). `template_options` are further values for the template, such
    as `enable_thinking`. A model without a template gets the prompt as it is. Decoding is greedy, with at most
    `max_new_tokens` new tokens. `batch_size` and the options of torch are those of `BatchedTorchComponent`.
    """

    sample_rate = SAMPLE_RATE
    uses_audio = False

    def __init__(
        self,
        model: str | Path,
        *,
        system_prompt: str = "",
        template_options: Mapping[str, bool | str] | None = None,
        **torch: Any,
    ) -> None:
        super().__init__(model, **torch)
        self._system_prompt = system_prompt
        self._template_options = dict(template_options or {})

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "max_new_tokens": self._max_new_tokens,
            "system_prompt": self._system_prompt,
            "template_date": TEMPLATE_DATE,
            "template_options": dict(self._template_options),
            **self._torch.settings(device=True),
        }
        return self.described("answerer", "llm", settings)

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = self._torch.load_part("AutoTokenizer", self._found.path, name=self._name)
        tokenizer.padding_side = "left"
        tokenizer.chat_template = dated(tokenizer.chat_template)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        if tokenizer.pad_token is None:
            raise ModelError(f"the tokenizer of {self._name} has no token to pad with.", hint="Give another model.")
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        return self._torch.load_model("AutoModelForCausalLM", self._found.path, name=self._name)

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        return dialogue_marks(self._tokenizer)

    def _prompt(self, text: str) -> str:
        plain = without_marks(text, self._marks)
        if not getattr(self._tokenizer, "chat_template", None):
            return f"{self._system_prompt}\n\n{plain}".strip()
        messages = [{"role": "system", "content": self._system_prompt}] if self._system_prompt else []
        messages.append({"role": "user", "content": plain})
        return str(
            self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._template_options
            )
        )

    def _write(self, requests: list[AnswerRequest]) -> list[Written]:
        templated = bool(getattr(self._tokenizer, "chat_template", None))
        with quiet():
            inputs = self._tokenizer(
                [self._prompt(request.prompt) for request in requests],
                return_tensors="pt",
                padding=True,
                # A template writes the tokens at the beginning itself.
                add_special_tokens=not templated,
            ).to(self._model.device)
        inputs.pop("token_type_ids", None)
        return [Written(*found) for found in self._generated(inputs, pad_token_id=self._tokenizer.pad_token_id)]
