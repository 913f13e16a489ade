"""A model of one of sentence-transformers' classes: found when it is described, loaded when it is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ....errors import ModelError, UsageError, missing_extra
from ...protocols import Setting
from ..weights import FoundWeights, find_weights

Kind = Literal["SparseEncoder", "MultiVectorEncoder", "CrossEncoder"]
Dtype = Literal["float32", "float16", "bfloat16"]
DTYPES: tuple[Dtype, ...] = ("float32", "float16", "bfloat16")


class STModel:
    """Weights for sentence-transformers' class `kind`.

    `model` is a path or a Hub repository. `device` is a torch device, None for the best there is, `dtype` the type of
    weights and products, `max_tokens` cuts longer texts (None is the model's own limit). `trust_remote_code` lets a
    repository run its own code. Raises `UsageError` for a wrong option.
    """

    def __init__(
        self,
        kind: Kind,
        model: str | Path,
        *,
        revision: str | None,
        device: str | None,
        dtype: Dtype,
        max_tokens: int | None,
        trust_remote_code: bool,
    ) -> None:
        if not str(model):
            raise UsageError("no model is named.", hint="Give a folder or a repository on the Hub.")
        if dtype not in DTYPES:
            raise UsageError(f"the number type {dtype!r} is none of {', '.join(DTYPES)}.")
        if max_tokens is not None and max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, not {max_tokens}.")
        self._kind: Kind = kind
        self._requested = model
        self._revision = revision
        self._device = device
        self._dtype: Dtype = dtype
        self._max_tokens = max_tokens
        self._trust_remote_code = trust_remote_code

    @cached_property
    def found(self) -> FoundWeights:
        """Where the weights are. Raises `ModelError` if they are not to be found."""
        return find_weights(self._requested, revision=self._revision)

    @property
    def name(self) -> str:
        """The short name: of the repository or the folder."""
        return self.found.model.rsplit("/", maxsplit=1)[-1]

    @property
    def settings(self) -> dict[str, Setting]:
        """What decides the output, beside the weights."""
        return {"dtype": self._dtype, "max_tokens": self._max_tokens}

    @cached_property
    def model(self) -> Any:
        """The loaded model. Raises `MissingExtraError`, or `ModelError` for a folder that cannot be loaded."""
        try:
            import sentence_transformers
            import torch
            from safetensors import SafetensorError
        except ImportError as error:
            raise missing_extra(error.name or "sentence_transformers", "torch") from error
        try:
            with quiet_loading():
                model = getattr(sentence_transformers, self._kind)(
                    str(self.found.path),
                    device=self._device,
                    local_files_only=True,
                    trust_remote_code=self._trust_remote_code,
                    model_kwargs={"dtype": getattr(torch, self._dtype)},
                )
        except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, ImportError) as error:
            # What a broken or foreign folder raises depends on which of four libraries meets it first.
            raise self._unloadable(error) from error
        except SafetensorError as error:
            raise self._unloadable(error) from error
        if self._max_tokens is not None:
            model.max_seq_length = min(self._max_tokens, model.max_seq_length or self._max_tokens)
        return model.eval()

    @property
    def on_cpu(self) -> bool:
        """Whether the loaded model is on a CPU."""
        return bool(self.model.device.type == "cpu")

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

    def _unloadable(self, error: Exception) -> ModelError:
        reason = " ".join(str(error).split())
        return ModelError(
            f"{self.name} cannot be loaded as a {self._kind} of sentence-transformers "
            f"({type(error).__name__}: {reason[:300]}).",
            hint=f"Check the folder {self.found.path}.",
        )


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """No progress bar for loading weights; what the libraries were set to before comes back."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
