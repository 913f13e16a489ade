"""Banks in a folder: the user's own recordings of noise, or impulse responses."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ...errors import AudioError, DataError, unknown_name
from ..audio import check_samples, decode_audio, resample
from ..lru import LruCache
from ..mixing import remove_dc
from ..records import Samples
from .protocols import NoiseInfo

SUFFIXES = frozenset(
    [
        ".aif",
        ".aifc",
        ".aiff",
        ".au",
        ".avr",
        ".caf",
        ".flac",
        ".htk",
        ".iff",
        ".ircam",
        ".mp2",
        ".mp3",
        ".nist",
        ".oga",
        ".ogg",
        ".opus",
        ".paf",
        ".pvf",
        ".rf64",
        ".sd2",
        ".sds",
        ".sf",
        ".snd",
        ".sph",
        ".svx",
        ".voc",
        ".w64",
        ".wav",
        ".wave",
        ".wavex",
        ".wve",
        ".xi",
    ]
)
"""What counts as a sound file; everything else in the folder (a licence, a table) is passed over."""

CACHE_BYTES = 128 * 2**20
"""Decoded sound that one bank keeps in memory: 23 minutes."""


def _size(samples: Samples) -> int:
    return int(samples.nbytes)


class SoundFolder:
    """The sound files below a folder, by id; what both kinds of bank share.

    The id is the path below the folder without its suffix, with "/" between its parts (`cafe/monday`). Hidden files and
    folders are passed over. `channel` (from 0) is taken from files with several channels; those with one need none and
    take none. Files are read when they are asked for and resampled to 24 kHz; what was used last is kept in memory.
    """

    def __init__(self, folder: Path, kind: str, channel: int | None = None) -> None:
        self._folder = folder
        self._kind = kind
        self._channel = channel
        self._files: dict[str, Path] | None = None
        self._version = ""
        self._read: LruCache[str, Samples] = LruCache(CACHE_BYTES, _size)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._folder.resolve().name

    @property
    def version(self) -> str:
        """The first 16 hex digits of the sha256 over ids, file contents and the channel. Reads every file once."""
        if not self._version:
            digest = hashlib.sha256(f"{self._channel}\n".encode())
            for sound_id, path in self.files().items():
                try:
                    with path.open("rb") as stream:
                        content = hashlib.file_digest(stream, "sha256").hexdigest()
                except OSError as error:
                    raise AudioError(f"{self._kind} {path} cannot be read: {error}.") from error
                digest.update(f"{len(sound_id)}:{sound_id}={content}\n".encode())
            self._version = digest.hexdigest()[:16]
        return self._version

    def files(self) -> dict[str, Path]:
        """Id to path, sorted by id. Raises `DataError` if the folder is missing, has no sound, or has two files of one
        id."""
        if self._files is None:
            self._files = self._find()
        return self._files

    def _find(self) -> dict[str, Path]:
        if not self._folder.is_dir():
            raise DataError(f"the {self._kind} folder {self._folder} does not exist.", hint="Check the path.")
        found: dict[str, Path] = {}
        for path in _walk(self._folder):
            sound_id = path.relative_to(self._folder).with_suffix("").as_posix()
            if sound_id in found:
                raise DataError(
                    f"the {self._kind} folder {self._folder} holds {path.name} and {found[sound_id].name}, "
                    f"which would share the id {sound_id!r}.",
                    hint="Rename or remove one.",
                )
            found[sound_id] = path
        if not found:
            raise DataError(
                f"the {self._kind} folder {self._folder} holds no sound files.",
                hint="Put recordings there, for example .wav or .flac.",
            )
        return dict(sorted(found.items()))

    def read(self, sound_id: str) -> Samples:
        """The sound, (T,) float32 at 24 kHz, read-only.

        Raises `UnknownNameError`, and `AudioError` naming the file if it is unreadable, silent, constant, not finite,
        or has several channels and none was chosen.
        """
        return self._read.get(sound_id, lambda: self._load(sound_id))

    def _load(self, sound_id: str) -> Samples:
        path = self.files().get(sound_id)
        if path is None:
            raise unknown_name(self._kind, sound_id, self.files())
        name = f"{self._kind} {path}"
        samples, rate = decode_audio(path, name, channel=self._chosen(path, name))
        samples = resample(check_samples(samples, name), rate)
        samples = self._prepare(check_samples(samples, name))
        samples.flags.writeable = False
        return samples

    def _chosen(self, path: Path, name: str) -> int | None:
        if self._channel is None:
            return None
        import soundfile

        try:
            channels = soundfile.info(path).channels
        except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
            raise AudioError(f"{name} cannot be read as sound: {error}.", hint="Replace or remove it.") from error
        return None if channels == 1 else self._channel

    def _prepare(self, samples: Samples) -> Samples:
        return samples


class FolderNoises(SoundFolder):
    """A folder of noise recordings.

    The family of a noise is the sub-folder that it lies in (the first one below the folder), or its own name if it lies
    at the top. A DC offset is subtracted: it cannot be heard, but it would count as noise.
    """

    def __init__(self, folder: Path, channel: int | None = None, licence: str = "unknown") -> None:
        super().__init__(folder, "noise", channel)
        self.licence = licence
        self._infos: tuple[NoiseInfo, ...] = ()

    def noises(self) -> tuple[NoiseInfo, ...]:
        """All noises, sorted by id. Raises `DataError` if there are none."""
        if not self._infos:
            self._infos = tuple(NoiseInfo(sound_id, sound_id.split("/", 1)[0]) for sound_id in self.files())
        return self._infos

    def _prepare(self, samples: Samples) -> Samples:
        return remove_dc(samples)


class FolderRooms(SoundFolder):
    """A folder of impulse responses."""

    def __init__(self, folder: Path, channel: int | None = None, licence: str = "unknown") -> None:
        super().__init__(folder, "impulse response", channel)
        self.licence = licence
        self._ids: tuple[str, ...] = ()

    def rooms(self) -> tuple[str, ...]:
        """All ids, sorted. Raises `DataError` if there are none."""
        if not self._ids:
            self._ids = tuple(self.files())
        return self._ids


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent) / name
            if not name.startswith(".") and path.suffix.lower() in SUFFIXES:
                yield path
