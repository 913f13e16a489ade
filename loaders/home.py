"""Where squtr keeps what it builds, joins and caches."""

from __future__ import annotations

import os
from pathlib import Path


def squtr_home() -> Path:
    """`$SQUTR_HOME`, else `~/.cache/squtr`. Not created."""
    configured = os.environ.get("SQUTR_HOME")
    return Path(configured).expanduser() if configured else Path.home() / ".cache" / "squtr"


def default_dataset_folder() -> Path:
    """Where `squtr build` writes without `--out`, and where the bare name "squtr" looks."""
    return squtr_home() / "squtr"


def rir_mega_folder() -> Path:
    """Where `squtr build rir_mega` writes without `--out`, and where the bare name's config `rir_mega` looks."""
    return squtr_home() / "rir_mega"


def escucha_folder() -> Path:
    """Where `squtr fetch escucha` and `squtr build escucha` write without `--out`, and where the bare name's config
    `escucha` looks."""
    return squtr_home() / "escucha"
