"""Does a system prefer places? What it chose against where the right options stood, A, B, C, …

- Recall by place, and RStd, their standard deviation: Zheng et al., Large Language Models Are Not Robust Multiple
  Choice Selectors, ICLR 2024. RStd is never below 0 and grows as n falls: read it beside its interval.
- A score test of the wrong choices (Cox & Hinkley, Theoretical Statistics, 1974, §9.3): without a preference for
  places a wrong choice falls on each of an item's other places with the same chance, however the right ones are
  spread and whatever the numbers of options are. What the options say can look like a preference too, unless they
  were shuffled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....metrics.statistics import UNDEFINED, Floats, Interval, Method, bootstrap_interval
from .option_text import LETTERS


@dataclass(frozen=True, slots=True)
class Shown:
    """One reply: how many options were shown, the place of the right one, the place chosen (None: none), from 0."""

    options: int
    right: int
    chosen: int | None


@dataclass(frozen=True, slots=True)
class PositionBias:
    """By letter of the place: how often it was `chosen` and `right`, the `recall` where it was right (NaN: never was).

    `rstd` is the standard deviation of the recalls, in [0, 0.5]. `chi_square` with `degrees_of_freedom` and `p_value`
    are of the test of `n_wrong` wrong choices; NaN where nothing can be tested.
    """

    chosen: dict[str, int]
    right: dict[str, int]
    recall: dict[str, float]
    rstd: float
    rstd_interval: Interval
    chi_square: float
    degrees_of_freedom: int
    p_value: float
    n_wrong: int


def position_bias(
    replies: Sequence[Shown],
    clusters: Sequence[object] | None = None,
    *,
    seed: int,
    resamples: int = 1000,
    method: Method = "percentile",
) -> PositionBias:
    """What `replies` say about a preference for places; those that chose nothing count in recall only, as not right.

    `clusters` are drawn together for the interval (the replies of one item in several orders). The test takes wrong
    choices as independent.

    >>> always_first = [Shown(4, right, 0) for right in (0, 1, 2, 3)] * 10
    >>> found = position_bias(always_first, seed=0)
    >>> found.chosen, found.recall["A"], found.recall["B"], round(found.rstd, 3)
    ({'A': 40, 'B': 0, 'C': 0, 'D': 0}, 1.0, 0.0, 0.433)
    >>> found.n_wrong, round(found.chi_square, 3), found.degrees_of_freedom, found.p_value < 1e-9
    (30, 60.0, 3, True)
    """
    places = max((reply.options for reply in replies), default=0)
    letters = LETTERS[:places]
    right = np.zeros((len(replies), places))
    hit = np.zeros((len(replies), places))
    chosen = np.zeros(places, dtype=np.int64)
    for row, reply in enumerate(replies):
        right[row, reply.right] = 1
        hit[row, reply.right] = reply.chosen == reply.right
        if reply.chosen is not None:
            chosen[reply.chosen] += 1
    held = right.sum(axis=0) > 0
    recalls = np.full(places, math.nan)
    recalls[held] = hit.sum(axis=0)[held] / right.sum(axis=0)[held]
    interval = UNDEFINED
    if held.sum() > 1:
        columns = np.concatenate([hit[:, held], right[:, held]], axis=1)
        interval = bootstrap_interval(columns, _rstd, clusters, seed=seed, resamples=resamples, method=method)
    chi_square, degrees, p_value, n_wrong = _test_of_wrong_choices(replies, places)
    return PositionBias(
        chosen=dict(zip(letters, chosen.tolist(), strict=True)),
        right=dict(zip(letters, right.sum(axis=0).astype(int).tolist(), strict=True)),
        recall=dict(zip(letters, recalls.tolist(), strict=True)),
        rstd=float(recalls[held].std()) if held.sum() > 1 else math.nan,
        rstd_interval=interval,
        chi_square=chi_square,
        degrees_of_freedom=degrees,
        p_value=p_value,
        n_wrong=n_wrong,
    )


def _rstd(sums: Floats) -> Floats:
    places = sums.shape[-1] // 2
    return np.asarray((sums[..., :places] / sums[..., places:]).std(axis=-1))


def _test_of_wrong_choices(replies: Sequence[Shown], places: int) -> tuple[float, int, float, int]:
    """Statistic, degrees of freedom, p-value, number of wrong choices."""
    from scipy.special import chdtrc

    wrong = [reply for reply in replies if reply.chosen is not None and reply.chosen != reply.right]
    difference = np.zeros(places)
    covariance = np.zeros((places, places))
    for reply in wrong:
        chance = np.zeros(places)
        chance[: reply.options] = 1 / (reply.options - 1)
        chance[reply.right] = 0
        difference[reply.chosen] += 1
        difference -= chance
        covariance += np.diag(chance) - np.outer(chance, chance)
    if not covariance.any():
        return math.nan, 0, math.nan, len(wrong)
    # The counts of places add up, so that the covariance is singular: its generalized inverse, and its rank.
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values[-1]
    degrees = int(kept.sum())
    statistic = float(((vectors[:, kept].T @ difference) ** 2 / values[kept]).sum())
    return statistic, degrees, float(chdtrc(degrees, statistic)), len(wrong)
