"""What an evaluation made, kept by content: clips, transcripts, rankings, replies. A killed run continues from here.

The main process writes one SQLite file; every other writes its own beside it, which the main one takes in (`merge`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

from ...errors import IntegrityError, StorageError, disk_hint
from ..protocols import Hit, Hypothesis, Reply, Rewritten, Transcript

NAME = "evaluations"
# A table whose columns change gets a new name: what the old one holds lacks something, and is made again.
# Rankings have rowids: without, a row above a quarter of a page takes a page of its own.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS checks (component TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS clips (file TEXT PRIMARY KEY, pcm TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS transcripts_2 (
    audio TEXT, language TEXT, model TEXT,
    text TEXT NOT NULL, loop INTEGER NOT NULL, truncated INTEGER NOT NULL,
    seconds REAL NOT NULL, front_end_seconds REAL NOT NULL, audio_s REAL NOT NULL, hypotheses TEXT NOT NULL,
    confidence REAL,
    PRIMARY KEY (audio, language, model)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rewrites (
    rewriter TEXT, language TEXT, transcripts TEXT,
    text TEXT NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (rewriter, language, transcripts)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rankings (
    retriever TEXT, corpus TEXT, language TEXT, depth INTEGER, query TEXT,
    hits BLOB NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (retriever, corpus, language, depth, query)
);
CREATE TABLE IF NOT EXISTS replies (
    answerer TEXT, request TEXT,
    text TEXT NOT NULL, truncated INTEGER NOT NULL, audio_truncated INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (answerer, request)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS indexing (
    retriever TEXT, corpus TEXT, language TEXT, seconds REAL NOT NULL, PRIMARY KEY (retriever, corpus, language)
) WITHOUT ROWID;
"""
_TABLES = ("clips", "transcripts_2", "rewrites", "rankings", "indexing", "replies")
_BUSY_S = 60.0
# Older SQLites refuse more variables than 999 in one statement.
_KEYS_AT_ONCE = 500
_ELSEWHERE = "choose another folder with --cache"
_COUNT = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class RankingKey:
    retriever: str
    corpus: str
    language: str
    depth: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of one text, held as bytes (objects take ten times as much memory), and the seconds of the search."""

    packed: bytes
    seconds: float

    @classmethod
    def of(cls, hits: Sequence[Hit], seconds: float) -> Self:
        ids = json.dumps([hit.document_id for hit in hits]).encode("ascii")
        scores = struct.pack(f"<{len(hits)}d", *[hit.score for hit in hits])
        return cls(zlib.compress(b"".join((_COUNT.pack(len(hits)), scores, ids)), 1), seconds)

    @property
    def content(self) -> bytes:
        """The hits as bytes: a count, scores as float64, ids as JSON. Raises `IntegrityError` if they are damaged."""
        try:
            return zlib.decompress(self.packed)
        except zlib.error as error:
            raise _damaged(error) from error

    @property
    def columns(self) -> tuple[list[str], tuple[float, ...]]:
        """The ids of the documents and their scores, best first. Raises `IntegrityError` if they are damaged."""
        content = self.content
        try:
            (count,) = _COUNT.unpack_from(content)
            scores = struct.unpack_from(f"<{count}d", content, _COUNT.size)
            ids = json.loads(content[_COUNT.size + 8 * count :])
            if len(ids) != count:
                raise ValueError(f"{len(ids)} ids came with {count} scores")
        except (struct.error, ValueError, TypeError) as error:
            raise _damaged(error) from error
        return ids, scores

    @property
    def hits(self) -> tuple[Hit, ...]:
        return tuple(map(Hit, *self.columns))


def _damaged(error: Exception) -> IntegrityError:
    return IntegrityError(f"a stored ranking cannot be read: {error}.", hint=f"Remove {NAME}.sqlite: it is made again.")


class Store:
    """The store below `folder`, for process `rank`, which writes to the file `own`. Raises `StorageError`."""

    def __init__(self, folder: Path, *, rank: int = 0) -> None:
        self.folder = folder
        self.path = folder / f"{NAME}.sqlite"
        self.own = self.path if rank == 0 else folder / f"{NAME}.{socket.gethostname()}.{rank}.{os.getpid()}.sqlite"
        with _named(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if rank and self.path.exists() and not os.access(folder, os.W_OK):
            # What is complete serves several processes too.
            self.own = self.path
        with self._open(self.own) as connection:
            connection.executescript(_SCHEMA)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether an evaluation has kept anything below `folder`."""
        return (folder / f"{NAME}.sqlite").exists()

    @contextlib.contextmanager
    def _open(self, path: Path) -> Iterator[sqlite3.Connection]:
        with _named(path), contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection, connection:
            yield connection

    def _keep(self, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        """Keep rows by table; what is there stays. A file that may not be written serves if all of them are there."""
        with self._open(self.own) as connection:
            for table, own in rows.items():
                if not own:
                    continue
                places = ", ".join("?" * len(own[0]))
                try:
                    connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", own)  # noqa: S608
                except sqlite3.OperationalError as error:
                    if not (_is_read_only(error) and _holds(connection, table, own)):
                        raise

    @contextlib.contextmanager
    def _readers(self) -> Iterator[list[sqlite3.Connection]]:
        """Connections to the files that this process reads: its own and the main one, whose word is the last."""
        paths = dict.fromkeys((self.own, self.path))
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self._open(path)) for path in paths if path.exists()]

    def _known(self, query: str, keys: Iterable[str], *fixed: object) -> Iterator[tuple[Any, ...]]:
        """The rows of `query`, which asks for `fixed` and, in the place of `{}`, for any of many keys."""
        left = iter(dict.fromkeys(keys))
        with self._readers() as connections:
            while some := list(islice(left, _KEYS_AT_ONCE)):
                statement = query.format(", ".join("?" * len(some)))
                for connection in connections:
                    yield from connection.execute(statement, (*fixed, *some))

    def clips(self, files: Iterable[str]) -> dict[str, str]:
        """The PCM digests of the clips that are known, by the sha256 of their files."""
        return dict(self._known("SELECT file, pcm FROM clips WHERE file IN ({})", files))

    def transcripts(self, audio: Iterable[str], *, language: str, model: str) -> dict[str, Transcript]:
        query = (
            "SELECT audio, text, loop, truncated, seconds, front_end_seconds, hypotheses, confidence FROM transcripts_2"
            " WHERE language = ? AND model = ? AND audio IN ({})"
        )
        found: dict[str, Transcript] = {}
        for digest, text, loop, cut, seconds, front_s, hypotheses, told in self._known(query, audio, language, model):
            best, confidence = self._hypotheses(hypotheses), math.nan if told is None else told
            found[digest] = Transcript(text, "", bool(loop), bool(cut), seconds, front_s, best, confidence)
        return found

    def _hypotheses(self, content: str) -> tuple[Hypothesis, ...]:
        if content == "[]":
            return ()
        try:
            return tuple(Hypothesis(text, score) for text, score in json.loads(content))
        except (ValueError, TypeError) as error:
            raise IntegrityError(
                f"a transcript in {self.path} cannot be read: {error}.", hint="Remove the file: it is made again."
            ) from error

    def keep_transcripts(
        self,
        files: Mapping[str, str],
        transcripts: Mapping[str, tuple[Transcript, float]],
        *,
        language: str,
        model: str,
    ) -> None:
        """Keep the digests of files and their PCM, and transcripts with the duration in s; failed ones are not kept."""
        rows = [
            (
                digest, language, model, t.text, t.loop, t.truncated, t.seconds, t.front_end_seconds, audio_s,
                json.dumps([(h.text, h.score) for h in t.hypotheses], ensure_ascii=False),
                None if math.isnan(t.confidence) else t.confidence,
            )
            for digest, (t, audio_s) in transcripts.items()
            if not t.error
        ]  # fmt: skip
        self._keep({"clips": list(files.items()), "transcripts_2": rows})

    def speed(self, model: str) -> float | None:
        with self._readers() as connections:
            query = "SELECT SUM(seconds + front_end_seconds), SUM(audio_s) FROM transcripts_2 WHERE model = ?"
            sums = [connection.execute(query, (model,)).fetchone() for connection in connections]
        audio_s = sum(row[1] or 0.0 for row in sums)
        return sum(row[0] or 0.0 for row in sums) / audio_s if audio_s else None

    def rewrites(self, rewriter: str, language: str, transcripts: Iterable[str]) -> dict[str, Rewritten]:
        """The known texts of a rewriter (by its fingerprint), by the digests of what it was given."""
        query = (
            "SELECT transcripts, text, seconds FROM rewrites"
            " WHERE rewriter = ? AND language = ? AND transcripts IN ({})"
        )
        rows = self._known(query, transcripts, rewriter, language)
        return {digest: Rewritten(text, seconds=seconds) for digest, text, seconds in rows}

    def keep_rewrites(self, rewriter: str, language: str, rewrites: Mapping[str, Rewritten]) -> None:
        """Failed ones are not kept."""
        rows = [(rewriter, language, digest, r.text, r.seconds) for digest, r in rewrites.items() if not r.error]
        self._keep({"rewrites": rows})

    def rewriting_s(self, rewriter: str) -> float | None:
        """The mean seconds of a rewriter per query, None where it has rewritten none."""
        query = "SELECT SUM(seconds), COUNT(*) FROM rewrites WHERE rewriter = ?"
        with self._readers() as connections:
            sums = [connection.execute(query, (rewriter,)).fetchone() for connection in connections]
        total = sum(row[1] for row in sums)
        return sum(row[0] or 0.0 for row in sums) / total if total else None

    def rankings(self, key: RankingKey, queries: Iterable[str]) -> dict[str, Ranking]:
        query = (
            "SELECT query, hits, seconds FROM rankings"
            " WHERE retriever = ? AND corpus = ? AND language = ? AND depth = ? AND query IN ({})"
        )
        of = (key.retriever, key.corpus, key.language, key.depth)
        return {text: Ranking(bytes(hits), seconds) for text, hits, seconds in self._known(query, queries, *of)}

    def keep_rankings(self, key: RankingKey, rankings: Mapping[str, Ranking]) -> None:
        rows = [
            (key.retriever, key.corpus, key.language, key.depth, query, r.packed, r.seconds)
            for query, r in rankings.items()
        ]
        self._keep({"rankings": rows})

    def replies(self, answerer: str, requests: Iterable[str]) -> dict[str, Reply]:
        query = (
            "SELECT request, text, truncated, audio_truncated, seconds FROM replies"
            " WHERE answerer = ? AND request IN ({})"
        )
        return {
            key: Reply(text, truncated=bool(cut), audio_truncated=bool(audio_cut), seconds=seconds)
            for key, text, cut, audio_cut, seconds in self._known(query, requests, answerer)
        }

    def keep_replies(self, answerer: str, replies: Mapping[str, Reply]) -> None:
        rows = [
            (answerer, key, reply.text, reply.truncated, reply.audio_truncated, reply.seconds)
            for key, reply in replies.items()
            if not reply.error
        ]
        self._keep({"replies": rows})

    def indexing_s(self, key: RankingKey) -> float | None:
        query = "SELECT seconds FROM indexing WHERE retriever = ? AND corpus = ? AND language = ?"
        of = (key.retriever, key.corpus, key.language)
        with self._readers() as connections:
            rows = [connection.execute(query, of).fetchone() for connection in connections]
        return next((float(row[0]) for row in rows if row is not None), None)

    def keep_indexing_s(self, key: RankingKey, seconds: float) -> None:
        self._keep({"indexing": [(key.retriever, key.corpus, key.language, seconds)]})

    def check(self, key: str) -> str | None:
        """The kept outcome of a self-check, None if there is none."""
        return next(
            (outcome for (outcome,) in self._known("SELECT outcome FROM checks WHERE component IN ({})", [key])), None
        )

    def keep_check(self, key: str, outcome: str) -> None:
        with self._open(self.own) as connection:
            connection.execute("INSERT OR REPLACE INTO checks VALUES (?, ?)", (key, outcome))

    def merge(self, others: Iterable[Path] = ()) -> None:
        """Take in what other processes wrote (`others` are known files), and remove the files of those that ended."""
        for path in sorted({*self.folder.glob(f"{NAME}.*.*.sqlite"), *others} - {self.path}):
            with self._open(path) as theirs, self._open(self.path) as ours:
                for table in _TABLES:
                    for rows in _rows_of(theirs, table, path):
                        places = ", ".join("?" * len(rows[0]))
                        ours.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)  # noqa: S608
            if _is_gone(path):
                _remove(path)

    def clear(self) -> None:
        """Empty this process's own file. Call it after the main process has merged, which then has less to read."""
        if self.own != self.path:
            with self._open(self.own) as connection:
                for table in _TABLES:
                    connection.execute(f"DELETE FROM {table}")  # noqa: S608

    def close(self) -> None:
        if self.own != self.path:
            _remove(self.own)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of this file as `StorageError`s that name it."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise StorageError(f"the store {path} cannot be used: {error}.", hint=_hint(error, path)) from error
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"the store {path} cannot be used: {error.strerror or error}.", hint=disk_hint(error, path, _ELSEWHERE)
        ) from error


def _hint(error: sqlite3.DatabaseError, path: Path) -> str:
    code = _code(error)
    folder = path.parent
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and folder.is_dir()):
        return f"{folder} is read-only, and not all that is asked for is in it: make it writable, or {_ELSEWHERE}."
    if code == sqlite3.SQLITE_FULL:
        return f"Free space in {folder}, or {_ELSEWHERE}."
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return "The file is damaged; remove it: it is made again."
    if code == sqlite3.SQLITE_BUSY:
        return "Another program holds it: end that one, or wait, and run again."
    return f"Check the disk, or {_ELSEWHERE}. If the file is damaged, remove it: it is made again."


def _code(error: sqlite3.Error) -> int:
    """The primary code of SQLite, without what extends it; 0 for an error of the module itself."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _is_read_only(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _holds(connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a table has a row with the key of each of these; keys are the first columns."""
    columns = connection.execute("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,)).fetchall()
    where = " AND ".join(f"{name} = ?" for (name,) in columns)
    query = f"SELECT 1 FROM {table} WHERE {where}"  # noqa: S608
    return all(connection.execute(query, row[: len(columns)]).fetchone() for row in rows)


def _rows_of(connection: sqlite3.Connection, table: str, path: Path) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a table, some at a time; none if a process was killed before it made the table."""
    with _named(path):
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return
        cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608
    while True:
        with _named(path):
            rows = cursor.fetchmany(_KEYS_AT_ONCE)
        if not rows:
            return
        yield rows


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
