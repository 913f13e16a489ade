"""Any data set with an audio column as a bank: `hub:org/name@<commit>`, or `hub:./folder`.

Options: `audio`, `id` and `family` (columns), `config`, `split`, `license`. Rows are read from the memory-mapped table
when they are asked for; nothing needs an audio decoder but libsndfile.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import AudioError, DataError, HubError, UsageError, unknown_name
from ..audio import check_samples, decode_audio, resample
from ..lru import LruCache
from ..mixing import remove_dc
from ..records import SAMPLE_RATE, Samples
from ..sources.digests import folder_version
from ..sources.names import SourceName, hub_place, parse_source_name
from .decoded import memory_cost
from .folder import CACHE_BYTES
from .protocols import NoiseInfo

if TYPE_CHECKING:
    import datasets

OPTIONS = ("audio", "id", "family", "config", "split", "license")
ID_COLUMNS = ("id", "_id", "file_name", "name")
FAMILY_COLUMNS = ("family", "noise_type", "category", "label")


class HubRecordings:
    """The recordings of a data set by id; what both kinds of bank share.

    The id is the column `id` (or `_id`, `file_name`, `name`), else the audio's file name without suffix, else the row
    number. `channel` (from 0) is taken from recordings with several channels.
    """

    kind = "recording"

    def __init__(self, name: SourceName, channel: int | None = None) -> None:
        for option in name.options:
            if option not in OPTIONS:
                raise unknown_name("option of a bank on the Hub:", option, OPTIONS)
        place, revision = hub_place(name, {})
        self._place: Path | str = place
        self._revision: str | None = revision
        self.name = f"hub:{place.resolve().name if isinstance(place, Path) else place}"
        self._spelled = name
        self._channel = channel
        self._columns: datasets.Dataset | None = None
        self._audio = ""
        self._ids: dict[str, int] = {}
        self._read: LruCache[tuple[str, int], Samples] = LruCache(CACHE_BYTES, memory_cost)

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (type(self), self._spelled.text, self._channel))

    @property
    def version(self) -> str:
        """The commit (of a folder: digits of its files' sha256), with the choices that it does not tell."""
        choices = "&".join(f"{key}={value}" for key, value in sorted(self._spelled.options.items()) if key != "license")
        if self._channel is not None:
            choices = "&".join(filter(None, (choices, f"channel={self._channel}")))
        if isinstance(self._place, Path):
            return folder_version(self._place, choices=choices)
        return f"{self._revision}?{choices}" if choices else str(self._revision)

    @property
    def license(self) -> str:
        return self._spelled.option("license") or str(self._rows().info.license or "unknown")

    def ids(self) -> dict[str, int]:
        """Id to row, sorted by id. Raises `DataError` for a data set without audio or with an id twice."""
        if not self._ids:
            found: dict[str, int] = {}
            for number, id_ in enumerate(self._all_ids()):
                if id_ in found:
                    raise DataError(
                        f"{self.name} has the id {id_!r} in rows {found[id_]} and {number}.",
                        hint="Choose another column with ?id=….",
                    )
                found[id_] = number
            if not found:
                raise DataError(f"{self.name} has no rows.", hint="Choose another split with ?split=….")
            self._ids = dict(sorted(found.items()))
        return self._ids

    def read(self, id_: str) -> Samples:
        return self.read_at(id_, SAMPLE_RATE)

    def read_at(self, id_: str, rate: int) -> Samples:
        return self._read.get((id_, rate), lambda: self._load(id_, rate))

    def _load(self, id_: str, target: int) -> Samples:
        row = self.ids().get(id_)
        if row is None:
            raise unknown_name(self.kind, id_, self.ids())
        stored = self._rows()[row][self._audio]
        name = f"{self.kind} {id_!r} of {self.name}"
        content: bytes | Path | None = stored.get("bytes") or (Path(stored["path"]) if stored.get("path") else None)
        if content is None:
            raise AudioError(f"{name} has no audio.", hint="Remove the row.")
        samples, rate = decode_audio(content, name, channel=self._channel)
        samples = self._prepare(check_samples(resample(check_samples(samples, name), rate, target), name))
        samples.flags.writeable = False
        return samples

    def _prepare(self, samples: Samples) -> Samples:
        return samples

    def _rows(self) -> datasets.Dataset:
        if self._columns is None:
            import datasets

            columns = _load_rows(self._place, self._revision, self._spelled)
            audio = [key for key, feature in columns.features.items() if isinstance(feature, datasets.Audio)]
            wanted = self._spelled.option("audio")
            if wanted and wanted not in audio:
                raise unknown_name(f"audio column of {self.name}:", wanted, audio)
            if not wanted and len(audio) != 1:
                raise UsageError(
                    f"{self.name} has {len(audio)} audio columns{': ' + ', '.join(audio) if audio else ''}.",
                    hint="Choose one with ?audio=…." if audio else "Choose another data set.",
                )
            self._audio = wanted or audio[0]
            self._columns = columns.cast_column(self._audio, datasets.Audio(decode=False))
        return self._columns

    def _all_ids(self) -> list[str]:
        rows = self._rows()
        column = self._column("id", ID_COLUMNS)
        if column:
            return [str(value) for value in rows[column]]
        names = [Path(cell["path"] or "").stem for cell in rows[self._audio]]
        if len(set(names)) == len(names) and all(names):
            return names
        return [f"{number:06d}" for number in range(len(names))]

    def _column(self, option: str, usual: tuple[str, ...]) -> str:
        known = self._rows().column_names
        wanted = self._spelled.option(option)
        if wanted and wanted not in known:
            raise unknown_name(f"column of {self.name}:", wanted, known)
        return wanted or next((column for column in usual if column in known), "")


class HubNoises(HubRecordings):
    """Noises. The family is the column `family` (or `noise_type`, `category`, `label`), else all are one family."""

    kind = "noise"

    def noises(self) -> tuple[NoiseInfo, ...]:
        rows = self._rows()
        column = self._column("family", FAMILY_COLUMNS)
        if not column:
            return tuple(
                NoiseInfo(noise_id, self.name.rpartition("/")[2].removeprefix("hub:")) for noise_id in self.ids()
            )
        feature = rows.features[column]
        values = rows[column]
        spelled = getattr(feature, "int2str", str)
        return tuple(NoiseInfo(noise_id, str(spelled(values[row]))) for noise_id, row in self.ids().items())

    def _prepare(self, samples: Samples) -> Samples:
        return remove_dc(samples)


class HubRirs(HubRecordings):
    kind = "impulse response"

    def rirs(self) -> tuple[str, ...]:
        return tuple(self.ids())


def _reopen(kind: type[HubRecordings], text: str, channel: int | None) -> HubRecordings:
    return kind(parse_source_name(text), channel)


def _load_rows(place: Path | str, revision: str | None, name: SourceName) -> datasets.Dataset:
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        loaded: Any = datasets.load_dataset(
            str(place), name.option("config") or None, split=name.option("split") or None, revision=revision
        )
    except (DatasetsError, OSError, ValueError) as error:
        raise HubError(
            f"{name.text} cannot be loaded: {error}".rstrip(".") + ".", hint="Check name, commit, split and network."
        ) from error
    if isinstance(loaded, datasets.DatasetDict):
        if len(loaded) != 1:
            raise UsageError(f"{name.text} has the splits {', '.join(loaded)}.", hint="Choose one with ?split=….")
        loaded = next(iter(loaded.values()))
    return loaded
