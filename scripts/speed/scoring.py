"""Scoring beside its peers: error counting, normalizing, ranking, intervals. Everything is made here from a seed.

- errors: 37,317 English pairs by word and 25,812 Chinese pairs by character, already normalized, beside jiwer, both
  with substitutions, deletions and insertions. One token in twelve is wrong.
- scoring: all that `squtr evaluate` does with the transcripts and hits of one system under one condition, on warm
  normalizers: 37,317 English utterances, word and character counts, nDCG, MRR, Recall, and their intervals;
- published normalizer: the same strings under four conditions, once per distinct string and once per utterance (needs
  `pip install 'squtr[compat]'`);
- ranking: 22,812 queries with 10 and 1,000 documents each, from the same dictionaries in memory to means and values of
  every query: `score_ranking` beside pytrec_eval alone, and beside pytrec_eval behind what `score_ranking` guarantees
  (ids of any type, finite scores, grades below 0, queries missing from the run, unjudged hits, a cut-off of MRR). Of
  1,000 documents the peers get a share of the queries; peak memory is that of tracemalloc for the share;
- bootstrap: the paired interval of a difference, 1,000 resamples × 37,317.

Contenders run in turns; medians of the rounds count.

    python scripts/speed/scoring.py [--rounds 5] [--share 0.04] [--seed 0]
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

import jiwer
import numpy as np
import pytrec_eval

from squtr.harness.metrics.error_counts import ErrorCounts, count_texts
from squtr.harness.metrics.ranking import DEFAULT_METRICS, order_hits, parse_grade, score_ranking, string_keys
from squtr.harness.metrics.statistics import difference_interval
from squtr.harness.metrics.summaries import summarize_ranking, summarize_recognition
from squtr.harness.text.normalizers import load_normalizer

ENGLISH, CHINESE = 37_317, 25_812
QUERIES, CORPUS, JUDGED = 22_812, 118_605, 118_932
WRONG = 1 / 12
Pairs = tuple[list[str], list[str]]
Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def medians(rounds: int, *work: Callable[[], object]) -> list[float]:
    """Median seconds of each, run in turns."""
    taken: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for place, one in enumerate(work):
            gc.collect()
            started = time.perf_counter()
            one()
            taken[place].append(time.perf_counter() - started)
    return [statistics.median(own) for own in taken]


def line(name: str, seconds: float, beside: str = "") -> None:
    """One row of the output."""
    print(f"  {name:<44} {seconds * 1000:>10.1f} ms  {beside}", flush=True)


def pairs(rng: np.random.Generator, n: int, mean: float, vocabulary: Sequence[str], blank: str) -> Pairs:
    """References with Zipf's frequencies, and hypotheses with `WRONG` errors per token."""
    last = len(vocabulary) - 1
    references, hypotheses = [], []
    for length in np.maximum(1, rng.poisson(mean, n)).tolist():
        reference = [vocabulary[i] for i in np.minimum(rng.zipf(1.3, length) - 1, last).tolist()]
        hypothesis = []
        for token, chance in zip(reference, rng.random(length).tolist(), strict=True):
            other = vocabulary[int(rng.integers(last))]
            if chance < WRONG * 0.6:
                hypothesis.append(other)
            elif chance >= WRONG * 0.8:
                hypothesis += [token, other] if chance < WRONG else [token]
        references.append(blank.join(reference))
        hypotheses.append(blank.join(hypothesis))
    return references, hypotheses


def count_errors_beside_jiwer(rng: np.random.Generator, rounds: int) -> Pairs:
    """English and Chinese; returns the English pairs."""
    letters = "etaoinshrdlucm"
    words = ["".join(letters[int(i)] for i in rng.integers(0, len(letters), 2 + k % 7)) for k in range(20_000)]
    english = pairs(rng, ENGLISH, 14.7, words, " ")
    chinese = pairs(rng, CHINESE, 11.3, [chr(0x4E00 + i) for i in range(5_000)], "")
    print("Error counting, S/D/I per utterance:")
    for name, (references, hypotheses), unit, language, peer in (
        (f"{ENGLISH} English pairs, words", english, "word", "en", jiwer.process_words),
        (f"{CHINESE} Chinese pairs, characters", chinese, "char", "zh", jiwer.process_characters),
    ):
        ours, theirs = medians(
            rounds,
            lambda a=references, b=hypotheses, u=unit, k=language: count_texts(a, b, unit=u, language=k),
            lambda a=references, b=hypotheses, p=peer: p(a, b),
        )
        total = sum(count_texts(references, hypotheses, unit=unit, language=language), ErrorCounts.zero())
        found = peer(references, hypotheses)
        if total.as_tuple()[:3] != (found.substitutions, found.deletions, found.insertions):
            raise SystemExit(f"{name}: squtr counts {total}, jiwer {found.substitutions} {found.deletions}.")
        right = np.mean([a == b for a, b in zip(references, hypotheses, strict=True)])
        print(f" {name} (rate {total.rate:.3f}, {right:.0%} right)")
        line("squtr", ours, f"{theirs / ours:.1f} times as fast")
        line("jiwer", theirs)
    return english


def score_one_condition(rng: np.random.Generator, english: Pairs, rounds: int) -> None:
    """Everything that one system under one condition is scored by."""
    normalizer = load_normalizer("default", "en")
    ids = [str(i) for i in range(ENGLISH)]
    references, hypotheses = (dict(zip(ids, side, strict=True)) for side in english)
    for text in (*english[0], *english[1]):
        normalizer(text)
    qrels = {i: {str(int(rng.integers(CORPUS))): 1} for i in ids}
    hits = {
        i: [(str(int(d)), float(s)) for d, s in zip(rng.integers(0, CORPUS, 10), range(10, 0, -1), strict=True)]
        for i in ids
    }

    def recognize() -> None:
        summarize_recognition(references, hypotheses, language="en", normalizer=normalizer)

    def rank() -> None:
        summarize_ranking(qrels, hits)

    recognition, ranking = medians(rounds, recognize, rank)
    print(f"Scoring one system under one condition, {ENGLISH} utterances, warm:")
    line("together", recognition + ranking)
    line("error rates, flags, intervals", recognition)
    line("ranking of 10 hits each, intervals", ranking)


def published_normalizer(english: Pairs, rounds: int) -> None:
    """Once per distinct string, and once per utterance, over clean, 20, 10 and 0 dB."""
    print("Published normalizer (squtr-compat) over four conditions:")
    if find_spec("tn") is None:
        print("  not measured: WeTextProcessing is not installed. Run: pip install 'squtr[compat]'")
        return
    normalizer = load_normalizer("squtr-compat", "en")
    plain = normalizer._apply.__wrapped__  # type: ignore[attr-defined]
    references, hypotheses = english[0][:20], english[1][:20]
    # Under four conditions each reference is scored four times; at 20 dB most transcripts are those of clean speech.
    grid = [
        *references,
        *hypotheses,
        *references,
        *hypotheses,
        *references,
        *hypotheses[:10],
        *references[10:],
        *references,
        *hypotheses,
    ]

    def memoized() -> None:
        normalizer._apply.cache_clear()  # type: ignore[attr-defined]
        for text in grid:
            normalizer(text)

    def every_time() -> None:
        for text in grid:
            plain(text)

    ours, theirs = medians(min(rounds, 3), memoized, every_time)
    line(f"by distinct string ({len(set(grid))} of {len(grid)})", ours, f"{theirs / ours:.1f} times as fast")
    line("per utterance", theirs)


def ranking_input(rng: np.random.Generator, queries: int, depth: int) -> tuple[Qrels, Run]:
    """Judgments, and hits as a retriever returns them: best first, half of what is judged among the first 30."""
    qrels: Qrels = {}
    run: Run = {}
    step = 7919
    for place in range(queries):
        documents = (int(rng.integers(CORPUS)) + step * np.arange(depth)) % CORPUS
        scores = np.sort(rng.random(depth, dtype=np.float32))[::-1]
        run[f"q{place}"] = {f"d{d}": s for d, s in zip(documents.tolist(), scores.tolist(), strict=True)}
        judged = rng.integers(CORPUS, size=1 + rng.poisson(JUDGED / QUERIES - 1))
        found = documents[rng.integers(min(30, depth), size=len(judged))]
        chosen = np.where(rng.random(len(judged)) < 0.5, found, judged)
        qrels[f"q{place}"] = {f"d{d}": int(rng.integers(1, 4)) for d in chosen.tolist()}
    return qrels, run


def score_with_pytrec_eval(qrels: Qrels, run: Run) -> dict[str, float]:
    """pytrec_eval alone: MRR without a cut-off, missing queries left out."""
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recip_rank", "recall.10"}).evaluate(run)
    return {name: sum(row[name] for row in found.values()) / len(found) for name in next(iter(found.values()))}


def score_behind_guards(qrels: Qrels, run: Run) -> dict[str, float]:
    """pytrec_eval with all that `score_ranking` guarantees."""
    judgments = {
        query: {doc: max(0, parse_grade(query, doc, grade)) for doc, grade in string_keys("judgments", own).items()}
        for query, own in string_keys("judgments", qrels).items()
    }
    judgments = {query: own for query, own in judgments.items() if any(own.values())}
    # Its scores are float32: ranks stand for them, so that only equal scores are ties. The cut-off is that of MRR.
    ranked = {query: order_hits(query, run.get(query, {}))[:10] for query in judgments}
    ordered = {query: {doc: float(-rank) for rank, doc in enumerate(docs)} for query, docs in ranked.items() if docs}
    found = pytrec_eval.RelevanceEvaluator(judgments, {"ndcg_cut.10", "recip_rank", "recall.10"}).evaluate(ordered)
    unjudged = sum(doc not in qrels[query] for query, docs in ranked.items() for doc in docs)
    names = ("ndcg_cut_10", "recip_rank", "recall_10")
    per_query = {name: {q: found[q][name] if q in found else 0.0 for q in judgments} for name in names}
    means = {name: math.fsum(values.values()) / len(judgments) for name, values in per_query.items()}
    return {**means, "unjudged": float(unjudged)}


def score_with_squtr(qrels: Qrels, run: Run) -> dict[str, float]:
    """As the product does."""
    found = score_ranking(qrels, run)
    return {**found.mean, "unjudged": float(found.unjudged)}


def rank_beside_pytrec_eval(rng: np.random.Generator, rounds: int, share: float) -> None:
    """Time and memory from the same input, and the same values."""
    for depth, queries in ((10, QUERIES), (1_000, max(50, int(QUERIES * share)))):
        qrels, run = ranking_input(rng, queries, depth)
        contenders = {
            "squtr": score_with_squtr,
            "pytrec_eval": score_with_pytrec_eval,
            "pytrec_eval, with the same guarantees": score_behind_guards,
        }
        values = {name: list(score(qrels, run).values()) for name, score in contenders.items()}
        if not np.allclose(values["squtr"], values["pytrec_eval, with the same guarantees"], atol=1e-9):
            raise SystemExit(f"{depth} documents: the values are {values}.")
        times = medians(rounds, *(partial(score, qrels, run) for score in contenders.values()))
        print(f"Ranking, {queries} queries x {depth} documents, {', '.join(DEFAULT_METRICS)}:")
        for (name, score), seconds in zip(contenders.items(), times, strict=True):
            tracemalloc.start()
            score(qrels, run)
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            line(name, seconds, f"{seconds / times[0]:.2f} x the time of squtr, peak {peak:.0f} MB")


def bootstrap(rng: np.random.Generator, rounds: int) -> None:
    """Values that repeat, as nDCG@10 with one relevant document, and values that do not."""
    gains = np.array([0.0, *(1 / np.log2(rank + 1) for rank in range(1, 11))])
    repeated = [gains[rng.integers(0, len(gains), ENGLISH)] for _ in range(2)]
    distinct = [rng.random(ENGLISH) for _ in range(2)]
    few, many = medians(
        rounds, lambda: difference_interval(*repeated, seed=0), lambda: difference_interval(*distinct, seed=0)
    )
    print(f"Paired bootstrap, 1,000 resamples x {ENGLISH}:")
    line("values that repeat (one relevant document)", few)
    line("all values distinct", many)


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.04, help="share of the queries that get 1,000 documents")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    english = count_errors_beside_jiwer(rng, arguments.rounds)
    score_one_condition(rng, english, arguments.rounds)
    published_normalizer(english, arguments.rounds)
    rank_beside_pytrec_eval(rng, arguments.rounds, arguments.share)
    bootstrap(rng, arguments.rounds)


if __name__ == "__main__":
    main()
