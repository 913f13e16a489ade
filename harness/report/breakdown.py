"""Retrieval and recognition by noise family and by reverberation time, where enough queries fall into a bin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...loaders.conditions import parse_condition
from ..metrics.statistics import difference_interval
from ..results.old import MAIN_METRIC, Score
from .data import Key, Run, Section, System
from .formats import number

LEAST_QUERIES = 5
"""A bin with fewer queries of a system is left out: its mean says nothing."""
RT60_EDGES_S = (0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One system in one bin: `n` queries heard `observations` times.

    `loss` is against the typed query, its interval from whole queries resampled.
    """

    system: str
    n: int
    observations: int
    value: float
    loss: Score | None
    error_rate: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A table: bins in order with their cells, the conditions pooled, and the bins left out."""

    title: str
    conditions: tuple[str, ...]
    bins: tuple[tuple[str, tuple[Cell, ...]], ...]
    left_out: tuple[str, ...]


def breakdowns(section: Section) -> list[Breakdown]:
    """By noise family over the conditions with noise and no room; by RT60 over all conditions with a room."""
    found = [
        _breakdown(section, "Noise family", _is_noise_alone, _family),
        _breakdown(section, "Reverberation time RT60", _is_room, _rt60_bin),
    ]
    return [b for b in found if b is not None]


def _is_noise_alone(condition: str) -> bool:
    parsed = parse_condition(condition)
    return parsed.snr_db is not None and not parsed.reverb


def _is_room(condition: str) -> bool:
    return parse_condition(condition).reverb


def _family(run: Run, row: int) -> str:
    return str(run.record.items.column("noise_family")[row].as_py() or "")


def _rt60_bin(run: Run, row: int) -> str:
    """The bin of a room, in s.

    The lower edge belongs to the bin, the upper does not.
    """
    rt60 = run.record.items.column("rt60_s")[row].as_py()
    if rt60 is None or not math.isfinite(rt60):
        return ""
    below = [edge for edge in RT60_EDGES_S if edge <= rt60]
    if not below:
        return f"under {number(RT60_EDGES_S[0], 1)} s"
    if len(below) == len(RT60_EDGES_S):
        return f"{number(RT60_EDGES_S[-1], 1)} s and more"
    return f"{number(below[-1], 1)} to {number(RT60_EDGES_S[len(below)], 1)} s"


def _breakdown(
    section: Section, title: str, wanted: Callable[[str], bool], bin_of: Callable[[Run, int], str]
) -> Breakdown | None:
    """None if no bin has enough queries."""
    bins: dict[str, list[Cell]] = {}
    small: dict[str, int] = {}
    for system in section.systems:
        for name, members in _members(system, wanted, bin_of).items():
            n = len({key for _, key in members})
            if n < LEAST_QUERIES:
                small[name] = max(n, small.get(name, 0))
            else:
                bins.setdefault(name, []).append(_cell(section, system, members, n))
    if not bins:
        return None
    order = sorted(bins, key=lambda name: (not name.startswith("under"), name))
    conditions = tuple(c for c in section.conditions if c != "text" and wanted(c))
    left_out = tuple(f"{name} (n = {n})" for name, n in sorted(small.items()))
    return Breakdown(title, conditions, tuple((name, tuple(bins[name])) for name in order), left_out)


def _members(
    system: System, wanted: Callable[[str], bool], bin_of: Callable[[Run, int], str]
) -> dict[str, list[tuple[Run, Key]]]:
    members: dict[str, list[tuple[Run, Key]]] = {}
    for run in system.runs:
        if not wanted(run.condition):
            continue
        scores = run.numbers(MAIN_METRIC)
        for key, row in run.rows.items():
            name = bin_of(run, row)
            if name and math.isfinite(scores[row]):
                members.setdefault(name, []).append((run, key))
    return members


def _cell(section: Section, system: System, members: list[tuple[Run, Key]], n: int) -> Cell:
    unit = "char" if section.by_character else "word"
    columns = {
        id(run): (run.numbers(MAIN_METRIC), run.numbers(f"{unit}_errors"), run.numbers(f"{unit}_reference_length"))
        for run in {run for run, _ in members}
    }
    values, errors, lengths = (np.array([columns[id(run)][k][run.rows[key]] for run, key in members]) for k in range(3))
    counted = np.isfinite(errors) & np.isfinite(lengths)
    length = float(lengths[counted].sum())
    rate = float(errors[counted].sum()) / length if length else math.nan
    return Cell(system.name, n, len(members), float(values.mean()), _loss(system, members, values), rate)


def _loss(system: System, members: list[tuple[Run, Key]], values: np.ndarray) -> Score | None:
    """Mean loss against the typed query over the members that it was evaluated on, None without any."""
    if system.text is None:
        return None
    typed = system.text.numbers(MAIN_METRIC)
    rows = [system.text.rows.get(key) for _, key in members]
    base = np.array([np.nan if row is None else typed[row] for row in rows])
    paired = np.isfinite(base)
    if not paired.any():
        return None
    clusters = [key for (_, key), use in zip(members, paired, strict=True) if use]
    bounds = difference_interval(base[paired], values[paired], clusters, seed=system.text.result.seed)
    known = math.isfinite(bounds.low) and math.isfinite(bounds.high)
    return Score(
        value=float((base[paired] - values[paired]).mean()),
        low=bounds.low if known else None,
        high=bounds.high if known else None,
        n=len(set(clusters)),
    )
