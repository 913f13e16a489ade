"""When failed items are no longer some that are counted, but a component that stopped working."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from ...errors import ModelError
from .options import Options
from .task import Output, Run

LAST = 5
"""So many items at the end of the work that all failed are a component that stopped."""
_AGAIN = "Run the same command again when that is mended: what was done is kept."

Item = TypeVar("Item")


def failed_tail(worked: Sequence[tuple[Item, str]]) -> dict[Item, str]:
    """The items at the end of the work that all failed, with why; {} if they are fewer than `LAST`.

    `worked` has the items in the order of the work, with why each failed ("" if it did not).

    >>> failed_tail([("a", "")] + [(name, "no answer") for name in "bcdef"])
    {'b': 'no answer', 'c': 'no answer', 'd': 'no answer', 'e': 'no answer', 'f': 'no answer'}
    >>> failed_tail([("a", ""), ("b", "no answer")])
    {}
    """
    first = next((place + 1 for place in reversed(range(len(worked))) if not worked[place][1]), 0)
    return dict(worked[first:]) if len(worked) - first >= LAST else {}


def stopped(who: str, tail: Mapping[Item, str]) -> ModelError:
    """The error for a component whose last items all failed."""
    return ModelError(
        f"{who} failed on all of the last {len(tail)} items, the last because: {_sentence(list(tail.values())[-1])}",
        hint=f"{_AGAIN} Or score what it gave: --max-failed 1.",
    )


def refuse_failures(output: Output, run: Run, options: Options) -> None:
    """Raise `ModelError` for a run of which more items failed than `options` allow, or all."""
    allowed, accept = options.max_failed, "add --max-failed {share:g}"
    if options.strict:
        allowed, accept = 0.0, "leave --strict out"
    refuse_share(output.failed, output.n, f"items of {run.config} failed for {run.system}", allowed, accept)


def refuse_share(failed: Mapping[str, str], n: int, what: str, allowed: float, accept: str) -> None:
    """Raise `ModelError` if a larger share of `n` items than `allowed` failed, or all.

    `failed` maps their ids to why, `what` is a clause ("clips failed for NAME"), `accept` says how to score it with a
    `share` of them failed.
    """
    if not failed or (len(failed) <= allowed * n and len(failed) < n):
        return
    id_, why = next(iter(failed.items()))
    if len(failed) == n:
        # A score of 0 would be one of a system that gave nothing.
        counted, hint = f"all {n} {what}", _AGAIN
    else:
        counted = f"{len(failed)} of {n} {what}"
        counted += f", more than {100 * allowed:g} %" if allowed else ""
        share = _above(len(failed) / n)
        hint = f"{_AGAIN} To score it with them counted as failed, {accept.format(share=share)}."
    raise ModelError(f"{counted}; the first is {id_!r}: {_sentence(why)}", hint=hint)


def _above(share: float) -> float:
    """A share, in hundredths, that allows as many.

    >>> _above(1 / 3), _above(0.2)
    (0.34, 0.2)
    """
    return math.ceil(round(share * 100, 9)) / 100


def _sentence(why: str) -> str:
    return f"{why.rstrip('.')}."
