"""What a result of this task holds beside scores, groups and losses."""

from __future__ import annotations

from typing import Any

from ...results.envelope import Group, Score
from ...results.files import FileModel


class Paired(FileModel):
    """First minus second over the same `n` items; `minimum_detectable` is the difference found with 80 % power."""

    first: float
    second: float
    difference: Score
    p_value: float | None
    minimum_detectable: float | None
    n: int


class Comparison(FileModel):
    """The system (first) against a baseline (second): its text alone, or its own options in another order."""

    name: str
    mcqa: Paired | None
    aif: Paired | None


class Mcqa(FileModel):
    """Multiple choice: `counts` are of replies (ambiguous, absent, empty, missing), `spoken` minus the written."""

    n: int
    n_orders: int
    counts: dict[str, int]
    missing_audio: int
    coverage: float | None
    position_bias: dict[str, Any] | None
    spoken: Paired | None
    parser_version: str


class Aif(FileModel):
    """Following instructions: `verifiers` has the instruction-level scores of each kind, `spoken` as in `Mcqa`."""

    n: int
    n_instructions: int
    counts: dict[str, int]
    missing_audio: int
    coverage: float | None
    spoken: Paired | None
    verifiers: list[Group]
    verifiers_version: str


class Judge(FileModel):
    """One judge of open-ended replies: the mean of its `n` marks (1 to 5), without the `failed` ones."""

    name: str
    spec: dict[str, Any]
    mark: Score
    n: int
    failed: int
    marks: dict[str, int]


class Agreement(FileModel):
    """Two judges on the `n` replies that both marked: the share of equal marks, quadratic weighted kappa."""

    first: str
    second: str
    n: int
    equal: float | None
    kappa: float | None


class OpenEnded(FileModel):
    """The items that are flagged as open-ended, as judges mark them. `rubric` is their instruction."""

    rubric_version: str
    rubric: str
    n: int
    judges: list[Judge]
    agreement: list[Agreement]


class UnderstandingDetails(FileModel):
    """The details of a result. `baselines` has `text-only` and `shuffled` where they were asked.

    `option_orders` is the most orders of a question, `coverage` the share of items with audio.
    """

    prompts_version: str
    prompts: dict[str, str]
    option_orders: int
    spoken: bool
    coverage: float | None
    mcqa: Mcqa | None
    aif: Aif | None
    baselines: dict[str, Comparison]
    open_ended: OpenEnded | None
    errors: dict[str, int]
    duration_edges_s: list[float]
