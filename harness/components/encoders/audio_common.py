"""What the encoders of audio and text share: batches that fit into memory, items that fail alone, unit length."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...processes import is_out_of_memory
from ...protocols import ComponentSpec
from ..batches import free_memory
from ..torch_models import BatchedTorchComponent, reason
from ..transcribers.common import clip_fault
from .prompts import Role

Vectors = NDArray[np.float32]

TOKENS_PER_S = 25
"""About how many tokens a second of audio becomes in the Qwen family; only used to weigh batches."""
PROBE_S = 1.0

_CPU_TOKENS, _GPU_TOKENS = 2048, 32768
# What a model or its processor raises for an input that it cannot work on. A `TypeError` or an `AttributeError` is a
# fault of the program whatever the input.
_ITEM_FAULTS = (RuntimeError, ValueError, LookupError, ArithmeticError, MemoryError)


class Batches:
    """Runs a function over items in batches of like cost, longest first.

    A batch holds at most `size` items or, if `size` is None, items whose padded cost is at most `budget`. When memory
    runs out, the batch is halved, and so are all that follow.
    """

    def __init__(self, *, size: int | None, budget: int) -> None:
        self._size = size
        self._budget = budget
        self._most: int | None = size

    def run(
        self, costs: Sequence[int], encode: Callable[[list[int]], NDArray[Any]]
    ) -> list[NDArray[np.float64] | Exception]:
        """The row of each item, or what was raised for it alone. `encode` gets positions and gives a row for each."""
        results: list[NDArray[np.float64] | Exception | None] = [None] * len(costs)
        waiting = sorted(range(len(costs)), key=lambda position: -costs[position])
        while waiting:
            batch = self._next(waiting, costs)
            rows = self._attempt(batch, encode)
            if isinstance(rows, Exception) and len(batch) > 1 and is_out_of_memory(rows):
                self._most = len(batch) // 2
                free_memory()
                continue
            del waiting[: len(batch)]
            for place, position in enumerate(batch):
                # One item must not take the others of its batch with it.
                row = rows if isinstance(rows, Exception) else rows[place]
                if len(batch) > 1 and (isinstance(row, Exception) or not np.isfinite(row).all()):
                    again = self._attempt([position], encode)
                    row = again if isinstance(again, Exception) else again[0]
                results[position] = row
        return cast("list[NDArray[np.float64] | Exception]", results)

    def _next(self, waiting: Sequence[int], costs: Sequence[int]) -> list[int]:
        most = len(waiting) if self._most is None else self._most
        if self._size is None:
            most = min(most, self._budget // max(1, costs[waiting[0]]))
        return list(waiting[: max(1, most)])

    @staticmethod
    def _attempt(batch: list[int], encode: Callable[[list[int]], NDArray[Any]]) -> NDArray[np.float64] | Exception:
        try:
            rows = np.asarray(encode(batch), dtype=np.float64)
        except _ITEM_FAULTS as error:
            # The frames in a trace-back hold on to the tensors of the failed batch.
            return error.with_traceback(None)
        if rows.ndim != 2 or len(rows) != len(batch):
            raise ModelError(f"the model gave vectors of shape {rows.shape} for {len(batch)} items.")
        return rows


class BatchedEncoder(BatchedTorchComponent, abc.ABC):
    """An `AudioTextEncoder` without its model, of which subclasses give the raw vectors of one batch."""

    def __init__(self, model: str | Path, **torch: Any) -> None:
        super().__init__(model, **torch)
        self._batch_size = None if self._asked_batch_size == "auto" else self._asked_batch_size
        self._proven = False

    @property
    @abc.abstractmethod
    def spec(self) -> ComponentSpec: ...

    @property
    @abc.abstractmethod
    def sample_rate(self) -> int: ...

    @abc.abstractmethod
    def supports(self, language: str) -> bool: ...

    @abc.abstractmethod
    def _audio_rows(self, clips: list[Samples]) -> NDArray[Any]:
        """(len(clips), D), of any length."""

    @abc.abstractmethod
    def _text_rows(self, texts: list[str], role: Role) -> NDArray[Any]:
        """(len(texts), D), of any length."""

    @abc.abstractmethod
    def _text_costs(self, texts: list[str]) -> list[int]:
        """About how many tokens each text has."""

    @property
    def _device_type(self) -> str:
        return str(self._model.device.type)

    @property
    @abc.abstractmethod
    def _model(self) -> Any: ...

    def _audio_cost(self, clip: Samples) -> int:
        return -(-clip.size * TOKENS_PER_S // self.sample_rate) + 32

    @cached_property
    def _token_budget(self) -> int:
        return _CPU_TOKENS if self._device_type == "cpu" else _GPU_TOKENS

    @cached_property
    def _audio_batches(self) -> Batches:
        return Batches(size=self._batch_size, budget=self._token_budget)

    @cached_property
    def _text_batches(self) -> Batches:
        return Batches(size=self._batch_size, budget=self._token_budget)

    def encode_audio(self, clips: Sequence[Samples], *, language: str) -> Vectors:
        if not self.supports(language):
            raise UsageError(
                f"{self.spec.name} was not made for language {language!r}.", hint="Use an encoder that was."
            )
        usable = [i for i, clip in enumerate(clips) if not clip_fault(clip)]
        waveforms = [np.ascontiguousarray(clips[i], dtype=np.float32) for i in usable]
        found = self._audio_batches.run(
            [self._audio_cost(clip) for clip in waveforms],
            lambda batch: self._audio_rows([waveforms[i] for i in batch]),
        )
        errors = [row for row in found if isinstance(row, Exception)]
        if len(errors) < len(found):
            self._proven = True
        if errors and not self._proven:
            self._prove(errors[0])
        rows = {i: row for i, row in zip(usable, found, strict=True) if not isinstance(row, Exception)}
        width = len(next(iter(rows.values()))) if rows else self._width
        vectors = np.full((len(clips), width), np.nan, dtype=np.float64)
        for i, row in rows.items():
            vectors[i] = row
        return unit_rows(vectors)

    def encode(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """As `AudioTextEncoder.encode`. A vector's last bits may differ with the texts beside it."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.empty((0, self._width), dtype=np.float32)
        found = self._text_batches.run(
            self._text_costs(distinct), lambda batch: self._text_rows([distinct[i] for i in batch], role)
        )
        for text, row in zip(distinct, found, strict=True):
            if isinstance(row, Exception):
                hint = "Give a smaller max_tokens." if is_out_of_memory(row) else "The model cannot encode this text."
                raise ModelError(
                    f"{self.spec.name} failed on the text {text[:80]!r} ({reason(row)}).", hint=hint
                ) from row
        vectors = unit_rows(np.stack(cast("list[NDArray[np.float64]]", found)))
        wrong = np.flatnonzero(np.isnan(vectors[:, 0]))
        if len(wrong):
            raise ModelError(
                f"{self.spec.name} gave a vector without direction for the text {distinct[int(wrong[0])][:80]!r}.",
                hint="The model cannot encode this text." if self._torch.is_exact else "Try dtype float32.",
            )
        row_of = {text: i for i, text in enumerate(distinct)}
        return vectors if len(distinct) == len(texts) else vectors[[row_of[text] for text in texts]]

    @cached_property
    def _width(self) -> int:
        return int(np.shape(self._text_rows(["a"], "document"))[1])

    def _prove(self, cause: Exception) -> None:
        """Raises `ModelError` if the model cannot even encode a tone: then it is not the clips that are at fault."""
        time = np.arange(round(PROBE_S * self.sample_rate), dtype=np.float64) / self.sample_rate
        tone = (0.1 * np.sin(2 * np.pi * 440.0 * time)).astype(np.float32)
        try:
            self._audio_rows([tone])
        except _ITEM_FAULTS as error:
            raise ModelError(
                f"{self.spec.name} cannot encode audio: it failed on all clips and on a tone of {PROBE_S:g} s "
                f"({reason(error)}).",
                hint="Check the model and the encoder's options.",
            ) from cause
        self._proven = True


def unit_rows(rows: NDArray[np.float64]) -> Vectors:
    """Rows of unit length, float32; NaN throughout for a row that is not finite or has no direction.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [nan, nan]], dtype=float32)
    """
    # Scaled first: half precision's largest numbers must not overflow when they are squared.
    largest = np.abs(rows).max(axis=1, initial=0.0)
    good = np.isfinite(rows).all(axis=1) & (largest > 0)
    units = np.full(rows.shape, np.nan, dtype=np.float64)
    scaled = rows[good] / largest[good, None]
    units[good] = scaled / np.sqrt(np.sum(scaled * scaled, axis=1))[:, None]
    return units.astype(np.float32)


def as_rows(tensor: Any) -> NDArray[np.float64]:
    """A torch tensor (n, D) of any type on any device, in float64."""
    rows: NDArray[np.float64] = tensor.detach().to("cpu").double().numpy()
    return rows


def require_positive_or_none(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not value > 0:
            raise UsageError(f"{name} must be above 0, not {value}.")


def window_of(extractor: Any, max_seconds: float | None) -> int | None:
    """The longest clip in samples that a model takes at once, by its feature extractor and by choice; None for any."""
    own = getattr(extractor, "nb_max_samples", None) or getattr(extractor, "n_samples", None)
    asked = None if max_seconds is None else max(1, round(max_seconds * extractor.sampling_rate))
    return min((int(limit) for limit in (own, asked) if limit is not None), default=None)
