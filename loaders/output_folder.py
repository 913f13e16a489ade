"""The folder that a data set is built into: made ours before anything is written, and clear errors from its disk."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import RecipeMismatchError, StorageError
from .manifest import MANIFEST_NAME, Manifest, read_manifest_as
from .shards import replace_file


def claim_folder(out: Path, begun: Manifest) -> None:
    """Make `out` ours, marked by the manifest `begun`. Raises `RecipeMismatchError` that names what differs."""
    if out.exists() and not out.is_dir():
        raise RecipeMismatchError(f"{out} is a file.", hint="Choose another folder with --out.")
    if (out / MANIFEST_NAME).exists():
        held = read_manifest_as(type(begun), begun.kind, out)
        if held.recipe_fingerprint != begun.recipe_fingerprint:
            differing = sorted(key for key, value in begun.recipe.items() if held.recipe.get(key) != value)
            shown = ", ".join(
                f"{key} {held.recipe.get(key)!r} there, {begun.recipe[key]!r} here" for key in differing[:3]
            )
            raise RecipeMismatchError(
                f"{out} holds another recipe ({shown}).", hint="Choose another folder with --out, or remove it."
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise RecipeMismatchError(
            f"{out} is not empty and was not made by `squtr build`.", hint="Choose another folder with --out."
        )
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / MANIFEST_NAME, begun.to_json())


@contextmanager
def clear_storage_errors(out: Path) -> Iterator[None]:
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
