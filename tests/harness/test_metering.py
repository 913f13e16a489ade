"""Time, memory, energy and waiting, with readers that say what they are told to."""

from __future__ import annotations

import itertools
import math
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.metering import (
    EnergyCounter,
    Meter,
    WaitMeter,
    gpu_memory_mb,
    nvidia_counters,
    peak_memory_mb,
    percentiles,
    rapl_counters,
)


class Clock:
    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def counter(name: str, values: list[float], wraps_at_j: float = math.inf) -> EnergyCounter:
    """Gives these values one after the other; an error where the list ends."""
    left = iter(values)

    def read() -> float:
        for value in left:
            return value
        raise OSError("gone")

    return EnergyCounter(name, read, wraps_at_j)


def metered(*counters: EnergyCounter) -> Meter:
    with Meter(energy_counters=lambda: counters, gpu_memory=lambda: None, poll_s=3600) as meter:
        pass
    return meter


def test_meter_measures_time_and_reads_memory() -> None:
    clock = Clock()
    asked: list[bool] = []

    def memory(children: bool) -> float:
        asked.append(children)
        return 123.4

    with Meter(
        children=True,
        clock=clock,
        host_memory=memory,
        gpu_memory=lambda: {"cuda:0": 10.0, "cuda:1": 30.0},
        energy_counters=lambda: [],
    ) as meter:
        clock.now_s += 2.5
    assert meter.seconds == 2.5 and meter.peak_memory_mb == 123.4 and asked == [True]
    assert meter.peak_gpu_memory_mb == 30.0 and meter.gpu_memory_mb == {"cuda:0": 10.0, "cuda:1": 30.0}
    assert meter.energy_j is None and meter.energy_by_counter_j is None


def test_meter_measures_also_what_fails() -> None:
    clock = Clock()
    meter = Meter(clock=clock, energy_counters=lambda: [])
    with pytest.raises(KeyError), meter:
        clock.now_s += 1
        raise KeyError("x")
    assert meter.seconds == 1.0 and meter.peak_memory_mb is not None


def test_real_memory_grows_with_what_is_held() -> None:
    before = peak_memory_mb()
    held = np.ones(40_000_000, dtype=np.float32)
    assert peak_memory_mb() >= before and peak_memory_mb() > held.nbytes / 1e6
    assert peak_memory_mb(children=True) >= peak_memory_mb()


def test_energy_is_added_up_over_counters_and_over_a_wrap() -> None:
    meter = metered(counter("package-0", [90.0, 15.0], wraps_at_j=100.0), counter("gpu:0", [1000.0, 1007.5]))
    assert meter.energy_by_counter_j == {"package-0": 25.0, "gpu:0": 7.5}
    assert meter.energy_j == 32.5


def test_a_counter_that_fails_leaves_no_sum() -> None:
    meter = metered(counter("package-0", [90.0]), counter("gpu:0", [1000.0, 1007.5]))
    assert meter.energy_j is None and meter.energy_by_counter_j == {"gpu:0": 7.5}
    assert metered(counter("package-0", [])).energy_by_counter_j is None
    # A counter that must not wrap, but went back.
    assert metered(counter("gpu:0", [5.0, 4.0])).energy_j is None


def test_energy_is_read_in_between_so_that_no_wrap_is_missed() -> None:
    import threading

    values = iter([0.0, 60.0, 20.0])
    read_all = threading.Event()
    last = 80.0

    def read() -> float:
        value = next(values, None)
        if value is None:
            read_all.set()
            return last
        return value

    with Meter(energy_counters=lambda: [EnergyCounter("p", read, 100.0)], poll_s=0.001) as meter:
        assert read_all.wait(20)
    # 0 to 60, around to 20, and to 80: 60 + 60 + 60. First and last reading alone would say 80.
    assert meter.energy_j == 180.0


def rapl(folder: Path, zone: str, name: str, energy_uj: int | None, limit_uj: int = 262_143_328_850) -> None:
    path = folder / zone
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "max_energy_range_uj").write_text(f"{limit_uj}\n")
    if energy_uj is not None:
        (path / "energy_uj").write_text(f"{energy_uj}\n")


def test_rapl_counts_packages_and_memory_once(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 5_000_000, limit_uj=10_000_000)
    rapl(tmp_path, "intel-rapl:0:0", "core", 1)
    rapl(tmp_path, "intel-rapl:0:1", "dram", 2_500_000)
    rapl(tmp_path, "intel-rapl:1", "psys", 99)
    rapl(tmp_path, "intel-rapl:2", "package-1", None)
    rapl(tmp_path, "intel-rapl-mmio:0", "package-0", 7)
    found = rapl_counters(tmp_path)
    assert [c.name for c in found] == ["intel-rapl:0 package-0", "intel-rapl:0:1 dram"]
    assert [c.read() for c in found] == [5.0, 2.5] and found[0].wraps_at_j == 10.0
    assert rapl_counters(tmp_path / "none") == []


class FakeError(Exception):
    pass


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A module with the functions of pynvml that are used, and two GPUs, of which one has no counter."""
    module = types.ModuleType("pynvml")
    uuids = ["GPU-aaaa-1", "GPU-bbbb-2", "GPU-cccc-3"]

    def energy(handle: int) -> int:
        if handle == 1:
            raise FakeError("Not Supported")
        return 1500 * (handle + 1)

    vars(module).update(
        NVMLError=FakeError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 3,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: uuids[handle],
        nvmlDeviceGetTotalEnergyConsumption=energy,
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield module


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, ["gpu:0", "gpu:2"]),
        ("2", ["gpu:2"]),
        ("GPU-cccc,0", ["gpu:2", "gpu:0"]),
        ("", []),
        ("-1,0", []),
        ("0,7,2", ["gpu:0"]),
    ],
)
def test_visible_gpus_are_counted(
    nvml: types.ModuleType, monkeypatch: pytest.MonkeyPatch, visible: str | None, names: list[str]
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = nvidia_counters()
    assert [c.name for c in found] == names
    assert {c.name: c.read() for c in found} == {n: {"gpu:0": 1.5, "gpu:2": 4.5}[n] for n in names}


def test_no_driver_means_no_counter(nvml: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise FakeError("Driver Not Loaded")

    monkeypatch.setattr(nvml, "nvmlInit", refuse)
    assert nvidia_counters() == []


def test_gpu_memory_is_none_without_torch_and_per_device_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert gpu_memory_mb() is None
    assert "torch" not in sys.modules
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        is_available=lambda: True,
        is_initialized=lambda: True,
        device_count=lambda: 2,
        max_memory_allocated=lambda index: (index + 1) * 2_000_000,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert gpu_memory_mb() == {"cuda:0": 2.0, "cuda:1": 4.0}


def test_percentiles_interpolate_between_neighbors() -> None:
    # Of 0 … 10 the 95th percentile lies at index 9.5.
    assert percentiles([float(n) for n in range(10, -1, -1)]) == {"p50": 5.0, "p90": 9.0, "p95": 9.5, "p99": 9.9}
    assert percentiles([2.0]) == {"p50": 2.0, "p90": 2.0, "p95": 2.0, "p99": 2.0}
    assert percentiles([]) is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.1])
def test_percentiles_refuse_what_is_no_duration(wrong: float) -> None:
    with pytest.raises(DataError, match="duration 1 of 3"):
        percentiles([0.1, wrong, 0.2])


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_percentiles_rise_and_lie_within_the_durations(seconds: list[float]) -> None:
    found = percentiles(seconds)
    assert found is not None
    values = list(found.values())
    slack = 1e-9 * max(seconds)
    assert all(a <= b + slack for a, b in itertools.pairwise(values))
    assert min(seconds) - slack <= values[0] and values[-1] <= max(seconds) + slack


def test_wait_meter_tells_waiting_from_work() -> None:
    clock = Clock()
    meter = WaitMeter(clock=clock)

    def slow() -> Iterator[int]:
        for n in range(3):
            clock.now_s += 1
            yield n

    for _ in meter.over(slow()):
        clock.now_s += 3
    # Three waits of 1 s, three pieces of work of 3 s.
    assert meter.waited_s == 3.0 and meter.seconds == 12.0 and meter.share == 0.25


def test_wait_meter_without_time_has_no_share() -> None:
    meter = WaitMeter(clock=Clock())
    assert meter.share is None
    with meter.waiting():
        pass
    assert meter.share is None


def test_wait_meter_counts_a_wait_that_fails() -> None:
    clock = Clock()
    meter = WaitMeter(clock=clock)
    with pytest.raises(KeyError), meter.waiting():
        clock.now_s += 2
        raise KeyError("x")
    assert meter.waited_s == 2.0 and meter.share == 1.0
