"""Recordings with a table that says what they are: the user's own voices, or clips that were synthesized before.

    my-voice/
      manifest.jsonl     or manifest.tsv, manifest.csv, speech.jsonl, metadata.jsonl, metadata.csv
      q1.wav  …          any format that libsndfile reads, one channel, at any rate

A row needs `file` (relative to the table) and `id` or `text`. It may have `language`, `speaker`, `voice`, `subset`,
`license` and `tts_error_rate`. TSV and CSV have a first line with these names.
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from ...errors import AudioError, DataError
from ..audio import Channel
from ..left_out import LeftOut, merged
from ..records import CleanSpeech, Query
from .clips import Clip, RecordingsAlone, clip_of, inside, optional_text, read_clip
from .digests import files_version
from .names import SourceName, channel_suffix, check_language
from .rules import RECORDING_TWICE, Collected, OnBad, OnFault, broken, check_on_bad, told, version_suffix
from .selection import selection_of
from .tables import Row, Table, aliased, jsonl_table, subset_name

MANIFESTS = (
    "manifest.jsonl", "manifest.tsv", "manifest.csv", "speech.jsonl", "speech.tsv", "speech.csv",
    "metadata.jsonl", "metadata.tsv", "metadata.csv",
)  # fmt: skip
FILE_KEYS = ("file", "file_name", "path", "audio")
ID_KEYS = ("_id", "id", "query-id", "query_id")
TEXT_KEYS = ("text", "transcript", "transcription", "sentence")
LANGUAGE_KEYS = ("language", "lang")
SPEAKER_KEYS = ("speaker", "speaker_id")
LICENSE_KEYS = ("license", "licence")
_ONE_EACH = "Keep one recording per query; put other speakers into folders of their own."


@dataclass(frozen=True, slots=True)
class Recording:
    """A row of the table; `id` and `text` are "" where the table does not give them."""

    clip: Clip
    id: str
    text: str
    language: str
    subset: str
    license: str
    place: str


def match_key(text: str) -> str:
    """What two texts share that read the same: letters and digits only, width and case folded.

    >>> match_key("What’s the Time?") == match_key("what's the time")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c)[0] == "M")


def delimited_table(path: Path) -> Table:
    """A TSV or CSV file (UTF-8, names in the first line) as a table; what is empty is left out of a row."""

    def rows(bad: OnFault) -> Iterator[Row]:
        tab = path.suffix.lower() == ".tsv"
        try:
            with path.open(encoding="utf-8-sig", newline="") as lines:
                reader = csv.reader(
                    lines, delimiter="\t" if tab else ",", quoting=csv.QUOTE_NONE if tab else csv.QUOTE_MINIMAL
                )
                names = [name.strip() for name in next(reader, [])]
                for values in reader:
                    if not any(values):
                        continue
                    if len(values) != len(names):
                        stated = f"{len(values)} values where the first line names {len(names)}"
                        bad(DataError(f"{path}, line {reader.line_num}: {stated}.", hint="Mend the line."))
                        continue
                    yield reader.line_num, {n: v for n, v in zip(names, values, strict=True) if v != ""}
        except FileNotFoundError as error:
            raise DataError(f"{path} does not exist.", hint="Check the path.") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not UTF-8 ({error.reason}).", hint="Convert it to UTF-8.") from error
        except csv.Error as error:
            raise DataError(f"{path} is no table: {error}.", hint="Mend the file.") from error

    return Table(str(path), rows)


def _find_manifest(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError(f"the folder of recordings {path} does not exist.", hint="Check the path.")
    found = [path / name for name in MANIFESTS if (path / name).is_file()]
    if not found:
        raise DataError(
            f"{path} has no table of its recordings.",
            hint='Write manifest.jsonl with a line {"file": "q1.wav", "text": "…"} per recording.',
        )
    if len(found) > 1:
        raise DataError(
            f"{path} has several tables of its recordings: {', '.join(p.name for p in found)}.",
            hint=f"Name one: {found[0]}.",
        )
    return found[0]


def _recording(row: Mapping[str, Any], place: str) -> Recording:
    clip = clip_of(row, place, file_key=aliased(row, FILE_KEYS), speaker_key=aliased(row, SPEAKER_KEYS))
    language = optional_text(row, aliased(row, LANGUAGE_KEYS), place)
    recording = Recording(
        clip,
        optional_text(row, aliased(row, ID_KEYS), place),
        optional_text(row, aliased(row, TEXT_KEYS), place).strip(),
        check_language(language) if language else "",
        optional_text(row, "subset", place),
        optional_text(row, aliased(row, LICENSE_KEYS), place),
        place,
    )
    if not (recording.id or recording.text):
        raise DataError(f"{place}: {clip.file!r} has neither id nor text.", hint="Give it one of them.")
    return recording


class Recordings:
    """A folder of recordings with its table (or the path of the table). Audio is read on demand."""

    def __init__(self, path: Path, *, license: str = "", channel: Channel = None, on_bad: str = "refuse") -> None:
        self.on_bad: OnBad = check_on_bad(on_bad)
        self.channel = channel
        self.manifest = _find_manifest(path)
        self.folder = self.manifest.parent
        self.name = self.folder.resolve().name
        self._license = license

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (self.manifest, self._license, self.channel, self.on_bad))

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over the table and every recording, and the channel that is taken."""
        files = (f for f in (row.clip.file for row in self.rows) if inside(f) and (self.folder / f).is_file())
        content = files_version(self.folder, (self.manifest.name, *files))
        return content + channel_suffix(self.channel) + version_suffix(self.on_bad)

    @cached_property
    def license(self) -> str:
        named = sorted({row.license for row in self.rows if row.license})
        return self._license or " AND ".join(named) or "unknown"

    @cached_property
    def selection(self) -> Mapping[str, Any]:
        """How speech that was synthesized was selected (see `selection_of`), {} for other recordings."""
        return selection_of(self.manifest)

    @cached_property
    def rows(self) -> tuple[Recording, ...]:
        """All rows in order. Raises `DataError` for a row without file, or with neither id nor text."""
        rows, bad = self._read
        if self.on_bad == "refuse":
            bad.refuse(str(self.manifest))
        if not rows:
            raise DataError(f"{self.manifest} names no recordings.", hint="Add at least one.")
        return rows

    @cached_property
    def _read(self) -> tuple[tuple[Recording, ...], Collected]:
        jsonl = self.manifest.suffix.lower() == ".jsonl"
        table = jsonl_table(self.manifest) if jsonl else delimited_table(self.manifest)
        found: list[Recording] = []
        bad = Collected()
        for number, row in table.rows(bad):
            with told(bad):
                found.append(_recording(row, table.place(number)))
        return tuple(found), bad

    @cached_property
    def _indexed(self) -> tuple[dict[tuple[str, str], Recording], Collected]:
        found: dict[tuple[str, str], Recording] = {}
        bad = Collected()
        for row in self.rows:
            if row.id and found.setdefault((row.subset, row.id), row) is not row:
                bad(broken(RECORDING_TWICE, f"{row.place}: the id {row.id!r} occurs twice.", _ONE_EACH, row.id))
        return found, bad

    @property
    def _by_id(self) -> dict[tuple[str, str], Recording]:
        found, bad = self._indexed
        if self.on_bad == "refuse":
            bad.refuse(str(self.manifest))
        return found

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Rows that were left out."""
        return merged((*self._read[1].left_out, *self._indexed[1].left_out)) if self.on_bad == "skip" else ()

    @cached_property
    def _by_text(self) -> dict[tuple[str, str], Recording]:
        found: dict[tuple[str, str], Recording] = {}
        for row in self.rows:
            key = match_key(row.text)
            if not row.id and key:
                found.setdefault((row.subset, key), row)
        return found

    def of_id(self, query: Query) -> Recording | None:
        """The recording with the query's id, whatever it says."""
        return self._by_id.get((query.subset, query.id)) or self._by_id.get(("", query.id))

    def find(self, query: Query) -> Recording | None:
        """The recording of `query`: by id, or by text where a row has no id (the first of several).

        A row that names a subset serves that subset alone. Raises `AudioError` where a recording has the query's id
        but says something else, so that foreign ids cannot pair by chance.
        """
        text = match_key(query.text)
        row = self.of_id(query)
        if row is not None:
            if row.text and match_key(row.text) != text:
                raise AudioError(
                    f"{row.place}: the recording of id {query.id!r} says {row.text!r}, but that query of "
                    f"{query.subset} is {query.text!r}.",
                    hint="Mend the id, or leave the column text out.",
                )
            return row
        return self._by_text.get((query.subset, text)) or self._by_text.get(("", text))

    def speech(self, query: Query) -> CleanSpeech:
        row = self.find(query)
        if row is None:
            raise AudioError(
                f"query {query.id!r} of {query.subset} has no recording in {self.manifest}.",
                hint="Record or synthesize it, or take only the recorded queries with missing=skip.",
            )
        return read_clip(self.folder, row.clip, query, channel=self.channel)


def _reopen(manifest: Path, license: str, channel: Channel = None, on_bad: str = "refuse") -> Recordings:
    return Recordings(manifest, license=license, channel=channel, on_bad=on_bad)


class RecordedSource(RecordingsAlone):
    """Recordings as a source of their own: every recording is a query, without corpus and judgments.

    One subset per language, named `subset` (by default after the folder), with the language behind it where there are
    several. A query's id is the row's, else the file's path without its suffix; its group is the speaker.
    """

    def __init__(self, recordings: Recordings, *, language: str = "", subset: str = "") -> None:
        self.recordings = recordings
        self._language = check_language(language) if language else ""
        self._subset = subset_name(subset or recordings.name)
        self._bad = Collected()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        _ = self._queries
        skipped = self._bad.left_out if self.recordings.on_bad == "skip" else ()
        return merged((*self.recordings.left_out, *skipped))

    @property
    def name(self) -> str:
        return f"recorded:{self.recordings.name}"

    @property
    def version(self) -> str:
        suffix = version_suffix(self.recordings.on_bad)
        return self.recordings.version.removesuffix(suffix) + (f"-{self._language}" if self._language else "") + suffix

    @property
    def license(self) -> str:
        return self.recordings.license

    @property
    def selection(self) -> Mapping[str, Any]:
        return self.recordings.selection

    @property
    def subsets(self) -> Mapping[str, str]:
        return MappingProxyType({subset: queries[0].language for subset, queries in self._queries.items()})

    @cached_property
    def _queries(self) -> dict[str, list[Query]]:
        by_language: dict[str, dict[str, Query]] = {}
        for row in self.recordings.rows:
            with told(self._bad):
                query = self._query(row)
                queries = by_language.setdefault(query.language, {})
                if query.id in queries:
                    message = f"{row.place}: the id {query.id!r} occurs twice."
                    raise broken(RECORDING_TWICE, message, "Ids must be unique.", query.id)
                queries[query.id] = query
        if self.recordings.on_bad == "refuse":
            self._bad.refuse(str(self.recordings.manifest))
        by_language = {language: queries for language, queries in by_language.items() if queries}
        if not by_language:
            raise DataError(f"{self.recordings.manifest}: no recording is left.", hint="Mend the table.")
        several = len(by_language) > 1
        names = {lang: f"{self._subset}-{lang.lower()}" if several else self._subset for lang in by_language}
        return {
            names[lang]: [replace(query, subset=names[lang]) for query in queries.values()]
            for lang, queries in by_language.items()
        }

    def _query(self, row: Recording) -> Query:
        """The query of a recording, without its subset."""
        language = row.language or self._language
        if not language:
            raise DataError(
                f"{row.place}: {row.clip.file!r} has no language.",
                hint="Add a column language, or ?language=en to the source's name.",
            )
        if not row.text:
            raise DataError(f"{row.place}: {row.clip.file!r} has no text.", hint="Add its transcript.")
        id_ = row.id or PurePosixPath(row.clip.file).with_suffix("").as_posix()
        return Query(id_, "", language, row.text, row.clip.speaker)

    @cached_property
    def _clips(self) -> dict[tuple[str, str], Clip]:
        ids = ((row.language or self._language, row) for row in self.recordings.rows)
        return {
            (lang, row.id or PurePosixPath(row.clip.file).with_suffix("").as_posix()): row.clip for lang, row in ids
        }

    def queries(self, subset: str) -> Sequence[Query]:
        self.check(subset)
        return self._queries[subset]

    def _clip(self, query: Query) -> Clip:
        clip = self._clips.get((query.language, query.id))
        if clip is None:
            raise AudioError(f"{self.name} has no query {query.id!r}.", hint="Ask for one of its own queries.")
        return clip

    def speaker_of(self, query: Query) -> str:
        clip = self._clip(query)
        return clip.speaker or clip.voice

    def speech_at(self, query: Query, rate: int) -> CleanSpeech:
        return read_clip(self.recordings.folder, self._clip(query), query, rate, channel=self.recordings.channel)


def open_recorded(name: SourceName) -> RecordedSource:
    """The source `recorded:PATH`, with the options `language`, `subset`, `license` and `channel`."""
    recordings = Recordings(name.folder(), license=name.option("license"), channel=name.channel, on_bad=name.on_bad)
    return RecordedSource(recordings, language=name.option("language"), subset=name.option("subset"))
