"""The processes that share an evaluation: the one module that knows accelerate.

`accelerate launch --num_processes N -m squtr.harness evaluate …` starts N processes, on one machine or several, with a
GPU each where there are GPUs (NCCL), on CPUs otherwise (gloo). `squtr evaluate --num-processes N` does the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from ..errors import ModelError, UsageError, missing_extra

Item = TypeVar("Item")

# A process may wait for the slowest of a long stage: torch's own limit of minutes would end it.
_PATIENCE = timedelta(days=7)
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "cudaErrorMemoryAllocation")


class Processes(Protocol):
    """The group that this process belongs to."""

    @property
    def rank(self) -> int:
        """This process, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def gather(self, item: Item) -> list[Item]:
        """What every process gave, by rank, in every process. All processes must call it: it also waits for all."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """One process."""

    rank: int = 0
    size: int = 1

    def gather(self, item: Item) -> list[Item]:
        """`[item]`."""
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
        self._state = PartialState(cpu=not torch.cuda.is_available(), timeout=_PATIENCE)

    @property
    def rank(self) -> int:
        """This process, from 0."""
        return int(self._state.process_index)

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self._state.num_processes)

    def gather(self, item: Item) -> list[Item]:
        """What every process gave, by rank, in every process."""
        from accelerate.utils import gather_object

        gathered: list[Item] = gather_object([item])
        return gathered

    def close(self) -> None:
        """Leave the group."""
        self._state.destroy_process_group()


def current_processes() -> Processes:
    """The group that a launcher put this process into, `Alone` without a launcher."""
    return AcceleratedProcesses() if launched_size() > 1 else Alone()


def launched_size() -> int:
    """How many processes a launcher started, 1 without one. Loads nothing."""
    size = os.environ.get("WORLD_SIZE", "1")
    return int(size) if size.isdigit() and "LOCAL_RANK" in os.environ else 1


def launched_rank() -> int:
    """This process among those that a launcher started, 0 without one. Loads nothing."""
    rank = os.environ.get("RANK", "0")
    return int(rank) if launched_size() > 1 and rank.isdigit() else 0


def local_device_index() -> int:
    """The GPU of this process on its machine: its local rank, 0 without a launcher."""
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
    """Run `squtr <arguments>` in `number` processes on this machine through accelerate; its exit status.

    Processes share the machine's GPUs, one each; without GPUs they run on its CPU. Raises `UsageError` for none.
    """
    if number < 1:
        raise UsageError(f"{number} processes cannot evaluate anything.", hint="Give --num-processes of at least 1.")
    try:
        import torch
        from accelerate.commands import launch as _  # noqa: F401
    except ImportError as error:
        raise missing_extra(error.name or "accelerate", "torch") from error
    gpus = torch.cuda.device_count()
    if gpus and number > gpus:
        raise UsageError(
            f"{number} processes need {number} GPUs, this machine has {gpus}.",
            hint=f"Give --num-processes {gpus}, or hide the GPUs with CUDA_VISIBLE_DEVICES= to use the CPU.",
        )
    environment = dict(os.environ)
    if not gpus:
        environment["ACCELERATE_USE_CPU"] = "true"
    environment.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    options = [
        "--num_processes",
        str(number),
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
    ]
    # Port 0: any free one. Two evaluations on one machine do not meet.
    options += ["--multi_gpu", "--main_process_port", "0"] if number > 1 else ["--cpu"] if not gpus else []
    command = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", *options]
    # The arguments are this command line's own, given as a list: no shell reads them.
    finished = subprocess.run([*command, "-m", "squtr.harness", *arguments], env=environment, check=False)  # noqa: S603
    return finished.returncode


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
