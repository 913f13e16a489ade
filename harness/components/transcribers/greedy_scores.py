"""How sure a greedy search of transformers is of what it writes, without the scores of the whole vocabulary."""

from __future__ import annotations

import math
from typing import Any


class GreedyScores:
    """A logits processor that keeps the log-probability of each step's likeliest token, and changes nothing."""

    def __init__(self) -> None:
        self._steps: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self._steps.append(scores.float().log_softmax(-1).amax(-1))
        return scores

    def mean(self, row: int, length: int) -> float:
        """The geometric mean probability of a row's first `length` tokens; NaN of none."""
        kept = [float(step[row]) for step in self._steps[:length]]
        return math.exp(sum(kept) / len(kept)) if kept else math.nan
