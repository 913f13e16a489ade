"""What a check of one component found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..results.self_check import Verdict

NOT_LOADED = "weights that were not loaded"
NO_AUDIO = "a class that leaves the audio out, or audio weights that were not loaded"


@dataclass(frozen=True, slots=True)
class Finding:
    """`seen` is what was measured, `note` says it in words, `cause` what it most likely comes from."""

    verdict: Verdict
    seen: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    cause: str = ""


def failed(note: str, cause: str, **seen: float) -> Finding:
    return Finding("failed", seen, note, cause)


def rounded(value: float) -> float:
    """Four digits behind the point: what differs between two processors is not kept."""
    return round(float(value), 4)
