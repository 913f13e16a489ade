"""What is known about a question beside its options: ESCUCHA's labels, their order, and the slices that they make.

The nine labels of perception, ten of reasoning and five of intelligibility are those of ESCUCHA (arXiv 2607.17812),
under short English names; Spanish and longer spellings are understood. The paper's five duration bins have unpublished
edges: `DURATION_EDGES_S` is our choice.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .reply_text import plain_characters, skeleton

DURATION_EDGES_S = (30.0, 60.0, 300.0, 1200.0)
"""Edges of the five duration bins, in seconds: short, up to a minute, up to 5, up to 20, longer."""

PERCEPTION: Mapping[str, tuple[str, ...]] = {
    "lexical": ("lexico", "lexical content"),
    "speaker": ("hablante", "speaker identity", "locutor"),
    "paralinguistic": ("paralinguistica", "paralinguistico", "paralinguistics"),
    "speech_activity": ("actividad de voz", "actividad", "turns", "overlap", "turnos", "speech activity turns overlap"),
    "language": ("idioma", "lengua"),
    "quality": ("calidad", "artefacts", "artifacts", "channel", "quality artefacts channel", "canal"),
    "prosody": ("prosodia", "prosodic"),
    "demographics": ("demografia", "demographic"),
    "syntax": ("sintaxis", "syntactic"),
}
"""ESCUCHA's labels of perception, the most frequent first, with other spellings (without case and accents)."""
REASONING: Mapping[str, tuple[str, ...]] = {
    "intent": ("intent pragmatic causal", "intencion", "pragmatic", "pragmatica", "causal"),
    "abstraction": ("abstraction summary", "summary", "resumen", "abstraccion"),
    "logic": ("logic consistency", "consistency", "logica", "consistencia"),
    "factual": ("factual common sense", "common sense", "sentido comun", "factico"),
    "quantitative": ("cuantitativo", "quantity"),
    "temporal": ("temporal order", "order", "orden"),
    "social_role": ("social role", "rol social"),
    "comparison": ("comparison preference", "preference", "comparacion", "preferencia"),
    "cross_boundary_entity": ("cross boundary entity", "entity", "entidad"),
    "discourse_coherence": ("discourse coherence", "coherence", "coherencia", "coherencia discursiva"),
}
"""ESCUCHA's labels of reasoning, the most frequent first, with other spellings."""
INTELLIGIBILITY: Mapping[str, tuple[str, ...]] = {
    "low": ("baja",),
    "medium-low": ("low-medium", "media-baja", "medium low"),
    "medium": ("media",),
    "high-medium": ("medium-high", "media-alta", "high medium"),
    "high": ("alta",),
}
AETIOLOGY: Mapping[str, tuple[str, ...]] = {"als": ("ela", "amyotrophic lateral sclerosis"), "stroke": ("ictus", "acv")}
SEX: Mapping[str, tuple[str, ...]] = {
    "female": ("f", "mujer", "femenino", "woman"),
    "male": ("m", "h", "hombre", "masculino", "man"),
}
MISSING = "missing"


def _normal(text: str) -> str:
    return " ".join(re.split(r"[\W_]+", skeleton(plain_characters(text)).strip()))


def _index(known: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {_normal(spelling): name for name, others in known.items() for spelling in (name, *others)}


_NAMES = {id(known): _index(known) for known in (PERCEPTION, REASONING, INTELLIGIBILITY, AETIOLOGY, SEX)}


def canonical(label: str, known: Mapping[str, tuple[str, ...]]) -> str:
    """The name of a label in one of the tables above, whatever its spelling; a label of one's own stays as it is.

    >>> canonical("Léxico", PERCEPTION), canonical("Social role", REASONING), canonical("ELA", AETIOLOGY)
    ('lexical', 'social_role', 'als')
    >>> canonical("humor", REASONING)
    'humor'
    """
    return _NAMES[id(known)].get(_normal(label), label.strip())


@dataclass(frozen=True, slots=True)
class ItemLabels:
    """Labels of one question; what does not apply or is not known is empty (NaN, None).

    `comparative`: it has two audios. `aetiology`, `intelligibility` and `sex` are of the speaker in items about
    pathological speech. `duration_s`: seconds of audio. `more`: labels by name, of one's own.
    """

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
