"""All scores of one recognition or of one ranking, with intervals, as plain values: what `squtr score` prints.

Values that do not apply or are undefined are None, so that the summary is valid JSON as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DataError
from ..text.languages import is_written_without_spaces
from ..text.normalizers import Normalizer
from .error_counts import (
    ErrorCounts,
    Unit,
    check_same_ids,
    count_many,
    default_unit,
    macro_rate,
    squtr_compat_rate,
    tokens,
)
from .flags import flag_counts, flag_utterance
from .ranking import DEFAULT_METRICS, Hits, score_ranking
from .statistics import Interval, Method, corpus_rate_interval, mean_interval

RATES: dict[Unit, tuple[str, str]] = {"word": ("wer", "word"), "char": ("cer", "char"), "mixed": ("mixed", "mixed")}
"""Name of the rate, and of the per-item columns, of each unit."""


@dataclass(frozen=True, slots=True)
class Summary:
    """`scores` is one JSON object, `items` one per item, in the order of the references or judgements."""

    scores: dict[str, Any]
    items: list[dict[str, Any]]


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


def summarise_recognition(
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
    `reference_length`, the flags and `mer` (match error rate: errors / (hits + errors)) count. `wer` and `cer` are
    corpus rates, `wer_macro` and `cer_macro` means of the utterances' own rates (under `squtr-compat` as published,
    where an empty reference counts as 0 or 1); `wer` is None for languages written without spaces. With unit "mixed",
    `mixed` and `mixed_macro` are the rates over Chinese characters and words.

    `clusters` maps ids to what is drawn together for the intervals (a speaker).

    >>> from squtr.harness.text.normalizers import load_normalizer
    >>> found = summarise_recognition({"a": "one cat"}, {"a": "1 cut"}, language="en",
    ...                               normalizer=load_normalizer("default", "en"))
    >>> found.scores["wer"], found.scores["substitutions"], found.items[0]["hypothesis"]
    (0.5, 1, '1 cut')
    """
    unit = default_unit(language) if unit is None else unit
    check_same_ids(references, hypotheses)
    ids = list(references)
    said = {id_: normalizer(references[id_]) for id_ in ids}
    heard = {id_: normalizer(hypotheses[id_]) for id_ in ids}
    labels = _labels(clusters, ids)
    # Tokens of the chosen unit first, so that a unit that has no meaning is refused at once.
    pairs = [(tokens(said[i], unit, language), tokens(heard[i], unit, language)) for i in ids]
    counts: dict[Unit, list[ErrorCounts]] = {unit: count_many(pairs)}
    for other in ("word", "char"):
        if other not in counts and not (other == "word" and is_written_without_spaces(language)):
            counts[other] = count_many(
                (tokens(said[i], other, language), tokens(heard[i], other, language)) for i in ids
            )
    flags = [flag_utterance(reference, hypothesis) for reference, hypothesis in pairs]
    flagged = flag_counts(flags)
    total = sum(counts[unit], ErrorCounts.zero())
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "method": method}
    rates: dict[str, float | None] = {"wer": None, "wer_macro": None, "cer": None, "cer_macro": None}
    intervals: dict[str, dict[str, float] | None] = dict.fromkeys(rates)
    compat = normalizer.name == "squtr-compat"
    for counted, table in counts.items():
        name = RATES[counted][0]
        rates[name] = plain(sum(table, ErrorCounts.zero()).rate)
        intervals[name] = plain_interval(corpus_rate_interval(table, labels, **options))
        macro = squtr_compat_rate(table) if compat else macro_rate(table).rate
        rates[f"{name}_macro"] = plain(macro)
        intervals[f"{name}_macro"] = _macro_interval(table, labels, compat, options)
    scores = {
        **rates,
        "mer": plain(total.match_error_rate),
        "substitutions": total.substitutions,
        "deletions": total.deletions,
        "insertions": total.insertions,
        "reference_length": total.reference_length,
        "n": len(ids),
        "empty_references": sum(c.reference_length == 0 for c in counts[unit]),
        "loops": flagged["loop"],
        "hallucinations": flagged["hallucination"],
        "empty": flagged["empty"],
        "intervals": intervals,
        "unit": unit,
        "language": language,
        "normalizer": normalizer.name,
        "normalizer_version": normalizer.version,
        "seed": seed,
        "resamples": resamples,
    }
    items = []
    for place, id_ in enumerate(ids):
        own, flag = counts[unit][place], flags[place]
        row: dict[str, Any] = {
            "id": id_,
            "substitutions": own.substitutions,
            "deletions": own.deletions,
            "insertions": own.insertions,
            "reference_length": own.reference_length,
        }
        for counted, table in counts.items():
            name, column = RATES[counted]
            row[name] = plain(table[place].rate)
            row[f"{column}_errors"] = table[place].errors
            row[f"{column}_reference_length"] = table[place].reference_length
        row |= {"loop": flag.loop, "hallucination": flag.hallucination, "empty": flag.empty}
        items.append(row | {"reference": said[id_], "hypothesis": heard[id_]})
    return Summary(scores, items)


def _macro_interval(
    counts: Sequence[ErrorCounts], labels: Sequence[str] | None, compat: bool, options: Mapping[str, Any]
) -> dict[str, float] | None:
    kept = [place for place, c in enumerate(counts) if compat or c.reference_length]
    rates = [squtr_compat_rate([counts[place]]) for place in kept]
    own = None if labels is None else [labels[place] for place in kept]
    return plain_interval(mean_interval(np.array(rates), own, **options))


def summarise_ranking(
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

    >>> found = summarise_ranking({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.7}}, ["mrr_at_10"])
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
    items = [{"id": i} | {name: values[i] for name, values in scored.per_query.items()} for i in ids]
    return Summary(scores, items)
