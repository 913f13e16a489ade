"""Transcripts kept by content: the sha256 of the sound, the language, and the transcriber's fingerprint.

One SQLite file: a transaction per batch survives a kill at any point, and several processes may share it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import StorageError
from .protocols import Transcript

_TABLE = """
CREATE TABLE IF NOT EXISTS transcripts (
    audio TEXT, language TEXT, transcriber TEXT,
    text TEXT NOT NULL, loop INTEGER NOT NULL, truncated INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (audio, language, transcriber)
) WITHOUT ROWID
"""


class TranscriptCache:
    """Transcripts in one file below a folder. Failed ones are not kept: they are tried again."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "transcripts.sqlite"
        with self._open() as connection:
            connection.execute(_TABLE)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, timeout=60)) as connection, connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise StorageError(
                f"the transcript cache {self.path} cannot be used: {error}.",
                hint="Free space, or remove the file: it is made again.",
            ) from error

    def get(self, audio: Sequence[str], *, language: str, transcriber: str) -> dict[str, Transcript]:
        """The known transcripts of these sounds (sha256), by sound."""
        found: dict[str, Transcript] = {}
        with self._open() as connection:
            for digest in audio:
                row = connection.execute(
                    "SELECT text, loop, truncated, seconds FROM transcripts"
                    " WHERE audio = ? AND language = ? AND transcriber = ?",
                    (digest, language, transcriber),
                ).fetchone()
                if row is not None:
                    found[digest] = Transcript(row[0], loop=bool(row[1]), truncated=bool(row[2]), seconds=row[3])
        return found

    def put(self, transcripts: Mapping[str, Transcript], *, language: str, transcriber: str) -> None:
        """Keep the transcripts that did not fail."""
        with self._open() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO transcripts VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (digest, language, transcriber, t.text, t.loop, t.truncated, t.seconds)
                    for digest, t in transcripts.items()
                    if not t.error
                ],
            )
