"""The published Whisper-RIR-Mega set (`mandipgoswami/whisper-rirmega-bench`): a folder, or the Hub.

Its columns are known by description only, so every field is looked for under all the names of one table, `FIELDS`. It
holds no RIRs: nothing can be measured, the publisher's values stand in the `source_…` columns, and bins and strata
follow from those. Clips stay as they are where they are 16 kHz mono FLAC, and are brought to it otherwise.

As a source, its clean clips are the speech, for other RIRs and noise; `published` gives what was published.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...errors import AudioError, DataError, HubError, UsageError, unknown_name
from ..audio import check_samples, decode_audio, encode_flac, resample
from ..conditions import CLEAN
from ..corpus import Corpus
from ..data import TEST
from ..faults import Faults
from ..hub.calls import with_retries
from ..origins import Origin
from ..records import NAN, CleanSpeech, Query, SpokenQuery
from ..rirs.measured import MeasuredRir
from ..rirs.plan import VALIDATION
from ..rirs.strata import Strata
from .clips import RecordingsAlone, clip_path, read_speech
from .digests import folder_version
from .names import COMMIT, SourceName
from .published_tables import SPLIT_NAMES, PublishedTable, open_tables

NAME = "whisper_rir_mega"
BENCHMARK = "rir_mega"
REPOSITORY = "mandipgoswami/whisper-rirmega-bench"
SUBSET, LANGUAGE = "librispeech", "en"
REVERB = "reverb"
RATE = 16_000
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
REQUIRED = ("text", "clean_audio", "reverb_audio")


class WhisperRirMega(RecordingsAlone):
    """The published set, read from `folder`. `revision` is its commit, "" for a folder whose content counts."""

    name = NAME
    subsets: Mapping[str, str] = MappingProxyType({SUBSET: LANGUAGE})
    license = "CC-BY-4.0"
    benchmark = BENCHMARK
    published_when_named = True

    def __init__(self, folder: Path, *, origin: str = "", revision: str = "") -> None:
        if not folder.is_dir():
            raise DataError(f"{folder} does not exist.", hint="Check the path.")
        self.folder = folder
        self.origin = origin or folder.resolve().name
        self._commit = revision

    @cached_property
    def samples(self) -> dict[str, list[_Row]]:
        found: dict[str, list[_Row]] = {}
        seen: dict[str, str] = {}
        for split, table in open_tables(self.folder).items():
            columns = _columns(table.columns, f"{self.origin}, split {split}")
            table.hide(columns[field] for field in ("clean_audio", "reverb_audio"))
            for position in range(len(table)):
                row = _Row(table, position, columns)
                place = f"{self.origin}, split {split}, row {position + 1}"
                name = SPLIT_NAMES.get((row.text("split") or split).lower(), TEST)
                sample_id = row.text("sample_id") or f"{split}-{position:05d}"
                if sample_id in seen:
                    raise DataError(
                        f"{place}: the sample {sample_id!r} is in {seen[sample_id]} too.", hint="Remove one."
                    )
                seen[sample_id] = place
                found.setdefault(name, []).append(row)
                row.sample_id = sample_id
        if not seen:
            raise DataError(f"{self.origin} has no rows.", hint="Download it again.")
        return {split: found[split] for split in (VALIDATION, TEST) if split in found}

    @cached_property
    def version(self) -> str:
        """The commit, or of a folder the first 12 hex digits of the sha256 over its files."""
        return self._commit or folder_version(self.folder)

    @cached_property
    def strata(self) -> Strata:
        """The bins: quantiles of the publisher's values over all samples."""
        rirs = [row.rir() for rows in self.samples.values() for row in rows]
        return Strata.of(rirs, stratify="rt60", rt60_bins=BINS, drr_bins=BINS)

    @cached_property
    def _utterances(self) -> dict[str, _Row]:
        found: dict[str, _Row] = {}
        for rows in self.samples.values():
            for row in rows:
                found.setdefault(row.utterance_id, row)
        return found

    def query(self, row: _Row, subset: str = SUBSET) -> Query:
        """The utterance of a sample. Raises `DataError` where it has no text."""
        text = row.text("text")
        if not text:
            raise DataError(f"{self.origin}: the sample {row.sample_id!r} has no text.", hint="Leave it out.")
        return Query(row.utterance_id, subset, row.text("language") or LANGUAGE, text)

    def queries(self, subset: str) -> Sequence[Query]:
        self.check(subset)
        found: list[Query] = []
        faults = Faults()
        for row in self._utterances.values():
            with faults.collected():
                found.append(self.query(row))
        faults.refuse(self.origin)
        return found

    def speech_at(self, query: Query, rate: int) -> CleanSpeech:
        row = self._utterances[query.id]
        content, name = self._content(row, "clean_audio")
        return CleanSpeech(read_speech(content, name, rate), row.speaker)

    def published(
        self, split: str = TEST, *, subsets: Sequence[str] | None = None, limit: int = 0, seed: int = 0
    ) -> WhisperRirMegaData:
        for subset in subsets or ():
            self.check(subset)
        if limit:
            raise UsageError("of the published set all samples are taken.", hint="Leave the limit out.")
        return WhisperRirMegaData(self, split)

    def clip(self, row: _Row, field: str) -> tuple[bytes, float]:
        """The FLAC bytes of a clip at 16 kHz, and its length in s."""
        import soundfile

        content, name = self._content(row, field)
        try:
            info = soundfile.info(io.BytesIO(content))
        except (soundfile.LibsndfileError, RuntimeError) as error:
            raise AudioError(f"{name} cannot be read as audio: {error}.", hint="Download it again.") from error
        if (info.format, info.subtype, info.samplerate, info.channels) == ("FLAC", "PCM_16", RATE, 1):
            return content, info.frames / RATE
        samples, rate = decode_audio(content, name)
        samples = resample(check_samples(samples, name), rate, RATE)
        return encode_flac(samples, name, RATE), samples.size / RATE

    def _content(self, row: _Row, field: str) -> tuple[bytes, str]:
        name = f"the {field} of sample {row.sample_id!r} of {self.origin}"
        return row.audio(field, self.folder, name), name


class WhisperRirMegaData:
    """A split of the published set as `SpeechData`: `clean` has a row per utterance, `reverb` one per sample."""

    manifest_sha256 = ""
    benchmark = BENCHMARK
    conditions: Sequence[str] = (CLEAN, REVERB)

    def __init__(self, source: WhisperRirMega, split: str = TEST) -> None:
        if split not in source.samples:
            raise unknown_name(f"split of {source.origin}:", split, source.samples)
        self._source = source
        self._rows = source.samples[split]
        self.split = split
        self.subsets = source.subsets

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        source = self._source
        return {
            "sources": [asdict(Origin(source.origin, source.version, source.license, tuple(self.subsets)))],
            "subsets": dict(self.subsets),
            "conditions": list(self.conditions),
            "noise": [],
            "rirs": [asdict(Origin("as published", subsets=tuple(self.subsets)))],
            "splits": list(source.samples),
            "sample_rate": RATE,
            "benchmark": BENCHMARK,
        }

    @cached_property
    def revision(self) -> str:
        return self._source.version

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.recipe, sort_keys=True).encode()).hexdigest()[:16]

    @cached_property
    def edges(self) -> Mapping[str, Sequence[float]]:
        return {f"source_{column}": edges for column, edges in self._source.strata.edges.items()}

    def _of(self, subset: str, condition: str) -> list[_Row]:
        self._source.check(subset)
        if condition not in self.conditions:
            raise unknown_name("condition", condition, self.conditions)
        if condition == REVERB:
            return self._rows
        first: dict[str, _Row] = {}
        for row in self._rows:
            first.setdefault(row.utterance_id, row)
        return list(first.values())

    def queries(self, subset: str) -> Sequence[Query]:
        return self.rows(subset, CLEAN)

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        queries = []
        for row in self._of(subset, condition):
            query = self._source.query(row)
            if condition == REVERB and row.sample_id != query.id:
                query = Query(row.sample_id, subset, query.language, query.text, utterance_id=query.id)
            queries.append(query)
        return queries

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        for row in self._of(subset, condition)[start:stop]:
            query = self._source.query(row)
            audio, duration_s = self._source.clip(row, f"{condition}_audio")
            values: dict[str, Any] = {}
            if condition == REVERB:
                rir = row.rir()
                values = {
                    "rir_id": rir.rir_id,
                    "room_id": rir.room_id,
                    "source_rt60_s": rir.source_rt60_s,
                    "source_drr_db": rir.source_drr_db,
                    "source_c50_db": row.number("source_c50_db"),
                    "stratum": self._source.strata.name(rir),
                }
            yield SpokenQuery(
                id=row.sample_id if condition == REVERB else query.id,
                utterance_id=query.id,
                subset=subset,
                language=query.language,
                text=query.text,
                audio=audio,
                duration_s=duration_s,
                condition=condition,
                gain_db=NAN,
                speaker=row.speaker,
                **values,
            )

    def has_corpus(self, subset: str) -> bool:
        self._source.check(subset)
        return False

    def documents(self, subset: str) -> Corpus:
        return Corpus.of(self._source.documents(subset))

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        return {query.id: {} for query in self.queries(subset)}


class _Row:
    """A row of a published table; read when it is asked for."""

    __slots__ = ("_columns", "_position", "_table", "_values", "sample_id")

    def __init__(self, table: PublishedTable, position: int, columns: Mapping[str, str]) -> None:
        self._table, self._position, self._columns = table, position, columns
        self._values: dict[str, Any] | None = None
        self.sample_id = ""

    def _get(self, field: str) -> object:
        column = self._columns.get(field)
        return None if column is None else self._light().get(column)

    def _light(self) -> dict[str, Any]:
        if self._values is None:
            self._values = self._table.light(self._position)
        return self._values

    def text(self, field: str) -> str:
        value = self._get(field)
        return "" if value is None else str(value).strip()

    @property
    def utterance_id(self) -> str:
        return self.text("utterance_id") or self.sample_id

    @property
    def speaker(self) -> str:
        return self.text("speaker") or _speaker(self.utterance_id)

    def number(self, field: str) -> float:
        value = self._get(field)
        try:
            return NAN if value is None or value == "" else float(str(value))
        except ValueError as error:
            raise DataError(
                f"the sample {self.sample_id!r} has the {self._columns[field]} {value!r}.", hint="Download it again."
            ) from error

    def rir(self) -> MeasuredRir:
        """Its RIR as far as the publisher says; where none is named, every sample has its own."""
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

    def audio(self, field: str, folder: Path, name: str) -> bytes:
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
        try:
            return clip_path(folder, inner, name).read_bytes()
        except OSError as error:
            raise AudioError(f"{name} cannot be read: {error}.", hint="Download it again.") from error


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


def open_whisper_rir_mega(name: SourceName) -> WhisperRirMega:
    """The published set: in a folder, or `ORG/NAME[@REVISION]` on the Hub, downloaded whole at one commit."""
    folder = Path(name.place).expanduser()
    if name.place and folder.is_dir():
        return WhisperRirMega(folder)
    repository, _, revision = (name.place or REPOSITORY).partition("@")
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repository):
        raise UsageError(
            f"{name.place!r} is neither a folder nor a repository of the Hub.",
            hint="Write a path or ORG/NAME[@REVISION].",
        )
    path = download(repository, revision)
    return WhisperRirMega(path, origin=repository, revision=path.name if COMMIT.fullmatch(path.name) else revision)


def download(repository: str, revision: str = "", *, api: Any = None) -> Path:
    """A repository of the Hub in its cache; the folder is named after the commit. `api` replaces the Hub's client."""
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
