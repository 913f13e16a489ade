"""Decoded audio kept on disk: a long recording is decoded and resampled once, not once in every process.

A bank such as DEMAND decodes to 7 GB, which no process should hold; taking 0.2 s to decode five minutes for every
clip would cost more than all the rest. Kept recordings are mapped into memory, so that only what is used is read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..records import SAMPLE_RATE, Samples

SHORTEST_SAMPLES = 30 * SAMPLE_RATE
"""Shorter ones are decoded quickly and stay in memory."""
LARGEST_BYTES = 16 * 2**30
"""What the whole folder may take; beyond it nothing more is kept."""
FREE_BYTES = 2 * 2**30
_MAPPED_COST = 4096


def memory_cost(samples: Samples) -> int:
    """What (T,) samples take in memory, in bytes; next to nothing for a mapped file, which the system can drop."""
    return _MAPPED_COST if isinstance(samples.base, np.memmap) else int(samples.nbytes)


class DecodedAudio:
    """The decoded recordings in `folder`. Where it cannot be written, nothing is kept and nothing fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], Samples]) -> Samples:
        """(T,) float32 kept under `key`, which names all that decides it, or `make()`, kept if it is long."""
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"
        kept = _mapped(path)
        if kept is not None:
            return kept
        made = make()
        if made.size < SHORTEST_SAMPLES or not self._has_room(made.nbytes):
            return made
        try:
            _write(path, made)
        except OSError:
            # Only time is lost.
            return made
        kept = _mapped(path)
        return made if kept is None else kept

    def _has_room(self, size: int) -> bool:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with os.scandir(self._folder) as entries:
                used = sum(entry.stat().st_size for entry in entries)
            return used + size <= LARGEST_BYTES and shutil.disk_usage(self._folder).free >= size + FREE_BYTES
        except OSError:
            return False


def _mapped(path: Path) -> Samples | None:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if mapped.dtype != np.float32 or mapped.ndim != 1 or mapped.size < SHORTEST_SAMPLES:
        return None
    return np.asarray(mapped)


def _write(path: Path, samples: Samples) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".tmp", delete=False) as file:
        temporary = Path(file.name)
        try:
            np.save(file, samples)
            file.flush()
            # A file that exists is taken as complete, also after a crash.
            os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
