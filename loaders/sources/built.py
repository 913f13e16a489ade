"""A folder that `squtr build` wrote, as a source: its texts, judgments and clean speech, to be mixed anew.

Clean speech is what the folder holds: 16 bit, at the folder's sample rate, without its DC offset, and with the gain
that brought a peak down to 0.9 (`gain_db`). A mixture made of it has the SNR that was asked for, but not the bytes of
one that is made of the first source. Queries are those that were built, of all splits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from ...errors import AudioError, DataError
from ..audio import decode_audio, resample
from ..conditions import CLEAN
from ..data import BuiltData
from ..left_out import LeftOut
from ..lru import LruCache
from ..manifest import read_manifest
from ..origins import joined, origins
from ..records import SAMPLE_RATE, CleanSpeech, Document, Qrel, Query, SpokenQuery
from ..rows import ROWS_PER_TABLE
from .names import SourceName

CACHE_BYTES = 64 * 2**20
TABLES = frozenset(("corpus", "qrels"))

Place = tuple[str, int]
"""A split, and a position in its clean rows."""


def _size(rows: list[SpokenQuery]) -> int:
    return sum(len(row.audio) for row in rows)


class BuiltSource:
    """The clean rows, corpora and judgments of a built folder.

    Raises `DataError` for a folder that is none, whose build is not finished, or that was built without `clean`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        splits = read_manifest(folder).splits
        self._splits = {split: BuiltData(folder, split) for split in splits}
        self._first = self._splits[splits[0]]
        if CLEAN not in self._first.conditions:
            raise DataError(
                f"{folder} was built without the condition clean, so that nothing can be mixed from it.",
                hint="Build it with clean among its conditions, or name the source that it was built from.",
            )
        self.rate = int(self._first.recipe["sample_rate"])
        self.benchmark = self._first.benchmark
        self.subsets: Mapping[str, str] = self._first.subsets
        self._places: dict[str, dict[str, Place]] = {}
        self._queries: dict[str, list[Query]] = {}
        self._speakers: dict[str, dict[str, str]] = {}
        self._rows: LruCache[tuple[str, str, int], list[SpokenQuery]] = LruCache(CACHE_BYTES, _size)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.folder,))

    @cached_property
    def version(self) -> str:
        """The first 16 hex digits of the sha256 over the shards of clean speech, corpora and judgments."""
        digest = hashlib.sha256(f"{self.rate}\n".encode())
        for shard in self._first.manifest.shards:
            folders = PurePosixPath(shard.path).parts[:-1]
            if folders[0] in TABLES or folders[-1] == CLEAN:
                digest.update(f"{shard.path} {shard.sha256}\n".encode())
        return digest.hexdigest()[:16]

    @property
    def name(self) -> str:
        return f"built:{joined(origin.name for origin in origins(self._first.recipe))}"

    @property
    def license(self) -> str:
        return " AND ".join(dict.fromkeys(origin.license for origin in origins(self._first.recipe)))

    @property
    def attribution(self) -> str:
        return joined(origin.attribution for origin in origins(self._first.recipe))

    @property
    def split(self) -> str:
        """The part of the first source's texts that was built."""
        return joined(origin.split for origin in origins(self._first.recipe))

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What was left out when the folder was built."""
        return tuple(self._first.manifest.left_out)

    def queries(self, subset: str) -> Sequence[Query]:
        if subset not in self._queries:
            found: list[Query] = []
            places: dict[str, Place] = {}
            for split, data in self._splits.items():
                for position, query in enumerate(data.rows(subset, CLEAN)):
                    several = query.cluster if query.cluster != query.utterance else ""
                    found.append(Query(query.utterance, subset, query.language, query.text, query_id=several))
                    places[query.utterance] = (split, position)
            self._places[subset] = places
            self._queries[subset] = found
        return self._queries[subset]

    def speaker_of(self, query: Query) -> str:
        """The speaker of an utterance, else its voice; "" where neither is known."""
        if query.subset not in self._speakers:
            self._speakers[query.subset] = {
                row["id"]: row["speaker"] or row["voice"]
                for data in self._splits.values()
                for row in data.columns(query.subset, CLEAN, ["id", "speaker", "voice"])
            }
        return self._speakers[query.subset][query.id]

    def built_split_of(self, query: Query) -> str:
        """The split that an utterance is in, in a folder that is divided into train, validation and test; else ""."""
        return self._place(query)[0] if self._first.recipe.get("divided") else ""

    def documents(self, subset: str) -> Iterable[Document]:
        return self._first.documents(subset)

    def qrels(self, subset: str) -> Sequence[Qrel]:
        judged = {query.id: query.cluster for query in self.queries(subset)}
        found: dict[Qrel, None] = {}
        for data in self._splits.values():
            for id_, grades in data.qrels(subset).items():
                # Utterances of one query share its judgments.
                found |= dict.fromkeys(Qrel(judged[id_], document, score) for document, score in grades.items())
        return list(found)

    def speech(self, query: Query) -> CleanSpeech:
        return self.speech_at(query, SAMPLE_RATE)

    def speech_at(self, query: Query, rate: int) -> CleanSpeech:
        """The stored clean clip at `rate` Hz: its very samples at the folder's own."""
        name = f"the clean clip of query {query.id!r} ({query.subset}) in {self.folder}"
        split, position = self._place(query)
        block, index = divmod(position, ROWS_PER_TABLE)
        start = block * ROWS_PER_TABLE
        rows = self._rows.get(
            (query.subset, split, block),
            lambda: list(self._splits[split].spoken(query.subset, CLEAN, start=start, stop=start + ROWS_PER_TABLE)),
        )
        row = rows[index] if index < len(rows) else None
        if row is None or row.id != query.id:
            raise DataError(f"{name} is not where its id is.", hint="Build the folder again.")
        samples, stored = decode_audio(row.audio, name)
        if stored != self.rate:
            raise AudioError(f"{name} has {stored} Hz, the manifest says {self.rate}.", hint="Build the folder again.")
        selected = row.tts_error_rate, row.tts_takes, row.tts_transcriber
        return CleanSpeech(resample(samples, stored, rate), row.speaker, row.voice, *selected)

    def _place(self, query: Query) -> Place:
        self.queries(query.subset)
        place = self._places[query.subset].get(query.id)
        if place is None:
            raise AudioError(
                f"there is no clean clip of query {query.id!r} ({query.subset}) in {self.folder}.",
                hint="Only what was built can be mixed.",
            )
        return place


def open_built(name: SourceName) -> BuiltSource:
    """`built:FOLDER`."""
    return BuiltSource(name.folder())
