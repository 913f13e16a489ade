"""Where noise and rooms come from: embedded banks by name, and folders of the user's own recordings."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ...errors import DataError, unknown_name
from .protocols import NoiseBank, NoiseInfo, RoomBank

__all__ = ["NOISE_BANKS", "ROOM_BANKS", "NoiseBank", "NoiseInfo", "RoomBank", "load_noise_bank", "load_room_bank"]

NOISE_BANKS = {"synthetic": "synthetic:SyntheticNoises"}
"""Name of a noise bank to module and class in this package."""
ROOM_BANKS = {"simulated": "simulated:SimulatedRooms"}
"""Name of a room bank to module and class in this package."""


def load_noise_bank(name: str | Path, channel: int | None = None) -> NoiseBank:
    """The noise bank called `name`, or the one in the folder `name`.

    A known name wins over a folder of the same name (write `./synthetic` for the folder). `channel` (from 0) is taken
    from recordings with several channels; an embedded bank has one channel and needs none. Raises `UnknownNameError`
    that suggests the nearest name, and `DataError` for a folder that is missing or holds no sound.

    >>> load_noise_bank("synthetic").noises()[0].family
    'babble'
    """
    if isinstance(name, str) and name in NOISE_BANKS:
        return cast("NoiseBank", _named(NOISE_BANKS[name])())
    from .folder import FolderNoises

    bank = FolderNoises(_folder(name, "noise bank", NOISE_BANKS), channel)
    bank.files()
    return bank


def load_room_bank(name: str | Path, channel: int | None = None) -> RoomBank:
    """The room bank called `name`, or the one in the folder `name`; everything else as in `load_noise_bank`.

    >>> len(load_room_bank("simulated").rooms())
    24
    """
    if isinstance(name, str) and name in ROOM_BANKS:
        return cast("RoomBank", _named(ROOM_BANKS[name])())
    from .folder import FolderRooms

    bank = FolderRooms(_folder(name, "room bank", ROOM_BANKS), channel)
    bank.files()
    return bank


def _named(spec: str) -> Callable[[], Any]:
    module, _, attribute = spec.partition(":")
    return cast("Callable[[], Any]", getattr(import_module(f".{module}", __name__), attribute))


def _folder(name: str | Path, kind: str, known: dict[str, str]) -> Path:
    if name == "":
        raise unknown_name(kind, name, known)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    looks_like_path = isinstance(name, Path) or os.sep in name or name.startswith((".", "~")) or path.exists()
    if not looks_like_path:
        raise unknown_name(kind, str(name), known)
    what = "is a file, not a folder" if path.exists() else "does not exist"
    raise DataError(
        f"the {kind} {name} {what}.", hint=f"Give a folder of recordings, or one of: {', '.join(sorted(known))}."
    )
