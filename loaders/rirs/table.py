"""The table of the RIRs that a data set uses: the config `rirs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .plan import Plan

if TYPE_CHECKING:
    import datasets

RIR_COLUMNS = (
    "rir_id", "room_id", "stratum", "pairs", "rt60_s", "rt60_method", "edt_s", "drr_db", "c50_db", "c80_db",
    "source_rt60_s", "source_drr_db", "source_c50_db", "onset_samples", "reasons", "decay_db",
)  # fmt: skip
_TEXTS = {"rir_id", "room_id", "stratum", "rt60_method", "reasons"}
_INTEGERS = {"pairs", "onset_samples"}


def rir_features() -> datasets.Features:
    """Measures, why one is missing (`reasons`, as text), the number of pairs of a condition with reverberation, and the
    decay curve (`decay_db`, every 10 ms from the direct path on)."""
    import datasets

    found: dict[str, Any] = {}
    for name in RIR_COLUMNS:
        if name == "decay_db":
            found[name] = datasets.List(datasets.Value("float32"))
        elif name in _TEXTS:
            found[name] = datasets.Value("string")
        else:
            found[name] = datasets.Value("int64" if name in _INTEGERS else "float64")
    return datasets.Features(found)


def rir_table(plan: Plan, split: str, schema: pa.Schema) -> pa.Table:
    """The RIRs of a split, sorted by id."""
    rows = []
    for rir_id, pairs in plan.uses(split).items():
        rir = plan.rirs[rir_id]
        values: dict[str, Any] = {name: getattr(rir, name, None) for name in RIR_COLUMNS}
        values |= {
            "stratum": plan.stratum_of[rir_id],
            "pairs": pairs,
            "reasons": "; ".join(f"{name}: {reason}" for name, reason in rir.reasons),
            "decay_db": list(rir.decay_db),
        }
        rows.append(values)
    return pa.Table.from_pylist(rows, schema=schema)
