"""Text encoders: any sentence-transformers model as a `TextEncoder`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError
from ...protocols import ComponentSpec, Setting
from ..batches import no_memory, unless_out_of_memory
from ..st_loading import TokenPooling
from .prompts import PublishedPrompts, Role, prompt_of, published_prompts
from .st_model import SentenceTransformersModel

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
        return len(self.rows) * self.width

    def split(self, most: int) -> list[_Batch]:
        """Parts of at most `most` tokens, or of a single text."""
        size = max(1, most // self.width)
        return [_Batch(self.rows[start : start + size], self.width) for start in range(0, len(self.rows), size)]


class SentenceTransformerEncoder(SentenceTransformersModel):
    """A sentence-transformers model.

    `model` is a path, a name that an installed package carries (`all-minilm-l6-v2`, `multilingual-e5-small`) or a Hub
    repository, looked for in that order. A prompt that is None is the published one of a known model
    (`prompts.PUBLISHED`), else the one that the model's own configuration names, else "". The spec records both prompts
    as they are used. `pooling` ("mean", "cls", "lasttoken", "max") is how its authors make one vector of those of its
    tokens, for a folder that does not say (it has no modules.json). The other options are those of
    `SentenceTransformersModel`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        pooling: TokenPooling | None = None,
        **torch: Any,
    ) -> None:
        if pooling is not None and pooling not in get_args(TokenPooling):
            raise UsageError(f"pooling {pooling!r} is none of {', '.join(get_args(TokenPooling))}.")
        super().__init__(model, **torch)
        self._pooling = pooling
        self._prompts = {"query": query_prompt, "document": document_prompt}

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            **self.settings,
            "document_prompt": self._prompt("document"),
            "query_prompt": self._prompt("query"),
        }
        for role in ("query", "document"):
            if task := self._adapter(role):
                settings[f"{role}_task"] = task
        return self.described("encoder", "sentence-transformers", settings)

    def supports(self, language: str) -> bool:
        published = self._published
        return published is None or published.supports(language)

    def encode(self, texts: Sequence[str], *, role: Role) -> NDArray[np.float32]:
        """As `TextEncoder.encode`. A vector's last bits may differ with the texts beside it."""
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
        """Encode a batch into its rows of `vectors`; the most padded tokens that fit into memory, None if not known."""
        left = deque([batch])
        while left:
            part = left.popleft()
            if most is not None and part.tokens > most and len(part.rows) > 1:
                left.extendleft(reversed(part.split(most)))
                continue
            own = [texts[i] for i in part.rows]
            features = part.features or self._features(own, role)
            encoded, failure = unless_out_of_memory(partial(self._encoded, own, role=role), features)
            if encoded is not None:
                vectors[part.rows] = encoded
                continue
            if len(part.rows) == 1:
                raise no_memory(self._name, part.tokens, texts[part.rows[0]], failure)
            most = part.tokens // 2
            left.appendleft(_Batch(part.rows, part.width))
        return most

    @property
    def _published(self) -> PublishedPrompts | None:
        return published_prompts(str(self._requested))

    def _prompt(self, role: Role) -> str:
        return prompt_of(role, self._prompts[role], self._requested, self._found.path)

    def _adapter(self, role: Role) -> str:
        """The adapter that a known model has for `role`, "" for none."""
        if self._published is None:
            return ""
        return self._published.query_task if role == "query" else self._published.document_task

    @cached_property
    def _width(self) -> int:
        told = self.model.get_embedding_dimension()
        return int(told or self._encoded(["a"], self._features(["a"], "query"), role="query").shape[1])

    def _prepared(self, texts: Sequence[str], role: Role) -> Iterator[_Batch]:
        """The batches with their tokens; beside a GPU, a thread prepares the next ones while the model works."""
        batches = self._batches(texts, role)

        def prepare() -> _Batch | None:
            batch = next(batches, None)
            if batch is None:
                return None
            return _Batch(batch.rows, batch.width, self._features([texts[i] for i in batch.rows], role))

        if self.model.device.type == "cpu":
            while (batch := prepare()) is not None:
                yield batch
            return
        with ThreadPoolExecutor(1) as pool:
            pending: deque[Future[_Batch | None]] = deque(pool.submit(prepare) for _ in range(_AHEAD))
            try:
                while (prepared := pending.popleft().result()) is not None:
                    pending.append(pool.submit(prepare))
                    yield prepared
            finally:
                for future in pending:
                    future.cancel()

    def _batches(self, texts: Sequence[str], role: Role) -> Iterator[_Batch]:
        """Batches of at most the budget of padded tokens, longest texts first, counted a window at a time."""
        budget = self.budget()
        prompt = self._prompt(role)
        ordered = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows: list[int] = []
        tokens: dict[int, int] = {}
        for start in range(0, len(ordered), _WINDOW_TEXTS):
            window = ordered[start : start + _WINDOW_TEXTS]
            tokens.update(zip(window, self.lengths([prompt + texts[i] for i in window]), strict=True))
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

    def _features(self, texts: Sequence[str], role: Role) -> Any:
        return self.model.preprocess(list(texts), prompt=self._prompt(role), **self._route(role))

    def _route(self, role: Role) -> dict[str, str]:
        """How a model that treats queries and documents differently is told which it is."""
        from sentence_transformers.base.modules import Router

        if task := self._adapter(role):
            return {"task": task}
        return {"task": role} if isinstance(self.model[0], Router) else {}

    def _encoded(self, texts: Sequence[str], features: Any, *, role: Role) -> NDArray[np.float32]:
        import torch
        from sentence_transformers.util import batch_to_device, truncate_embeddings

        model = self.model
        with self._torch.inference(model):
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
                hint="The model cannot encode this text." if self._torch.is_exact else "Try dtype float32.",
            )
        return cast("NDArray[np.float32]", (vectors / norms[:, None]).astype(np.float32))
