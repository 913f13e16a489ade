"""How a task searches: every query counts, the corpus is embedded once, and no condition reaches the model."""

from __future__ import annotations

import hashlib
import math
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError
from ..protocols import Hit
from .task_data import playable
from .workspace import Workspace, refused

if TYPE_CHECKING:
    from datasets import Dataset

Rankings = dict[str, dict[str, float]]

Vectors = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class QueryCounts:
    """How many queries were searched with, could not be decoded, and found nothing."""

    queries: int = 0
    undecodable: int = 0
    empty: int = 0


def search_all(
    search: Callable[..., Mapping[str, Any]], queries: Dataset, counts: QueryCounts, **rest: Any
) -> Rankings:
    """`search(queries, **rest)` with a ranking for every query: none is left out of the mean.

    A query whose audio cannot be decoded finds nothing and scores 0. Raises `DataError` for a score of NaN.
    """
    ids = list(queries["id"])
    decodable = playable(queries)
    counts.queries, counts.undecodable = len(ids), len(ids) - len(decodable)
    found: Mapping[str, Any] = {}
    if decodable:
        found = search(queries if len(decodable) == len(ids) else queries.select(decodable), **rest)
    rankings = {id_: _finite(id_, found.get(id_) or {}) for id_ in ids}
    counts.empty = sum(not ranking for ranking in rankings.values())
    return rankings


def _finite(query_id: str, hits: Mapping[str, Any]) -> dict[str, float]:
    kept = {}
    for document_id, score in hits.items():
        value = float(score)
        if math.isnan(value) or value == math.inf:
            raise DataError(
                f"the model's score of document {document_id!r} for query {query_id!r} is {value}.",
                hint="Look at the model's vectors: one of them is not finite.",
            )
        if value != -math.inf:
            kept[document_id] = value
    return kept


def strict_scores(hits: Sequence[Hit]) -> dict[str, float]:
    """Scores of hits (best first) that keep their order where only float32 is compared.

    trec_eval compares scores as float32. Scores that differ by less would tie there and be ordered by id, so they are
    moved apart by the smallest step; equal scores stay equal.

    >>> list(strict_scores([Hit("a", 1.0 + 1e-12), Hit("b", 1.0), Hit("c", 1.0)]))
    ['a', 'b', 'c']
    >>> strict_scores([Hit("a", 1.0 + 1e-12), Hit("b", 1.0)])["a"] > strict_scores([Hit("a", 1.0)])["a"] - 1e-6
    True
    """
    scores: dict[str, float] = {}
    before, last = math.inf, np.float32(np.inf)
    for hit in hits:
        if hit.score != before:
            value = np.float32(hit.score)
            last = value if value < last else np.nextafter(last, np.float32(-np.inf))
        before = hit.score
        scores[hit.document_id] = float(last)
    return scores


class CorpusOnce:
    """An mteb encoder that encodes a corpus once, whatever the number of conditions that search it.

    Document vectors are kept in the workspace, unless they would fill more than half of the disk's free space, and
    given back as the model gave them (kind, type, device). `encode` is the model's own if None.
    """

    def __init__(self, model: Any, workspace: Workspace, *, encode: Callable[..., Any] | None = None) -> None:
        self.model = model
        self.mteb_model_meta = model.mteb_model_meta
        self._encode = encode or model.encode
        self._workspace = workspace
        self._mark = uuid.uuid4().hex
        self._kinds: dict[Path, Callable[[Vectors], Any]] = {}

    def encode(self, inputs: Any, *, prompt_type: Any = None, **rest: Any) -> Any:
        """As the model, from the workspace where these documents were encoded before."""
        if getattr(prompt_type, "value", prompt_type) != "document":
            return self._encode(inputs, prompt_type=prompt_type, **rest)
        path = self._workspace.folder() / f"{self._mark}-{_digest(inputs.dataset, rest)}.npy"
        if path in self._kinds:
            return self._kinds[path](np.load(path))
        vectors = self._encode(inputs, prompt_type=prompt_type, **rest)
        plain, restore = _as_array(vectors)
        if plain is not None and 2 * plain.nbytes < shutil.disk_usage(path.parent).free:
            _save(path, plain)
            self._kinds[path] = restore
        return vectors

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self.model.similarity_pairwise(embeddings1, embeddings2)


def _digest(documents: Any, settings: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(repr(settings.get("precision")).encode())
    for text in documents["text"]:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()[:32]


def _as_array(vectors: Any) -> tuple[Vectors | None, Callable[[Vectors], Any]]:
    """The vectors as one numpy array without loss, and what makes of it what the model gave; None for another form."""
    if isinstance(vectors, np.ndarray):
        return (vectors if vectors.dtype != object else None), lambda stored: stored
    if type(vectors).__module__ != "torch":
        return _several_as_array(vectors)
    import torch

    dtype, device = vectors.dtype, vectors.device
    plain = vectors.detach().cpu()
    if dtype is torch.bfloat16:
        plain = plain.float()  # numpy has no such type; float32 holds it exactly
    return plain.numpy(), lambda stored: torch.from_numpy(stored).to(device=device, dtype=dtype)


def _several_as_array(vectors: Any) -> tuple[Vectors | None, Callable[[Vectors], Any]]:
    """A list with one (vectors, D) per text as (all vectors, D); None unless they are alike."""

    def kind(one: Any) -> tuple[Any, ...]:
        return type(one), one.dtype, getattr(one, "device", None), one.ndim, one.shape[-1:]

    alike = isinstance(vectors, list) and all(hasattr(one, "dtype") and one.ndim == 2 for one in vectors)
    if not alike or len({kind(one) for one in vectors}) != 1:
        return None, lambda stored: stored
    lengths = [len(one) for one in vectors]
    if isinstance(vectors[0], np.ndarray):
        return np.concatenate(vectors), lambda stored: np.split(stored, np.cumsum(lengths)[:-1])
    import torch

    joined, restore = _as_array(torch.cat(vectors))
    return joined, lambda stored: list(torch.split(restore(stored), lengths))


def _save(path: Path, vectors: Vectors) -> None:
    part = path.with_suffix(".part")
    try:
        with part.open("wb") as file:
            np.save(file, vectors)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise refused(path.parent, error) from error
