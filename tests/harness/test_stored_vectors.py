"""Blocks of vectors on disk: rounded as they should be, whole or named as damaged."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import IntegrityError, StorageError, UnknownNameError
from squtr.harness.components.retrievers.stored_vectors import (
    Storage,
    check_storage,
    open_block,
    restored,
    stored,
    write_block,
)

STORAGES: tuple[Storage, ...] = ("float32", "float16", "bfloat16")


def vectors(n: int = 30, width: int = 7) -> np.ndarray[Any, np.dtype[np.float32]]:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((n, width)) * 10.0 ** rng.integers(-6, 1, (n, width))).astype(np.float32)


def test_bfloat16_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    values = np.concatenate([vectors().ravel(), np.array([0, -0.0, 1, 1.00390625, 1.01171875, 1e-40], np.float32)])
    theirs = torch.from_numpy(values).to(torch.bfloat16)
    assert stored(values[None], "bfloat16").tobytes() == theirs.view(torch.int16).numpy().tobytes()
    assert np.array_equal(restored(stored(values[None], "bfloat16"))[0], theirs.to(torch.float32).numpy())


def test_float16_is_that_of_numpy_and_float32_is_not_touched() -> None:
    assert np.array_equal(stored(vectors(), "float16"), vectors().astype(np.float16))
    assert np.array_equal(restored(vectors().astype(np.float16)), vectors().astype(np.float16).astype(np.float32))
    same = vectors()
    assert restored(stored(same, "float32")) is same


@pytest.mark.parametrize("storage", STORAGES)
def test_what_was_written_is_read_bit_for_bit(tmp_path: Path, storage: Storage) -> None:
    array = stored(vectors(), storage)
    path = tmp_path / "space" / "block.npy"
    write_block(path, array)
    write_block(path, array)
    block = open_block(path, 30, storage)
    assert block.shape == (30, 7)
    assert isinstance(block.read(), np.memmap)
    assert block.read().tobytes() == array.tobytes()
    assert np.load(path).tobytes() == array.tobytes(), "numpy reads the file as its own"
    assert [file.name for file in path.parent.iterdir()] == ["block.npy"]


def test_many_blocks_need_no_more_open_files_than_a_process_may_have(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "block.npy"
    write_block(path, vectors())
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    blocks = [open_block(path, 30, "float32") for _ in range(min(soft, 2000) + 10)]
    assert len({block.read().tobytes() for block in blocks}) == 1
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) < 200


@pytest.mark.parametrize("damage", ["cut", "flip", "flip end", "empty", "longer", "gone", "other type", "other length"])
def test_a_damaged_block_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "block.npy"
    write_block(path, vectors())
    whole = path.read_bytes()
    middle = len(whole) // 2
    storage: Storage = "float16" if damage == "other type" else "float32"
    contents = {
        "cut": whole[:middle],
        "flip": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "flip end": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "longer": whole + b"\0",
    }
    path.write_bytes(contents.get(damage, whole))
    if damage == "gone":
        path.unlink()
    with pytest.raises(IntegrityError, match=r"block\.npy cannot be read.*Delete that file"):
        open_block(path, 31 if damage == "other length" else 30, storage)


def test_a_block_that_goes_away_later_is_named(tmp_path: Path) -> None:
    path = tmp_path / "block.npy"
    write_block(path, vectors())
    block = open_block(path, 30, "float32")
    path.unlink()
    with pytest.raises(IntegrityError, match=r"block\.npy"):
        block.read()


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write_block(tmp_path / "space" / "block.npy", vectors())
    assert not list((tmp_path / "space").iterdir())


def test_unknown_storage_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="float16"):
        check_storage("float8")
