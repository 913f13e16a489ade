"""The folder that a data set is built into: made ours before anything is written, and clear errors from its disk."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import RecipeMismatchError, StorageError
from .finished import FinishedShards
from .manifest import MANIFEST_NAME, Manifest, read_any_manifest, read_manifest_as
from .shards import replace_file

_TEMPORARY = re.compile(r"\.(?:.+\.parquet|.+\.json|README\.md|eval\.yaml)\.[a-z0-9_]{8}")
"""The names of files that are not finished (see `shards`)."""


@contextmanager
def writing_folder(
    out: Path, begun: Manifest, *, mended: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
) -> Iterator[FinishedShards]:
    """Make `out` ours, marked by the manifest `begun`, while it is written; gives what is known of its finished shards.

    A folder belongs to a recipe once one of its shards is finished: until then another takes it over. So does, later,
    the recipe of an unfinished folder for which `mended` (a recipe without what may be mended) gives the same; of its
    shards those stay that are listed with what they were made from. What killed builds have left is removed. Raises
    `RecipeMismatchError` that names what differs, `StorageError` for what the disk refuses, or where another process
    builds into `out`.
    """
    with _clear_storage_errors(out):
        if out.exists() and not out.is_dir():
            raise RecipeMismatchError(f"{out} is a file.", hint="Choose another folder with --out.")
        out.mkdir(parents=True, exist_ok=True)
        with _locked(out):
            _claim(out, begun, mended)
            yield FinishedShards(out, begun.recipe_fingerprint)


def _claim(out: Path, begun: Manifest, mended: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    if not (out / MANIFEST_NAME).exists():
        _remove_temporaries(path for path in out.glob(f".{MANIFEST_NAME}.*"))
        if any(out.iterdir()):
            raise RecipeMismatchError(
                f"{out} is not empty and was not made by `squtr build`.", hint="Choose another folder with --out."
            )
        replace_file(out / MANIFEST_NAME, begun.to_json())
        return
    held = read_any_manifest(out)
    shards = [path for folder in held.data_folders for path in (out / folder).rglob("[!.]*.parquet")]
    if held.recipe_fingerprint != begun.recipe_fingerprint:
        if held.complete or shards:
            if held.kind != begun.kind:
                read_manifest_as(type(begun), begun.kind, out)
            differing = sorted(
                key for key in held.recipe.keys() | begun.recipe.keys() if held.recipe.get(key) != begun.recipe.get(key)
            )
            if held.complete or mended(held.recipe) != mended(begun.recipe):
                shown = ", ".join(
                    f"{key} {held.recipe.get(key)!r} there, {begun.recipe.get(key)!r} here" for key in differing[:3]
                )
                raise RecipeMismatchError(
                    f"{out} holds another recipe ({shown}).", hint="Choose another folder with --out, or remove it."
                )
        FinishedShards(out, held.recipe_fingerprint).remove_others(shards)
        replace_file(out / MANIFEST_NAME, begun.to_json())
    folders = [out / folder for folder in held.data_folders]
    _remove_temporaries(path for folder in folders for path in folder.rglob(".*"))
    _remove_temporaries(out.glob(".*"))


def _remove_temporaries(paths: Iterator[Path]) -> None:
    for path in list(paths):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink()


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Refuse a second process: it would take the files of the first for those of a killed one."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    descriptor = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StorageError(
                f"another process builds into {out}.", hint="Wait until it has ended, or choose another folder."
            ) from error
        except OSError as error:
            # A file system without locks, as some network disks are.
            if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}:
                raise
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _clear_storage_errors(out: Path) -> Iterator[None]:
    """Turn what the disk refuses while `out` is written into `StorageError`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        if error.errno == errno.ENOSPC:
            raise StorageError(
                f"no space is left for {out}.", hint="Free some and run the same command again: it continues."
            ) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise StorageError(f"{out} cannot be written: {error.strerror}.", hint="Choose another --out.") from error
        raise
