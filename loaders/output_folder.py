"""The folder that a data set is built into: made ours before anything is written, and clear errors from its disk."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import IntegrityError, RecipeMismatchError, SqutrWarning, StorageError
from .finished import FinishedShards
from .manifest import MANIFEST_NAME, Manifest, libraries, read_any_manifest, read_manifest_as
from .shards import is_temporary, replace_file

TEXT_FOLDERS = ("corpus", "qrels", "rirs")
"""Folders whose shards are made in no time: they claim nothing."""

Fits = Callable[[Manifest], None]
"""Raises `RecipeMismatchError` where what a folder holds, as its manifest says, cannot stay."""


@contextmanager
def writing_folder(out: Path, begun: Manifest, *, fits: Fits) -> Iterator[tuple[Manifest, FinishedShards]]:
    """Make `out` ours while it is written; gives the manifest that it has, and its finished shards.

    A folder belongs to a recipe once one of its shards with clips (or questions) is finished: until then another takes
    it over, and later one that `fits`. The manifest of a complete folder stays, so that the folder is valid until it is
    replaced; any other becomes `begun`. What killed builds have left is removed. Raises `RecipeMismatchError`, or
    `StorageError` for what the disk refuses, or where another process builds into `out`.
    """
    with _clear_storage_errors(out):
        if out.exists() and not out.is_dir():
            raise RecipeMismatchError(f"{out} is a file.", hint="Choose another folder with --out.")
        out.mkdir(parents=True, exist_ok=True)
        with _locked(out):
            held = _claim(out, begun, fits)
            yield held, FinishedShards(out, held)


def _claim(out: Path, begun: Manifest, fits: Fits) -> Manifest:
    if not (out / MANIFEST_NAME).exists():
        _remove_temporaries(path for path in out.glob(f".{MANIFEST_NAME}.*"))
        if any(out.iterdir()):
            raise RecipeMismatchError(
                f"{out} is not empty and was not made by `squtr build`.", hint="Choose another folder with --out."
            )
        replace_file(out / MANIFEST_NAME, begun.to_json())
        return begun
    held = read_any_manifest(out)
    shards = [path for folder in held.data_folders for path in (out / folder).rglob("[!.]*.parquet")]
    if held.recipe_fingerprint != begun.recipe_fingerprint:
        if held.complete or any(path.relative_to(out).parts[0] not in TEXT_FOLDERS for path in shards):
            if held.kind != begun.kind:
                read_manifest_as(type(begun), begun.kind, out)
            fits(held)
        if not held.complete:
            FinishedShards(out, held).remove_others(shards)
            replace_file(out / MANIFEST_NAME, begun.to_json())
    folders = [out / folder for folder in held.data_folders]
    _remove_temporaries(path for folder in folders for path in folder.rglob(".*"))
    _remove_temporaries(out.glob(".*"))
    return held if held.complete else begun


def _remove_temporaries(paths: Iterator[Path]) -> None:
    for path in list(paths):
        if is_temporary(path.name) and path.is_file():
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


def damage(finished: FinishedShards) -> str:
    """What was damaged, in a sentence."""
    shown = "; ".join(f"{path} ({what})" for path, what in list(finished.damaged.items())[:5])
    more = f"; and {len(finished.damaged) - 5} more" if len(finished.damaged) > 5 else ""
    count = len(finished.damaged)
    return f"{count} shard{'s were' if count > 1 else ' was'} damaged and made again: {shown}{more}."


def check_rebuilt(out: Path, held: Manifest, manifest: Manifest) -> None:
    """A shard that was listed and made again must have its hash, unless the libraries that write it have changed."""
    listed = {shard.path: shard.sha256 for shard in held.shards}
    others = [shard for shard in manifest.shards if listed.get(shard.path, shard.sha256) != shard.sha256]
    if not others:
        return
    now = libraries()
    changed = [f"{name} was {was}, is {now.get(name)}" for name, was in held.libraries.items() if now.get(name) != was]
    first = others[0]
    what = f"{first.path} was made again with other bytes than the manifest of {out} lists"
    if held.libraries and not changed:
        raise IntegrityError(
            f"{what} (sha256 {first.sha256[:12]}… instead of {listed[first.path][:12]}…), from the same recipe.",
            hint="The manifest or files of the source were changed by hand: build into another folder with --out.",
        )
    why = "; ".join(changed) or "it does not say which libraries wrote it"
    warnings.warn(f"{what}: {why}. The manifest lists the new ones.", SqutrWarning, stacklevel=3)
