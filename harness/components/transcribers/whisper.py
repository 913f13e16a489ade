"""What the backends for Whisper share: temperatures to fall back to, the seed of what is sampled, the confidence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....errors import UsageError

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""A window whose text repeats itself or is improbable is decoded again at the next of these (arXiv 2212.04356, 4.5)."""
COMPRESSION_RATIO = 2.4
"""A text of which zlib makes less than 1 / 2.4 of the bytes repeats itself."""
LOG_PROBABILITY = -1.0
"""A text with a lower mean log-probability of its tokens is improbable."""
NO_SPEECH = 0.6
"""A window that is improbable, and of which the model says "no speech" with more than this, has no text."""
SEED = 0
"""What each clip's sampling starts from, where a temperature is above 0."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a window of 30 s gave: number of tokens, mean log-probability of these and of the end."""

    tokens: int
    log_probability: float


def confidence(windows: Iterable[Window]) -> float:
    """The geometric mean probability of all tokens, those that end a window and timestamps among them; NaN of none.

    >>> round(confidence([Window(1, -1.0), Window(3, -0.25)]), 3)
    0.607
    """
    counted = [(w.log_probability, w.tokens + 1) for w in windows if w.tokens]
    number = sum(n for _, n in counted)
    return min(1.0, math.exp(sum(score * n for score, n in counted) / number)) if number else math.nan


def checked_temperatures(temperature: float | Sequence[float]) -> tuple[float, ...]:
    """One temperature, or those to be tried in this order. Raises `UsageError` unless all are in [0, 1] and rise.

    >>> checked_temperatures(0)
    (0.0,)
    """
    several = (temperature,) if isinstance(temperature, int | float) else tuple(temperature)
    if not several or not all(0 <= t <= 1 for t in several):
        raise UsageError(f"a temperature is between 0 and 1, not {temperature!r}.")
    if any(later <= earlier for earlier, later in itertools.pairwise(several)):
        raise UsageError(
            f"temperatures to fall back to rise, unlike {list(several)}.", hint=f"The usual ones: {list(TEMPERATURES)}."
        )
    return tuple(float(t) for t in several)


def require_patience(patience: float, beam_size: int) -> None:
    if not 0 < patience < math.inf:
        raise UsageError(f"patience is a number above 0, not {patience!r}.")
    if patience != 1 and beam_size == 1:
        raise UsageError("patience needs a beam search.", hint="Give a beam_size above 1.")
