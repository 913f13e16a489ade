"""Groups of RIRs that are alike: by quantiles of RT60, or of RT60 and DRR; and shares of pairs for each.

The edges are values that occur, taken from all RIRs of the bank, so that every bin holds about as many RIRs. A bin is
decided by the value alone: equal values share one. Where RT60 is not known, that is a stratum of its own. The strata of
known RIRs get equally many pairs, that of unknown ones as many as its share of the RIRs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import UsageError, unknown_name
from .measured import MeasuredRir, is_known

UNKNOWN = "unknown"
STRATIFY = ("rt60", "rt60+drr")


def quantile_edges(values: Iterable[float], bins: int) -> tuple[float, ...]:
    """Edges of at most `bins` bins with about equally many of the known `values` each; () if there is one bin.

    Bin i holds what is above edge i−1 and at most edge i. Fewer bins come out where values are equal.

    >>> quantile_edges([3.0, 1.0, 2.0, 4.0, float("nan")], 2), quantile_edges([1.0, 1.0, 1.0, 2.0], 4)
    ((2.0,), (1.0,))
    """
    if bins < 1:
        raise UsageError(f"the number of bins is {bins}.", hint="Give at least 1.")
    known = sorted(value for value in values if is_known(value))
    edges: list[float] = []
    for number in range(1, bins):
        # The smallest value with at least this share of all at or below it.
        edge = known[max(0, math.ceil(number * len(known) / bins) - 1)] if known else math.inf
        if edge < (known[-1] if known else -math.inf) and (not edges or edge > edges[-1]):
            edges.append(edge)
    return tuple(edges)


def bin_of(value: float, edges: Sequence[float]) -> int | None:
    """Number of the bin of a value, from 0; None if it is not known.

    >>> bin_of(2.0, (2.0, 3.0)), bin_of(2.1, (2.0, 3.0)), bin_of(float("nan"), ())
    (0, 1, None)
    """
    return bisect_left(edges, value) if is_known(value) else None


@dataclass(frozen=True, slots=True)
class Strata:
    """How RIRs are grouped: the edges of both measures, and whether DRR counts too (`by_drr`)."""

    rt60_edges: tuple[float, ...]
    drr_edges: tuple[float, ...]
    by_drr: bool

    @classmethod
    def of(cls, rirs: Sequence[MeasuredRir], *, stratify: str, rt60_bins: int, drr_bins: int) -> Strata:
        """The strata of a bank's RIRs. Raises `UsageError`."""
        if stratify not in STRATIFY:
            raise unknown_name("stratification", stratify, STRATIFY)
        return cls(
            quantile_edges((rir.rt60_s for rir in rirs), rt60_bins),
            quantile_edges((rir.drr_db for rir in rirs), drr_bins),
            stratify == "rt60+drr",
        )

    @property
    def edges(self) -> dict[str, list[float]]:
        return {"rt60_s": list(self.rt60_edges), "drr_db": list(self.drr_edges)}

    def name(self, rir: MeasuredRir) -> str:
        """The stratum of a RIR, such as `rt60_2` (from 1), `rt60_2_drr_5` or `rt60_unknown`."""
        parts = [_part("rt60", bin_of(rir.rt60_s, self.rt60_edges))]
        if self.by_drr:
            parts.append(_part("drr", bin_of(rir.drr_db, self.drr_edges)))
        return "_".join(parts)

    def names(self) -> list[str]:
        """All strata that can occur, in order, those of unknown RIRs last."""
        rt60 = [_part("rt60", number) for number in (*range(len(self.rt60_edges) + 1), None)]
        if not self.by_drr:
            return rt60
        drr = [_part("drr", number) for number in (*range(len(self.drr_edges) + 1), None)]
        return [f"{first}_{second}" for first in rt60 for second in drr]

    def bounds(self, name: str) -> dict[str, list[float | None]]:
        """What a stratum holds, by column: above the first and at most the second value; None is open or unknown."""
        found: dict[str, list[float | None]] = {}
        parts = name.split("_")
        for short, column, edges in (("rt60", "rt60_s", self.rt60_edges), ("drr", "drr_db", self.drr_edges)):
            if short not in parts:
                continue
            number = parts[parts.index(short) + 1]
            ends: list[float | None] = [None, *edges, None]
            found[column] = [None, None] if number == UNKNOWN else ends[int(number) - 1 : int(number) + 1]
        return found


def _part(measure: str, number: int | None) -> str:
    return f"{measure}_{UNKNOWN if number is None else number + 1}"


def is_unknown(name: str) -> bool:
    return name.endswith(f"_{UNKNOWN}") or f"_{UNKNOWN}_" in name


def targets(total: int, rirs: Mapping[str, int]) -> dict[str, float]:
    """How many of `total` pairs each stratum should get, as fractions. `rirs` counts its RIRs.

    >>> targets(100, {"rt60_1": 30, "rt60_2": 60, "rt60_unknown": 10})
    {'rt60_1': 45.0, 'rt60_2': 45.0, 'rt60_unknown': 10.0}
    """
    everything = sum(rirs.values())
    known = [name for name in rirs if not is_unknown(name)]
    shares = {name: total * count / everything for name, count in rirs.items() if is_unknown(name)}
    rest = total - sum(shares.values()) if known else 0.0
    return {name: shares[name] if name in shares else rest / len(known) for name in rirs}


def allocate(total: int, wanted: Mapping[str, float], caps: Mapping[str, int]) -> dict[str, int]:
    """Whole numbers that sum to `total`, as near as possible to `wanted` and nowhere above `caps`; ties to the first.

    Raises `UsageError` where the caps hold less than `total`.

    >>> allocate(5, {"a": 2.5, "b": 2.5}, {"a": 9, "b": 9}), allocate(5, {"a": 4.0, "b": 1.0}, {"a": 2, "b": 9})
    ({'a': 3, 'b': 2}, {'a': 2, 'b': 3})
    """
    if sum(caps.values()) < total:
        raise UsageError(f"{total} pairs were asked for, and there is room for {sum(caps.values())}.")
    given = {name: min(int(wanted[name]), caps[name]) for name in wanted}
    while (left := total - sum(given.values())) != 0:
        # What is furthest below its target comes first, and loses last.
        if left > 0:
            open_ = [name for name in given if given[name] < caps[name]]
            given[max(open_, key=lambda name: wanted[name] - given[name])] += 1
        else:
            held = [name for name in given if given[name] > 0]
            given[max(held, key=lambda name: given[name] - wanted[name])] -= 1
    return given
