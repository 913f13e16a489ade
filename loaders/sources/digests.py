"""Digests of large files, kept between runs so that gigabytes are read once and not at every start.

A kept digest counts while the file's size, times and inode are the same, as in git's index.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from ...errors import DataError
from ..home import squtr_home
from ..manifest import file_sha256

_PIECE = 1 << 20
_SETTLED_NS = 2_000_000_000
"""A file that changed within the last 2 s could change again without its time stamp showing it: not kept."""


def stream_sha256(stream: IO[bytes]) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def stream_crc32(stream: IO[bytes]) -> str:
    value = 0
    while piece := stream.read(_PIECE):
        value = zlib.crc32(piece, value)
    return f"{value:08x}"


class KeptDigests:
    """The kept digests of one source, in `$SQUTR_HOME/digests`; where that cannot be written, nothing is kept."""

    def __init__(self, root: Path) -> None:
        key = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]
        self._path = squtr_home() / "digests" / f"{key}.json"
        self._kept: dict[str, list[str]] = {}
        self._changed = False
        try:
            kept = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return
        if isinstance(kept, dict):
            self._kept = kept

    def sha256(self, name: str, path: Path) -> str:
        return self.get(name, path, "sha256", lambda: file_sha256(path))

    def get(self, name: str, path: Path, kind: str, make: Callable[[], str]) -> str:
        """The digest of `name`, a part of the file `path`, or what `make()` returns, which is kept then."""
        stamp = self._stamp(path)
        held = self._kept.get(f"{kind}:{name}")
        if isinstance(held, list) and len(held) == 2 and held[0] == stamp:
            return str(held[1])
        digest = make()
        if self._stamp(path) != stamp:
            raise DataError(f"{path} changed while it was read.", hint="Try again when nothing writes to it.")
        status = path.stat()
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS:
            self._kept[f"{kind}:{name}"] = [stamp, digest]
            self._changed = True
        return digest

    @staticmethod
    def _stamp(path: Path) -> str:
        try:
            status = path.stat()
        except FileNotFoundError as error:
            raise DataError(f"{path} does not exist.", hint="Check the folder's layout.") from error
        return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"

    def save(self) -> None:
        if not self._changed:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._path.parent, delete=False) as file:
                json.dump(self._kept, file)
            Path(file.name).replace(self._path)
        except OSError:
            # Only time is lost.
            return
        self._changed = False


def files_version(root: Path, names: Iterable[str], *, choices: str = "") -> str:
    """The first 12 hex digits of the sha256 over `choices` and name and content of files below `root`.

    A file that cannot be read counts as such: whoever needs its content says so, with all others that are wrong.
    """
    kept = KeptDigests(root)
    digest = hashlib.sha256(f"{choices}\n".encode())
    for name in sorted(set(names)):
        try:
            content = kept.sha256(name, root / name)
        except OSError:
            content = "unreadable"
        digest.update(f"{len(name)}:{name}={content}\n".encode())
    kept.save()
    return digest.hexdigest()[:12]


def folder_version(root: Path, *, choices: str = "") -> str:
    """`files_version` of all files below `root` that are not hidden."""
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    visible = (path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts))
    return files_version(root, visible, choices=choices)
