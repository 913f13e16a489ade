"""Mapping in threads, in order."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


SIGNAL_PACKAGES = (
    "scipy.fft",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.special",
    "scipy.io.matlab",
    "soundfile",
    "soxr",
)
"""What rendering, front ends and checks of clips import where they need it."""


def import_before_threads(*names: str) -> None:
    """Import compiled packages before threads do so at once: a second one may find a package that is half imported.

    Those that are not installed are left out: whoever needs one says so.
    """
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
                raise


def in_order(
    function: Callable[[Item], Value], items: Iterable[Item], *, workers: int, ahead: int = 0
) -> Iterator[Value]:
    """`map(function, items)` in threads, in order, holding at most `ahead` results (0: 4 per worker).

    Threads suffice for rendering: soundfile and the FFT release the interpreter lock. A single worker is a thread too:
    Ctrl-C reaches the main thread only, and would be lost inside one of soundfile's callbacks.
    """
    workers = max(1, workers)
    ahead = ahead or 4 * workers
    with ThreadPoolExecutor(max_workers=workers) as pool:
        pending: deque[Future[Value]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) >= ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
