"""A tree of files in a folder or in a zip, which is never unpacked: members are found in its directory and read singly.

A zip comes from elsewhere, so nothing in it is trusted. A member with an absolute path, a "..", a backslash, a drive or
a NUL in its name, a symbolic link, an encrypted member, a name that occurs twice, and a member that expands too much
are refused by name before anything is read.
"""

from __future__ import annotations

import io
import os
import re
import stat
import threading
import zipfile
import zlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Protocol

from ...errors import AudioError, DataError, UsageError
from .digests import KeptDigests, stream_crc32, stream_sha256

MAX_RATIO = 200
"""How much a member may expand. JSON lines of text expand 2 to 20 times; deflate could 1032 times."""
MAX_UNCHECKED_BYTES = 1 << 20
"""Below this size a member's ratio does not matter."""
MAX_CLIP_BYTES = 1 << 26
"""The largest recording that is read: 64 MiB, 23 minutes of 24 kHz audio in 16 bits."""
_SUSPECT = re.compile(r"^/|^[A-Za-z]:|[\\\0]|(?:^|/)\.\.(?:/|$)")
_JUNK = re.compile(r"(?:^|/)(?:__MACOSX/|\.)")


class Tree(Protocol):
    """Files by relative name, with "/" between the parts."""

    @property
    def label(self) -> str: ...

    @property
    def files(self) -> Mapping[str, int]:
        """Name to size in bytes, sorted by name; hidden files are left out."""
        ...

    def open(self, name: str) -> IO[bytes]: ...

    def sha256(self, name: str, kept: KeptDigests) -> str: ...

    def crc32(self, name: str, kept: KeptDigests) -> str: ...

    def kept_digests(self) -> KeptDigests: ...


def read_recording(tree: Tree, name: str) -> bytes:
    """The content of a recording. Raises `AudioError` if it is larger than 64 MiB."""
    size = tree.files[name]
    if size > MAX_CLIP_BYTES:
        raise AudioError(f"{name} in {tree.label} has {size:,} bytes.", hint="A recording may have 64 MiB.")
    with tree.open(name) as stream:
        return stream.read()


class FolderTree:
    """A folder. Links inside it are followed: the cache of a Hub is made of them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.root,))

    @property
    def label(self) -> str:
        return str(self.root)

    @cached_property
    def files(self) -> Mapping[str, int]:
        if not self.root.is_dir():
            raise DataError(f"{self.root} does not exist.", hint="Check the path.")
        found: dict[str, int] = {}
        _scan(str(self.root), "", found)
        return dict(sorted(found.items()))

    def open(self, name: str) -> IO[bytes]:
        if name not in self.files:
            raise DataError(f"{self.root} holds no {name}.", hint="Restore the file.")
        return (self.root / name).open("rb")

    def kept_digests(self) -> KeptDigests:
        return KeptDigests(self.root)

    def _sha256(self, name: str) -> str:
        with self.open(name) as stream:
            return stream_sha256(stream)

    def _crc32(self, name: str) -> str:
        with self.open(name) as stream:
            return stream_crc32(stream)

    def sha256(self, name: str, kept: KeptDigests) -> str:
        return kept.get(name, self.root / name, "sha256", lambda: self._sha256(name))

    def crc32(self, name: str, kept: KeptDigests) -> str:
        return kept.get(name, self.root / name, "crc32", lambda: self._crc32(name))


def _scan(folder: str, prefix: str, found: dict[str, int]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            if entry.is_dir():
                _scan(entry.path, f"{prefix}{entry.name}/", found)
            elif entry.is_file():
                found[prefix + entry.name] = entry.stat().st_size


class ZipTree:
    """A zip file. Threads may share it; a process that inherits it opens its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._opened: tuple[int, zipfile.ZipFile, Mapping[str, zipfile.ZipInfo]] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._path,))

    @property
    def path(self) -> Path:
        return self._path

    @property
    def label(self) -> str:
        return str(self.path)

    def _archive(self) -> tuple[zipfile.ZipFile, Mapping[str, zipfile.ZipInfo]]:
        with self._lock:
            # A file position shared with a parent process would mix up both readers.
            if self._opened is None or self._opened[0] != os.getpid():
                try:
                    archive = zipfile.ZipFile(self.path)
                except FileNotFoundError as error:
                    raise DataError(f"{self.path} does not exist.", hint="Check the path.") from error
                except (zipfile.BadZipFile, NotImplementedError) as error:
                    raise DataError(f"{self.path} is no usable zip: {error}.", hint="Download it again.") from error
                self._opened = (os.getpid(), archive, checked_members(archive, self.label))
            return self._opened[1:]

    @cached_property
    def files(self) -> Mapping[str, int]:
        return {name: info.file_size for name, info in self._archive()[1].items()}

    def open(self, name: str) -> IO[bytes]:
        """A member for reading. Reading raises `DataError` if its content does not match its checksum."""
        archive, members = self._archive()
        if name not in members:
            raise DataError(f"{self.label} holds no {name}.", hint="Download it again.")
        try:
            return io.BufferedReader(_Member(archive.open(members[name]), f"{name} in {self.label}"), 1 << 16)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{name} in {self.label} cannot be read: {error}.", hint="Download it again.") from error

    def kept_digests(self) -> KeptDigests:
        return KeptDigests(self.path)

    def _sha256(self, name: str) -> str:
        with self.open(name) as stream:
            return stream_sha256(stream)

    def sha256(self, name: str, kept: KeptDigests) -> str:
        return kept.get(name, self.path, "sha256", lambda: self._sha256(name))

    def crc32(self, name: str, _: KeptDigests) -> str:
        """The CRC-32 that the zip's directory holds; a member that differs cannot be read."""
        return f"{self._archive()[1][name].CRC:08x}"


class _Member(io.RawIOBase):
    def __init__(self, stream: IO[bytes], name: str) -> None:
        super().__init__()
        self._stream = stream
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            piece = self._stream.read(len(buffer))
        except (zipfile.BadZipFile, EOFError, OSError, zlib.error) as error:
            raise DataError(f"{self._name} is damaged: {error}.", hint="Download it again.") from error
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        super().close()


def checked_members(archive: zipfile.ZipFile, label: str) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by name, sorted. Raises `DataError` naming the first member that is hostile."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        fault = _fault(info)
        if fault:
            raise DataError(
                f"{label} holds the member {info.orig_filename!r}, which {fault}.",
                hint="Do not use this zip; get it from its publisher.",
            )
        if info.is_dir() or _JUNK.search(info.filename):
            continue
        if info.filename in found:
            raise DataError(
                f"{label} holds the member {info.filename!r} twice.",
                hint="Do not use this zip; get it from its publisher.",
            )
        found[info.filename] = info
    return dict(sorted(found.items()))


def _fault(info: zipfile.ZipInfo) -> str:
    # `filename` was already cut at a NUL and had backslashes replaced on Windows.
    name = info.orig_filename
    if _SUSPECT.search(name):
        if "\0" in name or "\\" in name:
            return "has a NUL or a backslash in its name"
        if ".." in name.split("/"):
            return "leads out of its folder"
        return "has an absolute path"
    kind = info.external_attr >> 16
    if stat.S_IFMT(kind) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.file_size > max(MAX_UNCHECKED_BYTES, MAX_RATIO * info.compress_size):
        return f"would expand from {info.compress_size:,} to {info.file_size:,} bytes"
    return ""


class HubZip(ZipTree):
    """The zip of a Hub data set at a commit, downloaded when first needed; `file` names it where there are several."""

    def __init__(self, repository: str, revision: str, file: str = "") -> None:
        super().__init__(Path())
        self._where = (repository, revision, file)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), self._where)

    @property
    def label(self) -> str:
        return f"{self._where[0]}@{self._where[1][:8]}"

    @cached_property
    def _downloaded(self) -> Path:
        import huggingface_hub

        repository, revision, file = self._where
        try:
            if not file:
                names = huggingface_hub.HfApi().list_repo_files(repository, repo_type="dataset", revision=revision)
                file = self._only_zip(names)
            return Path(huggingface_hub.hf_hub_download(repository, file, repo_type="dataset", revision=revision))
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self.label} cannot be downloaded: {error}".rstrip(".") + ".",
                hint="Check name, commit and network, or download the zip by hand and write release:PATH.",
            ) from error

    def _only_zip(self, names: list[str]) -> str:
        zips = sorted(name for name in names if name.lower().endswith(".zip"))
        if len(zips) != 1:
            raise UsageError(
                f"{self.label} holds {len(zips)} zip files{': ' if zips else ''}{', '.join(zips)}.",
                hint="Name one with ?file=NAME.",
            )
        return zips[0]

    @property
    def path(self) -> Path:
        return self._downloaded
