"""Downloads over HTTP that continue where they stopped and are checked before they count."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO

from ... import __version__
from ...errors import FetchError, IntegrityError, StorageError, UsageError
from ..retries import PASSING, Backoff, asked_wait_s

ATTEMPTS = 4
"""Tries in a row that bring nothing; a try that brings bytes counts anew."""
TIMEOUT_S = 60.0
_PIECE = 1 << 18

Progress = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes there will be (0 if the server does not say)."""


@dataclass(frozen=True, slots=True)
class Download:
    """A finished download. `checked` names the checksum it was compared with: "md5", "sha256", "" if none was known."""

    url: str
    bytes: int
    sha256: str
    checked: str


def check_file(path: Path, checksum: str, where: str) -> tuple[str, str]:
    """The sha256 of `path`, and "md5", "sha256" or "" it was compared with. Raises `IntegrityError` naming `where`."""
    method, _, wanted = checksum.partition(":")
    if checksum and method not in ("md5", "sha256"):
        raise UsageError(f"the checksum {checksum!r} is neither md5 nor sha256.")
    # MD5 is what publishers state; it finds damage, which is what it is for here.
    digests = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            digests["sha256"].update(piece)
            if method == "md5":
                digests["md5"].update(piece)
    if checksum and digests[method].hexdigest() != wanted.lower():
        raise IntegrityError(
            f"{where} has the {method} {digests[method].hexdigest()} where {wanted} is expected.",
            hint="Get the file again; if it differs again, its publisher changed it.",
        )
    return digests["sha256"].hexdigest(), method


def download(
    url: str,
    path: Path,
    *,
    checksum: str = "",
    progress: Progress | None = None,
    backoff: Backoff | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Download:
    """Download `url` to `path`, which appears only when it is complete and its checksum is right.

    What is not complete lies in `<path>.part` and is continued by the next call (`Range`), if the server says that it
    still has the same file (`If-Range`) or a checksum will tell; otherwise it starts again. Dropped connections, 429
    and 5xx are tried again, by default 4 times in a row. Raises `FetchError` for a server that refuses or cannot be
    reached, `IntegrityError` for a wrong checksum (the part is removed), `StorageError` for a disk that refuses.
    """
    if not url.startswith(("http://", "https://")):
        raise UsageError(
            f"{url!r} is no address for a download.", hint="Give one that begins with https:// or http://."
        )
    part = path.with_name(path.name + ".part")
    waits = backoff or Backoff(attempts=ATTEMPTS)
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        failures, before = 0, _size(part)
        while True:
            try:
                _continue(url, part, bool(checksum), progress, timeout_s)
                break
            except _TryAgainError as error:
                failures = 1 if _size(part) > before else failures + 1
                before = _size(part)
                if failures >= waits.attempts:
                    raise FetchError(f"{url} cannot be downloaded: {error}.", hint="Run the command again.") from error
                waits.sleep(waits.wait_s(failures - 1, error.pause_s))
        try:
            sha256, checked = check_file(part, checksum, url)
        except IntegrityError:
            _remove(part)
            raise
        size = _size(part)
        part.replace(path)
        _state(part).unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} cannot be written: {error}.", hint="Check space and permissions.") from error
    return Download(url, size, sha256, checked)


class _TryAgainError(Exception):
    def __init__(self, reason: object, pause_s: float = 0.0) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.pause_s = pause_s


def _continue(url: str, part: Path, checked: bool, progress: Progress | None, timeout_s: float) -> None:
    """One request: the rest of the file, or all of it. `checked`: a checksum finds out if it is another file now."""
    have, mark = _size(part), _mark(part, url)
    headers = {"User-Agent": f"squtr/{__version__}", "Accept-Encoding": "identity"}
    if have and (mark or checked):
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": mark} if mark else {})
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  (the scheme is checked above)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310
            start = _start(response.status, response.headers, have)
            length = response.headers.get("Content-Length")
            total = start + int(length) if length and length.isdigit() else 0
            _remember(part, url, response.headers)
            _receive(response, part, start, total, progress)
    except urllib.error.HTTPError as error:
        with error:
            _refused(url, part, have, error)
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            raise FetchError(f"{url} has no valid certificate: {error.reason}.") from error
        raise _TryAgainError(error.reason) from error
    except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise _TryAgainError(error) from error


def _refused(url: str, part: Path, have: int, error: urllib.error.HTTPError) -> None:
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        stated = (error.headers.get("Content-Range") or "").rpartition("/")[2]
        if stated == str(have):
            # It was complete already, but the last run ended before it was checked.
            return
        _remove(part)
        raise _TryAgainError("the server has another file now") from error
    if error.code in PASSING:
        asked_s = asked_wait_s(error.headers.get("Retry-After"))
        raise _TryAgainError(f"the server answers {error.code}", asked_s) from error
    raise FetchError(f"{url} cannot be downloaded: the server answers {error.code} ({error.reason}).") from error


def _start(status: int, headers: Message, have: int) -> int:
    """Where what follows begins in the file."""
    if status != http.HTTPStatus.PARTIAL_CONTENT:
        return 0
    first = (headers.get("Content-Range") or "").removeprefix("bytes ").partition("-")[0]
    if first != str(have):
        raise _TryAgainError(f"the server sends from byte {first or '?'} on where {have} was asked for")
    return have


def _receive(source: IO[bytes], part: Path, start: int, total: int, progress: Progress | None) -> None:
    with part.open("r+b" if start else "wb") as target:
        target.seek(start)
        target.truncate()
        done = start
        while True:
            try:
                piece = source.read(_PIECE)
            except (OSError, http.client.HTTPException) as error:
                raise _TryAgainError(error) from error
            if not piece:
                break
            target.write(piece)
            done += len(piece)
            if progress is not None:
                progress(done, total)
        target.flush()
        os.fsync(target.fileno())
    if total and done != total:
        raise _TryAgainError(f"the connection ended after {done} of {total} bytes")


def _state(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _mark(part: Path, url: str) -> str:
    """What identifies the file that the part belongs to (its ETag or date); "" if that is not known."""
    try:
        state = json.loads(_state(part).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    mark = state.get("mark") if isinstance(state, dict) and state.get("url") == url else ""
    return mark if isinstance(mark, str) else ""


def _remember(part: Path, url: str, headers: Message) -> None:
    etag = headers.get("ETag") or ""
    # A weak tag does not promise the same bytes.
    mark = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified") or ""
    _state(part).write_text(json.dumps({"url": url, "mark": mark}), encoding="utf-8")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _remove(part: Path) -> None:
    part.unlink(missing_ok=True)
    _state(part).unlink(missing_ok=True)
