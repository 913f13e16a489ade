"""What the encoders with a processor of transformers share: prefixes, and limits on texts and clips."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from ..torch_models import read_config, tightest
from ..weights import FoundWeights
from .audio_common import BatchedEncoder, require_positive_or_none, window_of
from .audio_models import UNKNOWN, published_audio_model


class ProcessorEncoder(BatchedEncoder):
    """`query_prefix` and `document_prefix` stand before a typed query and a document; `max_tokens` cuts a text,
    `max_seconds` a clip. None is what is published of a known model, else the model's own limit.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        **torch: Any,
    ) -> None:
        super().__init__(model, **torch)
        require_positive_or_none(max_seconds=max_seconds, max_tokens=max_tokens)
        facts = published_audio_model(str(model)) or UNKNOWN
        self._facts = facts
        self._prefixes = {
            "query": facts.query_prefix if query_prefix is None else query_prefix,
            "document": facts.document_prefix if document_prefix is None else document_prefix,
        }
        self._max_tokens = facts.max_tokens if max_tokens is None else max_tokens
        self._max_seconds = facts.max_seconds if max_seconds is None else max_seconds

    @cached_property
    def sample_rate(self) -> int:
        return int(self._processor.feature_extractor.sampling_rate)

    def supports(self, language: str) -> bool:
        return self._facts.supports(language)

    @cached_property
    def _found(self) -> FoundWeights:
        found = super()._found
        read_config(found.path)
        return found

    @cached_property
    def _processor(self) -> Any:
        return self._torch.load_processor(self._found.path, name=self._name)

    @cached_property
    def _window(self) -> int | None:
        return window_of(self._processor.feature_extractor, self._max_seconds)

    @cached_property
    def _token_limit(self) -> int | None:
        return tightest(self._max_tokens, self._processor.tokenizer.model_max_length)

    @property
    def _window_s(self) -> float | None:
        return None if self._window is None else self._window / self.sample_rate
