"""Replies kept by content: lines of JSON in a folder of the answerer, appended as they are made.

`<cache>/escucha/<fingerprint>/<host>.<rank>.<pid>.jsonl`: every process writes to a file of its own and reads all, so a
killed run loses at most the shard in progress, and a line that it could not finish. Failed replies are not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import StorageError
from ..protocols import AnswerRequest, Reply

FOLDER = "escucha"


def request_key(request: AnswerRequest, sounds: Sequence[str]) -> str:
    """What identifies a request: all that is written, and the digests of its sounds in place of the clips."""
    content = [
        request.prompt,
        list(sounds),
        list(request.audio_names),
        request.question,
        list(request.options),
        request.spoken_question,
        request.language,
    ]
    canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


class KeptReplies:
    """The replies of one answerer below `cache`; None keeps them in memory only. Raises `StorageError`."""

    def __init__(self, cache: Path | None, fingerprint: str, *, rank: int = 0) -> None:
        self._known: dict[str, Reply] = {}
        self._path: Path | None = None
        if cache is None:
            return
        folder = cache / FOLDER / fingerprint
        self._path = folder / f"{socket.gethostname()}.{rank}.{os.getpid()}.jsonl"
        try:
            for path in sorted(folder.glob("*.jsonl")):
                for line in path.read_bytes().splitlines():
                    self._take(line)
        except OSError as error:
            raise StorageError(f"{folder} cannot be read: {error.strerror}.", hint="Check the folder.") from error

    def _take(self, line: bytes) -> None:
        try:
            row: Any = json.loads(line)
            key, reply = row["key"], Reply(row["text"], "", row["truncated"], row["audio_truncated"], row["seconds"])
        except (ValueError, KeyError, TypeError):
            # A killed process leaves a line unfinished: its reply is made again.
            return
        self._known.setdefault(key, reply)

    def get(self, key: str) -> Reply | None:
        """The reply to a request, None where there is none yet."""
        return self._known.get(key)

    def add(self, replies: Sequence[tuple[str, Reply]]) -> None:
        """Keep replies, those that failed only until the end of this run. Raises `StorageError`."""
        self._known.update(replies)
        lines = [
            json.dumps(
                {
                    "key": key,
                    "text": reply.text,
                    "truncated": reply.truncated,
                    "audio_truncated": reply.audio_truncated,
                    "seconds": reply.seconds,
                },
                ensure_ascii=False,
            )
            for key, reply in replies
            if not reply.error
        ]
        if self._path is None or not lines:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8", errors="surrogatepass") as file:
                file.write("".join(f"{line}\n" for line in lines))
                file.flush()
        except OSError as error:
            raise StorageError(
                f"{self._path} cannot be written: {error.strerror}.", hint="Free space or choose another --cache."
            ) from error
