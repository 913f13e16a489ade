"""What is known about a question beside its options: ESCUCHA's labels, their order, and the slices that they make.

The labels are those of ESCUCHA (arXiv 2607.17812) under short English names (see `loaders.questions.labels`). The
paper's five duration bins have unpublished edges: `DURATION_EDGES_S` is our choice.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

DURATION_EDGES_S = (30.0, 60.0, 300.0, 1200.0)
"""Edges of the five duration bins, in seconds: short, up to a minute, up to 5, up to 20, longer."""

PERCEPTION = (
    "lexical", "speaker", "paralinguistic", "speech_activity", "language", "quality", "prosody", "demographics",
    "syntax",
)  # fmt: skip
REASONING = (
    "intent", "abstraction", "logic", "factual", "quantitative", "temporal", "social_role", "comparison",
    "cross_boundary_entity", "discourse_coherence",
)  # fmt: skip
"""ESCUCHA's labels, the most frequent first."""
INTELLIGIBILITY = ("low", "medium-low", "medium", "high-medium", "high")
AETIOLOGY = ("als", "stroke")
SEX = ("female", "male")
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class ItemLabels:
    """Labels of one question; what does not apply or is not known is empty. `more` are labels of one's own."""

    perception: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    comparative: bool | None = None
    aetiology: str = ""
    intelligibility: str = ""
    sex: str = ""
    duration_s: float = math.nan
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Breakdowns = dict[str, dict[str, list[int]]]
"""By breakdown and slice, the places of the items in it."""


def breakdowns_of(
    labels: Sequence[ItemLabels],
    *,
    options: Sequence[int] | None = None,
    spoken: Sequence[bool] | None = None,
    duration_edges_s: Sequence[float] = DURATION_EDGES_S,
) -> Breakdowns:
    """The slices of items; an item counts in each of its labels, and in each pair of them.

    `options` are their numbers of options, `spoken` says whose question is spoken. A breakdown that nothing is known
    about is left out. Of items with an aetiology, an intelligibility or sex that is not known is "missing"; so is a
    duration where others have one.

    >>> both = [ItemLabels(("lexical",), ("intent",)), ItemLabels(("lexical", "prosody"), duration_s=90.0)]
    >>> found = breakdowns_of(both, options=[4, 3])
    >>> found["perception"], found["perception|reasoning"], found["options"]
    ({'lexical': [0, 1], 'prosody': [1]}, {'lexical|intent': [0]}, {'4': [0], '3': [1]})
    >>> found["duration"]
    {'60-300 s': [1], 'missing': [0]}
    """
    pathological = any(item.aetiology for item in labels)
    timed = any(not math.isnan(item.duration_s) for item in labels)
    found: Breakdowns = {}
    ordered: dict[str, Iterable[str]] = {
        "perception": PERCEPTION,
        "reasoning": REASONING,
        "perception|reasoning": [f"{one}|{other}" for one in PERCEPTION for other in REASONING],
        "options": [str(n) for n in range(26, 1, -1)],
        "comparative": ("yes", "no"),
        "question": ("written", "spoken"),
        "aetiology": AETIOLOGY,
        "intelligibility": INTELLIGIBILITY,
        "sex": SEX,
        "duration": _bins(duration_edges_s),
    }
    for place, item in enumerate(labels):
        own: dict[str, Iterable[str]] = {
            "perception": item.perception,
            "reasoning": item.reasoning,
            "perception|reasoning": [f"{one}|{other}" for one in item.perception for other in item.reasoning],
            "options": () if options is None else (str(options[place]),),
            "comparative": () if item.comparative is None else ("yes" if item.comparative else "no",),
            "question": () if spoken is None or not any(spoken) else ("spoken" if spoken[place] else "written",),
            "aetiology": (item.aetiology,),
            "intelligibility": (item.intelligibility or (MISSING if pathological and item.aetiology else ""),),
            "sex": (item.sex or (MISSING if pathological and item.aetiology else ""),),
            "duration": ((bin_label(item.duration_s, duration_edges_s, "s") or MISSING) if timed else "",),
            **item.more,
        }
        for breakdown, slices in own.items():
            for name in dict.fromkeys(slices):
                if name:
                    found.setdefault(breakdown, {}).setdefault(name, []).append(place)
    names = [*(name for name in ordered if name in found), *sorted(name for name in found if name not in ordered)]
    return {name: _in_order(found[name], ordered.get(name, ())) for name in names}


def _bins(edges: Sequence[float]) -> list[str]:
    inner = [bin_label(edge, edges, "s") for edge in edges]
    return [bin_label(-math.inf, edges, "s"), *inner] if edges else []


def _in_order(slices: dict[str, list[int]], known: Iterable[str]) -> dict[str, list[int]]:
    first = [name for name in known if name in slices]
    rest = sorted(name for name in slices if name not in first and name != MISSING)
    return {name: slices[name] for name in [*first, *rest, *([MISSING] if MISSING in slices else [])]}


def bin_label(value: float, edges: Sequence[float], unit: str = "") -> str:
    """The bin [low, high) of `edges` (ascending) that holds `value`, as a label; "" for NaN.

    >>> bin_label(0.42, (0.2, 0.4, 0.8), "s"), bin_label(0.1, (0.2, 0.4)), bin_label(9, (0.2, 0.4))
    ('0.4-0.8 s', '<0.2', '>=0.4')
    """
    if math.isnan(value):
        return ""
    suffix = f" {unit}" if unit else ""
    place = bisect.bisect_right(edges, value)
    if place == 0:
        return f"<{edges[0]:g}{suffix}"
    if place == len(edges):
        return f">={edges[-1]:g}{suffix}"
    return f"{edges[place - 1]:g}-{edges[place]:g}{suffix}"
