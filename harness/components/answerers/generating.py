"""What the answerers on a generating model of transformers share: batches, decoding, where a reply ends."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ...protocols import AnswerRequest, Reply
from ..batches import BatchSize, require_positive
from ..generation import MAX_NEW_TOKENS, end_tokens, without_end
from ..torch_models import BatchedTorchComponent
from .common import Written, answer_batches, request_fault


class GeneratingAnswerer(BatchedTorchComponent, abc.ABC):
    def __init__(self, model: Any, *, max_new_tokens: int = MAX_NEW_TOKENS, **torch: Any) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        super().__init__(model, **torch)
        self._max_new_tokens = max_new_tokens

    @property
    @abc.abstractmethod
    def _model(self) -> Any: ...

    @property
    @abc.abstractmethod
    def _tokenizer(self) -> Any: ...

    @abc.abstractmethod
    def _write(self, requests: list[AnswerRequest]) -> list[Written]: ...

    def supports(self, language: str) -> bool:
        return True

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        if not requests:
            return []
        return answer_batches(requests, size=self._batches, write=self._write, engine=self._name, fault=self._fault)

    def _fault(self, request: AnswerRequest) -> str:
        """Why a request cannot be answered, "" if it can."""
        return request_fault(request)

    @cached_property
    def _batches(self) -> BatchSize:
        return self._first_batch_size(self._model)

    @cached_property
    def _ends(self) -> frozenset[int]:
        return end_tokens(self._model) or frozenset([int(self._tokenizer.eos_token_id)])

    def _generated(self, inputs: Any, **more: Any) -> list[tuple[str, bool]]:
        """For each row the new text without the end, and whether the cap cut it."""
        with self._torch.inference(self._model):
            output = self._model.generate(
                **inputs, do_sample=False, num_beams=1, max_new_tokens=self._max_new_tokens, **more
            )
        new = output[:, inputs["input_ids"].shape[1] :].tolist()
        rows = [without_end(row, self._ends, self._max_new_tokens) for row in new]
        texts = self._tokenizer.batch_decode([row for row, _ in rows], skip_special_tokens=True)
        return [(text, truncated) for text, (_, truncated) in zip(texts, rows, strict=True)]
