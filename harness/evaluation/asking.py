"""What a cascade searches with: the transcript, or the n best, in the corpus's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ..protocols import Transcript
from ..systems.system import Cascade
from ..text.script import fold_script
from .store import Ranking


@dataclass(frozen=True, slots=True)
class Asked:
    """Texts to search with, best first, with the recognizer's scores."""

    texts: tuple[str, ...]
    scores: tuple[float, ...]


def search_texts(system: Cascade, transcript: Transcript, language: str) -> Asked:
    """The texts of a transcript: one, or its n best, folded to the corpus's script where the system says so.

    Hypotheses that fold to the same text stay apart: each has its own weight.
    """
    folding = system.folding(language)

    def folded(text: str) -> str:
        return text if folding == "none" else fold_script(text, "simplified")

    best = transcript.hypotheses[: system.n_best] if system.n_best > 1 else ()
    if not best:
        return Asked((folded(transcript.text),), (0.0,))
    return Asked(tuple(folded(h.text) for h in best), tuple(h.score for h in best))


def ranking_of(system: Cascade, asked: Asked, rankings: Mapping[str, Ranking], depth: int) -> Ranking:
    """The ranking of one query: that of its text, or the fusion of the n best's; seconds are summed."""
    found = [rankings[text] for text in asked.texts]
    if len(found) == 1:
        return found[0]
    from ..components.retrievers.fusion import Method, fuse_hypotheses

    fused = fuse_hypotheses([r.hits for r in found], asked.scores, method=cast(Method, system.n_best_fusion), k=depth)
    return Ranking.of(fused, sum(r.seconds for r in found))
