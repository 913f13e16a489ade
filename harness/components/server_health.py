"""Whether it is worth going on with a server, told by all threads that ask it."""

from __future__ import annotations

import threading

from ...errors import ModelError

GONE_AFTER = 5
"""So many in a row without an answer mean that the server is gone; a server that refuses the first ones refuses all."""


class Health:
    """What became of the requests to the server at `url`.

    `what` is what is sent, for errors ("clip", "request"), `check` what to look at if all of it is refused.
    """

    def __init__(self, url: str, *, what: str, check: str) -> None:
        self._url, self._what, self._check = url, what, check
        self._lock = threading.Lock()
        self._silent = self._refused = 0
        self._ever = False

    def answered(self) -> None:
        """There was a reply."""
        with self._lock:
            self._silent, self._ever = 0, True

    def refused(self, error: ModelError) -> None:
        """One was refused for its content. Raises `ModelError` if the server refused the first ones all."""
        with self._lock:
            self._silent = 0
            self._refused += 1
            if not self._ever and self._refused >= GONE_AFTER:
                self._refused = 0
                raise ModelError(
                    f"the server refuses every {self._what}, the first {GONE_AFTER} of them: {error.message}",
                    hint=self._check,
                ) from error

    def silent(self, error: ModelError) -> None:
        """There was no answer. Raises `ModelError` after `GONE_AFTER` in a row."""
        with self._lock:
            self._silent += 1
            if self._silent >= GONE_AFTER:
                self._silent = 0
                raise ModelError(
                    f"{GONE_AFTER} {self._what}s in a row had no answer from {self._url}, the last because "
                    f"{error.message}",
                    hint="Start the server again and run again: what was done is kept.",
                ) from error
