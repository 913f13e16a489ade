"""Checks of a plan of RIRs: splits that share nothing, strata as the manifest says, and the table of RIRs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .manifest import Manifest
from .rirs.measured import MeasuredRir
from .rirs.strata import Strata
from .shard_checks import Finding

_SAME = ("room_id", "rt60_s", "drr_db", "c50_db", "stratum")


def check_plan(manifest: Manifest, rows: Mapping[str, pa.Table], rirs: Mapping[str, pa.Table]) -> list[Finding]:
    """What is wrong with the plan; by split, `rows` are those of all conditions with reverberation, `rirs` the tables
    of RIRs."""
    findings = [*_apart(rows)]
    conditions = {split: len(set(table.column("condition").to_pylist())) for split, table in rows.items()}
    for split, table in rows.items():
        findings += _strata(manifest, split, table, conditions[split])
        if split in rirs:
            findings += _rirs(split, table, rirs[split], conditions[split])
    return findings


def check_divided(rows: Mapping[str, pa.Table], *, shared_speakers: bool) -> Iterator[Finding]:
    """What divided splits share; `rows` are those of all subsets and conditions by split."""
    columns = {"query_id": "query", "noise_id": "noise", "room_id": "room"}
    if not shared_speakers:
        columns["speaker"] = "speaker"
    for column, what in columns.items():
        for first, second, shared in _shared(rows, column):
            message = f"{len(shared)} {what} ids are in {first} and {second}, first {shared[0]!r}"
            yield Finding("pairing", "queries", message, shared[0])


def _apart(rows: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """What the two splits of a plan share."""
    for column, what in (("room_id", "room"), ("utterance_id", "utterance")):
        for _, _, shared in _shared(rows, column):
            message = f"{len(shared)} {what}s are in both splits, first {shared[0]!r}"
            yield Finding("pairing", "queries", message, shared[0])


def _shared(rows: Mapping[str, pa.Table], column: str) -> Iterator[tuple[str, str, list[str]]]:
    """Every two splits that share ids of a column, and these, sorted."""
    own = column in {"query_id", "utterance_id"}  # unique within a subset
    names = {
        split: {(subset if own else "", name) for subset, name in _pairs(table, column) if name}
        for split, table in rows.items()
    }
    for first, second in combinations(names, 2):
        shared = sorted(names[first] & names[second])
        if shared:
            yield first, second, [name for _, name in shared]


def _pairs(table: pa.Table, column: str) -> list[tuple[str, str]]:
    return list(zip(table.column("subset").to_pylist(), table.column(column).to_pylist(), strict=True))


def _strata(manifest: Manifest, split: str, table: pa.Table, conditions: int) -> Iterator[Finding]:
    place = f"queries, split {split}"
    edges = manifest.edges
    by_drr = manifest.recipe["stratify"] == "rt60+drr"
    strata = Strata(tuple(edges["rt60_s"]), tuple(edges["drr_db"]), by_drr)
    for row in table.select(["id", "rir_id", "room_id", "rt60_s", "drr_db", "stratum"]).to_pylist():
        expected = strata.name(MeasuredRir(row["rir_id"], row["room_id"], rt60_s=row["rt60_s"], drr_db=row["drr_db"]))
        if row["stratum"] != expected:
            message = f"{place}: {row['id']!r} is in the stratum {row['stratum']}, its RIR belongs into {expected}"
            yield Finding("value", place, message, row["id"])
            break
    for stratum in manifest.strata:
        count = pc.sum(pc.equal(table.column("stratum"), stratum.name)).as_py() or 0
        if count != stratum.pairs[split] * conditions:
            message = (
                f"{place} has {count} rows of {stratum.name} under {conditions} conditions, the manifest says "
                f"{stratum.pairs[split]} pairs"
            )
            yield Finding("value", place, message)


def _rirs(split: str, table: pa.Table, rirs: pa.Table, conditions: int) -> Iterator[Finding]:
    place = f"rirs, split {split}"
    uses = Counter(table.column("rir_id").to_pylist())
    listed = {row["rir_id"]: row for row in rirs.select(["rir_id", "pairs", *_SAME]).to_pylist()}
    for rir_id in sorted(uses.keys() | listed.keys()):
        pairs = listed[rir_id]["pairs"] if rir_id in listed else 0
        if uses[rir_id] != pairs * conditions:
            message = f"{place} says that {pairs} pairs have {rir_id!r}, and {uses[rir_id] / conditions:g} have"
            yield Finding("pairing", place, message, rir_id)
            return
    for row in table.select(["id", "rir_id", *_SAME]).to_pylist():
        rir: Mapping[str, Any] = listed[row["rir_id"]]
        differing = [name for name in _SAME if not _equal(row[name], rir[name])]
        if differing:
            name, id_ = differing[0], row["id"]
            message = f"{place}: {name} of {row['rir_id']!r} is {rir[name]!r}, in the row {id_!r} {row[name]!r}"
            yield Finding("pairing", place, message, id_)
            return


def _equal(one: object, other: object) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or one == other
