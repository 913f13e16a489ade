"""The calls of every component's methods, with what came back checked: here it enters the harness, and nowhere else.

A component is code of others. What it returns is used only if it is what its protocol promises (`harness.protocols`);
else a `ModelError` names its class, the method and the item, before anything is kept or scored.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import AudioError, ModelError
from ...loaders.document_ids import DocumentIds
from ...loaders.records import Samples
from ...loaders.text import valid_text
from ..protocols import (
    Answerer,
    AnswerRequest,
    AudioTextEncoder,
    CompositeRetriever,
    DocumentLookup,
    FrontEnd,
    Hit,
    Hypothesis,
    PrecomputedRun,
    PrecomputedTranscripts,
    Reply,
    Retriever,
    Rewriter,
    Rewritten,
    TextEncoder,
    Transcriber,
    Transcript,
)
from .raised import sentences

Vectors = NDArray[np.float32]
Made = TypeVar("Made", Transcript, Rewritten, Reply)
UNIT_TOLERANCE = 1e-3
_SHOWN = 80
_PROBE = "one"


def transcribe(
    transcriber: Transcriber, clips: Sequence[Samples], *, language: str, names: Sequence[str] = ()
) -> list[Transcript]:
    """`Transcriber.transcribe`; `names` are those of the clips in errors."""
    who = name_of(transcriber, "transcribe")
    with sentences(f"{who} on {len(clips)} clips in {language!r}"):
        found = transcriber.transcribe(clips, language=language)
    return _transcripts(who, found, _or_places(names, len(clips)))


def given_transcripts(
    source: PrecomputedTranscripts, subset: str, condition: str, query_ids: Sequence[str]
) -> list[Transcript]:
    """`PrecomputedTranscripts.transcripts`."""
    who = name_of(source, "transcripts")
    with sentences(f"{who} of {subset} under {condition}"):
        found = source.transcripts(subset, condition, query_ids)
    return _transcripts(who, found, [f"query {id_!r} of {subset} under {condition}" for id_ in query_ids])


def rewrite(rewriter: Rewriter, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
    """`Rewriter.rewrite`. A text without words is a failure."""
    who = name_of(rewriter, "rewrite")
    with sentences(f"{who} on {len(transcripts)} transcripts in {language!r}"):
        found = rewriter.rewrite(transcripts, language=language)
    items = [f"the transcript {own[0][:_SHOWN]!r}" for own in transcripts]
    made = [_output(who, one, Rewritten, item) for one, item in zip(_each(who, found, items), items, strict=True)]
    return [
        replace(one, text="" if one.error else one.text.strip(), error=one.error or _nothing(one.text)) for one in made
    ]


def answer(answerer: Answerer, requests: Sequence[AnswerRequest]) -> list[Reply]:
    """`Answerer.answer`."""
    who = name_of(answerer, "answer")
    with sentences(f"{who} on {len(requests)} requests"):
        found = answerer.answer(requests)
    items = [f"the request {one.prompt[-_SHOWN:]!r}" for one in requests]
    return [_output(who, one, Reply, item) for one, item in zip(_each(who, found, items), items, strict=True)]


def encode(
    encoder: TextEncoder | AudioTextEncoder,
    texts: Sequence[str],
    *,
    role: Literal["query", "document"],
    name: Callable[[int], str] | None = None,
) -> Vectors:
    """`TextEncoder.encode`: (len(texts), D) float32, finite rows of unit length; `name` is that of a text in errors."""
    who = name_of(encoder, "encode")
    with sentences(f"{who} on {len(texts)} texts ({role})"):
        found = encoder.encode(texts, role=role)
    return unit_vectors(who, found, len(texts), name or (lambda i: f"the text {texts[i][:_SHOWN]!r}"))


def encode_audio(
    encoder: AudioTextEncoder, clips: Sequence[Samples], *, language: str, names: Sequence[str] = ()
) -> Vectors:
    """`AudioTextEncoder.encode_audio`: rows of unit length, or of NaN for a clip that could not be encoded."""
    who = name_of(encoder, "encode_audio")
    with sentences(f"{who} on {len(clips)} clips in {language!r}"):
        found = encoder.encode_audio(clips, language=language)
    items = _or_places(names, len(clips))
    return unit_vectors(who, found, len(clips), items.__getitem__, nan_rows=True)


def check_space(encoder: TextEncoder | AudioTextEncoder, vectors: Vectors, method: str) -> None:
    """Raise `ModelError` unless (n, D) `vectors` have the D of a typed query: what is kept must be of one space."""
    width = encode(encoder, [_PROBE], role="query").shape[1]
    if vectors.shape[1] != width:
        raise ModelError(
            f"{name_of(encoder, method)} gave vectors of {vectors.shape[1]} dimensions, and {width} for a typed query.",
            hint="Queries and documents must be vectors of one space.",
        )


def enhance(front_end: FrontEnd, clips: Sequence[Samples], *, names: Sequence[str] = ()) -> list[Samples]:
    """`FrontEnd.enhance`: (T,) float32 each, as long as the clip. Samples that are not finite are left in."""
    who = name_of(front_end, "enhance")
    with sentences(f"{who} on {len(clips)} clips"):
        found = front_end.enhance(clips)
    items = _or_places(names, len(clips))
    return [_clip(who, one, clip, item) for one, clip, item in zip(_each(who, found, items), clips, items, strict=True)]


def search(retriever: Retriever, queries: Sequence[str], *, k: int, ids: DocumentIds | None) -> list[list[Hit]]:
    """`Retriever.search`: at most `k` hits each, ties by id descending; `ids` are those of the corpus."""
    who = name_of(retriever, "search")
    with sentences(f"{who} with {len(queries)} texts"):
        found = retriever.search(queries, k=k)
    return _rankings(who, found, [f"the text {query[:_SHOWN]!r}" for query in queries], k, ids)


def combine(
    retriever: CompositeRetriever,
    queries: Sequence[str],
    rankings: Sequence[Sequence[Sequence[Hit]]],
    documents: DocumentLookup,
    *,
    k: int,
    ids: DocumentIds | None,
) -> list[list[Hit]]:
    """`CompositeRetriever.combine`, as `search`."""
    who = name_of(retriever, "combine")
    with sentences(f"{who} with {len(queries)} texts"):
        found = retriever.combine(queries, rankings, documents, k=k)
    return _rankings(who, found, [f"the text {query[:_SHOWN]!r}" for query in queries], k, ids)


def given_hits(
    run: PrecomputedRun, subset: str, condition: str, query_ids: Sequence[str], *, k: int, ids: DocumentIds | None
) -> list[list[Hit]]:
    """`PrecomputedRun.hits`, as `search`."""
    who = name_of(run, "hits")
    with sentences(f"{who} of {subset} under {condition}"):
        found = run.hits(subset, condition, query_ids, k=k)
    return _rankings(who, found, [f"query {id_!r} of {subset} under {condition}" for id_ in query_ids], k, ids)


def name_of(component: Any, method: str) -> str:
    """How errors name a method: the class, and the name of the component where it says more.

    >>> from .retrievers.bm25 import BM25Retriever
    >>> name_of(BM25Retriever(), "search")
    'BM25Retriever.search (BM25)'
    """
    return f"{type(component).__name__}.{method} ({component.spec.name})"


def clip_names(keys: Collection[str], names: Mapping[str, str]) -> list[str]:
    """How errors name the clips of these keys: by their names, else by their places."""
    return [names.get(key) or f"clip {i} of {len(keys)}" for i, key in enumerate(keys, start=1)]


def _or_places(names: Sequence[str], n: int) -> Sequence[str]:
    return names or clip_names([""] * n, {})


def _each(who: str, found: object, items: Sequence[str]) -> list[Any]:
    """The outputs as a list, one per item."""
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise ModelError(
            f"{who} gave {_shown(found)} for {len(items)} items.", hint="It must give a list, one per item in order."
        )
    with sentences(who):
        made = list(found)
    if len(made) != len(items):
        raise ModelError(
            f"{who} gave {len(made)} outputs for {len(items)} items.", hint="It must give one per item, in order."
        )
    return made


def _shown(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} ({value!r:.{_SHOWN}})"


def _transcripts(who: str, found: object, items: Sequence[str]) -> list[Transcript]:
    return [_transcript(who, one, item) for one, item in zip(_each(who, found, items), items, strict=True)]


def _transcript(who: str, given: object, item: str) -> Transcript:
    one = _output(who, given, Transcript, item)
    hypotheses = []
    for hypothesis in one.hypotheses:
        value: object = hypothesis
        if not isinstance(value, Hypothesis) or not isinstance(value.text, str):
            raise ModelError(f"{who} gave {_shown(value)} among the n best of {item}.", hint="Give Hypothesis.")
        if not _is_number(hypothesis.score) or not math.isfinite(hypothesis.score):
            raise ModelError(
                f"{who} gave {hypothesis.text[:_SHOWN]!r}, one of the n best of {item}, the log-probability "
                f"{hypothesis.score!r}.",
                hint="Give a finite number.",
            )
        hypotheses.append(replace(hypothesis, text=valid_text(hypothesis.text)))
    if not _is_number(one.confidence) or not (math.isnan(one.confidence) or 0 <= one.confidence <= 1):
        raise ModelError(
            f"{who} gave the confidence {one.confidence!r} for {item}.", hint="Give a number in [0, 1], or NaN."
        )
    return replace(one, hypotheses=() if one.error else tuple(hypotheses))


def _output(who: str, given: object, kind: type[Made], item: str) -> Made:
    """An output with text, error and seconds, its text such as every file can hold."""
    if not isinstance(given, kind):
        raise ModelError(
            f"{who} gave {_shown(given)} for {item}.", hint=f"Give squtr.harness.protocols.{kind.__name__}."
        )
    for field in ("text", "error"):
        value = getattr(given, field)
        if not isinstance(value, str):
            raise ModelError(f"{who} gave {field} {_shown(value)} for {item}.", hint="It must be a str.")
    if not _is_number(given.seconds) or not 0 <= given.seconds < math.inf:
        raise ModelError(f"{who} gave {given.seconds!r} seconds for {item}.", hint="Give the time that it took, or 0.")
    if given.error and given.text.strip():
        raise ModelError(
            f"{who} gave both an error ({given.error[:_SHOWN]!r}) and a text ({given.text[:_SHOWN]!r}) for {item}.",
            hint="An output that failed has no text.",
        )
    return replace(given, text="" if given.error else valid_text(given.text), error=valid_text(given.error))


def _nothing(text: str) -> str:
    return "" if text.strip() else "it gave no text"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def unit_vectors(who: str, found: object, n: int, item: Callable[[int], str], *, nan_rows: bool = False) -> Vectors:
    """(n, D) float32, rows of unit length (with `nan_rows`, or of NaN); `item` names a row in errors."""
    try:
        vectors = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError):
        raise ModelError(f"{who} gave {_shown(found)} for {n} items.", hint="Give an array of shape (n, D).") from None
    if vectors.ndim != 2 or len(vectors) != n:
        raise ModelError(
            f"{who} gave an array of shape {vectors.shape} for {n} items.", hint=f"Its shape must be ({n}, D)."
        )
    norms = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1))
    wrong = ~(np.abs(norms - 1.0) < UNIT_TOLERANCE)
    if nan_rows:
        wrong &= ~np.isnan(vectors).all(axis=1)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        length = (
            "that is not finite" if not math.isfinite(norms[first]) else f"of length {norms[first]:.4g} instead of 1"
        )
        raise ModelError(
            f"{who} gave a vector {length} for {item(first)}.",
            hint="The model cannot encode it, or not in its number type.",
        )
    return vectors


def _clip(who: str, given: object, clip: Samples, item: str) -> Samples:
    if not isinstance(given, np.ndarray) or not np.issubdtype(given.dtype, np.floating):
        kind = f"an array of {given.dtype}" if isinstance(given, np.ndarray) else _shown(given)
        raise ModelError(f"{who} gave {kind} for {item}.", hint="Give an array of float32 in [-1, 1].")
    if given.shape != clip.shape:
        raise ModelError(
            f"{who} gave {given.shape} samples for the {clip.shape} of {item}.",
            hint="A front end must give as many samples as it was given.",
        )
    return given.astype(np.float32, copy=False)


def _rankings(who: str, found: object, items: Sequence[str], k: int, ids: DocumentIds | None) -> list[list[Hit]]:
    rankings = [_ranking(who, one, item)[:k] for one, item in zip(_each(who, found, items), items, strict=True)]
    if ids is not None:
        placed = [(hit.document_id, item) for hits, item in zip(rankings, items, strict=True) for hit in hits]
        unknown = ids.unknown([id_ for id_, _ in placed])
        if len(unknown):
            id_, item = placed[int(unknown[0])]
            raise ModelError(
                f"{who} gave the document {id_!r} for {item}, which the corpus does not have.",
                hint="Give the ids of the corpus that was indexed.",
            )
    return rankings


def _ranking(who: str, given: object, item: str) -> list[Hit]:
    """The hits of one item, ties in trec_eval's order."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ModelError(f"{who} gave {_shown(given)} for {item}.", hint="Give a list of Hit, best first.")
    hits = list(given)
    for hit in hits:
        if not isinstance(hit, Hit) or not isinstance(hit.document_id, str):
            raise ModelError(f"{who} gave {_shown(hit)} for {item}.", hint="Give Hit(document_id: str, score: float).")
    ids, scores = [hit.document_id for hit in hits], [hit.score for hit in hits]
    # Millions of hits come by here: one look at all of a ranking, and a closer one only where something is wrong.
    if not {*map(type, scores)} <= {float, int} or not all(map(math.isfinite, scores)):
        for id_, score in zip(ids, scores, strict=True):
            if not _is_number(score) or not math.isfinite(score):
                raise ModelError(f"{who} gave the document {id_!r} the score {score!r} for {item}.")
    if len({*ids}) < len(ids):
        twice = next(id_ for id_ in ids if ids.count(id_) > 1)
        raise ModelError(f"{who} gave the document {twice!r} twice for {item}.", hint="Give each document once.")
    joined = "".join(ids)
    if not joined.isascii() and joined != valid_text(joined):
        broken = next(id_ for id_ in ids if valid_text(id_) != id_)
        raise ModelError(f"{who} gave the document id {broken!r} for {item}, which no file can hold.")
    if any(map(operator.lt, scores, scores[1:])):
        place = next(i for i, (before, after) in enumerate(itertools.pairwise(scores)) if after > before)
        raise ModelError(
            f"{who} gave hits that are not sorted for {item}: {ids[place + 1]!r} ({scores[place + 1]}) stands behind "
            f"{ids[place]!r} ({scores[place]}).",
            hint="Give the best first.",
        )
    if any(map(operator.eq, scores, scores[1:])):
        return sorted(hits, key=lambda hit: (hit.score, hit.document_id), reverse=True)
    return hits


def enhance_each(
    front_end: FrontEnd, clips: Mapping[str, Samples], names: Mapping[str, str]
) -> tuple[dict[str, Samples], dict[str, str]]:
    """The enhanced clips by key, and why a front end could not work on the others."""
    shown = clip_names(clips, names)
    enhanced: dict[str, Samples] = {}
    failed: dict[str, str] = {}
    try:
        enhanced = dict(zip(clips, enhance(front_end, list(clips.values()), names=shown), strict=True))
    except AudioError:
        # One clip of them: each is tried alone.
        for (key, clip), name in zip(clips.items(), shown, strict=True):
            try:
                (enhanced[key],) = enhance(front_end, [clip], names=[name])
            except AudioError as error:
                failed[key] = f"{front_end.spec.name}: {error.message}"
    for key in [key for key, clip in enhanced.items() if not np.isfinite(clip).all()]:
        del enhanced[key]
        failed[key] = f"{front_end.spec.name} gave samples that are not finite"
    return enhanced, failed
