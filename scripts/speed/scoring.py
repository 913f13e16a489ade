"""Scoring beside its peers: error counting, normalizing, ranking, intervals. Everything is made here from a seed.

- errors: 37,317 English pairs by word and 25,812 Chinese pairs by character, already normalized, beside jiwer, both
  with substitutions, deletions and insertions. One token in twelve is wrong.
- scoring: all that `squtr evaluate` does with the transcripts and hits of one system under one condition, on warm
  normalizers: 37,317 English utterances, word and character counts, nDCG, MRR, Recall, and their intervals;
- published normalizer: the same strings under four conditions, once per distinct string and once per utterance (needs
  `pip install 'squtr[compat]'`);
- ranking: 22,812 queries × 1,000 documents from arrays of scores and documents and dictionaries of judgments to means
  and per-query values, beside pytrec_eval, ranx and mteb, each from the same arrays with the dictionaries that it
  needs. The peers get a share of the queries, and their time is scaled up; peak memory is that of a process of its own;
- bootstrap: the paired interval of a difference, 1,000 resamples × 37,317.

Contenders run in turns; medians of the rounds count.

    python scripts/speed/scoring.py [--rounds 5] [--share 0.04] [--seed 0]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import jiwer
import numpy as np
import pytrec_eval

from squtr.harness.metrics.error_counts import ErrorCounts, count_texts
from squtr.harness.metrics.ranking_arrays import ArrayJudgements, order_by_score, score_arrays
from squtr.harness.metrics.statistics import difference_interval
from squtr.harness.metrics.summaries import summarize_ranking, summarize_recognition
from squtr.harness.text.normalizers import load_normalizer

ENGLISH, CHINESE = 37_317, 25_812
QUERIES, DEPTH, CORPUS, JUDGED = 22_812, 1_000, 118_605, 118_932
WRONG = 1 / 12
Pairs = tuple[list[str], list[str]]


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
    """References with Zipf's frequencies, and what a recognizer with `WRONG` errors per token makes of them."""
    last = len(vocabulary) - 1
    said, heard = [], []
    for length in np.maximum(1, rng.poisson(mean, n)).tolist():
        reference = [vocabulary[i] for i in np.minimum(rng.zipf(1.3, length) - 1, last).tolist()]
        hypothesis = []
        for token, chance in zip(reference, rng.random(length).tolist(), strict=True):
            other = vocabulary[int(rng.integers(last))]
            if chance < WRONG * 0.6:
                hypothesis.append(other)
            elif chance >= WRONG * 0.8:
                hypothesis += [token, other] if chance < WRONG else [token]
        said.append(blank.join(reference))
        heard.append(blank.join(hypothesis))
    return said, heard


def count_errors_beside_jiwer(rng: np.random.Generator, rounds: int) -> Pairs:
    """English and Chinese; returns the English pairs."""
    letters = "etaoinshrdlucm"
    words = ["".join(letters[int(i)] for i in rng.integers(0, len(letters), 2 + k % 7)) for k in range(20_000)]
    english = pairs(rng, ENGLISH, 14.7, words, " ")
    chinese = pairs(rng, CHINESE, 11.3, [chr(0x4E00 + i) for i in range(5_000)], "")
    print("Error counting, S/D/I per utterance:")
    for name, (said, heard), unit, language, peer in (
        (f"{ENGLISH} English pairs, words", english, "word", "en", jiwer.process_words),
        (f"{CHINESE} Chinese pairs, characters", chinese, "char", "zh", jiwer.process_characters),
    ):
        ours, theirs = medians(
            rounds,
            lambda a=said, b=heard, u=unit, k=language: count_texts(a, b, unit=u, language=k),
            lambda a=said, b=heard, p=peer: p(a, b),
        )
        total = sum(count_texts(said, heard, unit=unit, language=language), ErrorCounts.zero())
        found = peer(said, heard)
        if total.as_tuple()[:3] != (found.substitutions, found.deletions, found.insertions):
            raise SystemExit(f"{name}: squtr counts {total}, jiwer {found.substitutions} {found.deletions}.")
        print(
            f" {name} (rate {total.rate:.3f}, {np.mean([a == b for a, b in zip(said, heard, strict=True)]):.0%} right)"
        )
        line("squtr", ours, f"{theirs / ours:.1f} times as fast")
        line("jiwer", theirs)
    return english


def score_one_condition(rng: np.random.Generator, english: Pairs, rounds: int) -> None:
    """Everything that one system under one condition is scored by."""
    normalizer = load_normalizer("default", "en")
    ids = [str(i) for i in range(ENGLISH)]
    said, heard = (dict(zip(ids, side, strict=True)) for side in english)
    for text in (*english[0], *english[1]):
        normalizer(text)
    qrels = {i: {str(int(rng.integers(CORPUS))): 1} for i in ids}
    hits = {
        i: [(str(int(d)), float(s)) for d, s in zip(rng.integers(0, CORPUS, 10), range(10, 0, -1), strict=True)]
        for i in ids
    }

    def recognize() -> None:
        summarize_recognition(said, heard, language="en", normalizer=normalizer)

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
    said, heard = english[0][:20], english[1][:20]
    # Under four conditions each reference is scored four times; at 20 dB most transcripts are those of clean speech.
    grid = [*said, *heard, *said, *heard, *said, *heard[:10], *said[10:], *said, *heard]

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


def ranking_arrays(seed: int) -> tuple[dict[str, dict[str, int]], np.ndarray, np.ndarray, list[str]]:
    """Judgments, (Q, k) document indices and scores as a dense retriever returns them, and document ids."""
    rng = np.random.default_rng(seed)
    documents = np.empty((QUERIES, DEPTH), dtype=np.int32)
    for row in documents:
        row[:] = _distinct(rng)
    scores = np.sort(rng.random((QUERIES, DEPTH), dtype=np.float32), axis=1)[:, ::-1].copy()
    ids = [f"d{i}" for i in range(CORPUS)]
    owners = np.sort(np.concatenate([np.arange(QUERIES), rng.integers(0, QUERIES, JUDGED - QUERIES)]))
    qrels: dict[str, dict[str, int]] = {}
    for owner in owners.tolist():
        # Half of what is judged was retrieved.
        found = documents[owner, int(rng.integers(30))] if rng.random() < 0.5 else int(rng.integers(CORPUS))
        qrels.setdefault(f"q{owner}", {})[ids[int(found)]] = int(rng.integers(1, 4))
    return qrels, documents, scores, ids


def _distinct(rng: np.random.Generator) -> np.ndarray:
    """`DEPTH` distinct documents: an arithmetic progression modulo the corpus, from a random start."""
    step = 7919
    return (int(rng.integers(CORPUS)) + step * rng.permutation(DEPTH)) % CORPUS


def score_with_squtr(
    qrels: dict[str, dict[str, int]], documents: np.ndarray, scores: np.ndarray, ids: list[str]
) -> dict[str, float]:
    """From arrays and judgments to means and per-query values."""
    index = {document_id: place for place, document_id in enumerate(ids)}
    judgments = ArrayJudgements.from_qrels(qrels, index)
    return score_arrays(judgments, order_by_score(scores, documents, ids, depth=10)).mean


def as_dictionaries(
    qrels: dict[str, dict[str, int]], documents: np.ndarray, scores: np.ndarray, ids: list[str]
) -> dict[str, dict[str, float]]:
    """What the peers read."""
    rows = zip(qrels, documents.tolist(), scores.tolist(), strict=True)
    return {query: dict(zip([ids[d] for d in own], values, strict=True)) for query, own, values in rows}


def rank_beside_peers(seed: int, rounds: int, share: float) -> None:
    """pytrec_eval, ranx, mteb: each with the dictionaries that it needs."""
    everything = ranking_arrays(seed)
    qrels, documents, scores, ids = everything
    few = max(50, int(QUERIES * share))
    part = {query: qrels[query] for query in list(qrels)[:few]}

    def pytrec() -> dict[str, dict[str, float]]:
        run = as_dictionaries(part, documents[:few], scores[:few], ids)
        return pytrec_eval.RelevanceEvaluator(part, {"ndcg_cut.10", "recip_rank", "recall.10"}).evaluate(run)

    peers: dict[str, Callable[[], object]] = {"pytrec_eval": pytrec}
    if find_spec("ranx") is not None:
        from ranx import Qrels, Run, evaluate

        def with_ranx() -> object:
            run = Run(as_dictionaries(part, documents[:few], scores[:few], ids))
            return evaluate(Qrels(part), run, ["ndcg@10", "mrr@10", "recall@10"])

        with_ranx()  # compiles
        peers["ranx"] = with_ranx
    if find_spec("mteb") is not None:
        from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

        peers["mteb"] = lambda: calculate_retrieval_scores(
            as_dictionaries(part, documents[:few], scores[:few], ids), part, [10]
        )
    ours, *theirs = medians(rounds, lambda: score_with_squtr(*everything), *peers.values())
    values = pytrec()
    for metric, name in (("ndcg_at_10", "ndcg_cut_10"), ("recall_at_10", "recall_10")):
        mine = score_with_squtr(part, documents[:few], scores[:few], ids)[metric]
        other = sum(v[name] for v in values.values()) / len(values)
        if abs(mine - other) > 1e-9:
            raise SystemExit(f"{metric}: squtr {mine}, pytrec_eval {other}.")
    print(f"Ranking, {QUERIES} queries x {DEPTH} documents, {JUDGED} judgments, dictionaries included:")
    line("squtr", ours)
    for name, seconds in zip(peers, theirs, strict=True):
        scaled = seconds * QUERIES / few
        line(f"{name} ({few} queries, scaled)", scaled, f"squtr is {scaled / ours:.0f} times as fast")
    for name in ("ranx", "mteb"):
        if name not in peers:
            print(f"  {name}: not measured, it is not installed")
    command = [sys.executable, __file__, "--memory-of-ranking", "--seed", str(seed)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(f"  {'squtr, peak memory':<44} {done.stdout.strip()}")


def print_memory_of_ranking(seed: int) -> None:
    """What scoring allocates at its peak, as tracemalloc sees Python's and numpy's memory, and the input beside it."""
    everything = ranking_arrays(seed)
    tracemalloc.start()
    score_with_squtr(*everything)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    inputs = (everything[1].nbytes + everything[2].nbytes) / 1e6
    print(f"{peak:>10.0f} MB, and {inputs:.0f} MB of input")


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
    parser.add_argument("--share", type=float, default=0.04, help="share of the queries that the peers rank")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory-of-ranking", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of_ranking:
        print_memory_of_ranking(arguments.seed)
        return
    rng = np.random.default_rng(arguments.seed)
    english = count_errors_beside_jiwer(rng, arguments.rounds)
    score_one_condition(rng, english, arguments.rounds)
    published_normalizer(english, arguments.rounds)
    rank_beside_peers(arguments.seed, arguments.rounds, arguments.share)
    bootstrap(rng, arguments.rounds)


if __name__ == "__main__":
    main()
