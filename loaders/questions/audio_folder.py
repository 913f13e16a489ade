"""Audio files in a folder, found by id: the file name without its ending."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from ...errors import AudioError, DataError
from .. import containers
from ..banks.walk import SUFFIXES, UNREAD, not_read, walk_audio
from ..left_out import LeftOut

READABLE = (".flac", ".wav", ".ogg", ".opus", ".mp3", ".aiff", ".aif", ".w64")
"""What libsndfile decodes."""
AUDIO_FOLDERS = ("audio", "audios", "data/audio", "data/audios", "wav", "data/wav")
"""Where a set's audio may lie, below its folder."""


class AudioFolder:
    """The audio files below `folder`, subfolders included. Cheap to construct; the folder is listed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """Id to path, sorted. Raises `DataError` if two files have one id, or the folder does not exist."""
        if not self.folder.is_dir():
            raise DataError(f"the folder of audio {self.folder} does not exist.", hint="Check the path.")
        found: dict[str, Path] = {}
        for suffixes in (frozenset(READABLE), containers.SUFFIXES):
            for path in sorted(walk_audio(self.folder, suffixes)):
                held = found.setdefault(path.stem, path)
                # A file that was converted may lie beside its original.
                if held is not path and held.suffix.lower() in suffixes:
                    raise DataError(f"{path} and {held} have the same id {path.stem!r}.", hint="Rename or remove one.")
        return found

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The files that are audio, but in formats that are not read."""
        return not_read(self.folder) if self.folder.is_dir() else ()

    def path(self, id_: str) -> Path:
        """The file of a clip. Raises `AudioError` if it is not there, and says so where another format is."""
        path = self.files.get(id_)
        if path is None:
            other = next((p for p in walk_audio(self.folder, SUFFIXES | UNREAD) if p.stem == id_), None)
            if other is not None:
                raise AudioError(
                    f"the audio {id_!r} is there as {other.name}, which is not read.",
                    hint=f"Convert it: ffmpeg -i {other.name} -ac 1 -ar 16000 {id_}.flac",
                )
            raise AudioError(f"the audio {id_!r} is not in {self.folder}.", hint="Fetch it, or leave the item out.")
        return path


def find_audio_folder(folder: Path) -> Path:
    """The folder of audio of a set, or where it would be: the first of `AUDIO_FOLDERS` that exists, else `audio`."""
    return next((folder / name for name in AUDIO_FOLDERS if (folder / name).is_dir()), folder / AUDIO_FOLDERS[0])
