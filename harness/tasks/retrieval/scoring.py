"""From what was retrieved to the records and per-item scores of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ....loaders.records import NAN, SpokenQuery
from ....loaders.text import has_replacement
from ...components.raised import sentences
from ...metrics.error_counts import ErrorCounts, default_unit, score_transcripts, tokens
from ...metrics.flags import NO_FLAGS, UtteranceFlags, flag_utterance
from ...metrics.ranking import RankingScores, order_hits, score_ranking
from ...metrics.registry import Metric, depth_of
from ...results.envelope import ACOUSTIC_COLUMNS, FLAGS, items_table
from ...text.normalizers import load_normalizer
from .columns import RATES, REWRITTEN
from .outputs import Retrieved

_KINDS = ("substitutions", "deletions", "insertions", "reference_length")
_ROWS_AT_ONCE = 1024
"""Rows whose rankings are unpacked together: as Python objects they take ten times as much memory as in a table."""


@dataclass(frozen=True, slots=True)
class Values:
    """Of a run on a subset: the values of ranking metrics, error counts by unit (`RATES`), and of the items that have
    none because they failed, the reference length by unit."""

    ranking: Mapping[str, Mapping[str, float]]
    errors: Mapping[str, Mapping[str, ErrorCounts]]
    clusters: Mapping[str, str]
    failed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubsetScores:
    """One run on one subset.

    `rows` are its records (see `records_table`), `spoken` the rows of the data beside them (None under `text`).
    `missing` queries retrieved nothing (they score 0), `no_relevant` have no relevant document, `unjudged` counts
    documents without judgment.
    """

    values: Values
    rows: Sequence[Mapping[str, Any]]
    spoken: Sequence[SpokenQuery | None]
    missing: int
    no_relevant: int
    unjudged: int

    def without_items(self) -> SubsetScores:
        """The ranking values alone: all that losses are made of."""
        return replace(self, values=replace(self.values, errors={}, failed={}), rows=(), spoken=())


@dataclass(frozen=True, slots=True)
class _Documents:
    """What a row retrieved: the best in trec_eval's order, the rank of the first relevant one in the given order."""

    best: list[tuple[str, float]]
    first_relevant_rank: int


def score_subset(
    retrieved: Sequence[Retrieved],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    language: str,
    condition: str,
    normalizer: str,
    metrics: Sequence[Metric],
    rewritten: bool = False,
) -> SubsetScores:
    """Score one run on one subset. `qrels` are by utterance, `normalizer` is a name ("" where there are no words),
    `rewritten` whether a rewriter stands behind the transcriber.

    An utterance that could not be decoded has no words: it is left out of the error rates (counted, and its reference
    length kept), and its query, which retrieved nothing, scores 0.
    """
    ranking = [metric for metric in metrics if metric.is_ranking]
    found = _found(retrieved, qrels, ranking)
    scored = _scored(retrieved, found, qrels, ranking)
    transcribed = {r.query.id: r for r in retrieved if r.transcript is not None and not r.transcript.error}
    counts: dict[str, dict[str, ErrorCounts]] = {"word": {}, "char": {}}
    flags: dict[str, UtteranceFlags] = {}
    if transcribed:
        counts, flags = _compared(transcribed, language, normalizer)
    if rewritten:
        mended = {id_: one for id_, one in transcribed.items() if one.rewritten is not None and not one.error}
        own = _counts(mended, {id_: one.rewritten or "" for id_, one in mended.items()}, language, normalizer)
        counts |= {f"{REWRITTEN}_{unit}": own[unit] for unit in ("word", "char")}
    failed = _failed_lengths(retrieved, counts, language, normalizer)
    rows = []
    for one in retrieved:
        id_ = one.query.id
        row = _row(one, found[id_], flags.get(id_, NO_FLAGS), {unit: own.get(id_) for unit, own in counts.items()})
        row |= {f"{unit}_reference_length": float(own[id_]) for unit, own in failed.items() if id_ in own}
        row |= {name: values.get(id_, NAN) for name, values in scored.per_query.items()}
        row["condition"] = condition
        if rewritten:
            row[REWRITTEN] = one.rewritten or ""
        rows.append(row)
    clusters = {one.query.id: one.query.cluster for one in retrieved}
    return SubsetScores(
        Values(scored.per_query, {unit: counts.get(unit, {}) for unit in RATES.values()}, clusters, failed),
        rows,
        [one.spoken for one in retrieved],
        scored.missing,
        scored.no_relevant,
        scored.unjudged,
    )


def ranking_values(
    retrieved: Sequence[Retrieved], qrels: Mapping[str, Mapping[str, int]], metrics: Sequence[Metric]
) -> RankingScores:
    """The values of ranking metrics for some rows, whose judgments are by utterance."""
    return _scored(retrieved, _found(retrieved, qrels, metrics), qrels, metrics)


def _found(
    retrieved: Sequence[Retrieved], qrels: Mapping[str, Mapping[str, int]], metrics: Sequence[Metric]
) -> dict[str, _Documents]:
    judged, depth = _by_row(retrieved, qrels), depth_of(metrics)
    return {one.query.id: _documents(one, judged.get(one.query.id, {}), depth) for one in retrieved}


def _scored(
    retrieved: Sequence[Retrieved],
    found: Mapping[str, _Documents],
    qrels: Mapping[str, Mapping[str, int]],
    metrics: Sequence[Metric],
) -> RankingScores:
    best = {id_: own.best for id_, own in found.items() if own.best}
    # A metric may be a user's own.
    with sentences(f"computing {', '.join(metric.name for metric in metrics)}"):
        return score_ranking(_by_row(retrieved, qrels), best, metrics=metrics)


def _by_row(retrieved: Sequence[Retrieved], qrels: Mapping[str, Mapping[str, int]]) -> Mapping[str, Mapping[str, int]]:
    """The judgments by row: an utterance with several RIRs has several."""
    if all(one.query.id == one.query.utterance for one in retrieved):
        return qrels
    rows: dict[str, list[str]] = {}
    for one in retrieved:
        rows.setdefault(one.query.utterance, []).append(one.query.id)
    return {id_: grades for utterance, grades in qrels.items() for id_ in rows.get(utterance, [utterance])}


def _documents(one: Retrieved, grades: Mapping[str, int], depth: int) -> _Documents:
    ids, scores = one.ranking.columns
    ranks = (rank for rank, id_ in enumerate(ids, start=1) if grades.get(id_, 0) > 0)
    ordered = order_hits(one.query.id, list(zip(ids, scores, strict=True)))[:depth]
    best = [(id_, float(-place)) for place, id_ in enumerate(ordered)]
    return _Documents(best, next(ranks, 0))


def records_table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """The records of the rows of runs (`SubsetScores.rows`), all columns of `schema` required."""
    steps = range(0, len(rows), _ROWS_AT_ONCE)
    parts = [items_table(map(_with_documents, rows[step : step + _ROWS_AT_ONCE]), schema) for step in steps]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _with_documents(row: Mapping[str, Any]) -> dict[str, Any]:
    documents, scores = row["ranking"].columns
    return {**row, "documents": documents, "scores": list(scores)}


def _compared(
    transcribed: Mapping[str, Retrieved], language: str, name: str
) -> tuple[dict[str, dict[str, ErrorCounts]], dict[str, UtteranceFlags]]:
    """Error counts by unit, and flags, of the rows with a transcript; no words in languages written without spaces."""
    normalizer, unit = load_normalizer(name, language), default_unit(language)
    references = {id_: one.query.text for id_, one in transcribed.items()}
    hypotheses = {id_: one.transcript.text for id_, one in transcribed.items() if one.transcript is not None}
    flags = {
        id_: flag_utterance(
            tokens(normalizer(references[id_]), unit, language),
            tokens(normalizer(hypotheses[id_]), unit, language),
            loop=transcript.loop,
            truncated=transcript.truncated,
            invalid_text=any(map(has_replacement, (transcript.text, one.rewritten or "")))
            and not has_replacement(references[id_]),
        )
        for id_, one in transcribed.items()
        if (transcript := one.transcript) is not None
    }
    return _counts(transcribed, hypotheses, language, name), flags


def _counts(
    rows: Mapping[str, Retrieved], hypotheses: Mapping[str, str], language: str, name: str
) -> dict[str, dict[str, ErrorCounts]]:
    """Error counts by unit; no words in languages written without spaces."""
    counts: dict[str, dict[str, ErrorCounts]] = {"word": {}, "char": {}}
    if not rows:
        return counts
    normalizer, references = load_normalizer(name, language), {id_: one.query.text for id_, one in rows.items()}
    for each in dict.fromkeys((default_unit(language), "char")):
        counts[each] = score_transcripts(
            references, hypotheses, language=language, normalizer=normalizer, unit="word" if each == "word" else "char"
        )
    return counts


def _failed_lengths(
    retrieved: Sequence[Retrieved], counts: Mapping[str, Mapping[str, ErrorCounts]], language: str, name: str
) -> dict[str, dict[str, int]]:
    """By unit of `counts` the reference length of the rows that should have been transcribed and were not."""
    # Characters are counted in every language.
    counted = [own for unit, own in counts.items() if unit.endswith("char")]
    lacking = {
        one.query.id: one
        for one in retrieved
        if one.transcript is not None and not all(one.query.id in own for own in counted)
    }
    # Against themselves: all that counts is how long they are.
    lengths = _counts(lacking, {id_: one.query.text for id_, one in lacking.items()}, language, name)
    return {
        unit: {
            id_: count.reference_length
            for id_, count in lengths[unit.removeprefix(f"{REWRITTEN}_")].items()
            if id_ not in own
        }
        for unit, own in counts.items()
    }


def _row(
    one: Retrieved, found: _Documents, flags: UtteranceFlags, counts: Mapping[str, ErrorCounts | None]
) -> dict[str, Any]:
    query, spoken = one.query, one.spoken
    row: dict[str, Any] = {
        "id": query.id,
        "cluster": query.cluster,
        "subset": query.subset,
        "language": query.language,
        "audio_sha256": one.audio_sha256,
        "error": one.error,
        "flags": [name for name in FLAGS if getattr(flags, name, False)],
        "text": query.text,
        "transcript": one.shown,
        "group": query.group,
        "first_relevant_rank": found.first_relevant_rank,
        "ranking": one.ranking,
    }
    for unit, own in counts.items():
        row |= {f"{unit}_{kind}": NAN if own is None else float(getattr(own, kind)) for kind in _KINDS}
    absent = {name: "" if type_ == pa.string() else NAN for name, type_ in ACOUSTIC_COLUMNS}
    return row | {name: getattr(spoken, name) if spoken else none for name, none in absent.items()}
