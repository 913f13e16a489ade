"""Results arranged for a report."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import DataError
from ...escucha.results import AskRecord, Result
from ...results.old import Score
from ..formats import MINUS, UNDEFINED, number

NARROW_SPACE = "\u202f"
_ROLES = ("answerer", "control", "ready")


def ordered(results: Sequence[Result]) -> list[Result]:
    """Answerers first, then controls, then ready replies; each by name."""
    return sorted(results, key=lambda result: (_ROLES.index(result.answerer.role), result.answerer.name))


def refuse_mixture(records: Sequence[AskRecord]) -> None:
    """Raises `DataError` unless all results of a config are about the same questions, asked and read alike."""
    first: dict[str, Result] = {}
    for result in (record.result for record in records):
        other = first.setdefault(result.data.config, result)
        aspects = {
            "questions": (result.data.manifest_sha256, other.data.manifest_sha256),
            "number of questions": (result.data.n, other.data.n),
            "prompts": (result.asking.prompts_version, other.asking.prompts_version),
            "parser": (
                result.mcqa.parser_version if result.mcqa else "",
                other.mcqa.parser_version if other.mcqa else "",
            ),
            "duration bins": (tuple(result.duration_edges_s), tuple(other.duration_edges_s)),
        }
        name = next((name for name, (own, theirs) in aspects.items() if own != theirs), None)
        if name is not None:
            raise DataError(
                f"{other.answerer.name} and {result.answerer.name} have different {name} on {result.data.config}.",
                hint="Evaluate them again with the same version and data, or report them apart.",
            )


def signed_points(score: Score) -> str:
    """A difference in percentage points with its interval and its sign.

    >>> signed_points(Score(value=0.125, low=-0.01, high=0.26, n=8))
    '+12.5 [−1.0, 26.0]'
    """
    if score.value is None:
        return UNDEFINED
    text = number(100 * score.value, 1)
    shown = text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"
    if score.low is None or score.high is None:
        return shown
    return f"{shown} [{number(100 * score.low, 1)}, {number(100 * score.high, 1)}]"
