"""The audio files below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .. import containers
from ..left_out import LeftOut

SUFFIXES = frozenset((
    ".aif", ".aifc", ".aiff", ".au", ".avr", ".caf", ".flac", ".htk", ".iff", ".ircam", ".mp2", ".mp3", ".nist",
    ".oga", ".ogg", ".opus", ".paf", ".pvf", ".rf64", ".sd2", ".sds", ".sf", ".snd", ".sph", ".svx", ".voc",
    ".w64", ".wav", ".wave", ".wavex", ".wve", ".xi",
)) | containers.SUFFIXES  # fmt: skip
"""What counts as an audio file; everything else in a folder (a license, a table) is passed over."""

UNREAD = frozenset((
    ".3g2", ".ac3", ".ape", ".avi", ".dff", ".dsf", ".dts", ".eac3", ".flv", ".m4v", ".mid", ".midi", ".mp1", ".mpc",
    ".mpeg", ".mpg", ".oma", ".pcm", ".ra", ".raw", ".rm", ".shn", ".spx", ".tak", ".tta", ".wmv", ".wv",
))  # fmt: skip
"""Audio too, but not read: such files are counted (see `not_read`)."""


def walk_audio(folder: Path, suffixes: frozenset[str] = SUFFIXES) -> Iterator[Path]:
    """The files below `folder` with these suffixes, sorted by folder. Hidden files and folders are passed over, and
    so are links that lead back up to a folder that they lie in."""
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not _leads_up(Path(parent, name)))
        for name in sorted(names):
            path = Path(parent) / name
            if not name.startswith(".") and path.suffix.lower() in suffixes:
                yield path


def not_read(folder: Path) -> tuple[LeftOut, ...]:
    """The files below `folder` that are audio by their names, but in formats that are not read."""
    found = (path.relative_to(folder).as_posix() for path in walk_audio(folder, UNREAD))
    return LeftOut.of("audio files in formats that are not read", found)


def _leads_up(path: Path) -> bool:
    if not path.is_symlink():
        return False
    target = path.resolve()
    # Each parent by itself, not those of the resolved path: a link may be reached through another one.
    return any(target == parent.resolve() for parent in path.absolute().parents)
