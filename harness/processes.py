"""The processes that share an evaluation (`accelerate launch`, `--num-processes N`); only here is accelerate used."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from ..errors import ModelError, UsageError, missing_extra
from .stopping import PARENT, SIGNALS, end_with_parent

Item = TypeVar("Item")

# A process may wait for the slowest of a long stage: torch's own limit of minutes would end it.
_TIMEOUT = timedelta(days=7)
_POLL_S = 0.05
_GRACE_S = 5.0
_MOMENT_S = 1.0
_ITEMS_AT_ONCE = 4096
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "cudaErrorMemoryAllocation")


class Processes(Protocol):
    """The group that this process belongs to."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def gather(self, item: Item) -> list[Item]:
        """What every process gave, by rank, in every process. All processes must call it: it also waits for all."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Alone:
    rank: int = 0
    size: int = 1

    def gather(self, item: Item) -> list[Item]:
        return [item]

    def close(self) -> None:
        """Nothing to leave."""


class AcceleratedProcesses:
    """The group that `accelerate launch` (or torchrun) started."""

    def __init__(self) -> None:
        try:
            import torch
            from accelerate import PartialState
        except ImportError as error:
            raise missing_extra(error.name or "accelerate", "torch") from error
        self._state = PartialState(cpu=not torch.cuda.is_available(), timeout=_TIMEOUT)

    @property
    def rank(self) -> int:
        return int(self._state.process_index)

    @property
    def size(self) -> int:
        return int(self._state.num_processes)

    def gather(self, item: Item) -> list[Item]:
        from accelerate.utils import gather_object

        try:
            gathered: list[Item] = gather_object([item])
        except RuntimeError as error:
            # What torch says when the connection to another process breaks.
            raise ModelError(
                f"another process of this evaluation ended ({str(error).splitlines()[0][:120]}).",
                hint="What was finished is kept: run the same command again to continue.",
            ) from error
        return gathered

    def close(self) -> None:
        self._state.destroy_process_group()


def current_processes() -> Processes:
    return AcceleratedProcesses() if launched_size() > 1 else Alone()


def end_with_launcher() -> None:
    """End with the launcher of this process, if it has one that is on this machine and was not ended in peace."""
    if launched_size() > 1:
        parent = os.environ.get(PARENT, "")
        end_with_parent(int(parent) if parent.isdigit() else os.getppid())


def launched_size() -> int:
    """How many processes a launcher started, 1 without one. Loads nothing."""
    size = os.environ.get("WORLD_SIZE", "1")
    return int(size) if size.isdigit() and "LOCAL_RANK" in os.environ else 1


def local_device_index() -> int:
    rank = os.environ.get("LOCAL_RANK", "0")
    return int(rank) if launched_size() > 1 and rank.isdigit() else 0


def threads_per_process(cores: int) -> int:
    """How many of a machine's cores are this process's when all its processes share them, at least 1.

    >>> threads_per_process(8)
    8
    """
    local = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return max(1, cores // (int(local) if launched_size() > 1 and local.isdigit() and int(local) else 1))


def launch(number: int, arguments: Sequence[str]) -> int:
    """Run `squtr <arguments>` in `number` processes on this machine and return the exit status.

    Processes share the machine's GPUs, one each; without GPUs they run on its CPU. If one fails, the others are stopped
    and its status is returned; its output is shown. They end with this process, however it does. Raises
    `UsageError` for none, or for more than there are GPUs.
    """
    if number < 1:
        raise UsageError(f"{number} processes cannot evaluate anything.", hint="Give --num-processes of at least 1.")
    try:
        import accelerate as _  # noqa: F401 - the processes need it: reported here, once
        import torch
    except ImportError as error:
        raise missing_extra(error.name or "accelerate", "torch") from error
    gpus = torch.cuda.device_count()
    if gpus and number > gpus:
        raise UsageError(
            f"{number} processes need {number} GPUs, this machine has {gpus}.",
            hint=f"Give --num-processes {gpus}, or hide the GPUs with CUDA_VISIBLE_DEVICES= to use the CPU.",
        )
    shared = {
        **os.environ,
        PARENT: str(os.getpid()),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": str(number),
        "LOCAL_WORLD_SIZE": str(number),
        **({} if gpus else {"ACCELERATE_USE_CPU": "true"}),
    }
    shared.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // number)))
    command = [sys.executable, "-m", "squtr.harness", *arguments]
    with contextlib.ExitStack() as stack:
        # The main process writes to the terminal; the output of the others is shown only if they fail.
        outputs = [None, *(stack.enter_context(tempfile.TemporaryFile()) for _ in range(1, number))]
        running: list[subprocess.Popen[bytes]] = []
        stack.callback(_stop, running)
        for rank, file in enumerate(outputs):
            own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            # The arguments are this command line's own, given as a list: no shell reads them.
            running.append(subprocess.Popen(command, env=own, stdout=file, stderr=file))  # noqa: S603
        failed = _first_failure(running)
        if failed is None:
            return 0
        if failed and running[0].poll() is None:
            # An error of all of them is written by the main process, which may be a moment behind.
            time.sleep(_MOMENT_S)
            failed = 0 if running[0].poll() == running[failed].returncode else failed
        _stop(running)
        status = running[failed].returncode
        file = outputs[failed]
        if file is not None:
            file.seek(0)
            sys.stderr.write(file.read().decode("utf-8", "replace"))
        if status < 0 or status - 128 in SIGNALS:
            raise ModelError(
                f"process {failed} of {number} was ended by {signal.Signals(max(-status, status - 128)).name}.",
                hint="If memory ran out, use fewer processes or smaller batches. What was finished is kept: run the "
                "same command again to continue.",
            )
        return status


def _first_failure(running: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """Wait for all; the first that fails, None if none does."""
    while True:
        statuses = [process.poll() for process in running]
        failed = next((rank for rank, status in enumerate(statuses) if status), None)
        if failed is not None or None not in statuses:
            return failed
        time.sleep(_POLL_S)


def _stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        if process.poll() is None:
            process.terminate()
    for process in running:
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def usable_cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gather_long(processes: Processes, items: Sequence[Item]) -> list[list[Item]]:
    """As `Processes.gather`, some items at a time: one piece would take its size times the number of processes."""
    gathered: list[list[Item]] = [[] for _ in range(processes.size)]
    for start in range(0, max(processes.gather(len(items))), _ITEMS_AT_ONCE):
        for whole, piece in zip(gathered, processes.gather(items[start : start + _ITEMS_AT_ONCE]), strict=True):
            whole.extend(piece)
    return gathered


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device or the host ran out of memory, so that a smaller batch may do.

    >>> is_out_of_memory(RuntimeError("CUDA failed with error out of memory")), is_out_of_memory(RuntimeError("no"))
    (True, False)
    """
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _OUT_OF_MEMORY)


def complete(parts: Sequence[Sequence[tuple[int, Item]]], expected: int, what: str) -> list[Item]:
    """The items of all processes in their order. Raises `ModelError` if one is missing or was done twice.

    >>> complete([[(0, "a"), (2, "c")], [(1, "b")]], 3, "clips")
    ['a', 'b', 'c']
    """
    found: dict[int, Item] = {}
    for part in parts:
        for position, item in part:
            if position in found:
                raise ModelError(f"item {position} of {what} was done twice.", hint="Run the evaluation again.")
            found[position] = item
    missing = [position for position in range(expected) if position not in found]
    if missing or len(found) != expected:
        raise ModelError(
            f"{len(missing)} of {expected} {what} were not done, the first at position {missing[0] if missing else 0}.",
            hint="Run the evaluation again: what was done is kept.",
        )
    return [found[position] for position in range(expected)]
