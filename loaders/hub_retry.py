"""Patience with the Hub: which errors pass by themselves, how long to wait, and what may be said about an error."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from ..errors import HubError

PASSING = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same call may succeed: busy, someone else committed meanwhile, too many calls, down."""

Result = TypeVar("Result")

_TOKEN = re.compile(r"\b(?:hf|api)_[A-Za-z0-9_\-]{6,}|(?<=bearer )\S+", re.IGNORECASE)
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waiting with jitter: before attempt n+1 between half of and the whole of `first_s · 2^n`.

    At most `longest_s` seconds, or what the server asks for in `Retry-After` if that is longer (at most
    `longest_asked_s`). `sleep` and `jitter` (uniform in [0, 1)) can be replaced.
    """

    attempts: int = 6
    first_s: float = 1.0
    longest_s: float = 60.0
    longest_asked_s: float = 600.0
    sleep: Callable[[float], None] = time.sleep
    # The system's generator: jitter has to differ between machines that started together, and decides no byte.
    jitter: Callable[[], float] = random.SystemRandom().random

    def wait_s(self, attempt: int, asked_s: float = 0.0) -> float:
        """Seconds to wait after `attempt` (from 0) failed.

        >>> backoff = Backoff(jitter=lambda: 0.0)
        >>> [backoff.wait_s(n) for n in (0, 1, 2, 10)], backoff.wait_s(0, asked_s=7)
        ([0.5, 1.0, 2.0, 30.0], 7)
        """
        own = min(self.longest_s, self.first_s * 2.0**attempt) * (0.5 + self.jitter() / 2.0)
        return max(own, min(asked_s, self.longest_asked_s))


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an error from the Hub's client means: `status` is 0 without an answer from the server."""

    status: int
    passing: bool
    asked_s: float
    said: str


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
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    causes = list(_chain(error))
    for cause in causes:
        if isinstance(cause, OfflineModeIsEnabled):
            return Trouble(0, passing=False, asked_s=0.0, said="HF_HUB_OFFLINE is set")
        if isinstance(cause, HfHubHTTPError):
            status = cause.response.status_code
            after = cause.response.headers.get("Retry-After", "")
            said = cause.server_message or str(cause).partition("\n")[0]
            asked_s = float(after) if after.isdigit() else 0.0
            return Trouble(status, passing=status in PASSING, asked_s=asked_s, said=redact(said, token))
    for cause in causes:
        if isinstance(cause, (TransportError, ConnectionError, TimeoutError)):
            said = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
            return Trouble(0, passing=True, asked_s=0.0, said=redact(said, token))
    if isinstance(error, ValueError) and str(error).startswith("LFS batch API"):
        # A refusal of single files (no space left, for example), which the client reports without the answer.
        return Trouble(0, passing=False, asked_s=0.0, said=redact(str(error), token))
    module = type(causes[-1]).__module__.partition(".")[0]
    if module == "hf_xet" or (isinstance(error, RuntimeError) and "xet" in str(error).lower()):
        # The native uploader reports everything as one kind of error and has retried by itself.
        return Trouble(0, passing=True, asked_s=0.0, said=redact(str(error), token))
    return None


def patiently(
    action: Callable[[], Result],
    *,
    doing: str,
    token: str = "",
    backoff: Backoff | None = None,
    explain: Callable[[Trouble], HubError | None] | None = None,
    waiting: Callable[[str], None] | None = None,
) -> Result:
    """Do `action`, again and again while its errors pass by themselves.

    `doing` says what it does, for messages ("committing to org/name"). `explain` may turn lasting trouble into a better
    error; `waiting` is told about every wait. Raises `HubError` in one sentence without the token, and without the
    client's exception as its cause, which holds the request's headers.
    """
    patience = backoff or Backoff()
    for attempt in range(patience.attempts):
        try:
            return action()
        except Exception as error:
            trouble = diagnose(error, token)
            if trouble is None:
                raise
        last = attempt == patience.attempts - 1
        if last or not trouble.passing:
            better = explain(trouble) if explain else None
            raise better or _lasting(trouble, doing, attempt + 1)
        wait_s = patience.wait_s(attempt, trouble.asked_s)
        if waiting:
            waiting(f"{doing}: {_shown(trouble)}; again in {wait_s:.0f} s")
        patience.sleep(wait_s)
    raise HubError(f"{doing} was never tried.", hint="Allow at least one attempt.")


def _shown(trouble: Trouble) -> str:
    said = trouble.said.rstrip(".") or "no answer"
    return f"the Hub answered {trouble.status} ({said})" if trouble.status else f"no answer from the Hub ({said})"


def _lasting(trouble: Trouble, doing: str, attempts: int) -> HubError:
    times = f" {attempts} times" if attempts > 1 else ""
    said = trouble.said.rstrip(".")
    if trouble.passing:
        return HubError(
            f"{doing} failed{times}: {_shown(trouble)}.",
            hint="Run the same command again later: what has arrived is kept.",
        )
    shown = _shown(trouble) if trouble.status else said
    return HubError(f"{doing} failed{times}: {shown}.", hint="Change that, then run the same command again.")
