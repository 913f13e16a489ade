"""What an evaluation made, kept by content: sounds, transcripts, rankings. A killed run continues from here.

One SQLite file below a folder: a transaction per shard survives a kill at any point. The main process writes to it;
every other process writes to a file of its own beside it, and the main process takes those in (`merge`). So no two
processes ever write to one file, which network file systems do not do well.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import IntegrityError, StorageError
from .protocols import Hit, Hypothesis, Transcript

NAME = "evaluations"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sounds (encoded TEXT PRIMARY KEY, pcm TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS transcripts (
    audio TEXT, language TEXT, listener TEXT,
    text TEXT NOT NULL, loop INTEGER NOT NULL, truncated INTEGER NOT NULL,
    seconds REAL NOT NULL, front_end_seconds REAL NOT NULL, audio_s REAL NOT NULL, hypotheses TEXT NOT NULL,
    PRIMARY KEY (audio, language, listener)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rankings (
    retriever TEXT, corpus TEXT, language TEXT, depth INTEGER, query TEXT,
    hits BLOB NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (retriever, corpus, language, depth, query)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS indexing (
    retriever TEXT, corpus TEXT, language TEXT, seconds REAL NOT NULL, PRIMARY KEY (retriever, corpus, language)
) WITHOUT ROWID;
"""
_TABLES = ("sounds", "transcripts", "rankings", "indexing")
_BUSY_S = 60.0


@dataclass(frozen=True, slots=True)
class Corner:
    """Where rankings belong: the retriever's fingerprint, the digest of the corpus, its language, the depth."""

    retriever: str
    corpus: str
    language: str
    depth: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of one text, and the seconds that the search took."""

    hits: tuple[Hit, ...]
    seconds: float


class Store:
    """The store below `folder`, for process `rank`. Raises `StorageError` if the disk refuses."""

    def __init__(self, folder: Path, *, rank: int = 0) -> None:
        self.folder = folder
        self.path = folder / f"{NAME}.sqlite"
        self._own = self.path if rank == 0 else folder / f"{NAME}.{socket.gethostname()}.{rank}.{os.getpid()}.sqlite"
        with self._open(self._own) as connection:
            connection.executescript(_SCHEMA)

    @contextlib.contextmanager
    def _open(self, path: Path) -> Iterator[sqlite3.Connection]:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection, connection:
                yield connection
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"the store {path} cannot be used: {error}.",
                hint="Free space if the disk is full. If the file is damaged, remove it: it is made again.",
            ) from error
        except OSError as error:
            raise StorageError(
                f"the store {path} cannot be used: {error.strerror or error}.",
                hint="Free space or choose another home.",
            ) from error

    @contextlib.contextmanager
    def _readers(self) -> Iterator[list[sqlite3.Connection]]:
        """Connections to the files that this process reads: the main one and its own."""
        paths = dict.fromkeys((self.path, self._own))
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self._open(path)) for path in paths if path.exists()]

    def sounds(self, encoded: Iterable[str]) -> dict[str, str]:
        """The PCM digest of the sounds that are known, by the sha256 of their files."""
        found: dict[str, str] = {}
        with self._readers() as connections:
            for key in encoded:
                row = _first(connections, "SELECT pcm FROM sounds WHERE encoded = ?", (key,))
                if row is not None:
                    found[key] = str(row[0])
        return found

    def transcripts(self, audio: Iterable[str], *, language: str, listener: str) -> dict[str, Transcript]:
        """The known transcripts of these sounds (PCM digests), by sound."""
        found: dict[str, Transcript] = {}
        with self._readers() as connections:
            for digest in audio:
                row = _first(
                    connections,
                    "SELECT text, loop, truncated, seconds, front_end_seconds, hypotheses FROM transcripts"
                    " WHERE audio = ? AND language = ? AND listener = ?",
                    (digest, language, listener),
                )
                if row is not None:
                    hypotheses = tuple(Hypothesis(text, score) for text, score in json.loads(row[5]))
                    found[digest] = Transcript(
                        str(row[0]), "", bool(row[1]), bool(row[2]), float(row[3]), float(row[4]), hypotheses
                    )
        return found

    def keep_heard(
        self,
        sounds: Mapping[str, str],
        transcripts: Mapping[str, tuple[Transcript, float]],
        *,
        language: str,
        listener: str,
    ) -> None:
        """Keep file and PCM digests, and transcripts with their sound's duration in s. Failed ones are tried again."""
        rows = [
            (
                digest, language, listener, t.text, t.loop, t.truncated, t.seconds, t.front_end_seconds, audio_s,
                json.dumps([(h.text, h.score) for h in t.hypotheses], ensure_ascii=False),
            )
            for digest, (t, audio_s) in transcripts.items()
            if not t.error
        ]  # fmt: skip
        with self._open(self._own) as connection:
            connection.executemany("INSERT OR IGNORE INTO sounds VALUES (?, ?)", list(sounds.items()))
            connection.executemany("INSERT OR IGNORE INTO transcripts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def speed(self, listener: str) -> float | None:
        """Seconds of work per second of sound, over all that this listener heard; None if it heard nothing yet."""
        with self._readers() as connections:
            query = "SELECT SUM(seconds + front_end_seconds), SUM(audio_s) FROM transcripts WHERE listener = ?"
            sums = [connection.execute(query, (listener,)).fetchone() for connection in connections]
        audio_s = sum(row[1] or 0.0 for row in sums)
        return sum(row[0] or 0.0 for row in sums) / audio_s if audio_s else None

    def rankings(self, corner: Corner, queries: Iterable[str]) -> dict[str, Ranking]:
        """The known rankings of these texts (sha256), by text. Raises `IntegrityError` for a damaged one."""
        found: dict[str, Ranking] = {}
        key = (corner.retriever, corner.corpus, corner.language, corner.depth)
        with self._readers() as connections:
            for query in queries:
                row = _first(
                    connections,
                    "SELECT hits, seconds FROM rankings"
                    " WHERE retriever = ? AND corpus = ? AND language = ? AND depth = ? AND query = ?",
                    (*key, query),
                )
                if row is not None:
                    found[query] = Ranking(_unpacked(row[0], self.path), float(row[1]))
        return found

    def keep_rankings(self, corner: Corner, rankings: Mapping[str, Ranking]) -> None:
        """Keep the rankings of these texts (sha256)."""
        rows = [
            (corner.retriever, corner.corpus, corner.language, corner.depth, query, _packed(r.hits), r.seconds)
            for query, r in rankings.items()
        ]
        with self._open(self._own) as connection:
            connection.executemany("INSERT OR IGNORE INTO rankings VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def indexing_s(self, corner: Corner) -> float | None:
        """The seconds that indexing took when it was done first, None if it was not."""
        query = "SELECT seconds FROM indexing WHERE retriever = ? AND corpus = ? AND language = ?"
        with self._readers() as connections:
            row = _first(connections, query, (corner.retriever, corner.corpus, corner.language))
        return None if row is None else float(row[0])

    def keep_indexing_s(self, corner: Corner, seconds: float) -> None:
        """Keep the seconds that indexing took; what is already known stays."""
        with self._open(self._own) as connection:
            connection.execute(
                "INSERT OR IGNORE INTO indexing VALUES (?, ?, ?, ?)",
                (corner.retriever, corner.corpus, corner.language, seconds),
            )

    def merge(self) -> None:
        """Take in what other processes wrote, and remove the files of those that are gone."""
        for path in sorted(self.folder.glob(f"{NAME}.*.*.sqlite")):
            with self._open(self.path) as connection:
                connection.execute("ATTACH DATABASE ? AS other", (str(path),))
                for table in _TABLES:
                    if connection.execute("SELECT 1 FROM other.sqlite_master WHERE name = ?", (table,)).fetchone():
                        connection.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM other.{table}")  # noqa: S608
            if _is_gone(path):
                _remove(path)

    def close(self) -> None:
        """Remove this process's own file. Call it after the main process has merged."""
        if self._own != self.path:
            _remove(self._own)


def _first(connections: Sequence[sqlite3.Connection], query: str, values: Sequence[object]) -> tuple[Any, ...] | None:
    for connection in connections:
        row: tuple[Any, ...] | None = connection.execute(query, tuple(values)).fetchone()
        if row is not None:
            return row
    return None


def _packed(hits: Sequence[Hit]) -> bytes:
    return zlib.compress(json.dumps([(h.document_id, h.score) for h in hits], ensure_ascii=False).encode(), 1)


def _unpacked(content: object, path: Path) -> tuple[Hit, ...]:
    try:
        if not isinstance(content, bytes):
            raise TypeError(f"hits are {type(content).__name__}")
        return tuple(Hit(id_, score) for id_, score in json.loads(zlib.decompress(content)))
    except (zlib.error, ValueError, TypeError) as error:
        raise IntegrityError(
            f"a ranking in {path} cannot be read: {error}.", hint="Remove the file: it is made again."
        ) from error


def _is_gone(path: Path) -> bool:
    """Whether the process that writes this file has ended. One on another machine is taken to live."""
    writer, _, number = path.name.removeprefix(f"{NAME}.").removesuffix(".sqlite").rpartition(".")
    host, _, _rank = writer.rpartition(".")
    if host != socket.gethostname() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _remove(path: Path) -> None:
    for leftover in (path, path.with_name(f"{path.name}-journal")):
        leftover.unlink(missing_ok=True)
