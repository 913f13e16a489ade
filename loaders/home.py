"""Where squtr keeps what it builds, joins and caches."""

from __future__ import annotations

import os
from pathlib import Path


def squtr_home() -> Path:
    """`$SQUTR_HOME`, else `~/.cache/squtr`. Not created."""
    configured = os.environ.get("SQUTR_HOME")
    return Path(configured).expanduser() if configured else Path.home() / ".cache" / "squtr"


def data_folder(name: str = "squtr") -> Path:
    """Where data of this name is built or fetched to, and read from by the bare name, unless a folder is named."""
    return squtr_home() / name
