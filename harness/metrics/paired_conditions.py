"""Error rates of the same utterances under two conditions, or by two systems: paired, clustered by utterance.

A difference of corpus rates is (Σ errors − Σ baseline errors) / Σ length; rates and losses are ratios throughout.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from .attribution import Estimate
from .comparison import paired_permutation
from .statistics import UNDEFINED, Floats, Statistic, bootstrap_interval

Counts = NDArray[np.int64]
"""(n, 4): substitutions, deletions, insertions and reference length, as `counts_array` gives them."""
KINDS = ("substitutions", "deletions", "insertions")
_LENGTH = 3


@dataclass(frozen=True, slots=True)
class Draws:
    seed: int = 0
    resamples: int = 1000
    permutations: int = 10_000


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """Error counts of n items, by the baseline and by what is compared with it; `clusters` are n labels."""

    baseline: Counts
    compared: Counts
    clusters: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        sizes = len(self.baseline), len(self.compared), len(self.clusters)
        if len(set(sizes)) > 1:
            raise DataError("{} counts of the baseline, {} compared with them, {} labels.".format(*sizes))
        odd = np.flatnonzero(self.baseline[:, _LENGTH] != self.compared[:, _LENGTH])
        if len(odd):
            first = int(odd[0])
            raise DataError(
                f"item {first} has {int(self.baseline[first, _LENGTH])} reference tokens for the baseline and "
                f"{int(self.compared[first, _LENGTH])} for what is compared with it.",
                hint="Score both against the same reference.",
            )

    def __len__(self) -> int:
        return len(self.baseline)

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> PairedCounts:
        index = np.asarray(rows, dtype=np.intp)
        return PairedCounts(self.baseline[index], self.compared[index], take_labels(self.clusters, index))

    @property
    def lengths(self) -> Floats:
        return self.baseline[:, _LENGTH].astype(np.float64)

    @property
    def errors(self) -> tuple[Floats, Floats]:
        return errors_of(self.baseline), errors_of(self.compared)


def errors_of(counts: Counts) -> Floats:
    return np.asarray(counts[:, :_LENGTH].sum(axis=1), dtype=np.float64)


def take_labels(labels: Sequence[Hashable], rows: NDArray[np.intp]) -> tuple[Hashable, ...]:
    return tuple(labels[i] for i in rows.tolist())


@dataclass(frozen=True, slots=True)
class RateLoss:
    """A rate minus the baseline's (positive is worse), the same by the baseline's, and a sign-flip test of 0."""

    absolute: Estimate
    relative: Estimate
    p_value: float
    exact: bool


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


def error_rate(
    counts: Counts, clusters: Sequence[Hashable], *, macro: bool = False, draws: Draws | None = None
) -> Estimate:
    """The corpus rate, or with `macro` the mean of the items' own rates (of those with a reference).

    NaN without a reference token.

    >>> error_rate(np.array([[1, 0, 0, 10], [0, 0, 0, 10]]), ("a", "b")).value
    0.05
    """
    errors, weight, labels = errors_of(counts), counts[:, _LENGTH].astype(np.float64), tuple(clusters)
    if macro:
        kept = np.flatnonzero(weight > 0)
        errors, labels = errors[kept] / weight[kept], take_labels(labels, kept)
        weight = np.ones(len(kept))
    return _estimate(np.column_stack([errors, weight]), _ratio(0, 1), labels, draws or Draws())


def rate_loss(pairs: PairedCounts, *, macro: bool = False, draws: Draws | None = None) -> RateLoss:
    """What is lost on the corpus rate, or with `macro` on the mean of the items' own rates.

    NaN without a reference token; `relative` is NaN where the baseline makes no error.

    >>> counts = np.array([[1, 0, 0, 10], [0, 0, 0, 10]])
    >>> found = rate_loss(PairedCounts(counts, counts + [[1, 0, 0, 0], [1, 1, 0, 0]], ("a", "b")))
    >>> round(found.absolute.value, 6), found.relative.value, found.p_value, found.exact
    (0.15, 3.0, 0.5, True)
    """
    own = pairs.take(np.flatnonzero(pairs.lengths > 0)) if macro else pairs
    (baseline, compared), weight = own.errors, own.lengths
    if macro:
        baseline, compared, weight = baseline / weight, compared / weight, np.ones_like(weight)
    return _loss(compared, baseline, weight, own.clusters, draws or Draws())


def _loss(compared: Floats, baseline: Floats, weight: Floats, labels: Sequence[Hashable], draws: Draws) -> RateLoss:
    """(Σ compared − Σ baseline) / Σ weight, the same by Σ baseline, and the test of 0."""
    columns = np.column_stack([baseline, compared, weight])
    p_value, exact = math.nan, False
    if len(columns):
        test = paired_permutation(compared, baseline, labels, seed=draws.seed, permutations=draws.permutations)
        p_value, exact = test.p_value, test.exact
    return RateLoss(
        _estimate(columns, _ratio(1, 2, minus=0), labels, draws),
        _estimate(columns, _ratio(1, 0, minus=0), labels, draws),
        p_value,
        exact,
    )


def loss_change(changed: PairedCounts, plain: PairedCounts, *, draws: Draws | None = None) -> RateLoss:
    """By how much the loss of another system on the same items differs: `changed` − `plain`, with a test of 0.

    Raises `DataError` if they are not of the same items.

    >>> counts = np.array([[0, 0, 0, 10], [0, 0, 0, 10]])
    >>> plain = PairedCounts(counts, counts + [[2, 0, 0, 0], [2, 0, 0, 0]], ("a", "b"))
    >>> changed = PairedCounts(counts, counts + [[1, 0, 0, 0], [1, 0, 0, 0]], ("a", "b"))
    >>> found = loss_change(changed, plain)
    >>> found.absolute.value, found.relative.value
    (-0.1, -0.5)
    """
    if changed.clusters != plain.clusters or (changed.lengths != plain.lengths).any():
        raise DataError("the two systems have different items.", hint="Score both on the same items.")
    (base, compared), (plain_base, plain_compared) = changed.errors, plain.errors
    return _loss(compared - base, plain_compared - plain_base, plain.lengths, plain.clusters, draws or Draws())


def error_kinds(counts: Counts, clusters: Sequence[Hashable], *, draws: Draws | None = None) -> dict[str, Estimate]:
    """Substitutions, deletions and insertions per reference token. They sum to the rate.

    >>> {kind: own.value for kind, own in error_kinds(np.array([[1, 0, 2, 10]]), ("a",)).items()}
    {'substitutions': 0.1, 'deletions': 0.0, 'insertions': 0.2}
    """
    values = counts.astype(np.float64)
    return {
        kind: _estimate(values[:, [place, _LENGTH]], _ratio(0, 1), clusters, draws or Draws())
        for place, kind in enumerate(KINDS)
    }


def kind_changes(pairs: PairedCounts, *, draws: Draws | None = None) -> dict[str, Estimate]:
    """By how much each kind of error per reference token differs from the baseline. They sum to the loss.

    >>> counts = np.array([[1, 0, 0, 10], [0, 0, 0, 10]])
    >>> found = kind_changes(PairedCounts(counts, counts + [[0, 2, 0, 0], [0, 1, 0, 0]], ("a", "b")))
    >>> {kind: change.value for kind, change in found.items()}
    {'substitutions': 0.0, 'deletions': 0.15, 'insertions': 0.0}
    """
    found = {}
    for place, kind in enumerate(KINDS):
        columns = np.column_stack([pairs.baseline[:, place], pairs.compared[:, place], pairs.lengths])
        found[kind] = _estimate(columns, _ratio(1, 2, minus=0), pairs.clusters, draws or Draws())
    return found


@dataclass(frozen=True, slots=True)
class RirSpread:
    """How much the loss differs from RIR to RIR, as standard deviations of rates.

    - `within_utterances`: over the RIRs of one utterance, pooled over the utterances that have several (the root of the
      mean sample variance); the clean rate is the same for all of them, so it is that of the loss too. n utterances;
      NaN where each has one RIR.
    - `between_rirs`: of the RIRs' own corpus losses, as observed; n RIRs. Chance is in it: a RIR with few utterances
      differs by them alone.
    - `rir_component`: without that chance: the between-RIR component of the items' losses in a one-way random-effects
      analysis of variance, (MSB − MSW) / n₀, at least 0 (Searle, Casella & McCulloch, Variance Components, 1992,
      section 3.6). NaN unless some RIRs have several utterances.

    Intervals resample utterances in the first, RIRs in the others.
    """

    within_utterances: Estimate
    between_rirs: Estimate
    rir_component: Estimate


def rir_spread(pairs: PairedCounts, rirs: Sequence[Hashable], *, draws: Draws | None = None) -> RirSpread:
    """The spread over RIRs; `rirs` labels the items, whose clusters are utterances.

    >>> clean, reverb = np.array([[0, 0, 0, 10]] * 4), np.array([[1, 0, 0, 10], [3, 0, 0, 10]] * 2)
    >>> found = rir_spread(PairedCounts(clean, reverb, ("a", "a", "b", "b")), ("hall", "bath", "hall", "bath"))
    >>> round(found.within_utterances.value, 4), round(found.between_rirs.value, 4)
    (0.1414, 0.1414)
    """
    chosen = draws or Draws()
    filled = np.flatnonzero(pairs.lengths > 0)
    own, labels = pairs.take(filled), take_labels(rirs, filled)
    baseline, compared = own.errors
    rates, lost = compared / own.lengths, (compared - baseline) / own.lengths
    variances = [float(np.var(rates[group], ddof=1)) for group in _groups(own.clusters) if len(group) > 1]
    within = np.column_stack([variances, np.ones(len(variances))]) if variances else np.zeros((0, 2))
    by_rir = _groups(labels)
    losses = np.array([(compared[g] - baseline[g]).sum() / own.lengths[g].sum() for g in by_rir])
    sums = np.array([[len(g), lost[g].sum(), (lost[g] ** 2).sum()] for g in by_rir]).reshape(-1, 3)
    count, total = sums[:, 0], sums[:, 1]
    parts = np.column_stack([np.ones(len(sums)), sums, total**2 / count, count**2])
    return RirSpread(
        _estimate(within, lambda s: np.sqrt(s[..., 0] / s[..., 1]), range(len(within)), chosen),
        _estimate(np.column_stack([losses, losses**2, np.ones(len(losses))]), _sample_std, range(len(losses)), chosen),
        _estimate(parts, _component, range(len(parts)), chosen),
    )


def _groups(labels: Sequence[Hashable]) -> list[NDArray[np.intp]]:
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


def significant_from(tests: Sequence[tuple[float, float]], *, level: float = 0.05) -> int | None:
    """The first of the bins that lose significantly, as all above it do; None if the last does not.

    `tests` are (loss, p-value) from the least to the most reverberant bin. They are tested in a fixed order, from the
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
        lost, p_value = tests[place]
        if not (lost > 0 and p_value <= level):
            break
        first = place
    return first
