"""Unpacking archives that others made: only plain files, only below the folder, all of them or none."""

from __future__ import annotations

import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from ...errors import IntegrityError, StorageError

_PIECE = 1 << 20
_ZIP_SUFFIXES, _TAR_SUFFIXES = (".zip",), (".tar.gz", ".tgz", ".tar", ".tar.bz2", ".tar.xz")
SPARE_BYTES = 256 * 2**20


def is_archive(name: str) -> bool:
    """Whether a file of this name is unpacked.

    >>> is_archive("SCAFE_48k.zip"), is_archive("babble.mat")
    (True, False)
    """
    return name.lower().endswith((*_ZIP_SUFFIXES, *_TAR_SUFFIXES))


def unpack(archive: Path, folder: Path, *, keep: str = "", strip: int = 0) -> dict[str, int]:
    """Unpack a zip or tar into `folder`; gives the path below it and the size of every file.

    Only members below `keep` are unpacked, without their first `strip` folders; files that exist are replaced. Members
    are written aside first, so that nothing appears in `folder` unless all can. Raises `IntegrityError` naming a
    member that is no plain file, or that would lie outside of the folder, and for a damaged archive; `StorageError`
    for a disk that refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as aside:
            written: dict[str, int] = {}
            for target, size, stream in _members(archive, keep, strip):
                if size + SPARE_BYTES > shutil.disk_usage(folder).free:
                    raise StorageError(
                        f"{target} of {archive} takes {size / 1e6:.0f} MB, more than the disk of {folder} has free.",
                        hint="Make room, or choose another folder with --to.",
                    )
                if target in written:
                    raise IntegrityError(f"{archive} holds {target!r} twice.", hint="Get the archive again.")
                path = Path(aside) / target
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as out:
                    shutil.copyfileobj(stream, out, _PIECE)
                written[target] = path.stat().st_size
            if not written:
                below = f" below {keep!r}" if keep else ""
                raise IntegrityError(f"{archive} holds no files{below}.", hint="Get the archive again.")
            for target in written:
                place = folder / target
                place.parent.mkdir(parents=True, exist_ok=True)
                (Path(aside) / target).replace(place)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise IntegrityError(f"{archive} is damaged: {error}.", hint="Remove it and get it again.") from error
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"{archive} cannot be unpacked into {folder}: {error}.", hint="Check space and permissions."
        ) from error
    return dict(sorted(written.items()))


def _members(archive: Path, keep: str, strip: int) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Path below the folder, stated size and content of every file to unpack."""
    if archive.name.lower().endswith(_ZIP_SUFFIXES):
        with zipfile.ZipFile(archive) as packed:
            # All names first: a hostile archive is refused before anything is written.
            infos = [info for info in packed.infolist() if not info.is_dir()]
            named = {info.filename: _below(archive, info.filename, _plain_zip(info)) for info in infos}
            for info in infos:
                target = _wanted(named[info.filename], keep, strip)
                if target:
                    with packed.open(info) as stream:
                        yield target, info.file_size, stream
        return
    with tarfile.open(archive) as packed_tar:
        for member in packed_tar:
            if member.isdir():
                continue
            target = _wanted(_below(archive, member.name, member.isreg()), keep, strip)
            content = packed_tar.extractfile(member) if target else None
            if content is not None:
                yield target, member.size, content


def _plain_zip(info: zipfile.ZipInfo) -> bool:
    mode = info.external_attr >> 16
    # Archives made on Windows state no mode.
    return stat.S_IFMT(mode) in (0, stat.S_IFREG)


def _below(archive: Path, name: str, plain: bool) -> PurePosixPath:
    """`name` as a path below the folder. Raises `IntegrityError` for anything that is not one."""
    path = PurePosixPath(name)
    hostile = (
        path.is_absolute()
        or ".." in path.parts
        or "\\" in name
        or "\0" in name
        or any(":" in part for part in path.parts)
        or not path.parts
    )
    if hostile or not plain:
        why = "would lie outside of the folder" if hostile else "is no plain file"
        raise IntegrityError(
            f"{archive} holds {name!r}, which {why}.", hint="Nothing was unpacked. Get the archive from its publisher."
        )
    return path


def _wanted(path: PurePosixPath, keep: str, strip: int) -> str:
    """Where a member goes below the folder, "" if it is passed over."""
    name = path.as_posix()
    if keep and not name.startswith(keep):
        return ""
    # What the finder of macOS adds.
    if path.parts[0] == "__MACOSX" or path.name.startswith("._"):
        return ""
    return PurePosixPath(*path.parts[strip:]).as_posix() if len(path.parts) > strip else ""
