"""The records of the task: one row per utterance and RIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...results.envelope import ACOUSTIC_COLUMNS, FLAGS, TRANSCRIPT_COLUMNS, item_schema

if TYPE_CHECKING:
    from .scoring import Scored

SCHEMA = item_schema(*ACOUSTIC_COLUMNS, *TRANSCRIPT_COLUMNS)
_COUNTS = ("substitutions", "deletions", "insertions", "reference_length")
_UNKNOWN = (float("nan"),) * (len(_COUNTS) - 1)


def item_rows(scored: Scored) -> list[dict[str, Any]]:
    """The rows of `SCHEMA`. Counts are NaN of words where the language has none, and of errors where an item failed."""
    rows = []
    counts = {unit: own.tolist() for unit, own in scored.own.items()}
    for place, (one, flags) in enumerate(zip(scored.inferred, scored.flags, strict=True)):
        row: dict[str, Any] = {
            **{name: getattr(one.row, name) for name, _ in ACOUSTIC_COLUMNS},
            **{name: getattr(one.row, name) for name in ("id", "subset", "language", "condition", "text")},
            "cluster": one.row.query_id,
            "audio_sha256": one.audio_sha256,
            "error": one.transcript.error,
            "flags": [flag for flag in FLAGS if getattr(flags, flag, False)],
            "transcript": one.transcript.text,
        }
        for unit in ("word", "char"):
            own = counts[unit][place] if unit in counts else (*_UNKNOWN, float("nan"))
            own = own if scored.decoded[place] else (*_UNKNOWN, own[-1])
            row |= {f"{unit}_{kind}": float(value) for kind, value in zip(_COUNTS, own, strict=True)}
        rows.append(row)
    return rows
