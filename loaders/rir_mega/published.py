"""The published set (`mandipgoswami/whisper-rirmega-bench`) as pairs: a folder, or the Hub.

Its columns are known by description only, so every field is looked for under all the names of one table, `FIELDS`. It
holds no impulse responses: nothing can be measured, the publisher's values stand in the `source_…` columns, and bins
and strata follow from those. Clips stay as they are where they are 16 kHz mono FLAC, and are brought to it otherwise.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import AudioError, DataError, HubError, UsageError, unknown_name
from ..audio import check_samples, decode_audio, encode_flac, resample
from ..hub.calls import with_retries
from ..records import NAN, SpokenQuery
from ..sources.clips import clip_path
from ..sources.digests import files_version
from ..sources.names import COMMIT
from .data import ARMS, Arm, Pair, spoken_arm
from .manifest import Stratum
from .plan import SPLITS
from .rooms import RATE, MeasuredRir
from .rows import AUDIO
from .strata import Strata

if TYPE_CHECKING:
    import datasets

REPOSITORY = "mandipgoswami/whisper-rirmega-bench"
PUBLISHED = "published"
BINS = 5

FIELDS: Mapping[str, tuple[str, ...]] = {
    "sample_id": ("sample_id", "pair_id", "id", "uid"),
    "utterance_id": (
        "utterance_id", "librispeech_utterance_id", "librispeech_id", "libri_id", "utt_id", "clean_id", "utterance",
    ),
    "text": ("text_ref", "text", "reference", "transcript", "transcription", "ref", "sentence"),
    "speaker": ("speaker", "speaker_id"),
    "language": ("language", "lang"),
    "clean_audio": ("clean_audio", "audio_clean", "clean", "clean_path", "audio_clean_path", "clean_flac"),
    "reverb_audio": (
        "reverb_audio", "audio_reverb", "reverberant_audio", "audio_reverberant", "reverb", "reverberant",
        "reverb_path", "audio_reverb_path", "reverberant_path", "reverb_flac",
    ),
    "rir_id": ("rir_id", "rir", "rir_name", "rir_file", "rir_path"),
    "room_id": ("room_id", "room", "seed_room"),
    "source_rt60_s": ("rir_rt60_t30_s", "rir_rt60_s", "rir_rt60", "source_rt60_s", "rt60_t30_s", "rt60_s", "rt60"),
    "source_drr_db": ("rir_drr_db", "rir_drr", "source_drr_db", "drr_db", "drr"),
    "source_c50_db": ("rir_c50_db", "rir_c50", "source_c50_db", "c50_db", "c50"),
    "split": ("split", "subset", "partition"),
}  # fmt: skip
"""Our name of a field to its names in the published tables, first choice first. Capitals, and `-`, `.` and blanks for
`_`, make no difference."""
REQUIRED = ("text", *AUDIO)
SPLIT_NAMES = {"validation": "validation", "val": "validation", "valid": "validation", "dev": "validation",
               "test": "test"}  # fmt: skip
TABLES = ("metadata.jsonl", "metadata.csv", "metadata.json")


class PublishedData:
    """The published set, read from `folder`. `revision` is its commit, "" for a folder whose content counts.

    Raises `DataError` if it is not there or lacks what a pair needs.
    """

    manifest_sha256 = ""

    def __init__(self, folder: Path, *, name: str = "", revision: str = "", language: str = "en") -> None:
        if not folder.is_dir():
            raise DataError(f"{folder} does not exist.", hint="Check the path.")
        self.folder = folder
        self.languages: Sequence[str] = (language,)
        self._name = name or folder.resolve().name
        self._commit = revision

    @cached_property
    def _rows(self) -> dict[str, list[_Row]]:
        found: dict[str, list[_Row]] = {}
        seen: dict[str, str] = {}
        for split, table in open_tables(self.folder).items():
            columns = _columns(table.columns, f"{self._name}, split {split}")
            table.hide(columns[field] for field in AUDIO)
            for position in range(len(table)):
                row = _Row(table, position, columns)
                place = f"{self._name}, split {split}, row {position + 1}"
                name = SPLIT_NAMES.get((row.text("split") or split).lower(), "test")
                sample_id = row.text("sample_id") or f"{split}-{position:05d}"
                if sample_id in seen:
                    raise DataError(
                        f"{place}: the sample {sample_id!r} is in {seen[sample_id]} too.", hint="Remove one."
                    )
                seen[sample_id] = place
                found.setdefault(name, []).append(row)
                row.sample_id = sample_id
        if not seen:
            raise DataError(f"{self._name} has no rows.", hint="Download it again.")
        return {split: found[split] for split in SPLITS if split in found}

    @cached_property
    def revision(self) -> str:
        """The commit, or of a folder the first 12 hex digits of the sha256 over its files."""
        if self._commit:
            return self._commit
        paths = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        visible = (path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts))
        return files_version(self.folder, visible)

    @property
    def recipe(self) -> Mapping[str, Any]:
        """What is known of how it was made, as JSON object."""
        return {
            "source": self._name,
            "source_version": self.revision,
            "speech": "LibriSpeech",
            "rirs": "RIR-Mega",
            "subsets": {"published": self.languages[0]},
            "sample_rate": RATE,
        }

    @cached_property
    def splits(self) -> Mapping[str, int]:
        """Split to its number of pairs."""
        return {split: len(rows) for split, rows in self._rows.items()}

    @cached_property
    def _strata(self) -> Strata:
        return Strata.of(
            [row.room() for rows in self._rows.values() for row in rows], stratify="rt60", rt60_bins=BINS, drr_bins=BINS
        )

    @property
    def edges(self) -> Mapping[str, Sequence[float]]:
        """Edges of the bins, quantiles of the publisher's values over all pairs."""
        return {f"source_{column}": edges for column, edges in self._strata.edges.items()}

    @cached_property
    def strata(self) -> Sequence[Stratum]:
        """The bins of RT60 as strata; responses and rooms are those that occur."""
        counted: dict[str, dict[str, list[MeasuredRir]]] = {}
        for split, rows in self._rows.items():
            for row in rows:
                room = row.room()
                counted.setdefault(self._strata.name(room), {}).setdefault(split, []).append(room)
        found = []
        for name in self._strata.names():
            parts = counted.get(name, {})
            members = [room for rooms in parts.values() for room in rooms]
            if members:
                counts = {split: len(parts.get(split, [])) for split in SPLITS}
                found.append(
                    Stratum.model_validate(
                        {
                            "name": name,
                            **self._strata.bounds(name),
                            "responses": len({room.rir_id for room in members}),
                            "rooms": len({room.room_id for room in members}),
                            "pairs": len(members),
                            **counts,
                        }
                    )
                )
        return found

    def pairs(self, split: str, start: int = 0, stop: int | None = None) -> Iterator[Pair]:
        """The pairs at positions `start` to `stop` (not included) of a split, in published order."""
        for row in self._of(split)[start:stop]:
            yield self._pair(row)

    def arm(self, split: str, arm: Arm, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """One arm of the pairs at positions `start` to `stop`."""
        if arm not in ARMS:
            raise unknown_name("arm", arm, ARMS)
        return (spoken_arm(pair, arm) for pair in self.pairs(split, start, stop))

    def sample_ids(self, split: str) -> list[str]:
        """The sample ids of a split, in the order of `pairs`."""
        return [row.sample_id for row in self._of(split)]

    def _of(self, split: str) -> list[_Row]:
        if split not in self._rows:
            raise unknown_name(f"split of {self._name}:", split, self._rows)
        return self._rows[split]

    def _pair(self, row: _Row) -> Pair:
        clean, duration_s = self._clip(row, "clean_audio")
        reverb, reverb_duration_s = self._clip(row, "reverb_audio")
        room = row.room()
        text = row.text("text")
        if not text:
            raise DataError(f"{self._name}: the sample {row.sample_id!r} has no text.", hint="Leave it out.")
        utterance_id = row.text("utterance_id") or row.sample_id
        return Pair(
            sample_id=row.sample_id,
            utterance_id=utterance_id,
            subset="published",
            language=row.text("language") or self.languages[0],
            speaker=row.text("speaker") or _speaker(utterance_id),
            text=text,
            clean_audio=clean,
            reverb_audio=reverb,
            duration_s=duration_s,
            reverb_duration_s=reverb_duration_s,
            rir_id=room.rir_id,
            room_id=room.room_id,
            source_rt60_s=room.source_rt60_s,
            source_drr_db=room.source_drr_db,
            source_c50_db=row.number("source_c50_db"),
            gain_db=NAN,
            clean_gain_db=NAN,
            stratum=self._strata.name(room),
        )

    def _clip(self, row: _Row, field: str) -> tuple[bytes, float]:
        """The FLAC bytes of a clip and its length in s."""
        import soundfile

        name = f"the {field} of sample {row.sample_id!r} of {self._name}"
        content = row.sound(field, self.folder, name)
        try:
            info = soundfile.info(io.BytesIO(content))
        except (soundfile.LibsndfileError, RuntimeError) as error:
            raise AudioError(f"{name} cannot be read as sound: {error}.", hint="Download it again.") from error
        if (info.format, info.subtype, info.samplerate, info.channels) == ("FLAC", "PCM_16", RATE, 1):
            return content, info.frames / RATE
        samples, rate = decode_audio(content, name)
        samples = resample(check_samples(samples, name), rate, RATE)
        return encode_flac(samples, name, RATE), samples.size / RATE


class _Row:
    """A row of a published table; read when it is asked for."""

    __slots__ = ("_columns", "_position", "_table", "_values", "sample_id")

    def __init__(self, table: _Table, position: int, columns: Mapping[str, str]) -> None:
        self._table, self._position, self._columns = table, position, columns
        self._values: dict[str, Any] | None = None
        self.sample_id = ""

    def _get(self, field: str) -> object:
        column = self._columns.get(field)
        return None if column is None else self._light().get(column)

    def _light(self) -> dict[str, Any]:
        """Everything but the sound, kept."""
        if self._values is None:
            self._values = self._table.light(self._position)
        return self._values

    def text(self, field: str) -> str:
        value = self._get(field)
        return "" if value is None else str(value).strip()

    def number(self, field: str) -> float:
        value = self._get(field)
        try:
            return NAN if value is None or value == "" else float(str(value))
        except ValueError as error:
            raise DataError(
                f"the sample {self.sample_id!r} has the {self._columns[field]} {value!r}.", hint="Download it again."
            ) from error

    def room(self) -> MeasuredRir:
        """Its room as far as the publisher says; where no response is named, every sample has its own."""
        rir_id = Path(self.text("rir_id")).stem or self.sample_id
        rt60_s, drr_db = self.number("source_rt60_s"), self.number("source_drr_db")
        rt60_s, drr_db = (value if math.isfinite(value) else NAN for value in (rt60_s, drr_db))
        # The publisher's values in place of measured ones: strata look at those.
        return MeasuredRir(
            rir_id,
            self.text("room_id") or rir_id,
            rt60_s=rt60_s,
            drr_db=drr_db,
            source_rt60_s=rt60_s,
            source_drr_db=drr_db,
        )

    def sound(self, field: str, folder: Path, name: str) -> bytes:
        value = self._table[self._position].get(self._columns[field])
        path = value
        if isinstance(value, Mapping):
            if value.get("bytes"):
                return bytes(value["bytes"])
            path = value.get("path")
        if not path:
            raise AudioError(f"{name} is missing.", hint="Download it again.")
        place = Path(str(path))
        # What was loaded from a folder comes with its whole path.
        inner = place.relative_to(folder).as_posix() if place.is_relative_to(folder) else str(path)
        return clip_path(folder, inner, name).read_bytes()


class _Table:
    """Rows by position: of a `datasets.Dataset`, or of a list."""

    def __init__(self, rows: datasets.Dataset | list[dict[str, Any]]) -> None:
        self._rows = rows
        self._light = rows

    def hide(self, columns: Iterable[str]) -> None:
        """Leave columns out of `light`: looking at all rows then reads no sound."""
        if not isinstance(self._rows, list):
            self._light = self._rows.remove_columns(list(columns))

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        if isinstance(self._rows, list):
            # Optional fields may be absent from any row.
            return list(dict.fromkeys(name for row in self._rows for name in row))
        return list(self._rows.column_names)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: int) -> dict[str, Any]:
        row: dict[str, Any] = self._rows[position]
        return row

    def light(self, position: int) -> dict[str, Any]:
        """A row without what is hidden."""
        row: dict[str, Any] = self._light[position]
        return row


def _plain(name: str) -> str:
    return re.sub(r"[-. ]+", "_", name.strip()).lower()


def _columns(names_there: Sequence[str], place: str) -> dict[str, str]:
    """Our field to the column that holds it. Raises `DataError` where a pair cannot do without one."""
    known: dict[str, str] = {}
    for column in names_there:
        known.setdefault(_plain(column), column)
    found = {
        field: next(known[name] for name in names if name in known)
        for field, names in FIELDS.items()
        if any(name in known for name in names)
    }
    missing = [field for field in REQUIRED if field not in found]
    if missing:
        raise DataError(
            f"{place} has no column for {', '.join(missing)} (it has {', '.join(names_there) or 'none'}).",
            hint=f"Known names of {missing[0]}: {', '.join(FIELDS[missing[0]])}.",
        )
    return found


def _speaker(utterance_id: str) -> str:
    """LibriSpeech's speaker, which its ids begin with; "" for other ids."""
    match = re.match(r"(\d+)-\d+-\d+$", utterance_id)
    return match.group(1) if match else ""


def open_tables(folder: Path) -> dict[str, _Table]:
    """The tables of a folder by split: what `save_to_disk` wrote, else parquet or Arrow files, else a metadata file.

    Raises `DataError` where there is none.
    """
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        loaded = _from_disk(folder) or _from_files(folder)
    except (DatasetsError, OSError, ValueError) as error:
        raise DataError(f"{folder} cannot be loaded: {error}".rstrip(".") + ".", hint="Download it again.") from error
    tables = {}
    for split, rows in loaded.items():
        sounds = [key for key, feature in rows.features.items() if isinstance(feature, datasets.Audio)]
        undecoded = rows
        for column in sounds:
            undecoded = undecoded.cast_column(column, datasets.Audio(decode=False))
        tables[split] = _Table(undecoded)
    return tables or _from_metadata(folder)


def _from_disk(folder: Path) -> dict[str, datasets.Dataset]:
    import datasets

    whole = sorted(folder.rglob("dataset_dict.json"), key=lambda path: (len(path.parts), path))
    if whole:
        return dict(datasets.DatasetDict.load_from_disk(str(whole[0].parent)))
    states = sorted(folder.rglob("state.json"))
    return {path.parent.name: datasets.Dataset.load_from_disk(str(path.parent)) for path in states}


def _from_files(folder: Path) -> dict[str, datasets.Dataset]:
    """Parquet or Arrow files, named one by one: the folder also holds reports that are no pairs."""
    import datasets

    for kind in ("parquet", "arrow"):
        by_split: dict[str, list[str]] = {}
        for path in sorted(folder.rglob(f"*.{kind}")):
            words = re.split(r"[^a-z]+", path.relative_to(folder).as_posix().lower())
            split = next((SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES), "test")
            by_split.setdefault(split, []).append(str(path))
        if by_split:
            loaded: Any = datasets.load_dataset(kind, data_files=by_split)
            return dict(loaded)
    return {}


def _from_metadata(folder: Path) -> dict[str, _Table]:
    for name in TABLES:
        path = folder / name
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8-sig")
            if name.endswith(".csv"):
                rows: Any = list(csv.DictReader(io.StringIO(text)))
            elif name.endswith(".jsonl"):
                rows = [json.loads(line) for line in text.splitlines() if line.strip()]
            else:
                rows = json.loads(text)
        except (OSError, ValueError, csv.Error) as error:
            raise DataError(f"{path} cannot be read: {error}.", hint="Download it again.") from error
        if isinstance(rows, dict):
            lists = {key: value for key, value in rows.items() if isinstance(value, list)}
            by_split = {key: value for key, value in lists.items() if key.lower() in SPLIT_NAMES}
            lists = by_split or lists
        else:
            lists = {"test": rows}
        lists = {key: value for key, value in lists.items() if value and all(isinstance(row, dict) for row in value)}
        if lists:
            return {key: _Table(value) for key, value in lists.items()}
    raise DataError(
        f"{folder} holds no table of pairs.", hint=f"It needs parquet or Arrow files, or one of: {', '.join(TABLES)}."
    )


def open_published(place: str = "", *, api: Any = None) -> PublishedData:
    """The published set: from the folder `place`, or from the Hub as `ORG/NAME[@REVISION]` ("": `REPOSITORY`).

    A repository is downloaded whole into the Hub's cache, at one commit, which is recorded. `api` replaces the Hub's
    client. Raises `HubError` if it cannot be had.
    """
    folder = Path(place).expanduser()
    if place and folder.is_dir():
        return PublishedData(folder)
    repository, _, revision = (place or REPOSITORY).partition("@")
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repository):
        raise UsageError(
            f"{place!r} is neither a folder nor a repository of the Hub.", hint="Write a path or ORG/NAME[@REVISION]."
        )
    path = download(repository, revision, api=api)
    return PublishedData(path, name=repository, revision=path.name if COMMIT.fullmatch(path.name) else revision)


def download(repository: str, revision: str = "", *, api: Any = None) -> Path:
    """A repository of the Hub in its cache; the folder is named after the commit."""
    from huggingface_hub import HfApi

    client = api or HfApi(library_name="squtr")
    try:
        path = with_retries(
            lambda: client.snapshot_download(repository, repo_type="dataset", revision=revision or None),
            doing=f"downloading {repository}",
        )
    except (OSError, ValueError) as error:
        raise HubError(
            f"{repository} cannot be downloaded: {error}".rstrip(".") + ".",
            hint="Check the name and the network, or give a folder that holds it.",
        ) from error
    return Path(path)


def fingerprint(data: PublishedData) -> str:
    """The first 16 hex digits of the sha256 of what is read."""
    return hashlib.sha256(json.dumps(data.recipe, sort_keys=True).encode()).hexdigest()[:16]
