"""A small cache that threads may share and that never travels to another process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Keeps the values used last, while their costs sum to at most `capacity` (the newest is always kept).

    `cost` gives a value's cost (a module-level function, normally its size in bytes). Each value is made once, even if
    several threads ask at the same time. Pickled or copied, the cache is empty.
    """

    def __init__(self, capacity: int, cost: Callable[[V], int]) -> None:
        self._capacity = capacity
        self._cost = cost
        self._total = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[K, threading.Lock] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._capacity, self._cost))

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value kept under `key`, or what `make()` returns, which is kept then unless it raises."""
        kept = self._look_up(key)
        if kept:
            return kept[0]
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        try:
            with making:
                kept = self._look_up(key)
                if kept:
                    return kept[0]
                made = make()
                self._keep(key, made)
                return made
        finally:
            with self._lock:
                self._making.pop(key, None)

    def _look_up(self, key: K) -> tuple[V] | tuple[()]:
        with self._lock:
            if key not in self._values:
                return ()
            self._values.move_to_end(key)
            return (self._values[key],)

    def _keep(self, key: K, value: V) -> None:
        with self._lock:
            if key in self._values:
                self._total -= self._cost(self._values.pop(key))
            self._values[key] = value
            self._total += self._cost(value)
            while self._total > self._capacity and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._total -= self._cost(dropped)
