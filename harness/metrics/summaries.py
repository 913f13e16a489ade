"""All scores of one recognition or one ranking, with intervals, as JSON values (undefined: None), for `squtr score`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DataError
from ..text.languages import is_written_without_spaces
from ..text.normalizers import Normalizer
from .error_counts import ErrorCounts, Unit, check_same_ids, count_texts_array, default_unit, tokens
from .flags import NO_FLAGS, UtteranceFlags, flag_utterance, repeats_itself
from .ranking import DEFAULT_METRICS, Hits, score_ranking
from .statistics import Interval, Method, corpus_rate_interval, mean_interval

RATES: dict[Unit, tuple[str, str]] = {"word": ("wer", "word"), "char": ("cer", "char"), "mixed": ("mixed", "mixed")}
"""Name of the rate, and of the per-item columns, of each unit."""


@dataclass(frozen=True, slots=True)
class Summary:
    """`scores` is one JSON object; `columns` are fields with their values per item, in the order of the references."""

    scores: dict[str, Any]
    columns: dict[str, Sequence[Any]]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]


def plain(value: float) -> float | None:
    """The number, or None where it is undefined.

    >>> plain(math.nan), plain(0.5)
    (None, 0.5)
    """
    return float(value) if math.isfinite(value) else None


def plain_interval(interval: Interval) -> dict[str, float] | None:
    """`{"low": …, "high": …}`, or None where an end is undefined."""
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return {"low": interval.low, "high": interval.high}


def _labels(clusters: Mapping[str, str] | None, ids: Sequence[str]) -> list[str] | None:
    if clusters is None:
        return None
    absent = next((id_ for id_ in ids if id_ not in clusters), None)
    if absent is not None:
        raise DataError(f"id {absent!r} has no cluster.", hint="Give a label for every id.")
    return [clusters[id_] for id_ in ids]


def summarize_recognition(
    references: Mapping[str, str],
    hypotheses: Mapping[str, str],
    *,
    language: str,
    normalizer: Normalizer,
    unit: Unit | None = None,
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> Summary:
    """Error rates of `hypotheses`, joined by id; different ids raise `DataError`, "word" for Chinese `UsageError`.

    `unit` (None: the language's customary one) decides what `substitutions`, `deletions`, `insertions`,
    `reference_length` and `mer` (match error rate: errors / (hits + errors)) count. `wer` and `cer` are
    corpus rates, `wer_macro` and `cer_macro` means of the utterances' own rates (under `squtr-compat` as published,
    where an empty reference counts as 0 or 1); `wer` is None for languages written without spaces. With unit "mixed",
    `mixed` and `mixed_macro` are the rates over Chinese characters and words.

    `clusters` maps ids to what is drawn together for the intervals (a speaker).

    >>> from squtr.harness.text.normalizers import load_normalizer
    >>> found = summarize_recognition({"a": "one cat"}, {"a": "1 cut"}, language="en",
    ...                               normalizer=load_normalizer("default", "en"))
    >>> found.scores["wer"], found.scores["substitutions"], found.items[0]["hypothesis"]
    (0.5, 1, '1 cut')
    """
    unit = default_unit(language) if unit is None else unit
    check_same_ids(references, hypotheses)
    ids = list(references)
    spoken = [normalizer(text) for text in references.values()]
    transcribed = [normalizer(hypotheses[id_]) for id_ in ids]
    labels = _labels(clusters, ids)
    # The chosen unit first, so that one that has no meaning is refused.
    wanted: list[Unit] = [unit, "char"] if is_written_without_spaces(language) else [unit, "word", "char"]
    counts = {
        each: count_texts_array(spoken, transcribed, unit=each, language=language) for each in dict.fromkeys(wanted)
    }
    own = counts[unit]
    total = ErrorCounts(*own.sum(axis=0).tolist())
    found = [_flags(a, b, hypotheses[id_], language) for id_, a, b in zip(ids, spoken, transcribed, strict=True)]
    flags = {name: [getattr(each, name) for each in found] for name in ("loop", "hallucination", "empty")}
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "method": method}
    rates: dict[str, float | None] = {"wer": None, "wer_macro": None, "cer": None, "cer_macro": None}
    intervals: dict[str, dict[str, float] | None] = dict.fromkeys(rates)
    columns: dict[str, Sequence[Any]] = {"id": ids}
    for place, field in enumerate(("substitutions", "deletions", "insertions", "reference_length")):
        columns[field] = own[:, place].tolist()
    for counted, table in counts.items():
        name, column = RATES[counted]
        errors, lengths = table[:, :3].sum(axis=1), table[:, 3]
        filled = lengths > 0
        each_rate = np.full(len(table), math.nan)
        each_rate[filled] = errors[filled] / lengths[filled]
        rates[name] = plain(ErrorCounts(*table.sum(axis=0).tolist()).rate)
        intervals[name] = plain_interval(corpus_rate_interval(table, labels, **options))
        # As published, an empty reference counts, as 0 or 1.
        compat = normalizer.name == "squtr-compat"
        kept = np.where(filled, each_rate, errors > 0) if compat else each_rate[filled]
        shown = labels if labels is None or compat else [labels[i] for i in np.flatnonzero(filled).tolist()]
        rates[f"{name}_macro"] = plain(math.fsum(kept.tolist()) / len(kept)) if len(kept) else None
        intervals[f"{name}_macro"] = plain_interval(mean_interval(kept, shown, **options))
        columns[name] = [rate if ok else None for rate, ok in zip(each_rate.tolist(), filled.tolist(), strict=True)]
        columns[f"{column}_errors"], columns[f"{column}_reference_length"] = errors.tolist(), lengths.tolist()
    scores = {
        **rates,
        "mer": plain(total.match_error_rate),
        "substitutions": total.substitutions,
        "deletions": total.deletions,
        "insertions": total.insertions,
        "reference_length": total.reference_length,
        "n": len(ids),
        "empty_references": int((own[:, 3] == 0).sum()),
        "loops": sum(flags["loop"]),
        "hallucinations": sum(flags["hallucination"]),
        "empty": sum(flags["empty"]),
        "intervals": intervals,
        "unit": unit,
        "language": language,
        "normalizer": normalizer.name,
        "normalizer_version": normalizer.version,
        "seed": seed,
        "resamples": resamples,
    }
    return Summary(scores, columns | flags | {"reference": spoken, "hypothesis": transcribed})


def _flags(reference: str, hypothesis: str, as_written: str, language: str) -> UtteranceFlags:
    """In the language's customary unit, whatever errors are counted in: the rules are made for it."""
    if reference == hypothesis:
        return NO_FLAGS
    spoken, found = (tokens(text, default_unit(language), language) for text in (reference, hypothesis))
    return flag_utterance(spoken, found, loop=repeats_itself(as_written))


def summarize_ranking(
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Hits],
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    ignore_identical_ids: bool = False,
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> Summary:
    """The means of `metrics` with intervals, and the counts of `RankingScores`; errors as in `score_ranking`.

    >>> found = summarize_ranking({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.7}}, ["mrr_at_10"])
    >>> found.scores["mrr_at_10"], found.scores["unjudged"], found.items
    (0.5, 1, [{'id': 'q', 'mrr_at_10': 0.5}])
    """
    scored = score_ranking(qrels, run, metrics, ignore_identical_ids=ignore_identical_ids)
    ids = list(next(iter(scored.per_query.values())))
    labels = _labels(clusters, ids)
    intervals = {
        name: plain_interval(
            mean_interval(np.array([values[i] for i in ids]), labels, seed=seed, resamples=resamples, method=method)
        )
        for name, values in scored.per_query.items()
    }
    scores: dict[str, Any] = {
        **scored.mean,
        "n_queries": scored.n_queries,
        "missing": scored.missing,
        "unjudged": scored.unjudged,
        "no_relevant": scored.no_relevant,
        "unknown_queries": scored.unknown_queries,
        "intervals": intervals,
        "seed": seed,
        "resamples": resamples,
    }
    columns = {name: [values[i] for i in ids] for name, values in scored.per_query.items()}
    return Summary(scores, {"id": ids, **columns})
