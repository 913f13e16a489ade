"""A server that speaks OpenAI's protocol, through the `openai` package: its time-outs and connections."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from random import random
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ...errors import ModelError, UsageError, missing_extra
from ..progress import current_tick, say_above_bars
from ..stopping import REQUEST_THREADS
from .server_answers import (
    ContentRefusedError,
    NoAnswerError,
    NotFoundError,
    PassingFault,
    asked_wait_s,
    connection_fault,
    deadline_hooks,
    error_text,
    error_within,
    hint_of,
    read_json,
    read_text,
    refusal,
)

if TYPE_CHECKING:
    from openai import OpenAI

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Upload = tuple[str, bytes, str]

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
TOLD_FROM_S = 3.0
"""A person is told of a wait from so many seconds on."""
OUTAGE_AFTER = 5
"""So many requests in a row without an answer are an outage; a server that refuses the first ones refuses all."""
_RETRIED = frozenset({408, 409, 425, 429})  # and from 500 on: what `openai` tries again, and 425
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str
    truncated: bool


class ModelServer:
    """A server at `url` (its base, `http://host:8000/v1`).

    The key is read from the environment variable `key_variable` ("" for none) with each request. Over plain http it is
    sent to this machine only, or, if the variable is not the usual one, within a private network; redirects are not
    followed.

    A request may take `timeout_s`, its answer to the last byte included, and is tried `attempts` times, after waits
    that grow from `FIRST_WAIT_S` or that the server asks for, up to `LONGEST_WAIT_S`; a server that was never reached
    is tried twice. At most `concurrency` run at once. Raises `UsageError` for a URL that is none, or holds a password
    or a query, and for other unusable values.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key_variable: str = DEFAULT_KEY_VARIABLE,
        concurrency: int = 4,
        timeout_s: float = 120.0,
        attempts: int = 5,
    ) -> None:
        self.url = checked_url(url)
        if attempts < 1 or not timeout_s > 0:
            raise UsageError(
                f"a server cannot be given {attempts} attempts of {timeout_s:g} s.",
                hint="Give attempts of at least 1 and timeout_s above 0.",
            )
        if concurrency < 1:
            raise UsageError(f"a server needs a concurrency of at least 1, not {concurrency}.")
        self._key_variable = key_variable
        self._concurrency, self._timeout_s, self._attempts = concurrency, timeout_s, attempts
        self._lock = threading.Lock()
        self._unanswered = self._refused = 0
        self._answered = self._reached = False
        self._outages = 0
        self._waiting_until = 0.0
        self._ended = threading.Event()

    def __repr__(self) -> str:
        return f"ModelServer({self.url!r})"

    def post(self, path: str, body: Mapping[str, Any], *, file: Upload | None = None, as_text: bool = False) -> Any:
        """The JSON (with `as_text` the text) that the server answers to `body`, or to a form with a `file`.

        Raises `ContentRefusedError`, `NoAnswerError`, and `ModelError` where every request would fail (401, 403, 404).
        """
        content = self._answer("POST", path, body, file)
        return read_text(content, f"{self.url}/{path}") if as_text else read_json(content, f"{self.url}/{path}")

    def chat(self, body: Mapping[str, Any]) -> ChatReply:
        """What the server answers to a chat. Raises as `post`, and `NoAnswerError` for an answer without a text."""
        answer = self.post("chat/completions", body)
        choices = answer.get("choices") if isinstance(answer, dict) else None
        first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = first.get("message")
        message = message if isinstance(message, dict) else {}
        content = message.get("content")
        if isinstance(content, list):  # some servers answer in parts, like the parts of a request
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        if content is None and message.get("refusal"):
            content = str(message["refusal"])
        if content is None and first.get("finish_reason") == "length":
            # The cap was reached within a reasoning that the server keeps to itself.
            content = ""
        if not isinstance(content, str):
            raise self.without("a text", "chat/completions")
        return ChatReply(content, first.get("finish_reason") == "length")

    def without(self, what: str, path: str) -> NoAnswerError:
        """The error for an answer that lacks what it is for."""
        return NoAnswerError(
            f"{self.url}/{path} answered with status 200, but without {what}.",
            hint="Check that the URL is that of a server with OpenAI's protocol.",
        )

    def model_revision(self, model: str) -> str:
        """What the server's list of models says of `model`: where its weights come from, and since when; "" if nothing.

        A time within the last day is left out: many servers write the present. Raises `NoAnswerError`, `ModelError`.
        """
        try:
            listed = read_json(self._answer("GET", "models"), f"{self.url}/models")
        except NotFoundError:
            return ""
        rows = listed.get("data") if isinstance(listed, dict) else None
        rows = rows if isinstance(rows, list) else []
        row = next((row for row in rows if isinstance(row, dict) and row.get("id") == model), {})
        root, created = row.get("root"), row.get("created")
        parts = [f"root:{root}"] if isinstance(root, str) and root and root != model else []
        if isinstance(created, int | float) and 0 < created < time.time() - _DAY_S:
            parts.append(f"created:{int(created)}")
        return " ".join(parts)

    def each(self, items: Iterable[Item], request: Callable[[Item], Answer]) -> list[Answer]:
        """`request(item)` for every item, in order, `concurrency` at once. After an exception no more is requested."""
        stopped = threading.Event()
        failures: list[Exception] = []

        asked = list(items)
        if asked:
            # Made before threads do so at once, with all that it imports.
            _ = self._client
        tick = current_tick()

        def guarded(item: Item) -> Answer:
            if stopped.is_set():
                raise CancelledError
            try:
                answer = request(item)
            except Exception as error:
                failures.append(error)
                stopped.set()
                raise
            tick(1, len(asked))
            return answer

        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix=REQUEST_THREADS)
        try:
            futures = [pool.submit(guarded, item) for item in asked]
            wait(futures, return_when=FIRST_EXCEPTION)
            if failures:
                raise failures[0]
            made = [future.result() for future in futures]
        except Exception:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        except BaseException:
            # Whoever ends the program waits for no answer.
            stopped.set()
            self._ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
        return made

    def each_or_error(
        self, items: Iterable[Item], request: Callable[[Item], Answer], *, what: str, check: str
    ) -> list[Answer | ModelError]:
        """As `each`; an item whose request is refused for its content, or not answered, gives the error.

        `what` is an item in messages ("clip"), `check` what to look at if the server refuses all. Raises `ModelError`
        where no request can succeed, and after `OUTAGE_AFTER` items in a row without an answer.
        """

        outages = self._outages

        def one(item: Item) -> Answer | ModelError:
            try:
                answer = request(item)
            except (ContentRefusedError, NoAnswerError) as error:
                self._count_failure(error, what, check, outages)
                return error
            with self._lock:
                self._unanswered, self._answered = 0, True
            return answer

        return self.each(items, one)

    def _count_failure(self, error: ModelError, what: str, check: str, outages: int) -> None:
        with self._lock:
            if outages != self._outages:
                # A request of a call that has ended by an outage: the next call begins anew.
                return
            if isinstance(error, NoAnswerError):
                self._unanswered += 1
                if self._unanswered >= OUTAGE_AFTER:
                    self._unanswered, self._outages = 0, self._outages + 1
                    raise ModelError(
                        f"{OUTAGE_AFTER} {what}s in a row had no answer from {self.url}, the last because "
                        f"{error.message}",
                        hint="Start the server again and run again: what was done is kept.",
                    ) from error
                return
            self._unanswered = 0
            self._refused += 1
            if not self._answered and self._refused >= OUTAGE_AFTER:
                self._refused, self._outages = 0, self._outages + 1
                raise ModelError(
                    f"the server refuses every {what}, the first {OUTAGE_AFTER} of them: {error.message}", hint=check
                ) from error

    def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, file: Upload | None = None
    ) -> bytes:
        """The bytes of the answer with status 200, after as many attempts as it takes."""
        where = f"{self.url}/{path}"
        for attempt in range(1, self._attempts + 1):
            try:
                return self._attempt(where, method, path, body, file)
            except PassingFault as fault:
                if fault.unreachable and not self._reached and attempt > 1:
                    # Nobody was ever there: that every request waits for it helps nobody.
                    raise ModelError(f"there is no server at {self.url}: {fault.reason}.", hint=fault.hint) from None
                if attempt == self._attempts or fault.final:
                    tried = "1 attempt" if attempt == 1 else f"{attempt} attempts"
                    raise NoAnswerError(
                        f"{where} gave no usable answer in {tried}: {fault.reason}.", hint=fault.hint
                    ) from None
                self._wait(fault, attempt)
        raise ValueError(f"{self._attempts} attempts")  # at least one is required

    def _wait(self, fault: PassingFault, attempt: int) -> None:
        """Wait as long as the server asks for, up to `LONGEST_WAIT_S`, or longer with each attempt, and say so."""
        asked_s = fault.asked_s
        spread = 1 - random() / 4  # noqa: S311 - so that requests do not come back together
        seconds = min(LONGEST_WAIT_S, asked_s or FIRST_WAIT_S * 2 ** (attempt - 1) * spread)
        with self._lock:
            now = time.monotonic()
            told = seconds >= TOLD_FROM_S and now >= self._waiting_until
            if told:
                self._waiting_until = now + seconds
        if told:
            more = "" if asked_s is None or asked_s <= seconds else f"; it asked for {asked_s:.0f} s"
            say_above_bars(f"squtr: waiting {seconds:.0f} s for {self.url} ({fault.reason}{more})")
        if self._ended.wait(seconds):
            raise CancelledError

    def _attempt(
        self, where: str, method: str, path: str, body: Mapping[str, Any] | None, file: Upload | None
    ) -> bytes:
        """Raises `PassingFault` for what may be otherwise the next time."""
        client = self._client
        import httpx2
        import openai

        key, note = self._key()
        headers: dict[str, Any] = {"Authorization": f"Bearer {key}" if key else openai.omit}
        try:
            if method == "GET":
                response = client.get(f"/{path}", cast_to=httpx2.Response, options={"headers": headers})
            elif file is None:
                response = client.post(f"/{path}", cast_to=httpx2.Response, body=body, options={"headers": headers})
            else:
                headers["Content-Type"] = "multipart/form-data"
                # `openai` writes a list as a field `name[]` that occurs several times.
                form = {n.removesuffix("[]") if isinstance(v, list | tuple) else n: v for n, v in (body or {}).items()}
                options: Any = {"headers": headers}
                response = client.post(
                    f"/{path}", cast_to=httpx2.Response, body=form, files={"file": file}, options=options
                )
        except openai.APITimeoutError:
            raise PassingFault(
                f"it took longer than {self._timeout_s:g} s",
                "Give a larger timeout_s, or send less at once (concurrency); then run again.",
            ) from None
        except openai.APIConnectionError as error:
            raise connection_fault(error, lambda text: _without(text, key)) from None
        except openai.APIStatusError as error:
            self._reached = True
            detail = _without(error_text(error.response.content), key)
            raise self._status_fault(where, error.status_code, detail, note, error.response.headers) from None
        self._reached = True
        told = error_within(response.content)
        if told is not None:
            status, detail = told[0], _without(told[1], key)
            if status < 400:
                raise NoAnswerError(
                    f"{where} answered with status 200 and an error{detail}.", hint="Look into the server's log."
                )
            raise self._status_fault(where, status, detail, note, response.headers)
        return response.content

    def _status_fault(
        self, where: str, status: int, detail: str, note: str, headers: Mapping[str, str]
    ) -> PassingFault | ModelError:
        if status not in _RETRIED and status < 500:
            return refusal(where, status, detail, note)
        final = headers.get("x-should-retry") == "false"
        return PassingFault(f"status {status}{detail}", hint_of(status), asked_s=asked_wait_s(headers), final=final)

    def _key(self) -> tuple[str, str]:
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

    @cached_property
    def _client(self) -> OpenAI:
        try:
            import openai
        except ImportError as error:
            raise missing_extra("openai", "openai") from error
        import httpx2

        transport = httpx2.Client(
            timeout=self._timeout_s,
            event_hooks=deadline_hooks(self._timeout_s),
            limits=httpx2.Limits(max_connections=self._concurrency, max_keepalive_connections=self._concurrency),
            follow_redirects=False,
            # A proxy has no business between a machine and itself.
            trust_env=not _is_loopback(urlsplit(self.url).hostname or ""),
        )
        weakref.finalize(self, transport.close)
        # The key is given with each request, and none here, so that the package looks for none itself.
        return openai.OpenAI(
            api_key="unused",
            admin_api_key="",
            base_url=self.url,
            timeout=self._timeout_s,
            max_retries=0,  # `_answer` tries again, and says so
            http_client=transport,
        )


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


def _without(text: str, key: str) -> str:
    return text.replace(key, "[key]") if key else text


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
