"""The alignment of one utterance, token by token, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Levenshtein

from .error_counts import encode_tokens

Kind = Literal["equal", "substitute", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class AlignmentOp:
    """One step: `reference` is "" for an insertion, `hypothesis` for a deletion; the position there is -1."""

    kind: Kind
    reference: str
    hypothesis: str
    reference_at: int
    hypothesis_at: int


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> list[AlignmentOp]:
    """The steps that turn `reference` into `hypothesis`, in order, equal tokens included; [] for two empty ones.

    The edits are those that `count_errors` counts.

    >>> [(op.kind, op.reference, op.hypothesis) for op in align("fifteen new euros".split(), "fifty euros".split())]
    [('substitute', 'fifteen', 'fifty'), ('delete', 'new', ''), ('equal', 'euros', 'euros')]
    """
    steps: list[AlignmentOp] = []
    for op in Levenshtein.opcodes(*encode_tokens(reference, hypothesis)):
        left, right = range(op.src_start, op.src_end), range(op.dest_start, op.dest_end)
        if op.tag == "delete":
            steps.extend(AlignmentOp("delete", reference[i], "", i, -1) for i in left)
        elif op.tag == "insert":
            steps.extend(AlignmentOp("insert", "", hypothesis[j], -1, j) for j in right)
        else:
            kind: Kind = "equal" if op.tag == "equal" else "substitute"
            steps.extend(AlignmentOp(kind, reference[i], hypothesis[j], i, j) for i, j in zip(left, right, strict=True))
    return steps
