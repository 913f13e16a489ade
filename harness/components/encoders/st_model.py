"""A model of one of sentence-transformers' classes, and how many tokens its texts have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ...protocols import Setting
from ..loading_report import UNUSED_OF
from ..st_loading import ModelKind, TokenPooling
from ..tokenizer_marks import lost_marks
from ..torch_models import TorchComponent
from ..weights import published_name

CPU_TOKENS, GPU_TOKENS = 2048, 32768
"""Tokens of a batch, padding included, where nothing else is asked for."""


class SentenceTransformersModel(TorchComponent):
    """Weights for sentence-transformers' class `kind`. `max_tokens` cuts longer texts (None: the model's own limit).

    `token_budget` is the number of tokens in a batch, padding included; None is 2048 on a CPU and 32768 elsewhere. It
    changes speed, and results by rounding only, and is not part of a spec, like the device. The other options are those
    of `TorchComponent`.
    """

    _pooling: TokenPooling | None = None

    def __init__(
        self,
        model: str | Path,
        kind: ModelKind = "SentenceTransformer",
        *,
        token_budget: int | None = None,
        max_tokens: int | None = None,
        **torch: Any,
    ) -> None:
        for name, value in (("token_budget", token_budget), ("max_tokens", max_tokens)):
            if value is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}.")
        super().__init__(model, **torch)
        self._kind: ModelKind = kind
        self._token_budget, self._max_tokens = token_budget, max_tokens

    @property
    def settings(self) -> dict[str, Setting]:
        settings: dict[str, Setting] = {"max_tokens": self._max_tokens, **self._torch.settings(device=False)}
        if self._pooling is not None:
            settings["pooling"] = self._pooling
        if marks := lost_marks(self._found.path):
            settings["restored_tokens"] = list(marks)
        return settings

    @property
    def name(self) -> str:
        return self._name

    @cached_property
    def model(self) -> Any:
        """The loaded model. Raises `MissingExtraError`, or `ModelError` for a folder that cannot be loaded."""
        model = self._torch.load_sentence_transformer(
            self._kind,
            self._found.path,
            name=self._name,
            pooling=self._pooling,
            unused=UNUSED_OF.get(published_name(self._requested), ()),
        )
        if self._max_tokens is not None:
            model.max_seq_length = min(self._max_tokens, model.max_seq_length or self._max_tokens)
        return model.eval()

    @property
    def device(self) -> str:
        return "cpu" if self.model.device.type == "cpu" else str(self.model.device)

    def budget(self, elsewhere: int = GPU_TOKENS) -> int:
        """The tokens of a batch: as asked for, else by device, with `elsewhere` for one that is no CPU."""
        return self._token_budget or (CPU_TOKENS if self.device == "cpu" else elsewhere)

    def lengths(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[int]:
        """Tokens of each text or pair of texts, cut as the model cuts them."""
        if not texts:
            return []
        tokenizer = getattr(self.model, "tokenizer", None)
        limit = self.model.max_seq_length
        if not callable(tokenizer):  # a model without a transformers tokenizer: characters will do
            return [len(text) + 1 if isinstance(text, str) else sum(map(len, text)) + 1 for text in texts]
        encoded = tokenizer(
            list(texts), truncation=limit is not None, max_length=limit, padding=False, return_attention_mask=False
        )
        return [len(ids) for ids in encoded["input_ids"]]
