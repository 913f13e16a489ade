"""Whether what ranks texts ranks them: retrievers of every kind, rerankers, and encoders of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ModelError
from ...loaders.corpus import Corpus
from ...loaders.records import Document
from ..components.raised import sentences
from ..components.retrievers.dense import DenseRetriever
from ..protocols import CompositeRetriever, Hit, Retriever, TextEncoder
from ..results.self_check import Verdict
from .calibration import Calibration
from .finding import NOT_LOADED, Finding, failed, rounded

# Of 20 queries at chance, 93 % have a mean below 0.6; of 12 for a reranker, 87 %. The rest of them are poor.
_CHANCE, POOR = 0.6, 0.9
_RERANKED_QUERIES, _RERANKED_DEPTH = 12, 10


def above_irrelevant(relevant: float, irrelevant: ArrayLike) -> float:
    """The share of irrelevant scores below that of the relevant passage; one that is equal counts half.

    >>> above_irrelevant(2.0, [1.0, 2.0, 3.0, 0.0])
    0.625
    """
    others = np.asarray(irrelevant, dtype=np.float64)
    return float(np.mean((others < relevant) + 0.5 * (others == relevant)))


def check_vectors(vectors: NDArray[np.float64], n: int, what: str) -> Finding | None:
    """What is certainly wrong with the vectors of `n` different items, None if nothing is."""
    if vectors.ndim != 2 or len(vectors) != n:
        raise ModelError(
            f"an encoder gave vectors of shape {vectors.shape} for {n} {what}.", hint="Give a row for each."
        )
    rows = int((~np.isfinite(vectors).all(axis=1)).sum())
    if rows:
        return failed(
            f"the vectors of {rows} of {n} {what} are not finite", f"{NOT_LOADED}, or a number type too short"
        )
    if float(np.ptp(vectors, axis=0).max()) < 1e-6:
        return failed(f"all {n} {what} have the same vector", NOT_LOADED)
    return None


def retrieval_finding(shares: Sequence[float], language: str, *, cause: str = NOT_LOADED) -> Finding:
    """From `above_irrelevant` of every query."""
    mean = float(np.mean(shares))
    seen = {"above_irrelevant": rounded(mean)}
    note = f"the right passage is ranked above {mean:.0%} of the others in {language!r}"
    if mean < _CHANCE:
        return failed(f"{note}; 50% is chance", cause, **seen)
    return Finding("poor" if mean < POOR else "passed", seen, note)


def check_encoder(encoder: TextEncoder, items: Calibration) -> Finding:
    """Each query must find its passage among 20."""
    with sentences(f"{encoder.spec.name} on the texts of the self-check in {items.language!r}"):
        queries = np.asarray(encoder.encode(list(items.queries), role="query"), dtype=np.float64)
        contents = [passage.contents for passage in items.passages]
        passages = np.asarray(encoder.encode(contents, role="document"), dtype=np.float64)
    for vectors, what in ((queries, "queries"), (passages, "passages")):
        broken = check_vectors(vectors, len(items.queries), what)
        if broken is not None:
            return broken
    return retrieval_finding(shares_of(queries @ passages.T, items), items.language)


def shares_of(scores: NDArray[np.float64], items: Calibration) -> list[float]:
    """`above_irrelevant` of every query, from the scores of all passages (a row for each query)."""
    ids = [passage.id for passage in items.passages]
    places = [ids.index(one) for one in items.relevant]
    return [above_irrelevant(row[i], np.delete(row, i)) for row, i in zip(scores, places, strict=True)]


def check_retriever(retriever: Retriever, items: Calibration) -> Finding:
    """As `check_encoder`, of any retriever; a composite after its parts, a reranker on an order without meaning."""
    routed = cast(Sequence[Retriever], getattr(retriever, "routed", ()))
    parts = cast(Sequence[Retriever], getattr(retriever, "parts", routed)) if hasattr(retriever, "combine") else routed
    found: dict[str, Finding] = {part.spec.name: check_retriever(part, items) for part in parts}
    broken = next(((name, one) for name, one in found.items() if one.verdict == "failed"), None)
    if broken is not None:
        name, one = broken
        return failed(f"its part {name}: {one.note}", one.cause, **one.seen)
    if routed:
        own = Finding("passed", {}, f"both ways of the route find passages in {items.language!r}")
    elif parts:
        own = _check_composite(cast(CompositeRetriever, retriever), items)
    elif isinstance(retriever, DenseRetriever):
        # Vectors that a cache keeps would hide that weights were mended.
        own = check_encoder(retriever.encoder, items)
    else:
        own = _check_search(retriever, items)
    if own.verdict == "failed" or not found:
        return own
    seen = {f"{measure} of {name}": value for name, one in found.items() for measure, value in one.seen.items()}
    notes = [f"{name}: {one.note}" for name, one in found.items() if one.verdict == "poor"]
    verdict: Verdict = "poor" if notes or own.verdict == "poor" else "passed"
    return Finding(verdict, {**own.seen, **seen}, "; ".join([own.note, *notes]))


def _check_search(retriever: Retriever, items: Calibration) -> Finding:
    name = retriever.spec.name
    with sentences(f"{name} on the texts of the self-check in {items.language!r}"):
        retriever.index(Corpus.of(list(items.passages)), language=items.language)
        rankings = retriever.search(list(items.queries), k=len(items.passages))
    return _ranked(name, rankings, items.relevant, len(items.passages), items.language)


def _check_composite(retriever: CompositeRetriever, items: Calibration) -> Finding:
    """What a composite makes of its parts' rankings. A single part is given an order in which places mean nothing."""
    name, documents = retriever.spec.name, Corpus.of(list(items.passages))
    if len(retriever.parts) > 1:
        depth = retriever.part_depth(len(items.passages))
        with sentences(f"{name} on the texts of the self-check in {items.language!r}"):
            rankings = [_rankings_of(part, items, depth) for part in retriever.parts]
            combined = retriever.combine(list(items.queries), rankings, documents, k=len(items.passages))
        return _ranked(name, combined, items.relevant, len(items.passages), items.language)
    reordered = retriever.spec.settings.get("depth")
    n = min(_RERANKED_DEPTH, reordered) if isinstance(reordered, int) else _RERANKED_DEPTH
    if n < 2:
        return Finding("unchecked", note="with a depth of 1 there is nothing to reorder")
    queries, relevant = list(items.queries)[:_RERANKED_QUERIES], list(items.relevant)[:_RERANKED_QUERIES]
    candidates = [_candidates(one, items.passages, place % n, n) for place, one in enumerate(relevant)]
    with sentences(f"{name} on the texts of the self-check in {items.language!r}"):
        reranked = retriever.combine(queries, [candidates], documents, k=n)
    cause = "a model that is no reranker, a head that was not trained, or scores with the other sign"
    return _ranked(name, reranked, relevant, n, items.language, cause=cause)


def _rankings_of(part: Retriever, items: Calibration, depth: int) -> list[list[Hit]]:
    if hasattr(part, "combine"):
        composite = cast(CompositeRetriever, part)
        inner = [_rankings_of(one, items, composite.part_depth(depth)) for one in composite.parts]
        return composite.combine(list(items.queries), inner, Corpus.of(list(items.passages)), k=depth)
    part.index(Corpus.of(list(items.passages)), language=items.language)
    return part.search(list(items.queries), k=depth)


def _candidates(relevant: str, passages: Sequence[Document], place: int, n: int) -> list[Hit]:
    """`n` passages in an order that says nothing, the relevant one at `place`."""
    ids = [passage.id for passage in passages]
    start = ids.index(relevant)
    others = (ids[start + 1 :] + ids[:start])[: n - 1]
    order = [*others[:place], relevant, *others[place:]]
    return [Hit(id_, 1.0 - rank / (2 * n)) for rank, id_ in enumerate(order)]


def _ranked(
    name: str,
    rankings: Sequence[Sequence[Hit]],
    relevant: Sequence[str],
    n: int,
    language: str,
    *,
    cause: str = NOT_LOADED,
) -> Finding:
    """From rankings of `n` passages each; what is not in a ranking is below what is, and equal among itself."""
    if len(rankings) != len(relevant):
        raise ModelError(
            f"{name} gave {len(rankings)} rankings for {len(relevant)} queries.", hint="Give one per query."
        )
    if any(math.isnan(hit.score) for hits in rankings for hit in hits):
        return failed("scores are not numbers (NaN)", f"{NOT_LOADED}, or a number type too short")
    if not any(rankings):
        return failed(
            f"none of {len(relevant)} queries found any of {n} passages", "an index or analyzer of another language"
        )
    shares = []
    for hits, wanted in zip(rankings, relevant, strict=True):
        scores = {hit.document_id: hit.score for hit in hits}
        own = scores.pop(wanted, -math.inf)
        others = [*scores.values(), *[-math.inf] * (n - 1 - len(scores))]
        shares.append(above_irrelevant(own, others))
    return retrieval_finding(shares, language, cause=cause)
