"""Calls to the Hub with retries: which errors pass by themselves, and what of an error may be shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from ...errors import HubError
from ..retries import PASSING, Backoff, asked_wait_s

Result = TypeVar("Result")

_TOKEN = re.compile(r"\b(?:hf|api)_[A-Za-z0-9_\-]{6,}|(?<=bearer )\S+", re.IGNORECASE)
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an error from the Hub's client means: `status` is 0 without an answer from the server."""

    status: int
    passing: bool
    asked_s: float
    message: str


def redact(text: str, token: str = "") -> str:
    """`text` on one line, without the token or anything that looks like one.

    >>> redact("bad hf_abcdefghijkl\\nAuthorization: Bearer xyz"), redact("s3cret!", "s3cret")
    ('bad *** Authorization: Bearer ***', '***!')
    """
    line = " ".join(text.split())
    if token:
        line = line.replace(token, _HIDDEN)
    return _TOKEN.sub(_HIDDEN, line)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error` and what caused it: the client wraps what happens in its upload threads."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def diagnose(error: BaseException, token: str = "") -> Trouble | None:
    """What an exception of `huggingface_hub` means, None if it does not come from talking to the Hub."""
    from httpx2 import TransportError
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    causes = list(_chain(error))
    for cause in causes:
        if isinstance(cause, OfflineModeIsEnabled):
            return Trouble(0, passing=False, asked_s=0.0, message="HF_HUB_OFFLINE is set")
        if isinstance(cause, HfHubHTTPError):
            status = cause.response.status_code
            message = cause.server_message or str(cause).partition("\n")[0]
            asked_s = asked_wait_s(cause.response.headers.get("Retry-After"))
            return Trouble(status, passing=status in PASSING, asked_s=asked_s, message=redact(message, token))
    for cause in causes:
        if isinstance(cause, TransportError | ConnectionError | TimeoutError | LocalEntryNotFoundError):
            message = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
            return Trouble(0, passing=True, asked_s=0.0, message=redact(message, token))
    if isinstance(error, ValueError) and str(error).startswith("LFS batch API"):
        # A refusal of single files (no space left, for example), which the client reports without the answer.
        return Trouble(0, passing=False, asked_s=0.0, message=redact(str(error), token))
    module = type(causes[-1]).__module__.partition(".")[0]
    if module == "hf_xet" or (isinstance(error, RuntimeError) and "xet" in str(error).lower()):
        # The native uploader reports everything as one kind of error and has retried by itself.
        return Trouble(0, passing=True, asked_s=0.0, message=redact(str(error), token))
    return None


def with_retries(
    action: Callable[[], Result],
    *,
    doing: str,
    token: str = "",
    backoff: Backoff | None = None,
    explain: Callable[[Trouble], HubError | None] | None = None,
    waiting: Callable[[str], None] | None = None,
) -> Result:
    """Do `action`, again while its errors pass by themselves.

    `doing` says what it does, for messages ("committing to org/name"). `explain` may turn lasting trouble into a better
    error; `waiting` gets a sentence about every wait. Raises `HubError` in one sentence without the token, and without
    the client's exception as its cause, which holds the request's headers.
    """
    waits = backoff or Backoff()
    for attempt in range(waits.attempts):
        try:
            return action()
        except Exception as error:
            trouble = diagnose(error, token)
            if trouble is None:
                raise
        last = attempt == waits.attempts - 1
        if last or not trouble.passing:
            better = explain(trouble) if explain else None
            raise better or _lasting(trouble, doing, attempt + 1)
        wait_s = waits.wait_s(attempt, trouble.asked_s)
        if waiting:
            waiting(f"{doing}: {shown(trouble)}; again in {wait_s:.0f} s")
        waits.sleep(wait_s)
    raise HubError(f"{doing} was never tried.", hint="Allow at least one attempt.")


def shown(trouble: Trouble) -> str:
    message = trouble.message.rstrip(".") or "no answer"
    return f"the Hub answered {trouble.status} ({message})" if trouble.status else f"no answer from the Hub ({message})"


def _lasting(trouble: Trouble, doing: str, attempts: int) -> HubError:
    times = f" {attempts} times" if attempts > 1 else ""
    if trouble.passing:
        return HubError(
            f"{doing} failed{times}: {shown(trouble)}.",
            hint="Run the same command again later: what has arrived is kept.",
        )
    reason = shown(trouble) if trouble.status else trouble.message.rstrip(".")
    return HubError(f"{doing} failed{times}: {reason}.", hint="Change that, then run the same command again.")
