"""Retries over a network: after which statuses to try again, and how long to wait."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

PASSING = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same call may succeed: busy, someone else committed meanwhile, too many calls, down."""


def asked_wait_s(retry_after: str | None) -> float:
    """The seconds in a `Retry-After`, 0 where there is none or it is a date.

    >>> asked_wait_s("7"), asked_wait_s(None)
    (7.0, 0.0)
    """
    return float(retry_after) if retry_after and retry_after.isdigit() else 0.0


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
