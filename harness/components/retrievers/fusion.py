"""One ranking from several, of different retrievers or of the n best transcripts of one query.

The result depends on the set of rankings, not on their order: sums are correctly rounded (`math.fsum`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from ....errors import DataError, UsageError, unknown_name
from ...protocols import Hit

Method = Literal["rrf", "score"]
METHODS: tuple[Method, ...] = ("rrf", "score")
Normalization = Literal["min-max", "z", "none"]
NORMALISATIONS: tuple[Normalization, ...] = ("min-max", "z", "none")
RRF_CONSTANT = 60.0


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[Hit]],
    *,
    k: int | None = None,
    constant: float = RRF_CONSTANT,
    weights: Sequence[float] | None = None,
) -> list[Hit]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, doi 10.1145/1571941.1572114).

    A document's score is the sum of weight / (constant + rank) over the rankings that hold it, with ranks from 1 in the
    order given; a ranking that lacks it adds nothing. `weights` are all 1 if None. At most `k` hits, all if None; [] if
    there are none to fuse. Raises `DataError` for a document that stands twice in a ranking or a score that is not
    finite, `UsageError` for weights that are negative, not finite, all 0 or of another number, a `constant` that is not
    above -1, or `k` below 1.

    >>> a, b = [Hit("x", 9.0), Hit("y", 8.0)], [Hit("y", 0.7), Hit("z", 0.1)]
    >>> [(hit.document_id, round(hit.score, 4)) for hit in reciprocal_rank_fusion([a, b])]
    [('y', 0.0325), ('x', 0.0164), ('z', 0.0161)]
    """
    if not (math.isfinite(constant) and constant > -1):
        raise UsageError(f"reciprocal rank fusion needs a constant above -1, not {constant}.")
    parts: dict[str, list[float]] = {}
    for ranking, weight in _weighted(rankings, weights):
        for rank, hit in enumerate(ranking, start=1):
            parts.setdefault(hit.document_id, []).append(weight / (constant + rank))
    return _best(parts, k)


def score_fusion(
    rankings: Sequence[Sequence[Hit]],
    weights: Sequence[float] | None = None,
    *,
    normalization: Normalization = "min-max",
    k: int | None = None,
) -> list[Hit]:
    """The weighted sum of normalized scores (CombSUM, Fox and Shaw 1994).

    `min-max` maps the scores of a ranking to [0, 1] (to 1 if they are all equal), `z` subtracts their mean and divides
    by their standard deviation (0 if they are all equal), `none` takes them as they are. A document that a ranking of n
    hits lacks is below them all: it gets the least of their values less 1/n of what lies between the least and the
    highest, or less 1 where they are all equal; with `none` it gets 0 if that is below them. An empty ranking adds
    nothing. Otherwise as `reciprocal_rank_fusion`.

    >>> a, b = [Hit("x", 9.0), Hit("y", 8.0), Hit("z", 7.0), Hit("v", 5.0)], [Hit("y", 0.7), Hit("w", 0.1)]
    >>> [(hit.document_id, hit.score) for hit in score_fusion([a, b], [1.0, 2.0])]
    [('y', 2.75), ('x', 0.0), ('w', -0.25), ('z', -0.5), ('v', -1.0)]
    >>> [hit.document_id for hit in score_fusion([[Hit("x", 3.0)], [Hit("y", 0.9), Hit("x", 0.8), Hit("z", 0.2)]])]
    ['x', 'y', 'z']
    """
    if normalization not in NORMALISATIONS:
        raise unknown_name("normalization", normalization, NORMALISATIONS)
    normalize = _NORMALIZE[normalization]
    used = [(ranking, weight) for ranking, weight in _weighted(rankings, weights) if ranking]
    parts: dict[str, list[float]] = {hit.document_id: [] for ranking, _ in used for hit in ranking}
    for ranking, weight in used:
        scores = dict(zip((hit.document_id for hit in ranking), normalize(ranking), strict=True))
        absent = _absent(scores.values(), zero=normalization == "none")
        for document_id, terms in parts.items():
            terms.append(weight * scores.get(document_id, absent))
    return _best(parts, k)


def fuse(
    rankings: Sequence[Sequence[Hit]],
    *,
    method: Method,
    k: int | None = None,
    weights: Sequence[float] | None = None,
    constant: float = RRF_CONSTANT,
    normalization: Normalization = "min-max",
) -> list[Hit]:
    if method == "rrf":
        return reciprocal_rank_fusion(rankings, k=k, constant=constant, weights=weights)
    if method == "score":
        return score_fusion(rankings, weights, normalization=normalization, k=k)
    raise unknown_name("fusion method", method, METHODS)


def fuse_hypotheses(
    rankings: Sequence[Sequence[Hit]],
    scores: Sequence[float],
    *,
    method: Method = "rrf",
    k: int | None = None,
    constant: float = RRF_CONSTANT,
    normalization: Normalization = "min-max",
) -> list[Hit]:
    """The rankings of the n best transcripts of one query, each weighted by how likely its transcript is.

    `scores` are the transcripts' log-probabilities; their softmax gives the weights, so that a constant added to all
    changes nothing. Otherwise as `fuse`. Raises `DataError` for a score that is not finite.

    >>> [hit.document_id for hit in fuse_hypotheses([[Hit("x", 1.0)], [Hit("y", 1.0)]], [-3.0, -0.5])]
    ['y', 'x']
    """
    if len(scores) != len(rankings):
        raise UsageError(f"{len(rankings)} rankings came with {len(scores)} scores of their transcripts.")
    for score in scores:
        if not math.isfinite(score):
            raise DataError(f"a transcript has the log-probability {score}.")
    return fuse(rankings, method=method, k=k, weights=softmax(scores), constant=constant, normalization=normalization)


def softmax(scores: Sequence[float]) -> list[float]:
    """exp(score) of each over the sum of all; [] for none.

    >>> softmax([0.0, 0.0])
    [0.5, 0.5]
    """
    top = max(scores, default=0.0)
    powers = [math.exp(score - top) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def checked_weights(weights: Sequence[float] | None, n: int) -> list[float]:
    """`n` weights, all 1 if None. Raises `UsageError` as `reciprocal_rank_fusion`."""
    if weights is None:
        return [1.0] * n
    if len(weights) != n:
        raise UsageError(f"{n} rankings came with {len(weights)} weights.")
    for weight in weights:
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(f"a weight must be finite and at least 0, not {weight}.")
    if n and not any(weights):
        raise UsageError("all weights are 0.", hint="Give at least one ranking a weight above 0.")
    return [float(weight) for weight in weights]


def _weighted(rankings: Sequence[Sequence[Hit]], weights: Sequence[float] | None) -> list[tuple[Sequence[Hit], float]]:
    pairs = list(zip(rankings, checked_weights(weights, len(rankings)), strict=True))
    for ranking, _ in pairs:
        seen: set[str] = set()
        for hit in ranking:
            if hit.document_id in seen:
                raise DataError(f"document {hit.document_id!r} stands twice in one ranking.")
            if not math.isfinite(hit.score):
                raise DataError(f"document {hit.document_id!r} has the score {hit.score}.")
            seen.add(hit.document_id)
    return [(ranking, weight) for ranking, weight in pairs if weight > 0]


def _best(parts: dict[str, list[float]], k: int | None) -> list[Hit]:
    if k is not None and k < 1:
        raise UsageError(f"a fusion needs k of at least 1, not {k}.")
    hits = [Hit(document_id, math.fsum(terms)) for document_id, terms in parts.items()]
    hits.sort(key=lambda hit: (hit.score, hit.document_id), reverse=True)
    return hits[:k]


def _min_max(ranking: Sequence[Hit]) -> list[float]:
    scores = [hit.score for hit in ranking]
    low, high = min(scores), max(scores)
    if low == high:
        return [1.0] * len(scores)
    # Halves, because the span of two finite numbers may not be finite.
    span = high / 2 - low / 2
    return [(score / 2 - low / 2) / span for score in scores]


def _z(ranking: Sequence[Hit]) -> list[float]:
    scores = [hit.score for hit in ranking]
    if min(scores) == max(scores):
        return [0.0] * len(scores)
    scale = max(map(abs, scores))
    scaled = [score / scale for score in scores]
    mean = math.fsum(scaled) / len(scaled)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scaled) / len(scaled))
    return [(score - mean) / deviation if deviation else 0.0 for score in scaled]


def _absent(values: Collection[float], *, zero: bool) -> float:
    """What a document gets that is not among hits of these values: less than each; 0 with `zero`, if that is less."""
    low, high, n = min(values), max(values), len(values)
    if zero and low > 0:
        return 0.0
    below = low - (high / n - low / n) if high > low else low - 1.0
    # The step may be lost next to a huge value.
    return max(min(below, math.nextafter(low, -math.inf)), -sys.float_info.max)


_NORMALIZE: dict[str, Callable[[Sequence[Hit]], list[float]]] = {
    "min-max": _min_max,
    "z": _z,
    "none": lambda ranking: [hit.score for hit in ranking],
}
