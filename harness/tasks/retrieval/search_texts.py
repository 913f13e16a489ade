"""What a cascade searches with: the transcript, the n best or what was made of them, in the corpus's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ...evaluation.store import Ranking
from ...protocols import Rewritten, Transcript
from ...systems.system import System
from ...text.script import fold_script


@dataclass(frozen=True, slots=True)
class SearchTexts:
    """Texts to search with, best first, with the transcriber's scores."""

    texts: tuple[str, ...]
    scores: tuple[float, ...]


def search_texts(
    system: System, transcript: Transcript, language: str, rewritten: Rewritten | None = None
) -> SearchTexts:
    """The texts of a transcript: one, or its n best, folded to the corpus's script where the system says so.

    With a rewriter it is what that made of them, "" where it failed. Hypotheses that fold to the same text are kept
    apart: each has its own weight.
    """
    best = transcript.hypotheses[: system.n_best] if system.n_best > 1 and rewritten is None else ()
    if not best:
        text = transcript.text if rewritten is None else rewritten.text
        return SearchTexts((folded(system, language, text),), (0.0,))
    return SearchTexts(tuple(folded(system, language, h.text) for h in best), tuple(h.score for h in best))


def folded(system: System, language: str, text: str) -> str:
    return text if system.folding(language) == "none" else fold_script(text, "simplified")


def ranking_of(system: System, searched: SearchTexts, rankings: Mapping[str, Ranking], depth: int) -> Ranking:
    """The ranking of one query: that of its text, or the fusion of the n best's; seconds are summed."""
    found = [rankings[text] for text in searched.texts]
    if len(found) == 1:
        return found[0]
    from ...components.retrievers.fusion import Method, fuse_hypotheses

    method = cast(Method, system.n_best_fusion)
    fused = fuse_hypotheses([r.hits for r in found], searched.scores, method=method, k=depth)
    return Ranking.of(fused, sum(r.seconds for r in found))
