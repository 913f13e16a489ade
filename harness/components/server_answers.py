"""What a server with OpenAI's protocol answers, and the errors for what is no answer."""

from __future__ import annotations

import json
import math
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from ...errors import ModelError

SHOWN = 200
_LONGEST_ERROR = 65_536
_ABOUT_CONTENT = frozenset({400, 413, 415, 422})


class ContentRefusedError(ModelError):
    """The server refuses this request for what it holds (400, 413, 415, 422). Another request may succeed."""


class NoAnswerError(ModelError):
    """There was no usable answer after all attempts: no connection, a time-out, an error status, garbage."""


class NotFoundError(ModelError):
    """404: the server has no such path, or no such model."""


class PassingFault(Exception):  # noqa: N818 - it is told as what is made of it
    """What may be otherwise the next time; `asked_s` is how long the server asks to wait, `final` that it asks not to
    be tried again, `unreachable` that there was no server.
    """

    def __init__(
        self, reason: str, hint: str, *, asked_s: float | None = None, final: bool = False, unreachable: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason, self.hint, self.asked_s = reason, hint, asked_s
        self.final, self.unreachable = final, unreachable


def hint_of(status: int) -> str:
    """What to do about a status that remained after all attempts."""
    if status == 429:
        return "The server limits requests: lower the concurrency, or run again later: what was done is kept."
    return "Look into the server's log, then run again: what was done is kept."


def asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """How long an answer asks to wait (`retry-after-ms`, `Retry-After` in s or as a date), None if it does not.

    >>> asked_wait_s({"retry-after": "86400"}), asked_wait_s({"retry-after-ms": "250"}), asked_wait_s({})
    (86400.0, 0.25, None)
    >>> asked_wait_s({"retry-after": "soon"})
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (TypeError, ValueError, OverflowError):
                continue
        if 0 < seconds < math.inf:
            return seconds
    return None


def connection_fault(error: Exception, shown: Callable[[str], str]) -> PassingFault:
    """No connection, or one that broke; `shown` hides secrets."""
    cause: BaseException | None = error.__cause__ or error
    text = " ".join(str(cause).split()).rstrip(".") or type(cause).__name__
    reason = f"no connection ({shown(text)[:SHOWN]})"
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return PassingFault(
                reason, "Nothing answers there: start the server, or check host and port.", unreachable=True
            )
        if isinstance(cause, socket.gaierror):
            return PassingFault(
                reason, "The name of the host is not known: check the URL and the network.", unreachable=True
            )
        if isinstance(cause, ssl.SSLError):
            return PassingFault(
                reason,
                "No secure connection: check https or http in the URL, and the certificate (SSL_CERT_FILE).",
                unreachable=True,
            )
        cause = cause.__cause__ or cause.__context__
    return PassingFault(
        reason, "Check that the server runs and that the URL is its base (http://HOST:PORT/v1); then run again."
    )


def error_within(content: bytes) -> tuple[int, str] | None:
    """The status (0 if it names none) and the message of an error that came with status 200, also in a chat's choice.

    >>> error_within(b'{"error": {"message": "overloaded", "code": 502}}')
    (502, ': overloaded')
    >>> error_within(b'{"text": "an error"}')
    """
    if len(content) > _LONGEST_ERROR or b'"error"' not in content:
        return None
    try:
        value = json.loads(content)
    except ValueError:
        return None
    choices = value.get("choices") if isinstance(value, dict) else None
    inner = choices[0] if isinstance(choices, list) and choices else None
    for one in (value, inner):
        error = one.get("error") if isinstance(one, dict) else None
        if not error:
            continue
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 0
        return status, error_text(json.dumps({"error": error}).encode())
    return None


def refusal(where: str, status: int, detail: str, note: str) -> ModelError:
    """The error for a status that trying again does not change; `note` is about the key."""
    if status in _ABOUT_CONTENT:
        hint = "Send less audio or text at once." if status == 413 else "Check the model's name and the options."
        return ContentRefusedError(f"{where} refused the request with status {status}{detail}.", hint=hint)
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
