"""Audio kept on disk: a long recording is decoded and resampled, and what code makes is made, once on a machine.

A bank such as DEMAND decodes to 7 GB, which no process should hold; taking 0.2 s to decode five minutes for every
clip would cost more than all the rest. Kept recordings are mapped into memory, so that only what is used is read. What
was made by code is short and read as a whole, and its sha256 with it: no recording could be compared with it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from ..home import squtr_home
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


def kept_by_code(name: str, code: tuple[Path, ...], packages: tuple[str, ...], make: Callable[[], Samples]) -> Samples:
    """(T,) float32, read-only: what `make()` returns, kept in `$SQUTR_HOME/decoded`.

    `name` says what is made, `code` and `packages` decide its samples: where a file or a version changed, it is made
    again.
    """
    try:
        key = repr((name, _code_digest(code), tuple(version(package) for package in packages), platform.machine()))
    except (OSError, PackageNotFoundError):
        # Not installed as files: nothing says what decides it.
        return make()
    return DecodedAudio(squtr_home() / "decoded").made(key, make)


@cache
def _code_digest(code: tuple[Path, ...]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in code)).hexdigest()


class DecodedAudio:
    """The decoded recordings in `folder`. Where it cannot be written, nothing is kept and nothing fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], Samples]) -> Samples:
        """(T,) float32 kept under `key`, which names all that decides it, or `make()`, kept if it is long."""
        return self._get(key, make, SHORTEST_SAMPLES, hashed=False)

    def made(self, key: str, make: Callable[[], Samples]) -> Samples:
        """(T,) float32 that code makes, kept under `key` however short; what is kept has its sha256, or is made again.
        Read-only."""
        samples = self._get(key, make, 1, hashed=True)
        samples.flags.writeable = False
        return samples

    def _get(self, key: str, make: Callable[[], Samples], shortest: int, *, hashed: bool) -> Samples:
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"
        kept = _mapped(path, shortest, hashed=hashed)
        if kept is not None:
            return kept
        made = make()
        if made.size < shortest or not self._has_room(made.nbytes):
            return made
        try:
            _write(path, made, hashed=hashed)
        except OSError:
            # Only time is lost.
            return made
        kept = _mapped(path, shortest, hashed=hashed)
        return made if kept is None else kept

    def _has_room(self, size: int) -> bool:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with os.scandir(self._folder) as entries:
                used = sum(entry.stat().st_size for entry in entries)
            return used + size <= LARGEST_BYTES and shutil.disk_usage(self._folder).free >= size + FREE_BYTES
        except OSError:
            return False


def _mapped(path: Path, shortest: int, *, hashed: bool) -> Samples | None:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        digest = _tail(path) if hashed else b""
    except (OSError, ValueError, EOFError):
        return None
    if mapped.dtype != np.float32 or mapped.ndim != 1 or mapped.size < shortest:
        return None
    if hashed and digest != _digest(mapped):
        return None
    return np.asarray(mapped)


def _digest(samples: Samples) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(samples).data).digest()


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-hashlib.sha256().digest_size, os.SEEK_END)
        return file.read()


def _write(path: Path, samples: Samples, *, hashed: bool) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".tmp", delete=False) as file:
        temporary = Path(file.name)
        try:
            np.save(file, samples)
            if hashed:
                file.write(_digest(samples))
            file.flush()
            # A file that exists is taken as complete, also after a crash.
            os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
