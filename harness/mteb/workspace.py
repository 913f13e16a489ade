"""A folder for what a task needs only while it runs."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from ...errors import StorageError


class Workspace:
    """A temporary folder that is made when it is first needed and removed by `close`, or with this object."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._remove: weakref.finalize[..., Workspace] | None = None

    def folder(self) -> Path:
        if self._folder is None:
            try:
                self._folder = Path(tempfile.mkdtemp(prefix="squtr-mteb-"))
            except OSError as error:
                raise StorageError(
                    f"no temporary folder can be made: {error.strerror or error}.",
                    hint="Free space, or set TMPDIR to another disk.",
                ) from error
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def close(self) -> None:
        if self._remove is not None:
            self._remove()
        self._folder = self._remove = None


def refused(folder: Path, error: OSError) -> StorageError:
    """The error for a disk that does not take what a task writes."""
    return StorageError(
        f"cannot write below {folder}: {error.strerror or error}.", hint="Free space, or set TMPDIR to another disk."
    )
