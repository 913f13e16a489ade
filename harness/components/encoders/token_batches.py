"""Batches that hold a number of tokens, padding included, and that shrink where memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ....errors import ModelError
from ...processes import is_out_of_memory

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_token_batches(
    items: Sequence[Item],
    lengths: Sequence[int],
    budget: int,
    work: Callable[[list[Item]], Sequence[Made]],
    *,
    who: str,
) -> list[Made]:
    """What `work` makes of each item, in order; [] for no items.

    `lengths` are in tokens. Items are sorted by length, longest first, and given to `work` in batches of at most
    `budget` padded tokens (a longer item alone). Where a batch does not fit into memory, it and the rest go in smaller
    ones, down to one item. `who` names the model in errors. Raises `ModelError` for a single item that does not fit,
    and for another number of results than of items.

    >>> in_token_batches(["a", "bbb", "cc"], [1, 3, 2], 4, lambda batch: [f"{len(batch)}{x}" for x in batch], who="x")
    ['2a', '1bbb', '2cc']
    """
    order = sorted(range(len(items)), key=lambda i: -lengths[i])
    made: dict[int, Made] = {}
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        batch = order[start : start + max(1, budget // longest)]
        results, failure = _attempt(work, [items[i] for i in batch])
        if results is None:
            if len(batch) == 1:
                raise ModelError(
                    f"{who} has no memory for one item of {lengths[batch[0]]} tokens "
                    f"({str(items[batch[0]])[:80]!r}): {failure}.",
                    hint="Give a smaller max_tokens, or a smaller number type.",
                )
            budget = len(batch) // 2 * longest
            continue
        if len(results) != len(batch):
            raise ModelError(f"{who} gave {len(results)} results for {len(batch)} items.")
        made.update(zip(batch, results, strict=True))
        start += len(batch)
    return [made[i] for i in range(len(items))]


def _attempt(work: Callable[[list[Item]], Sequence[Made]], batch: list[Item]) -> tuple[Sequence[Made] | None, str]:
    """The results, or None and why where memory ran out. What the failure holds is released on return."""
    try:
        return work(batch), ""
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None, reason
