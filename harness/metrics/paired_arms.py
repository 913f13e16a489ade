"""What a room costs a recognizer: the same utterances clean and reverberant, paired, clustered by utterance.

Both arms have the same references, so a difference of corpus rates is (Σ reverberant − Σ clean errors) divided by
Σ length. An utterance may be heard in several rooms: its pairs share one clean transcript, are drawn together for
intervals and change sides together in tests. Rates are ratios throughout; a delta of 0.05 is five percentage points.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from .attribution import Estimate
from .comparison import holm, paired_permutation
from .statistics import UNDEFINED, Floats, Statistic, bootstrap_interval

KINDS = ("substitutions", "deletions", "insertions")
_LENGTH = 3


@dataclass(frozen=True, slots=True)
class Draws:
    """How intervals and tests draw: the seed, bootstrap resamples, random sign patterns."""

    seed: int = 0
    resamples: int = 1000
    permutations: int = 10_000


@dataclass(frozen=True, slots=True)
class Arms:
    """Error counts of n pairs: `clean` and `reverb` are (n, 4) as `counts_array` gives them, `utterances` n labels.

    Raises `DataError` if the numbers of pairs, or the reference lengths of a pair, differ.
    """

    clean: NDArray[np.int64]
    reverb: NDArray[np.int64]
    utterances: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if not len(self.clean) == len(self.reverb) == len(self.utterances):
            raise DataError(
                f"{len(self.clean)} clean and {len(self.reverb)} reverberant counts for {len(self.utterances)} labels."
            )
        odd = np.flatnonzero(self.clean[:, _LENGTH] != self.reverb[:, _LENGTH])
        if len(odd):
            raise DataError(
                f"pair {int(odd[0])} has {int(self.clean[odd[0], _LENGTH])} tokens clean and "
                f"{int(self.reverb[odd[0], _LENGTH])} reverberant.",
                hint="Score both arms against the same reference.",
            )

    def __len__(self) -> int:
        return len(self.clean)

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Arms:
        """Some of the pairs."""
        index = np.asarray(rows, dtype=np.intp)
        return Arms(self.clean[index], self.reverb[index], tuple(self.utterances[i] for i in index.tolist()))

    @property
    def with_reference(self) -> Arms:
        """The pairs whose reference is not empty: those that have a rate of their own."""
        return self.take(np.flatnonzero(self.clean[:, _LENGTH] > 0))

    @property
    def lengths(self) -> Floats:
        """(n,) reference lengths."""
        return self.clean[:, _LENGTH].astype(np.float64)

    @property
    def errors(self) -> tuple[Floats, Floats]:
        """(n,) errors in the clean and in the reverberant arm."""
        clean, reverb = (side[:, :_LENGTH].sum(axis=1).astype(np.float64) for side in (self.clean, self.reverb))
        return clean, reverb


@dataclass(frozen=True, slots=True)
class Delta:
    """What the room costs: rate in it − clean rate (`absolute`), by the clean rate (`relative`), and a test of 0.

    `p_value` is that of the two-sided sign-flip test over utterances; `exact` if all patterns were tried.
    """

    absolute: Estimate
    relative: Estimate
    p_value: float
    exact: bool


@dataclass(frozen=True, slots=True)
class ArmRates:
    """One rate in both arms, and the difference."""

    clean: Estimate
    reverb: Estimate
    delta: Delta


def _ratio(numerator: int, denominator: int, minus: int | None = None) -> Statistic:
    def statistic(sums: Floats) -> Floats:
        top = sums[..., numerator] if minus is None else sums[..., numerator] - sums[..., minus]
        return np.asarray(top / sums[..., denominator])

    return statistic


def _estimate(columns: Floats, statistic: Statistic, labels: Sequence[Hashable], draws: Draws) -> Estimate:
    n = len(columns)
    if not n:
        return Estimate(math.nan, UNDEFINED, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(columns.sum(axis=0)))
    if not math.isfinite(value):
        return Estimate(math.nan, UNDEFINED, n)
    interval = bootstrap_interval(columns, statistic, list(labels), seed=draws.seed, resamples=draws.resamples)
    return Estimate(value, interval, n)


def arm_rates(arms: Arms, *, macro: bool = False, draws: Draws | None = None) -> ArmRates:
    """Corpus rates of both arms, or with `macro` means of the pairs' own rates, and what the room costs.

    NaN without a reference token; `relative` is NaN without clean errors.

    >>> counts = np.array([[1, 0, 0, 10], [0, 0, 0, 10]])
    >>> found = arm_rates(Arms(counts, counts + [[1, 0, 0, 0], [1, 1, 0, 0]], ("a", "b")))
    >>> found.clean.value, found.reverb.value, round(found.delta.absolute.value, 6), found.delta.relative.value
    (0.05, 0.2, 0.15, 3.0)
    >>> found.delta.p_value, found.delta.exact
    (0.5, True)
    """
    chosen = draws or Draws()
    own = arms.with_reference if macro else arms
    clean, reverb = own.errors
    weight = own.lengths
    if macro:
        clean, reverb, weight = clean / weight, reverb / weight, np.ones_like(weight)
    columns = np.column_stack([clean, weight]), np.column_stack([reverb, weight])
    return ArmRates(
        clean=_estimate(columns[0], _ratio(0, 1), own.utterances, chosen),
        reverb=_estimate(columns[1], _ratio(0, 1), own.utterances, chosen),
        delta=_difference(reverb, clean, weight, own.utterances, chosen),
    )


def _difference(left: Floats, right: Floats, weight: Floats, labels: Sequence[Hashable], draws: Draws) -> Delta:
    """(Σ left − Σ right) / Σ weight, the same by Σ right, and the test of 0."""
    columns = np.column_stack([right, left, weight])
    p_value, exact = math.nan, False
    if len(columns):
        test = paired_permutation(left, right, labels, seed=draws.seed, permutations=draws.permutations)
        p_value, exact = test.p_value, test.exact
    return Delta(
        _estimate(columns, _ratio(1, 2, minus=0), labels, draws),
        _estimate(columns, _ratio(1, 0, minus=0), labels, draws),
        p_value,
        exact,
    )


def delta_change(changed: Arms, plain: Arms, *, draws: Draws | None = None) -> Delta:
    """By how much another recognizer's corpus delta on the same pairs differs: `changed` − `plain`, with a test of 0.

    Raises `DataError` if they are not of the same pairs.

    >>> counts = np.array([[0, 0, 0, 10], [0, 0, 0, 10]])
    >>> plain = Arms(counts, counts + [[2, 0, 0, 0], [2, 0, 0, 0]], ("a", "b"))
    >>> changed = Arms(counts, counts + [[1, 0, 0, 0], [1, 0, 0, 0]], ("a", "b"))
    >>> found = delta_change(changed, plain)
    >>> found.absolute.value, found.relative.value
    (-0.1, -0.5)
    """
    if changed.utterances != plain.utterances or (changed.lengths != plain.lengths).any():
        raise DataError("the two recognizers have other pairs.", hint="Score both on the same pairs.")
    (clean, reverb), (plain_clean, plain_reverb) = changed.errors, plain.errors
    return _difference(reverb - clean, plain_reverb - plain_clean, plain.lengths, plain.utterances, draws or Draws())


@dataclass(frozen=True, slots=True)
class KindChange:
    """One kind of error per reference token: clean, in the room, and the difference."""

    clean: Estimate
    reverb: Estimate
    change: Estimate


def error_kinds(arms: Arms, *, draws: Draws | None = None) -> dict[str, KindChange]:
    """How many substitutions, deletions and insertions per reference token the room adds. They sum to the delta.

    >>> counts = np.array([[1, 0, 0, 10], [0, 0, 0, 10]])
    >>> found = error_kinds(Arms(counts, counts + [[0, 2, 0, 0], [0, 1, 0, 0]], ("a", "b")))
    >>> {kind: change.change.value for kind, change in found.items()}
    {'substitutions': 0.0, 'deletions': 0.15, 'insertions': 0.0}
    """
    chosen = draws or Draws()
    found = {}
    for place, kind in enumerate(KINDS):
        columns = np.column_stack([arms.clean[:, place], arms.reverb[:, place], arms.lengths]).astype(np.float64)
        found[kind] = KindChange(
            _estimate(columns, _ratio(0, 2), arms.utterances, chosen),
            _estimate(columns, _ratio(1, 2), arms.utterances, chosen),
            _estimate(columns, _ratio(1, 2, minus=0), arms.utterances, chosen),
        )
    return found


@dataclass(frozen=True, slots=True)
class RoomSpread:
    """How much the cost differs from room to room, as standard deviations of rates.

    - `within_utterances`: over the rooms of one utterance, pooled over the utterances that were heard in several (the
      root of the mean sample variance); the clean rate is the same in all of them, so it is that of the delta too.
      n utterances; NaN where each was heard in one room.
    - `between_rooms`: of the rooms' own corpus deltas, as observed; n rooms. Chance is in it: a room in which few
      utterances were heard differs by them alone.
    - `room_component`: without that chance: the between-room component of the pairs' deltas in a one-way random-effects
      analysis of variance, (MSB − MSW) / n₀, at least 0 (Searle, Casella & McCulloch, Variance Components, 1992,
      section 3.6). NaN unless some rooms heard several utterances.

    Intervals resample utterances in the first, rooms in the others.
    """

    within_utterances: Estimate
    between_rooms: Estimate
    room_component: Estimate


def room_spread(arms: Arms, rooms: Sequence[Hashable], *, draws: Draws | None = None) -> RoomSpread:
    """The spread over rooms; `rooms` labels the pairs.

    >>> clean, reverb = np.array([[0, 0, 0, 10]] * 4), np.array([[1, 0, 0, 10], [3, 0, 0, 10]] * 2)
    >>> found = room_spread(Arms(clean, reverb, ("a", "a", "b", "b")), ("hall", "bath", "hall", "bath"))
    >>> round(found.within_utterances.value, 4), round(found.between_rooms.value, 4)
    (0.1414, 0.1414)
    """
    chosen = draws or Draws()
    filled = np.flatnonzero(arms.lengths > 0)
    own, labels = arms.take(filled), [rooms[i] for i in filled.tolist()]
    clean, reverb = own.errors
    rates, lost = reverb / own.lengths, (reverb - clean) / own.lengths
    variances = [float(np.var(rates[group], ddof=1)) for group in _groups(own.utterances) if len(group) > 1]
    within = np.column_stack([variances, np.ones(len(variances))]) if variances else np.zeros((0, 2))
    by_room = _groups(labels)
    deltas = np.array([(reverb[g] - clean[g]).sum() / own.lengths[g].sum() for g in by_room])
    sums = np.array([[len(g), lost[g].sum(), (lost[g] ** 2).sum()] for g in by_room]).reshape(-1, 3)
    count, total = sums[:, 0], sums[:, 1]
    parts = np.column_stack([np.ones(len(sums)), sums, total**2 / count, count**2])
    return RoomSpread(
        _estimate(within, lambda s: np.sqrt(s[..., 0] / s[..., 1]), range(len(within)), chosen),
        _estimate(np.column_stack([deltas, deltas**2, np.ones(len(deltas))]), _sample_std, range(len(deltas)), chosen),
        _estimate(parts, _component, range(len(parts)), chosen),
    )


def _groups(labels: Sequence[Hashable]) -> list[NDArray[np.intp]]:
    """Row numbers by label, in order of appearance."""
    members: dict[Hashable, list[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    return [np.array(rows, dtype=np.intp) for rows in members.values()]


def _sample_std(sums: Floats) -> Floats:
    """From sums of (x, x², 1)."""
    x, xx, n = np.moveaxis(sums, -1, 0)
    return np.asarray(np.sqrt(np.maximum(0.0, xx - x**2 / n) / (n - 1)))


def _component(sums: Floats) -> Floats:
    """From sums over groups of (1, size, Σx, Σx², (Σx)²/size, size²): the root of the between-group component."""
    k, n, x, xx, means, sizes = np.moveaxis(sums, -1, 0)
    between = (means - x**2 / n) / (k - 1)
    inside = (xx - means) / (n - k)
    typical = (n - sizes / n) / (k - 1)
    return np.asarray(np.sqrt(np.maximum(0.0, (between - inside) / typical)))


@dataclass(frozen=True, slots=True)
class BinRates:
    """The pairs of one bin: how many utterances and rooms they have, and their rates by name.

    `p_holm` is the p-value of the first of them, corrected (Holm) over the bins.
    """

    pairs: int
    utterances: int
    rooms: int
    rates: Mapping[str, ArmRates]
    p_holm: float


def rates_by_bin(
    units: Mapping[str, Arms],
    bins: Sequence[Hashable],
    rooms: Sequence[Hashable],
    *,
    draws: Draws | None = None,
) -> dict[Hashable, BinRates]:
    """Corpus rates of the pairs in each bin, bins in order of appearance. `units` are the same pairs in several units.

    >>> counts = np.array([[0, 0, 0, 4]] * 2)
    >>> arms = Arms(counts, np.array([[1, 0, 0, 4], [3, 0, 0, 4]]), ("a", "b"))
    >>> found = rates_by_bin({"wer": arms}, (0, 1), ("hall", "bath"))
    >>> [(name, own.pairs, own.rates["wer"].delta.absolute.value) for name, own in found.items()]
    [(0, 1, 0.25), (1, 1, 0.75)]
    """
    chosen = draws or Draws()
    members: dict[Hashable, list[int]] = {}
    for row, name in enumerate(bins):
        members.setdefault(name, []).append(row)
    found = {
        name: {unit: arm_rates(arms.take(rows), draws=chosen) for unit, arms in units.items()}
        for name, rows in members.items()
    }
    first = next(iter(units))
    # The names are the bins' own: corrected under their numbers.
    corrected = holm({str(i): rates[first].delta.p_value for i, rates in enumerate(found.values())})
    labels = units[first].utterances
    return {
        name: BinRates(
            pairs=len(members[name]),
            utterances=len({labels[row] for row in members[name]}),
            rooms=len({rooms[row] for row in members[name]}),
            rates=rates,
            p_holm=corrected[str(i)],
        )
        for i, (name, rates) in enumerate(found.items())
    }


def significant_from(tests: Sequence[tuple[float, float]], *, level: float = 0.05) -> int | None:
    """The first of the bins that lose significantly, as all above it do; None if the last does not.

    `tests` are (delta, p-value) from the least to the most reverberant bin. They are tested in a fixed order, from the
    last down, each at the full `level`, until one is not significant or loses nothing: the chance of any false claim
    stays below `level` (Maurer, Hothorn & Lehmacher 1995; the "minimum effective dose" of Tamhane, Hochberg & Dunnett,
    Biometrics 52, 1996).

    >>> significant_from([(0.0, 0.9), (0.1, 0.04), (0.2, 0.001)])
    1
    >>> significant_from([(0.1, 0.001), (0.1, 0.2)]) is None
    True
    """
    first: int | None = None
    for place in reversed(range(len(tests))):
        delta, p_value = tests[place]
        if not (delta > 0 and p_value <= level):
            break
        first = place
    return first
