"""From transcripts and rankings to per-query records and scores with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...loaders.records import NAN, Query, SpokenQuery
from ..metrics.error_counts import ErrorCounts, default_unit, score_transcripts, tokens
from ..metrics.flags import UtteranceFlags, flag_utterance
from ..metrics.ranking import RankingScores, order_hits, score_ranking
from ..metrics.statistics import Interval, corpus_rate_interval, mean_interval
from ..metrics.stratified import unweighted_loss, unweighted_mean, unweighted_mean_interval
from ..protocols import Transcript
from ..results.old import Loss, Score
from ..text.normalizers import load_normalizer
from .store import Ranking

RANKING_METRICS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")
NO_FLAGS = UtteranceFlags(loop=False, hallucination=False, empty=False, truncated=False)
DOCUMENTS_KEPT = 10
"""How many retrieved documents a per-query record names, and how many the metrics look at."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One query of a run on its way to a record.

    `spoken` is None under `text`, `transcript` under `text` and from a system without words; `error` says why there is
    neither words nor a vector.
    """

    query: Query
    spoken: SpokenQuery | None
    audio_sha256: str
    transcript: Transcript | None
    error: str
    search_text: str
    ranking: Ranking


@dataclass(frozen=True, slots=True)
class _Found:
    """The best of what a query found, and the rank of the first relevant document among all, 0 without one.

    `best` are the first documents in trec_eval's order, `documents` and `scores` as they were given.
    """

    best: list[tuple[str, float]]
    documents: list[str]
    scores: list[float]
    first_relevant_rank: int


@dataclass(frozen=True, slots=True)
class SubsetScores:
    """One run on one subset: records, ranking scores, and the counts that error rates are made of."""

    rows: list[dict[str, Any]]
    ranking: RankingScores
    words: dict[str, ErrorCounts]
    characters: dict[str, ErrorCounts]


def score_subset(
    answered: Sequence[Answered],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    language: str,
    condition: str,
    normalizer_name: str,
) -> SubsetScores:
    """Score one run on one subset.

    An utterance that could not be decoded has no words: it is left out of the error rates (and counted), and its
    query, which found nothing, scores 0.
    """
    found = {s.query.id: _found(s, qrels.get(s.query.id, {})) for s in answered}
    ranking = score_ranking(qrels, {id_: f.best for id_, f in found.items() if f.best}, metrics=RANKING_METRICS)
    normalizer = load_normalizer(normalizer_name, language)
    heard = {s.query.id: s for s in answered if s.transcript is not None and not s.transcript.error}
    references = {id_: s.query.text for id_, s in heard.items()}
    hypotheses = {id_: s.transcript.text for id_, s in heard.items() if s.transcript is not None}
    counts = {
        unit: score_transcripts(references, hypotheses, language=language, normalizer=normalizer, unit=unit)
        for unit in ("word", "char")
        if not (unit == "word" and default_unit(language) == "char")
    }
    words, characters = counts.get("word", {}), counts["char"]
    unit = default_unit(language)
    flags = {
        id_: flag_utterance(
            tokens(normalizer(references[id_]), unit, language),
            tokens(normalizer(hypotheses[id_]), unit, language),
            loop=transcript.loop,
            truncated=transcript.truncated,
        )
        for id_, s in heard.items()
        if (transcript := s.transcript) is not None
    }
    scored = SubsetScores([], ranking, words, characters)
    for s in answered:
        flagged = flags.get(s.query.id, NO_FLAGS)
        row = _row(s, found[s.query.id], scored)
        row |= {name: getattr(flagged, name) for name in NO_FLAGS.__slots__}
        scored.rows.append(row | {"condition": condition})
    return scored


def _found(answered: Answered, grades: Mapping[str, int]) -> _Found:
    ids, scores = answered.ranking.columns
    ranks = (rank for rank, id_ in enumerate(ids, start=1) if grades.get(id_, 0) > 0)
    ordered = order_hits(answered.query.id, list(zip(ids, scores, strict=True)))[:DOCUMENTS_KEPT]
    return _Found(
        [(id_, float(-place)) for place, id_ in enumerate(ordered)],
        ids[:DOCUMENTS_KEPT],
        list(scores[:DOCUMENTS_KEPT]),
        next(ranks, 0),
    )


def _row(answered: Answered, found: _Found, scored: SubsetScores) -> dict[str, Any]:
    query, spoken = answered.query, answered.spoken
    word, character = scored.words.get(query.id), scored.characters.get(query.id)
    return {
        "id": query.id,
        "subset": query.subset,
        "language": query.language,
        "group": query.group,
        "text": query.text,
        "transcript": answered.search_text,
        "error": answered.error,
        "word_errors": float(word.errors) if word else NAN,
        "word_reference_length": float(word.reference_length) if word else NAN,
        "char_errors": float(character.errors) if character else NAN,
        "char_reference_length": float(character.reference_length) if character else NAN,
        **{metric: scored.ranking.per_query[metric].get(query.id, NAN) for metric in RANKING_METRICS},
        "first_relevant_rank": found.first_relevant_rank,
        "documents": found.documents,
        "scores": found.scores,
        "snr_db": spoken.snr_db if spoken else NAN,
        "snr_active_db": spoken.snr_active_db if spoken else NAN,
        "noise_id": spoken.noise_id if spoken else "",
        "noise_family": spoken.noise_family if spoken else "",
        "rir_id": spoken.rir_id if spoken else "",
        "rt60_s": spoken.rt60_s if spoken else NAN,
        "drr_db": spoken.drr_db if spoken else NAN,
        "voice": spoken.voice if spoken else "",
        "duration_s": spoken.duration_s if spoken else NAN,
        "audio_sha256": answered.audio_sha256,
    }


def _score(value: float, interval: Interval | None, n: int) -> Score:
    def finite(number: float) -> float | None:
        return number if math.isfinite(number) else None

    return Score(
        value=finite(value),
        low=finite(interval.low) if interval else None,
        high=finite(interval.high) if interval else None,
        n=n,
    )


def summarize(subsets: Mapping[str, SubsetScores], *, seed: int, resamples: int) -> dict[str, Score]:
    """The scores of a run over its subsets.

    Ranking metrics are the unweighted mean of the subsets' means (as published), error rates are computed over all
    utterances: corpus rates from summed counts, macro rates as the mean of per-utterance rates.
    """
    scores: dict[str, Score] = {}
    for unit, name in (("words", "wer"), ("characters", "cer")):
        counts = [count for scored in subsets.values() for count in getattr(scored, unit).values()]
        if not counts:
            continue
        total = sum(counts, ErrorCounts.zero())
        scores[name] = _score(total.rate, corpus_rate_interval(counts, seed=seed, resamples=resamples), len(counts))
        rates = np.array([count.rate for count in counts if count.reference_length > 0])
        if rates.size:
            interval = mean_interval(rates, seed=seed, resamples=resamples)
            scores[f"{name}_macro"] = _score(float(rates.mean()), interval, rates.size)
    for metric in RANKING_METRICS:
        strata = by_metric(subsets, metric)
        interval = unweighted_mean_interval(strata, seed=seed, resamples=resamples)
        scores[metric] = _score(unweighted_mean(strata), interval, sum(map(len, strata.values())))
    return scores


def by_metric(subsets: Mapping[str, SubsetScores], metric: str) -> dict[str, Mapping[str, float]]:
    """One metric's per-query values by subset."""
    return {subset: scored.ranking.per_query[metric] for subset, scored in subsets.items()}


def losses(
    run: Mapping[str, SubsetScores], baseline: Mapping[str, SubsetScores], *, seed: int, resamples: int
) -> dict[str, Loss]:
    """What `run` lost against `baseline` per ranking metric, paired by query and aggregated as the scores are."""
    found: dict[str, Loss] = {}
    for metric in RANKING_METRICS:
        here = by_metric(run, metric)
        if not any(here.values()):
            continue
        lost = unweighted_loss(here, by_metric(baseline, metric), seed=seed, resamples=resamples)
        found[metric] = Loss(
            absolute=_score(lost.absolute, lost.interval_absolute, lost.n),
            relative=_score(lost.relative, lost.interval_relative, lost.n),
        )
    return found
