"""The rough matrix products that choose candidates of `vector_index`, on a CPU (numpy) or a GPU (torch)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError
from ...processes import is_out_of_memory, local_device_index
from .stored_vectors import VectorBlock, restored

TILE_QUERIES = 512
_GROUP_SIZES = (16, 4)

Tile = tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""The first query of a tile and, for its high scores: query within the tile, document within the block, score."""


class Tiles(Protocol):
    def above(self, block: VectorBlock, floors: NDArray[np.float32], k: int, margin: float) -> Iterator[Tile]:
        """The scores in `block` that reach the floor of their query ((Q,) float32), a tile of queries at a time.

        A query without a floor (-inf) gets all within `margin` of its k-th best in the block, and few more.
        """
        ...


class Products(Protocol):
    def open(self, queries: NDArray[np.float32]) -> contextlib.AbstractContextManager[Tiles]: ...


def best_products(device: str | None = None) -> Products:
    """A GPU's products if there is one (or `device` names one), else numpy's, which are faster than torch's on CPUs."""
    if device is None:
        # Where nothing loaded torch and there is no GPU, finding that out must not take torch's seconds.
        if "torch" not in sys.modules and not Path("/proc/driver/nvidia").exists():
            return NumpyProducts()
        try:
            import torch
        except ImportError:
            return NumpyProducts()
        device = f"cuda:{local_device_index()}" if torch.cuda.is_available() else "cpu"
    return TorchProducts(device) if device.startswith("cuda") else NumpyProducts()


class NumpyProducts:
    @contextlib.contextmanager
    def open(self, queries: NDArray[np.float32]) -> Iterator[Tiles]:
        yield _NumpyTiles(queries)


class _NumpyTiles:
    def __init__(self, queries: NDArray[np.float32]) -> None:
        self._queries = queries
        self._scores = np.zeros(0, dtype=np.float32)
        self._high = np.zeros(0, dtype=np.bool_)

    def above(self, block: VectorBlock, floors: NDArray[np.float32], k: int, margin: float) -> Iterator[Tile]:
        documents = restored(block.read())
        for first in range(0, len(self._queries), TILE_QUERIES):
            queries = self._queries[first : first + TILE_QUERIES]
            size = len(queries) * len(documents)
            if self._scores.size < size:
                # Kept from tile to tile: new memory would cost as much as looking through it.
                self._scores, self._high = np.empty(size, dtype=np.float32), np.empty(size, dtype=np.bool_)
            scores = self._scores[:size].reshape(len(queries), len(documents))
            high = self._high[:size].reshape(len(queries), len(documents))
            np.matmul(queries, documents.T, out=scores)
            own = floors[first : first + len(queries)]
            fresh = np.isneginf(own)
            if fresh.any() and len(documents) > k:
                own = np.where(fresh, self._floors(scores, k) - np.float32(1.001 * margin), own)
            np.greater_equal(scores, own[:, None], out=high)
            flat = np.flatnonzero(high)
            rows, columns = np.divmod(flat, len(documents))
            yield first, rows, columns, scores.ravel()[flat]

    @staticmethod
    def _floors(scores: NDArray[np.float32], k: int) -> NDArray[np.float32]:
        size = _group_size(scores.shape[1], k)
        groups = scores.shape[1] // size
        maxima = scores[:, : groups * size].reshape(len(scores), size, groups).max(axis=1)
        floors: NDArray[np.float32] = np.partition(maxima, groups - k, axis=1)[:, groups - k]
        return floors


def _group_size(n: int, k: int) -> int:
    """How many of `n` scores share a group, so that the k-th largest of the groups' maxima is near the k-th largest."""
    return next((size for size in _GROUP_SIZES if n // size >= 2 * k), 1)


class TorchProducts:
    """Products by torch on `device`, in float32 proper. Blocks stay on the device while there is room."""

    def __init__(self, device: str, *, tile_queries: int = 1024) -> None:
        import torch

        self._device = torch.device(device)
        self._tile = tile_queries
        self._kept: dict[int, tuple[VectorBlock, Any]] = {}
        self._keeps = True

    @contextlib.contextmanager
    def open(self, queries: NDArray[np.float32]) -> Iterator[Tiles]:
        """The products of `queries`. Raises `ModelError` where the device has no room for a single block."""
        import torch

        # TF32 has 11 bits: it would break the bound. What a user set for training comes back afterwards.
        matmul = torch.backends.cuda.matmul
        before = matmul.fp32_precision
        matmul.fp32_precision = "ieee"
        try:
            with torch.inference_mode():
                yield _TorchTiles(self, torch.from_numpy(queries).to(self._device), self._tile)
        finally:
            matmul.fp32_precision = before

    def documents(self, block: VectorBlock) -> Any:
        import torch

        kept = self._kept.get(id(block))
        if kept is not None:
            return kept[1]
        array = block.read()
        # Copied, because a mapped file is read-only and torch has no such tensors.
        tensor_here = torch.from_numpy(np.array(array))
        if array.dtype == np.uint16:
            tensor_here = tensor_here.view(torch.bfloat16)
        tensor = self._with_room(lambda: tensor_here.to(self._device))
        if self._keeps:
            self._keeps = self._has_room()
            # The block is kept too, so that no other gets its identity.
            self._kept[id(block)] = block, tensor
        return tensor

    def forget(self) -> None:
        """Give back what is kept on the device, and keep nothing more."""
        self._kept.clear()
        self._keeps = False
        if self._device.type == "cuda":
            import torch

            torch.cuda.empty_cache()

    def product(self, queries: Any, documents: Any) -> Any:
        import torch

        return self._with_room(lambda: queries @ documents.to(torch.float32).T)

    def _with_room(self, work: Callable[[], Any]) -> Any:
        """What `work` returns; where the device is full, tried again without the blocks that are kept there."""
        try:
            return work()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        self.forget()
        try:
            return work()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise ModelError(
                f"{self._device} has no room to search: {str(error).splitlines()[0][:200]}.",
                hint="Search on the CPU (search_device cpu), or end what else uses the device.",
            ) from error

    def _has_room(self) -> bool:
        """Whether more than a third of the device's memory is free: the rest is left to encoders and scores."""
        if self._device.type != "cuda":
            return True
        import torch

        free, total = torch.cuda.mem_get_info(self._device)
        return bool(free > total / 3)


class _TorchTiles:
    def __init__(self, products: TorchProducts, queries: Any, tile: int) -> None:
        self._products = products
        self._queries = queries
        self._tile = tile

    def above(self, block: VectorBlock, floors: NDArray[np.float32], k: int, margin: float) -> Iterator[Tile]:
        import torch

        documents = self._products.documents(block)
        for first in range(0, len(self._queries), self._tile):
            queries = self._queries[first : first + self._tile]
            scores = self._products.product(queries, documents)
            own = torch.from_numpy(floors[first : first + len(queries)]).to(scores.device)
            fresh = torch.isneginf(own)
            if bool(fresh.any()) and scores.shape[1] > k:
                own = torch.where(fresh, self._floors(scores, k) - 1.001 * margin, own)
            rows, columns = torch.nonzero(scores >= own[:, None], as_tuple=True)
            high = scores[rows, columns]
            yield first, rows.cpu().numpy(), columns.cpu().numpy(), high.cpu().numpy()

    @staticmethod
    def _floors(scores: Any, k: int) -> Any:
        size = _group_size(scores.shape[1], k)
        groups = scores.shape[1] // size
        maxima = scores[:, : groups * size].reshape(len(scores), size, groups).amax(dim=1)
        return maxima.topk(k, dim=1).values[:, -1]
