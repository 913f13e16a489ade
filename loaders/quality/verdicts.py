"""What a judge answers, and what two judges together decide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

Status = Literal["accepted", "rejected", "flagged"]
ACCEPTED_SCORE = 4.0
TRUNCATED_CAP = 2.0
"""The rubric's highest score for speech that is cut off."""


class AnalysisTrace(BaseModel):
    model_config = ConfigDict(frozen=True)

    text_alignment: Literal["Exact Match", "Mismatch"]
    detected_artifacts: tuple[str, ...]
    prosody_assessment: Literal["Natural", "Robotic", "Monotone"]


class Verdict(BaseModel):
    """A judge's reply, field by field as published."""

    model_config = ConfigDict(frozen=True)

    analysis_trace: AnalysisTrace
    fatal_error_flag: StrictBool
    reasoning_summary: str
    final_quality_score: Annotated[float, Field(strict=True, ge=1.0, le=5.0)]

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The artifacts that were found; the word "None" is none."""
        return tuple(
            name for name in self.analysis_trace.detected_artifacts if name.strip().lower() not in {"none", ""}
        )

    @property
    def inconsistent(self) -> bool:
        """Whether it found a truncation and yet scored above the rubric's cap for that."""
        truncated = any("truncat" in name.lower() for name in self.artifacts)
        return truncated and self.final_quality_score > TRUNCATED_CAP


@dataclass(frozen=True, slots=True)
class JudgeError:
    """A judge that gave no verdict: no answer, or something that is not the JSON. Never a score."""

    reason: str


Opinion = Verdict | JudgeError


def parse_verdict(reply: str) -> Opinion:
    """The verdict in a model's reply, which must be the JSON object alone; one Markdown fence around it is taken off.

    >>> parse_verdict("Sounds fine to me: 5/5").reason
    'the reply is not the JSON: Invalid JSON: expected value at line 1 column 1'
    """
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", reply, flags=re.DOTALL)
    try:
        return Verdict.model_validate_json(fenced[1] if fenced else reply)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return JudgeError(f"the reply is not the JSON: {f'{place}: ' if place else ''}{first['msg']}")


def judged(opinions: Sequence[Opinion], accepted_score: float = ACCEPTED_SCORE) -> tuple[Status, tuple[str, ...]]:
    """What all judges of one clip decide, and why.

    Rejected: a fatal flag (judge_fatal), or the lowest score below `accepted_score` (judge_score). Flagged, so that a
    person decides: otherwise, where a verdict contradicts itself (judge_inconsistent) or is missing (judge_error).
    Accepted: the rest, so every judge answered and the lowest score is at least `accepted_score`.
    """
    verdicts = [opinion for opinion in opinions if isinstance(opinion, Verdict)]
    rejecting = []
    if any(verdict.fatal_error_flag for verdict in verdicts):
        rejecting.append("judge_fatal")
    if any(verdict.final_quality_score < accepted_score for verdict in verdicts):
        rejecting.append("judge_score")
    flags = ["judge_inconsistent"] if any(verdict.inconsistent for verdict in verdicts) else []
    if len(verdicts) < len(opinions):
        flags.append("judge_error")
    if rejecting:
        return "rejected", (*rejecting, *flags)
    return ("flagged", tuple(flags)) if flags else ("accepted", ())
