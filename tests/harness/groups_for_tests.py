"""Several processes of an evaluation as threads of this one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

PATIENCE_S = 60


class Crew:
    """Threads that gather like processes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._slots: list[Any] = [None] * size
        self._barrier = threading.Barrier(size)

    def run(self, work: Callable[[Any], Result]) -> list[Result]:
        """What `work` returned for every member, by rank; the first error is raised."""
        results: list[Any] = [None] * self.size
        errors: list[BaseException] = []

        def member(rank: int) -> None:
            try:
                results[rank] = work(_Member(self, rank))
            except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
                errors.append(error)
                self._barrier.abort()

        threads = [threading.Thread(target=member, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        real = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
        if errors:
            raise (real or errors)[0]
        return results

    def exchange(self, rank: int, item: Any) -> list[Any]:
        self._slots[rank] = item
        self._barrier.wait(PATIENCE_S)
        gathered = list(self._slots)
        self._barrier.wait(PATIENCE_S)
        return gathered


class _Member:
    def __init__(self, crew: Crew, rank: int) -> None:
        self._crew, self.rank, self.size = crew, rank, crew.size

    def gather(self, item: Any) -> list[Any]:
        return self._crew.exchange(self.rank, item)

    def close(self) -> None:
        pass
