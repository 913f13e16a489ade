"""Batches that shrink where memory runs out, and in which an item that fails takes no other with it."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...errors import ModelError, UsageError
from ..processes import is_out_of_memory
from ..progress import current_tick

Item = TypeVar("Item")
Made = TypeVar("Made")


def require_positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}.")


class BatchSize:
    """How many items are worked on together, from `first` downwards: what did not fit once is not tried again.

    >>> size = BatchSize(16)
    >>> size.shrink(16)
    >>> size.now
    8
    """

    def __init__(self, first: int) -> None:
        require_positive(batch_size=first)
        self.now = first

    def shrink(self, tried: int) -> None:
        """Half of the `tried` items that memory did not suffice for, at least 1."""
        self.now = max(1, min(self.now, tried) // 2)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Made]):
    """What became of an item: its value, or None and the `error`. A batch's time is shared equally."""

    value: Made | None
    error: str
    seconds: float


def in_batches(
    items: Sequence[Item],
    *,
    size: BatchSize,
    work: Callable[[list[Item]], Sequence[Made]],
    engine: str,
    what: str,
    kind: Callable[[Item], object] = lambda _: None,
    faults: tuple[type[Exception], ...] = (),
) -> list[Outcome[Made]]:
    """The outcome of each item, in order: `work` gets at most `size` items of one `kind` together.

    If memory runs out, the batch is halved, and `size` stays so small. If a batch fails otherwise (`RuntimeError`, one
    of `faults`, or another number of results), its items go one at a time. `engine` and `what` (plural) name the model
    and the items in errors.
    """
    done: list[Outcome[Made]] = []
    tick = current_tick()
    while len(done) < len(items):
        _, alike = next(itertools.groupby(items[len(done) : len(done) + size.now], kind))
        batch = list(alike)
        outcomes = _together(batch, work, engine, what, faults)
        if outcomes is None:
            size.shrink(len(batch))
            # What the failed attempt held must be free before the next: some of it lies in reference cycles.
            gc.collect()
            continue
        done += outcomes
        tick(len(outcomes), 0)
    return done


def _together(
    batch: list[Item],
    work: Callable[[list[Item]], Sequence[Made]],
    engine: str,
    what: str,
    faults: tuple[type[Exception], ...],
) -> list[Outcome[Made]] | None:
    """None if memory did not suffice for several items."""
    started = time.perf_counter()
    caught: tuple[type[Exception], ...] = (RuntimeError, MemoryError, *faults)
    fault = ""
    results: Sequence[Made] = ()
    try:
        results = work(batch)
    except caught as error:
        if is_out_of_memory(error) and len(batch) > 1:
            return None
        fault = f"{engine} failed: {' '.join(str(error).split())[:300] or type(error).__name__}"
    # Outside the handler: until here the error held the batch's memory.
    if not fault and len(results) != len(batch):
        fault = f"{engine} gave {len(results)} results for {len(batch)} {what}"
    if fault and len(batch) > 1:
        return [outcome for item in batch for outcome in _together([item], work, engine, what, faults) or ()]
    seconds = (time.perf_counter() - started) / len(batch)
    if fault:
        return [Outcome(None, fault, seconds)]
    return [Outcome(result, "", seconds) for result in results]


def in_token_batches(
    items: Sequence[Item],
    lengths: Sequence[int],
    budget: int,
    work: Callable[[list[Item]], Sequence[Made]],
    *,
    who: str,
) -> list[Made]:
    order = sorted(range(len(items)), key=lambda i: -lengths[i])
    made: dict[int, Made] = {}
    start = 0
    tick = current_tick()
    while start < len(order):
        longest = max(1, lengths[order[start]])
        batch = order[start : start + max(1, budget // longest)]
        results, failure = unless_out_of_memory(work, [items[i] for i in batch])
        if results is None:
            if len(batch) == 1:
                raise no_memory(who, lengths[batch[0]], items[batch[0]], failure)
            budget = len(batch) // 2 * longest
            continue
        if len(results) != len(batch):
            raise ModelError(f"{who} gave {len(results)} results for {len(batch)} items.")
        made.update(zip(batch, results, strict=True))
        start += len(batch)
        tick(len(batch), len(items))
    return [made[i] for i in range(len(items))]


def unless_out_of_memory(work: Callable[[Item], Made], batch: Item) -> tuple[Made | None, str]:
    """What `work` makes of a batch, or None and why where memory ran out, with what the failure held set free."""
    try:
        return work(batch), ""
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        failure = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    free_memory()
    return None, failure


def no_memory(who: str, tokens: int, item: object, failure: str) -> ModelError:
    """The error for a single item that does not fit into memory."""
    return ModelError(
        f"{who} has no memory for one item of {tokens} tokens ({str(item)[:80]!r}): {failure}.",
        hint="Give a smaller max_tokens, dtype bfloat16, or device_map auto.",
    )


def free_memory() -> None:
    """Let go of what a failed batch held, some of it in cycles, so that a smaller one finds room in one piece."""
    gc.collect()
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
