"""What a stretch of work took: time, memory, energy, waiting. What this machine does not tell is None, never 0."""

from __future__ import annotations

import importlib
import math
import os
import re
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from ..errors import DataError

Item = TypeVar("Item")

RAPL = Path("/sys/class/powercap")
POLL_S = 60.0
"""How often energy is read in between. A counter wraps after 65 kJ on some processors: minutes at full load."""
PERCENTILES = (50, 90, 95, 99)

_PACKAGE = re.compile(r"intel-rapl:\d+")
_PART = re.compile(r"intel-rapl:\d+:\d+")


@dataclass(frozen=True, slots=True)
class EnergyCounter:
    """A counter of energy. `read` gives J; `wraps_at_j` is where it starts again from 0, infinity if it never does."""

    name: str
    read: Callable[[], float]
    wraps_at_j: float = math.inf


class Meter:
    """Time, memory and energy of a `with` block; its attributes hold when the block has ended.

    - `seconds`: wall time.
    - `peak_memory_mb`: the largest resident memory of this process so far in its life, in MB (10^6 bytes), with
      `children` also that of its largest child that has ended: the sum of both.
    - `peak_gpu_memory_mb`: the most that torch has held on one device so far in the life of the process, in MB;
      `gpu_memory_mb` says it for each device. None if torch is not loaded or has no CUDA.
    - `energy_j`: what the processors (with their memory, where that is counted apart) and the visible GPUs took, in J,
      together; `energy_by_counter_j` each alone. None without a readable counter, and the sum also where one of several
      failed on the way. A counter sees the whole machine, so other work that ran meanwhile is in it.

    >>> with Meter() as meter:
    ...     total = sum(range(1000))
    >>> meter.seconds > 0 and meter.peak_memory_mb > 0
    True
    """

    def __init__(
        self,
        *,
        children: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        host_memory: Callable[[bool], float] | None = None,
        gpu_memory: Callable[[], Mapping[str, float] | None] | None = None,
        energy_counters: Callable[[], Sequence[EnergyCounter]] | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self.seconds = 0.0
        self.peak_memory_mb: float | None = None
        self.peak_gpu_memory_mb: float | None = None
        self.gpu_memory_mb: Mapping[str, float] | None = None
        self.energy_j: float | None = None
        self.energy_by_counter_j: Mapping[str, float] | None = None
        self._children, self._clock, self._poll_s = children, clock, poll_s
        self._host_memory = host_memory or peak_memory_mb
        self._gpu_memory = gpu_memory or gpu_memory_mb
        self._find_counters = energy_counters or find_energy_counters
        self._started = 0.0
        self._energy: _EnergyMeter | None = None

    def __enter__(self) -> Self:
        counters = self._find_counters()
        self._energy = _EnergyMeter(counters, self._poll_s) if counters else None
        self._started = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = self._clock() - self._started
        energy = self._energy.stop() if self._energy is not None else {}
        if self._energy is not None and energy:
            self.energy_by_counter_j = energy
            # A sum that misses a part would look like a saving.
            self.energy_j = None if self._energy.lost else math.fsum(energy.values())
        self.peak_memory_mb = self._host_memory(self._children)
        self.gpu_memory_mb = self._gpu_memory()
        if self.gpu_memory_mb:
            self.peak_gpu_memory_mb = max(self.gpu_memory_mb.values())


class _EnergyMeter:
    """Adds up counters, which it reads now and then, so that none wraps unseen. One that fails is given up: `lost`."""

    def __init__(self, counters: Sequence[EnergyCounter], poll_s: float) -> None:
        self.lost = False
        self._counters = list(counters)
        self._last: dict[str, float] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.poll()
        self._thread: threading.Thread | None = None
        if self._last:
            self._thread = threading.Thread(target=self._run, args=(poll_s,), name="energy-meter", daemon=True)
            self._thread.start()

    def _run(self, poll_s: float) -> None:
        while not self._stopped.wait(poll_s):
            self.poll()

    def poll(self) -> None:
        with self._lock:
            for counter in list(self._counters):
                try:
                    value = counter.read()
                except (OSError, ValueError, RuntimeError):
                    self._give_up(counter)
                    continue
                step = value - self._last.get(counter.name, value)
                if step < 0:
                    step += counter.wraps_at_j
                if not math.isfinite(step):
                    # It went back though it never should.
                    self._give_up(counter)
                    continue
                self._last[counter.name] = value
                self._used[counter.name] = self._used.get(counter.name, 0.0) + step

    def _give_up(self, counter: EnergyCounter) -> None:
        self.lost = True
        self._counters.remove(counter)
        self._used.pop(counter.name, None)

    def stop(self) -> dict[str, float]:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self.poll()
        return dict(self._used)


def peak_memory_mb(children: bool = False) -> float:
    """The largest resident memory of this process so far, in MB; with `children` also its largest ended one's."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if children:
        peak += resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)


def gpu_memory_mb() -> Mapping[str, float] | None:
    """The most memory that torch has held on each CUDA device, in MB; None without CUDA or if torch is not loaded."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return {
        f"cuda:{index}": round(torch.cuda.max_memory_allocated(index) / 1e6, 1)
        for index in range(torch.cuda.device_count())
    }


def find_energy_counters(rapl: Path = RAPL) -> list[EnergyCounter]:
    """The counters that can be read here: processors, their memory, and GPUs; [] if there is none."""
    return [*rapl_counters(rapl), *nvidia_counters()]


def rapl_counters(folder: Path = RAPL) -> list[EnergyCounter]:
    """The energy counters of processor packages, and of memory where it is counted apart, if they can be read."""
    try:
        zones = sorted(zone for zone in folder.iterdir() if _PACKAGE.fullmatch(zone.name) or _PART.fullmatch(zone.name))
    except OSError:
        return []
    counters = []
    for zone in zones:
        try:
            name = (zone / "name").read_text(encoding="ascii").strip()
            wanted = name.startswith("package") if _PACKAGE.fullmatch(zone.name) else name == "dram"
            if not wanted:
                continue
            wraps_at_j = int((zone / "max_energy_range_uj").read_text(encoding="ascii")) / 1e6
            counter = EnergyCounter(f"{zone.name} {name}", _rapl_reader(zone / "energy_uj"), wraps_at_j)
            counter.read()
        except (OSError, ValueError):
            continue
        counters.append(counter)
    return counters


def _rapl_reader(path: Path) -> Callable[[], float]:
    return lambda: int(path.read_text(encoding="ascii")) / 1e6


def nvidia_counters() -> list[EnergyCounter]:
    """The energy counters of the GPUs in `CUDA_VISIBLE_DEVICES` (unset: all); [] without `pynvml` or a GPU."""
    try:
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        handles = _visible_handles(pynvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
    except pynvml.NVMLError:
        return []
    counters = []
    for index, handle in handles.items():
        counter = EnergyCounter(f"gpu:{index}", _nvidia_reader(pynvml, handle))
        try:
            counter.read()
        except RuntimeError:
            continue
        counters.append(counter)
    return counters


def _visible_handles(pynvml: Any, visible: str | None) -> dict[int, Any]:
    handles = {index: pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())}
    if visible is None:
        return handles
    chosen: dict[int, Any] = {}
    for entry in (part.strip() for part in visible.split(",")):
        uuids = {} if entry.isdigit() else {i: _text(pynvml.nvmlDeviceGetUUID(h)) for i, h in handles.items()}
        found = [i for i in handles if str(i) == entry or (entry and uuids.get(i, "").startswith(entry))]
        if not found:
            # As CUDA does it: what follows a device that does not exist is not visible.
            break
        chosen[found[0]] = handles[found[0]]
    return chosen


def _text(value: str | bytes) -> str:
    """Older versions of pynvml give bytes."""
    return value.decode("ascii") if isinstance(value, bytes) else value


def _nvidia_reader(pynvml: Any, handle: Any) -> Callable[[], float]:
    def read() -> float:
        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3
        except pynvml.NVMLError as error:
            raise RuntimeError(f"the GPU's energy counter cannot be read: {error}") from error

    return read


def percentiles(seconds: Sequence[float]) -> dict[str, float] | None:
    """`p50`, `p90`, `p95` and `p99` of some durations in s, None if there are none.

    Between two of them by linear interpolation: the p-th percentile of n sorted values lies at index (n − 1)·p/100
    (numpy's default; type 7 of Hyndman and Fan, The American Statistician 50(4), 1996). Raises `DataError` for a value
    that is not finite or below 0.

    >>> percentiles([0.4, 0.2, 0.3, 0.1])["p50"]
    0.25
    >>> percentiles([]) is None
    True
    """
    values = np.asarray(seconds, dtype=np.float64)
    if values.size == 0:
        return None
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        raise DataError(f"duration {int(wrong[0])} of {values.size} is {float(values[wrong[0]])} s.")
    found = np.percentile(values, PERCENTILES, method="linear")
    return {f"p{p}": float(value) for p, value in zip(PERCENTILES, found, strict=True)}


class WaitMeter:
    """How much of its time a consumer waits for what it consumes.

    Time counts from the first wait to the end of the last, and all that lies between: `share` is the waiting part of
    it. For use in one thread.

    >>> meter = WaitMeter()
    >>> list(meter.over([1, 2]))
    [1, 2]
    >>> 0 <= meter.share <= 1
    True
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._first: float | None = None
        self._last = 0.0
        self.waited_s = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        began = self._clock()
        if self._first is None:
            self._first = began
        try:
            yield
        finally:
            self._last = self._clock()
            self.waited_s += self._last - began

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """The same items; the time to get each is waiting, the time until the next is asked for is not."""
        iterator = iter(items)
        done = object()
        while True:
            with self.waiting():
                item: Any = next(iterator, done)
            if item is done:
                return
            yield item

    @property
    def seconds(self) -> float:
        return 0.0 if self._first is None else self._last - self._first

    @property
    def share(self) -> float | None:
        """From 0 to 1; None if no time has passed."""
        return self.waited_s / self.seconds if self.seconds > 0 else None
