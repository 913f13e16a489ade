"""Banks in a folder: the user's own recordings of noise, or impulse responses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...errors import AudioError, DataError, unknown_name
from .. import containers
from ..audio import check_samples, decode_audio, resample
from ..home import squtr_home
from ..left_out import LeftOut
from ..lru import LruCache
from ..mixing import remove_dc
from ..records import SAMPLE_RATE, Samples
from ..sources.digests import KeptDigests
from .decoded import DecodedAudio, memory_cost
from .protocols import NoiseInfo
from .walk import not_read, walk_audio

_PREPARED = 2
"""Version of what is done to decoded audio before it is kept."""

CACHE_BYTES = 128 * 2**20
"""Decoded audio that one bank keeps in memory: 23 minutes. Long recordings are kept on disk and not counted."""


class RecordingFolder:
    """The audio files below a folder, by id; what both kinds of bank share.

    The id is the path below the folder without its suffix, with "/" between its parts (`cafe/monday`). Hidden files and
    folders are passed over. `channel` (from 0) is taken from files with several channels; those with one need none and
    take none. Files are read when they are asked for and resampled to 24 kHz; what was used last is kept in memory, and
    what is long is kept decoded in `$SQUTR_HOME/decoded`.
    """

    def __init__(self, folder: Path, kind: str, channel: int | None = None) -> None:
        self._folder = folder
        self._kind = kind
        self._channel = channel
        self._files: dict[str, Path] | None = None
        self._version = ""
        self._read: LruCache[tuple[str, int], Samples] = LruCache(CACHE_BYTES, memory_cost)

    @property
    def name(self) -> str:
        return self._folder.resolve().name

    @property
    def version(self) -> str:
        """The first 16 hex digits of the sha256 over ids, contents and channel; digests are kept."""
        if not self._version:
            digest = hashlib.sha256(f"{self._channel}\n".encode())
            kept = KeptDigests(self._folder)
            for id_, path in self.files().items():
                try:
                    content = kept.sha256(path.relative_to(self._folder).as_posix(), path)
                except OSError:
                    # Reading it says so, with all others that are wrong.
                    content = "unreadable"
                digest.update(f"{len(id_)}:{id_}={content}\n".encode())
            kept.save()
            self._version = digest.hexdigest()[:16]
        return self._version

    def files(self) -> dict[str, Path]:
        """Id to path, sorted. Raises `DataError` without folder or audio, or for two files of one id."""
        if self._files is None:
            self._files = self._find()
        return self._files

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The files that are audio, but in formats that are not read."""
        return not_read(self._folder)

    def _find(self) -> dict[str, Path]:
        if not self._folder.is_dir():
            raise DataError(f"the {self._kind} folder {self._folder} does not exist.", hint="Check the path.")
        found: dict[str, Path] = {}
        for path in walk_audio(self._folder):
            id_ = path.relative_to(self._folder).with_suffix("").as_posix()
            if id_ in found:
                raise DataError(
                    f"the {self._kind} folder {self._folder} holds {path.name} and {found[id_].name}, "
                    f"which would share the id {id_!r}.",
                    hint="Rename or remove one.",
                )
            found[id_] = path
        if not found:
            raise DataError(
                f"the {self._kind} folder {self._folder} holds no audio files.",
                hint="Put recordings there, for example .wav or .flac.",
            )
        return dict(sorted(found.items()))

    def read(self, id_: str) -> Samples:
        """(T,) float32 at 24 kHz, read-only. Raises `UnknownNameError`, and `AudioError` naming the file."""
        return self.read_at(id_, SAMPLE_RATE)

    def read_at(self, id_: str, rate: int) -> Samples:
        return self._read.get((id_, rate), lambda: self._load(id_, rate))

    def _load(self, id_: str, target: int) -> Samples:
        path = self.files().get(id_)
        if path is None:
            raise unknown_name(self._kind, id_, self.files())
        name = f"{self._kind} {path}"

        def make() -> Samples:
            samples, rate = self._decode(path, name)
            samples = resample(check_samples(samples, name), rate, target)
            samples = self._prepare(check_samples(samples, name))
            samples.flags.writeable = False
            return samples

        try:
            key = _decoding_key(path, self._kind, self._channel, target)
        except OSError as error:
            raise AudioError(f"{name} cannot be read: {error}.", hint="Replace or remove it.") from error
        return DecodedAudio(squtr_home() / "decoded").get(key, make)

    def _decode(self, path: Path, name: str) -> tuple[Samples, int]:
        return decode_audio(path, name, channel=self._channel)

    def _prepare(self, samples: Samples) -> Samples:
        return samples


class FolderNoises(RecordingFolder):
    """A folder of noise recordings, without their DC offset.

    The family of a noise is the first sub-folder that it lies in, or its own name if it lies at the top.
    """

    def __init__(self, folder: Path, channel: int | None = None, license: str = "unknown") -> None:
        super().__init__(folder, "noise", channel)
        self.license = license
        self._infos: tuple[NoiseInfo, ...] = ()

    def noises(self) -> tuple[NoiseInfo, ...]:
        if not self._infos:
            self._infos = tuple(NoiseInfo(id_, id_.split("/", 1)[0]) for id_ in self.files())
        return self._infos

    def _prepare(self, samples: Samples) -> Samples:
        return remove_dc(samples)


ROOM_TABLES = ("rooms.csv", "rooms.tsv")
"""What may lie in a folder of responses: a line per response with `file` and `room`, and what its publisher measured
(`rt60_s`, `drr_db`, `c50_db`, `c80_db`, `edt_s`)."""
ROOM_VALUES = ("rt60_s", "drr_db", "c50_db", "c80_db", "edt_s")


class FolderRirs(RecordingFolder):
    """A folder of impulse responses. Without one of `ROOM_TABLES`, every response is a room of its own."""

    def __init__(self, folder: Path, channel: int | None = None, license: str = "unknown") -> None:
        super().__init__(folder, "impulse response", channel)
        self.license = license
        self._table: dict[str, Mapping[str, object]] | None = None
        self._ids: tuple[str, ...] = ()

    def rirs(self) -> tuple[str, ...]:
        if not self._ids:
            self._ids = tuple(self.files())
        return self._ids

    def room_of(self, rir_id: str) -> str:
        return str(self._row(rir_id).get("room") or rir_id)

    def own_values(self, rir_id: str) -> Mapping[str, float]:
        row = self._row(rir_id)
        found = {}
        for name in (name for name in ROOM_VALUES if row.get(name)):
            try:
                found[name] = float(str(row[name]))
            except ValueError as error:
                raise DataError(
                    f"the table of rooms in {self._folder} says {name} {row[name]!r} of {rir_id!r}.",
                    hint="Write a number, or leave it empty.",
                ) from error
        return found

    def _row(self, rir_id: str) -> Mapping[str, object]:
        if rir_id not in self.files():
            raise unknown_name(self._kind, rir_id, self.files())
        if self._table is None:
            self._table = self._read_table()
        return self._table.get(rir_id, {})

    def _read_table(self) -> dict[str, Mapping[str, object]]:
        from ..sources.recorded import delimited_table

        path = next((self._folder / name for name in ROOM_TABLES if (self._folder / name).is_file()), None)
        found: dict[str, Mapping[str, object]] = {}
        if path is None:
            return found
        table = delimited_table(path)
        for number, row in table.rows():
            file = str(row.get("file") or "")
            rir_id = file if file in self.files() else Path(file).with_suffix("").as_posix() if file else ""
            if rir_id not in self.files():
                raise DataError(
                    f"{table.place(number)}: {file!r} is no response in the folder.", hint="Mend the column file."
                )
            if rir_id in found:
                raise DataError(f"{table.place(number)}: {file!r} occurs twice.", hint="Remove one line.")
            found[rir_id] = row
        return found


def _decoding_key(path: Path, kind: str, channel: int | None, rate: int) -> str:
    """Everything that decides the decoded samples: the file as it is now, what is taken from it, the libraries."""
    import soundfile
    import soxr

    status = path.stat()
    return repr(
        (
            str(path.resolve()),
            (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino),
            (kind, channel, _PREPARED) if rate == SAMPLE_RATE else (kind, channel, _PREPARED, rate),
            (soundfile.__libsndfile_version__, soxr.__version__, *_container_versions(path)),
        )
    )


def _container_versions(path: Path) -> tuple[str, ...]:
    try:
        return (version("av"),) if path.suffix.lower() in containers.SUFFIXES else ()
    except PackageNotFoundError:
        return ()
