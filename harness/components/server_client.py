"""HTTP to a model server that speaks OpenAI's protocol: patience where it helps, a sentence where it does not.

https://platform.openai.com/docs/api-reference; Retry-After: RFC 9110, section 10.2.3.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ...errors import ModelError, UsageError

if TYPE_CHECKING:
    import httpx2

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Field = str | int | float | bool | Sequence[str]
"""What a form field may hold; a sequence is a field that occurs several times."""

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_ABOUT_CONTENT = frozenset({400, 413, 415, 422})
_REPLY_LIMIT = 256 << 20
_LONGEST_WAIT_S = 60.0
_SHOWN = 200
_DAY_S = 86_400.0


class ContentRefusedError(ModelError):
    """The server refuses this request for what it holds (400, 413, 415, 422). Another request may do."""


class NoAnswerError(ModelError):
    """There was no usable answer after all attempts: no connection, a time-out, an error status, garbage."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a server.

    A request may take `timeout_s`. It is tried `attempts` times, after `backoff_s`, twice that, and so on; where the
    server names a time (`Retry-After`), after that. No wait is longer than 60 s. Raises `UsageError` for values that
    make no sense.
    """

    timeout_s: float = 120.0
    attempts: int = 5
    backoff_s: float = 1.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not self.timeout_s > 0 or not self.backoff_s >= 0:
            raise UsageError(
                f"a server cannot be given {self.attempts} attempts, {self.timeout_s:g} s and {self.backoff_s:g} s "
                "between them.",
                hint="Give attempts of at least 1, timeout_s above 0 and backoff_s of at least 0.",
            )


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a form."""

    name: str
    content: bytes
    media_type: str


class _TroubleError(Exception):
    """A failed attempt: `wait_s` is what the server asked for, None if nothing."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.wait_s = reason, wait_s


class ServerClient:
    """A server at `url` (its base, `http://host:8000/v1`).

    The key is read from the environment variable `key_variable` with each request ("" for none) and is kept nowhere.
    A server without a key gets none. A key never travels in the clear to another machine: over plain http it is sent to
    this machine only, or, if the variable is not the usual one and so was chosen for that server, within a private
    network. Redirects are not followed, for they would carry the key elsewhere.

    `concurrency` is the largest number of requests at once. `sleep` (by default one that ends when all is over) and
    `clock` (seconds since 1970) are for tests. Raises `UsageError` for a URL that is none, or holds a password or a
    query.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key_variable: str = DEFAULT_KEY_VARIABLE,
        patience: Patience | None = None,
        concurrency: int = 4,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.url = checked_url(url)
        if concurrency < 1:
            raise UsageError(f"a server needs a concurrency of at least 1, not {concurrency}.")
        self.concurrency = concurrency
        self._key_variable = key_variable
        self._patience = patience or Patience()
        self._stopped = threading.Event()
        self._sleep = sleep or self._stopped.wait
        self._clock = clock

    def __repr__(self) -> str:
        return f"ServerClient({self.url!r})"

    def post_json(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that the server answers to `body`, after patience.

        Raises `ContentRefusedError`, `NoAnswerError`, and `ModelError` where every request would fail (401, 403, 404,
        a redirect).
        """
        return self._persist(path, _json, "POST", content=_written(body), headers={"Content-Type": "application/json"})

    def post_form(self, path: str, fields: Mapping[str, Field], upload: Upload, *, as_text: bool = False) -> Any:
        """The JSON (with `as_text` the text) that the server answers to a form with a file. Raises likewise."""
        data = {
            name: list(value) if isinstance(value, list | tuple) else _plain(value) for name, value in fields.items()
        }
        files = {"file": (upload.name, upload.content, upload.media_type)}
        return self._persist(path, _text if as_text else _json, "POST", data=data, files=files)

    def get_json(self, path: str) -> Any:
        """The JSON at `path`. Raises likewise."""
        return self._persist(path, _json, "GET")

    def model_revision(self, model: str) -> str:
        """What the server's list of models says of `model`: where its weights come from, and since when; "" if nothing.

        A server without such a list, or without that model in it, says nothing. A time within the last day is left
        out: many servers write the present. Raises `NoAnswerError` if there is no server, `ModelError` for a refused
        key.
        """
        try:
            listed = self.get_json("models")
        except _NotFoundError:
            return ""
        rows = listed.get("data") if isinstance(listed, dict) else None
        rows = rows if isinstance(rows, list) else []
        row = next((row for row in rows if isinstance(row, dict) and row.get("id") == model), {})
        root, created = row.get("root"), row.get("created")
        parts = [f"root:{root}"] if isinstance(root, str) and root and root != model else []
        if isinstance(created, int | float) and 0 < created < self._clock() - _DAY_S:
            parts.append(f"created:{int(created)}")
        return " ".join(parts)

    def each(self, items: Iterable[Item], ask: Callable[[Item], Answer]) -> list[Answer]:
        """`ask(item)` for every item, in order, `concurrency` at once. After an exception no more is asked."""
        failures: list[Exception] = []

        def guarded(item: Item) -> Answer:
            if self._stopped.is_set():
                raise CancelledError
            try:
                return ask(item)
            except Exception as error:
                failures.append(error)
                self._stopped.set()
                raise

        self._stopped.clear()
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="squtr-server")
        try:
            futures = [pool.submit(guarded, item) for item in items]
            wait(futures, return_when=FIRST_EXCEPTION)
            if failures:
                raise failures[0]
            return [future.result() for future in futures]
        finally:
            self._stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            self._stopped.clear()

    def _persist(self, path: str, read: Callable[[bytes], Any], method: str, **request: Any) -> Any:
        where = f"{self.url}/{path}"
        trouble = _TroubleError("it was not asked")
        asked = 0
        for attempt in range(self._patience.attempts):
            if attempt:
                pause = (
                    trouble.wait_s if trouble.wait_s is not None else self._patience.backoff_s * 2.0 ** (attempt - 1)
                )
                self._sleep(min(pause, _LONGEST_WAIT_S))
            if attempt and self._stopped.is_set():
                break
            asked += 1
            try:
                return self._once(where, read, method, request)
            except _TroubleError as error:
                trouble = error
        raise NoAnswerError(
            f"{where} gave no usable answer in {asked} attempts: {trouble.reason}.",
            hint="Check that the server runs and that the URL is its base (http://HOST:PORT/v1); then run again.",
        )

    def _once(self, where: str, read: Callable[[bytes], Any], method: str, request: Mapping[str, Any]) -> Any:
        import httpx2

        key, note = self._key()
        headers = {"Accept": "application/json, text/plain", "Accept-Encoding": "identity", "User-Agent": "squtr"}
        headers |= request.get("headers", {}) | ({"Authorization": f"Bearer {key}"} if key else {})
        ends = time.monotonic() + self._patience.timeout_s
        try:
            with self._client.stream(method, where, **{**request, "headers": headers}) as response:
                status, retry_after = response.status_code, response.headers.get("Retry-After", "")
                content = b"".join(_limited(response.iter_bytes(), ends))
        except httpx2.TimeoutException:
            raise _TroubleError(f"it took longer than {self._patience.timeout_s:g} s") from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise _TroubleError(f"no connection ({_without(reason, key)[:_SHOWN]})") from None
        if status == 200:
            try:
                return read(content)
            except ValueError as error:
                raise _TroubleError(f"status 200 with {error}") from None
        detail = _without(_message(content), key)
        if status in _RETRIED:
            raise _TroubleError(f"status {status}{detail}", self._asked_wait(retry_after))
        raise _refusal(where, status, detail, note)

    def _key(self) -> tuple[str, str]:
        """The key, "" for none, and what to say about it when it is refused."""
        variable = self._key_variable
        if not variable:
            return "", "No key was sent: give key_variable."
        key = os.environ.get(variable, "").strip()
        if not key:
            return "", f"No key was sent: {variable} is not set."
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"the key in {variable} holds characters that no header may have.")
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "https" or _is_loopback(host):
            return key, f"Check the key in {variable}."
        if variable == DEFAULT_KEY_VARIABLE:
            return "", f"The key in {variable} was not sent over plain http: use https, or name its own key_variable."
        if _is_private(host):
            return key, f"Check the key in {variable}."
        raise UsageError(f"the key in {variable} would travel in the clear to {self.url}.", hint="Use https.")

    def _asked_wait(self, value: str) -> float | None:
        """The seconds that a `Retry-After` asks for; None without one that can be read."""
        if value.strip().isdigit():
            return float(value)
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - self._clock())
        except (TypeError, ValueError):
            return None

    @cached_property
    def _client(self) -> httpx2.Client:
        import httpx2

        client = httpx2.Client(
            timeout=self._patience.timeout_s,
            limits=httpx2.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency),
            follow_redirects=False,
            # A proxy has no business between a machine and itself.
            trust_env=not _is_loopback(urlsplit(self.url).hostname or ""),
        )
        weakref.finalize(self, client.close)
        return client


class _NotFoundError(ModelError):
    """404: the server has no such path, or no such model."""


def checked_url(url: str) -> str:
    """`url` without a slash at its end. Raises `UsageError` for one that is none, or holds a password or a query.

    >>> checked_url("http://localhost:8000/v1/")
    'http://localhost:8000/v1'
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number
        usable = False
    if not usable:
        shown = "" if any(sign in url for sign in "@?#") else f" {url!r}"
        raise UsageError(
            f"the server's URL{shown} is none.", hint="Write its base, for example http://localhost:8000/v1."
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(
            f"the URL of the server at {parts.hostname} holds more than scheme, host, port and path.",
            hint="Put a key into an environment variable and name it with key_variable.",
        )
    return url.rstrip("/")


def _refusal(where: str, status: int, detail: str, note: str) -> ModelError:
    if status in _ABOUT_CONTENT:
        return ContentRefusedError(f"{where} refused the request with status {status}{detail}.")
    if status in (401, 403):
        # The body is not shown: some servers repeat a part of the key in it.
        return ModelError(f"{where} refused access with status {status}.", hint=note)
    if status in (404, 405):
        return _NotFoundError(
            f"{where} does not exist (status {status}{detail}).",
            hint="Check the model's name, and that the URL is the server's base (http://HOST:PORT/v1).",
        )
    if 300 <= status < 400:
        return ModelError(f"{where} redirects elsewhere (status {status}).", hint="Give the URL that it redirects to.")
    return ModelError(f"{where} answered with status {status}{detail}.", hint="Look into the server's log.")


def _limited(chunks: Iterable[bytes], ends: float) -> Iterator[bytes]:
    """The chunks of an answer that is neither endless nor endlessly slow."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > _REPLY_LIMIT:
            raise _TroubleError(f"an answer of more than {_REPLY_LIMIT >> 20} MiB")
        if time.monotonic() > ends:
            raise _TroubleError("the answer came too slowly")
        yield chunk


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise ValueError(f"{_kind(content)} instead of JSON{_start(content)}") from None


def _text(content: bytes) -> str:
    if _kind(content) == "an HTML page":
        raise ValueError(f"an HTML page instead of text{_start(content)}")
    return content.decode("utf-8")  # an error of its own is a ValueError


def _kind(content: bytes) -> str:
    start = content[:512].lstrip().lower()
    return (
        "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else "something else" if start else "nothing"
    )


def _start(content: bytes) -> str:
    text = " ".join(content[:400].decode("utf-8", "replace").split())[:80]
    return f" ({text!r})" if text else ""


def _message(content: bytes) -> str:
    """What the body of an error says, ready to follow its status."""
    try:
        value = json.loads(content)
    except ValueError:
        value = content[:2000].decode("utf-8", "replace") if _kind(content) != "an HTML page" else "an HTML page"
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and key in value:
            value = value[key]
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    return f": {text[:_SHOWN].rstrip('.')}" if text else ""


def _without(text: str, key: str) -> str:
    return text.replace(key, "[key]") if key else text


def _written(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, allow_nan=False).encode("ascii")


def _plain(value: Field) -> str:
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_private(host: str) -> bool:
    """An address of a private network, or a name that the Internet does not resolve."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan"))
