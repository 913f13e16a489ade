"""What to do when a disk refuses a write: it is full, a quota is, or it may not be written."""

from __future__ import annotations

import errno
from pathlib import Path

READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def disk_hint(error: OSError, folder: Path | str, otherwise: str = "choose another folder") -> str:
    """The hint for a write below `folder` that was refused; `otherwise` is what else helps, a clause.

    >>> disk_hint(OSError(errno.ENOSPC, ""), "/data")
    'Free space there, or choose another folder.'
    >>> disk_hint(OSError(errno.EROFS, ""), "/data", "set SQUTR_HOME")
    '/data is read-only: make it writable, or set SQUTR_HOME.'
    >>> disk_hint(OSError(errno.EDQUOT, ""), "/data")
    'The quota is used up: free space there, or choose another folder.'
    >>> disk_hint(OSError(errno.EIO, ""), "/data")
    'Check the disk, or choose another folder.'
    """
    if error.errno in READ_ONLY:
        return f"{folder} is read-only: make it writable, or {otherwise}."
    if error.errno == errno.EDQUOT:
        return f"The quota is used up: free space there, or {otherwise}."
    if error.errno == errno.ENOSPC:
        return f"Free space there, or {otherwise}."
    return f"Check the disk, or {otherwise}."
