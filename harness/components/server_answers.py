"""What a server with OpenAI's protocol answers, and the errors for what is no answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import ModelError

SHOWN = 200
_ABOUT_CONTENT = frozenset({400, 413, 415, 422})


class ContentRefusedError(ModelError):
    """The server refuses this request for what it holds (400, 413, 415, 422). Another request may succeed."""


class NoAnswerError(ModelError):
    """There was no usable answer after all attempts: no connection, a time-out, an error status, garbage."""


class NotFoundError(ModelError):
    """404: the server has no such path, or no such model."""


def refusal(where: str, status: int, detail: str, note: str) -> ModelError:
    """The error for a status that trying again does not change; `note` is about the key."""
    if status in _ABOUT_CONTENT:
        return ContentRefusedError(f"{where} refused the request with status {status}{detail}.")
    if status in (401, 403):
        # The body is not shown: some servers repeat a part of the key in it.
        return ModelError(f"{where} refused access with status {status}.", hint=note)
    if status in (404, 405):
        return NotFoundError(
            f"{where} does not exist (status {status}{detail}).",
            hint="Check the model's name, and that the URL is the server's base (http://HOST:PORT/v1).",
        )
    if 300 <= status < 400:
        return ModelError(f"{where} redirects elsewhere (status {status}).", hint="Give the URL that it redirects to.")
    return ModelError(f"{where} answered with status {status}{detail}.", hint="Look into the server's log.")


def read_json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise _garbage(content, where, "JSON") from None


def read_text(content: bytes, where: str) -> str:
    """The text of an answer from `where`, which is no HTML page. Raises `NoAnswerError`."""
    try:
        if not _is_page(content):
            return content.decode("utf-8")
    except ValueError:
        pass
    raise _garbage(content, where, "text")


def _garbage(content: bytes, where: str, wanted: str) -> NoAnswerError:
    kind = "an HTML page" if _is_page(content) else "something else" if content.strip() else "nothing"
    start = " ".join(content[:400].decode("utf-8", "replace").split())[:80]
    return NoAnswerError(
        f"{where} answered with status 200 and {kind} instead of {wanted}{f' ({start!r})' if start else ''}.",
        hint="Check that the URL is the base of a server with OpenAI's protocol (http://HOST:PORT/v1).",
    )


def _is_page(content: bytes) -> bool:
    return content[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def error_text(content: bytes) -> str:
    """The message in the body of an error, to follow its status."""
    try:
        value = json.loads(content)
    except ValueError:
        value = "an HTML page" if _is_page(content) else content[:2000].decode("utf-8", "replace")
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and key in value:
            value = value[key]
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    return f": {text[:SHOWN].rstrip('.')}" if text else ""


def deadline_hooks(seconds: float) -> Mapping[str, list[Callable[[Any], None]]]:
    """Hooks for a client of httpx2 that cut an answer which is not complete `seconds` after its request.

    The client's own time-out is one between two packets: an answer that drips never reaches it.
    """
    import httpx2

    class Cut(httpx2.SyncByteStream):
        def __init__(self, stream: httpx2.SyncByteStream, end: float) -> None:
            self._stream, self._end = stream, end

        def __iter__(self) -> Iterator[bytes]:
            for part in self._stream:
                if time.monotonic() > self._end:
                    raise httpx2.ReadTimeout(f"the answer was not complete after {seconds:g} s")
                yield part

        def close(self) -> None:
            self._stream.close()

    def start(request: httpx2.Request) -> None:
        request.extensions["end"] = time.monotonic() + seconds

    def watch(response: httpx2.Response) -> None:
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = Cut(response.stream, response.request.extensions["end"])

    return {"request": [start], "response": [watch]}
