"""Reverberation: `reverb` is the whole RIR of a room, `early_reverb` its first 50 ms after the direct path.

The RIR of an utterance is drawn uniformly, by the seed, its subset and its id alone, unless a plan gave it one. It is
scaled to unit energy; the speech is convolved with all of it and cut at the direct path, so that it stays aligned with
its clean partner, and the tail is kept. The measures in a row are always those of the whole RIR.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import SqutrWarning
from ..audio import check_samples
from ..keyed import keyed_index
from ..records import Samples
from ..reverb import PreparedRir, find_onset, prepare_rir, reverberate
from ..rir_checks import cut_reason
from ..rirs.measured import MEASURES, MeasuredRir, measured_rir
from .step import ROOM, ColumnType, Signal, StepContext, StepKind, Utterance

EARLY_S = 0.05
"""How long after the direct path energy counts as early (the limit of C50, ISO 3382-1)."""


@dataclass(frozen=True, slots=True)
class RirStep:
    """Convolution with a RIR: the whole one, or the first `early_s` seconds after its direct path (0: the whole)."""

    early_s: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return {"step": EARLY.name, "early_s": self.early_s} if self.early_s else {"step": WHOLE.name}

    def apply(self, signal: Signal, utterance: Utterance, context: StepContext) -> Signal:
        rir_id = utterance.rir_id or draw_rir(utterance, context)
        prepared, measured = context.cache.rirs.get((rir_id, str(self.early_s)), lambda: self._prepare(rir_id, context))
        wet = check_samples(reverberate(signal.samples, prepared), f"{utterance.name} with the RIR {rir_id!r}")
        columns = {"rir_id": rir_id, "onset_samples": prepared.onset_samples, "room_id": measured.room_id}
        columns |= {name: getattr(measured, name) for name in MEASURES}
        if rir_id in context.measured:
            columns["stratum"] = context.measured[rir_id][1]
        return signal.passed_on(wet, columns)

    def _prepare(self, rir_id: str, context: StepContext) -> tuple[PreparedRir, MeasuredRir]:
        rir = context.read_rir(rir_id)
        known = context.measured.get(rir_id)
        measured = known[0] if known else measured_rir(context.rir_bank(), rir_id, rir, context.sample_rate)
        if reason := cut_reason(rir, context.sample_rate):
            context.cache.told.get(reason, lambda: _warn_of_cut(rir_id, reason))
        part = early_part(rir, self.early_s, context.sample_rate) if self.early_s else rir
        return prepare_rir(part, rir_id), measured


def _warn_of_cut(rir_id: str, reason: str) -> bool:
    warnings.warn(
        f"the impulse response {rir_id!r} {reason} (told once, others may be alike): see `squtr rir`.",
        SqutrWarning,
        stacklevel=2,
    )
    return True


def draw_rir(utterance: Utterance, context: StepContext) -> str:
    """The id of an utterance's RIR, drawn uniformly and keyed."""
    ids = context.rirs_for(utterance.query)
    return ids[keyed_index(len(ids), context.seed, "room", utterance.query.subset, utterance.query.id)]


def early_part(rir: Samples, early_s: float, rate: int) -> Samples:
    """(L,) `rir` up to `early_s` seconds after its direct path."""
    return rir[: find_onset(rir) + round(early_s * rate)]


_COLUMNS: Mapping[str, ColumnType] = {
    "rir_id": "string",
    "room_id": "string",
    "stratum": "string",
    "onset_samples": "int64",
    **{name: "string" if name == "rt60_method" else "float64" for name in MEASURES},
}


def parse_whole(_: str) -> RirStep:
    return RirStep()


def parse_early(_: str) -> RirStep:
    return RirStep(EARLY_S)


WHOLE = StepKind("rir", ROOM, "reverb", parse_whole, "rirs", _COLUMNS, ("reverb",))
EARLY = StepKind("early_rir", ROOM, "early_reverb", parse_early, "rirs", _COLUMNS, ("early_reverb",))
