"""When failed items are no longer some that are counted, but a component that stopped working."""

from __future__ import annotations

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
    """Raise `ModelError` for a run of which more items failed than `options` allow."""
    allowed = 0.0 if options.strict else options.max_failed
    failed = len(output.failed)
    if not failed or failed <= allowed * output.n:
        return
    id_, why = next(iter(output.failed.items()))
    share = failed / output.n
    more = "" if options.strict else f", {share:.3g} of all where {allowed:g} is allowed"
    hint = "or leave --strict out" if options.strict else f"or allow them: --max-failed {_above(share)}"
    raise ModelError(
        f"{failed} of {output.n} items of {run.config} failed for {run.system}{more}; the first is {id_!r}: "
        f"{_sentence(why)}",
        hint=f"{_AGAIN[:-1]}, {hint} (they are then counted, and never scored as words).",
    )


def _above(share: float) -> float:
    """A share to allow so many failures, in hundredths."""
    return min(1.0, round(-(-share * 100 // 1) / 100, 2))


def _sentence(why: str) -> str:
    return f"{why.rstrip('.')}."
