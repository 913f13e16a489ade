"""How a command ends when it is told to: by SIGTERM and SIGHUP as by Ctrl-C, and with the process that started it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PARENT = "SQUTR_PARENT"
"""The environment variable that holds the id of the process that started this one."""
SIGNALS = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)
REQUEST_THREADS = "squtr-server"
"""How the threads that wait for a server are named: Python would end only after their answers."""
_POLL_S = 0.5
_GRACE_S = 5.0


class StoppedBySignal(KeyboardInterrupt):
    """A signal told this process to end. Like Ctrl-C, it passes what handles errors."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def signal_of(error: KeyboardInterrupt) -> signal.Signals:
    """The signal behind an interruption; SIGINT for Ctrl-C."""
    return signal.Signals(error.number if isinstance(error, StoppedBySignal) else signal.SIGINT)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP raise `StoppedBySignal`, once: what they interrupt is closed in peace.

    A signal that is ignored (`nohup`) or handled already stays so. In another thread than the main one it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, _: FrameType | None) -> None:
        for other in ours:
            signal.signal(other, signal.SIG_IGN)
        raise StoppedBySignal(number)

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def leave_requests(status: int) -> None:
    """End this process at once if a thread of it still waits for a server's answer, which nobody will use."""
    if any(thread.name.startswith(REQUEST_THREADS) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def end_with_parent(parent: int) -> None:
    """End this process soon after `parent` has ended, however that happened: from a thread, so within long work too."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_S)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE_S)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, name="squtr-parent", daemon=True).start()
