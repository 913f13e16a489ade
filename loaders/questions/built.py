"""A built set, read back: questions without their audio, and one audio file at a time."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import AudioError, DataError
from ..lru import LruCache
from ..manifest import MANIFEST_NAME
from .manifest import read_question_manifest
from .question import Question
from .rows import AUDIO, PLAIN, question_of_row
from .statuses import AudioStatus

_KEPT_BYTES = 128 * 2**20

Place = tuple[str, int, int, str]
"""Where a clip lies: the shard, its row group, the row in there, the column."""


class BuiltStore:
    """A built folder. Raises `DataError` if it is missing, unfinished or damaged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.manifest = read_question_manifest(folder)
        if not self.manifest.complete:
            raise DataError(f"the build in {folder} is not finished.", hint="Run the same `squtr build` again.")
        self.name = str(self.manifest.recipe["name"])
        self.benchmark = self.manifest.benchmark
        self.license = self.manifest.license
        self.language = self.manifest.language
        self._kept: LruCache[str, bytes] = LruCache(_KEPT_BYTES, len)
        self._reading = threading.Lock()

    @cached_property
    def _read(self) -> tuple[list[Question], dict[str, Place], dict[str, AudioStatus]]:
        found: list[tuple[int, Question]] = []
        places: dict[str, Place] = {}
        absent: dict[str, AudioStatus] = {}
        for shard in self.manifest.shards:
            path = self._folder / shard.path
            try:
                with pq.ParquetFile(path) as file:
                    for group in range(file.num_row_groups):
                        rows = file.read_row_group(group, columns=list(PLAIN)).to_pylist()
                        for at, row in enumerate(rows):
                            question = question_of_row(row, str(path))
                            found.append((row["position"], question))
                            if row["audio_status"] == "ok":
                                for column, id_ in zip(AUDIO, question.audios, strict=False):
                                    places.setdefault(id_, (shard.path, group, at, column))
                            else:
                                for id_ in question.audios:
                                    absent[id_] = AudioStatus(id=id_, status=row["audio_status"])
                            if question.spoken:
                                places.setdefault(question.question_audio, (shard.path, group, at, AUDIO[2]))
            except (OSError, pa.ArrowException) as error:
                raise DataError(f"{path} cannot be read: {error}.", hint="Build the folder again.") from error
        found.sort(key=lambda pair: pair[0])
        return [question for _, question in found], places, absent

    def questions(self) -> Sequence[Question]:
        return self._read[0]

    def present(self) -> frozenset[str]:
        return frozenset(self._read[1])

    def statuses(self) -> Mapping[str, AudioStatus]:
        return self._read[2]

    def audio(self, id_: str) -> bytes:
        """The file of a clip; the last ones read are kept (128 MB). Raises `AudioError`."""
        place = self._read[1].get(id_)
        if place is None:
            raise AudioError(f"the audio {id_!r} is not in {self._folder}.", hint="Build the set with it.")
        return self._kept.get(id_, lambda: self._load(id_, place))

    def _load(self, id_: str, place: Place) -> bytes:
        shard, group, at, column = place
        path = self._folder / shard
        try:
            # One after the other: a row group with long audio takes much memory.
            with self._reading, pq.ParquetFile(path) as file:
                cell = file.read_row_group(group, columns=[f"{column}.bytes"]).column(column)[at].as_py()
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{path} cannot be read: {error}.", hint="Build the folder again.") from error
        content = bytes(cell["bytes"] or b"")
        if not content:
            raise AudioError(f"the audio {id_!r} is empty in {path}.", hint="Build the folder again.")
        return content

    def digest(self) -> str:
        return hashlib.sha256((self._folder / MANIFEST_NAME).read_bytes()).hexdigest()
