"""What was left out of a source, counted and named, so that a data set never silently holds less than was given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

EXAMPLES = 5
"""Ids or files that are named of each kind."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Things of one kind that were not taken: why, how many, and the first of them (ids or relative paths).

    >>> str(LeftOut("queries without a judgment", 2, ("q1", "q7")))
    '2 queries without a judgment (q1, q7)'
    """

    reason: str
    count: int
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, reason: str, items: Iterable[str]) -> tuple[LeftOut, ...]:
        """() for no items, else one entry."""
        found = list(items)
        return (cls(reason, len(found), tuple(found[:EXAMPLES])),) if found else ()

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        named = f" ({', '.join(self.examples)}{more})" if self.examples else ""
        return f"{self.count:,} {self.reason}{named}"


def merged(entries: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """One entry for each reason, in the order in which reasons first occur."""
    found: dict[str, LeftOut] = {}
    for entry in entries:
        held = found.get(entry.reason)
        examples = ((held.examples if held else ()) + entry.examples)[:EXAMPLES]
        found[entry.reason] = replace(entry, count=entry.count + (held.count if held else 0), examples=examples)
    return tuple(found.values())


def left_out_of(opened: object) -> tuple[LeftOut, ...]:
    """What a source or bank says that it left out: its attribute `left_out`, () where it has none."""
    return tuple(getattr(opened, "left_out", ()))
