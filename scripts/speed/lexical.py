"""Lexical retrieval beside the published script's way. Texts are made from a seed, or read from BEIR folders.

- segmentation: Chinese words, beside jieba. The words must be the same;
- build: English and Chinese indexes, beside bm25s.tokenize (with NLTK's Porter stemmer; after jieba) and bm25s.index,
  as the published baselines of SQuTR build theirs. The analyzer is `squtr-compat`, so that the terms are the same, and
  the rankings must be: every query's best documents with their scores, wherever the published order is not one of
  chance (equal float32 scores, score 0). The default analyzer is timed too;
- search: queries of the corpus's own words, 100 hits each, beside bm25s.retrieve;
- memory: peak of a process that builds one index, less what the documents themselves take.

Contenders run in turns; medians of the rounds count. Stemming with NLTK needs `pip install 'squtr[compat]'`.

    python scripts/speed/lexical.py [--documents 20000] [--rounds 3] [--seed 0] [--english DIR] [--chinese DIR]
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import logging
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from squtr.harness.components.retrievers.bm25 import BM25Retriever
from squtr.harness.components.retrievers.chinese_words import chinese_words, separated_words
from squtr.harness.components.retrievers.lexical_tokens import ENGLISH_STOP_WORDS
from squtr.harness.protocols import Hit
from squtr.loaders.records import Document

DEPTH = 100
Tokenized = Callable[[Sequence[str]], Any]


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
    print(f"  {name:<44} {seconds:>9.2f} s  {beside}", flush=True)


def made_english(n: int, seed: int) -> list[str]:
    """Texts of 20 to 240 words with Zipf's frequencies, stop words and English endings."""
    rng = np.random.default_rng(seed)
    letters, endings = list("etaoinshrdlucmpgb"), ["", "", "", "s", "ed", "ing", "ation", "ly", "ness", "ies"]
    stems = ["".join(rng.choice(letters, 3 + i % 6)) for i in range(60_000)]
    words = [*sorted(ENGLISH_STOP_WORDS), *(s + endings[int(rng.integers(len(endings)))] for s in stems)]
    texts = []
    for length in rng.integers(20, 240, n).tolist():
        drawn = [words[i] for i in np.minimum(rng.zipf(1.25, length) - 1, len(words) - 1).tolist()]
        drawn[0] = drawn[0].capitalize()
        texts.append(", ".join(" ".join(drawn[i : i + 9]) for i in range(0, length, 9)) + ".")
    return texts


def made_chinese(n: int, seed: int) -> list[str]:
    """Texts of 20 to 260 words of jieba's dictionary as often as it says, with marks, numbers and Latin words."""
    jieba = loaded_jieba()
    rng = np.random.default_rng(seed)
    entries = [(word, f) for word, f in jieba.dt.FREQ.items() if f > 2 and not word.isascii()]
    share = np.cumsum([f for _, f in entries], dtype=np.float64)
    share /= share[-1]
    between = ["，", "。", "、", "2019年", "3.5%", "24-10", "iPhone", "GDP", "（1）", "A股"]
    texts = []
    for length in rng.integers(20, 260, n).tolist():
        drawn = [entries[i][0] for i in np.searchsorted(share, rng.random(length)).tolist()]
        for i in range(8, length, 9):
            drawn[i] = between[min(int(rng.geometric(0.4)) - 1, len(between) - 1)]
        texts.append("".join(drawn) + "。")
    return texts


def beir_texts(folder: Path, n: int) -> list[str]:
    """The first `n` texts of a BEIR folder's corpus."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(text) for text in islice(lines, n)]
    return [f"{row.get('title', '')} {row.get('text', '')}".strip() for row in rows]


@functools.lru_cache(maxsize=1)
def loaded_jieba() -> Any:
    """jieba with its dictionary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
    return jieba


def published_english(texts: Sequence[str], stop_words: object = "english") -> Any:
    """As the published English script."""
    import bm25s
    from nltk.stem.porter import PorterStemmer

    stem = PorterStemmer().stem
    stemmer = lambda words: [stem(word) for word in words]  # noqa: E731
    return bm25s.tokenize(list(texts), stopwords=stop_words, stemmer=stemmer, show_progress=False)


def published_english_queries(texts: Sequence[str]) -> Any:
    """The published English script lists Lucene's stop words for queries."""
    return published_english(texts, sorted(ENGLISH_STOP_WORDS))


def published_chinese(texts: Sequence[str]) -> Any:
    """As the published Chinese script."""
    import bm25s

    spaced = [" ".join(loaded_jieba().lcut(text)) for text in texts]
    return bm25s.tokenize(spaced, stemmer=None, show_progress=False)


def published_index(texts: Sequence[str], tokenized: Tokenized) -> Any:
    """The published index."""
    import bm25s

    retriever = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    retriever.index(tokenized(texts), show_progress=False)
    return retriever


def own_index(texts: Sequence[str], language: str, analyzer: Any) -> BM25Retriever:
    """Ours."""
    retriever = BM25Retriever(analyzer=analyzer)
    retriever.index(documents(texts), language=language)
    return retriever


def documents(texts: Sequence[str]) -> list[Document]:
    """The texts as documents that are called by their places."""
    return [Document(str(i), "", text) for i, text in enumerate(texts)]


def disagreements(published: tuple[Any, Any], hits: Sequence[Sequence[Hit]]) -> int:
    """Queries whose published hits are not ours: another score at some rank, or another document with a score of its
    own. Documents that tie in float32 may change places.
    """
    wrong = 0
    for places, scores, own in zip(*published, hits, strict=True):
        theirs = [(str(place), float(score)) for place, score in zip(places, scores, strict=True) if score > 0]
        close = len(theirs) == len(own) and np.allclose([s for _, s in theirs], [h.score for h in own], rtol=1e-5)
        if close:
            last = theirs[-1][1] if theirs else 0.0
            clear = {document for document, score in theirs if score > last * (1 + 1e-5)}
            mine = {hit.document_id for hit in own}
            close = clear <= mine and {h.document_id for h in own if h.score > last * (1 + 1e-5)} <= dict(theirs).keys()
        wrong += not close
    return wrong


def segment(texts: Sequence[str], rounds: int) -> None:
    """Chinese words beside jieba's."""
    jieba = loaded_jieba()
    chinese_words("3-2 你好")
    if any(jieba.lcut(text) != chinese_words(text) for text in texts):
        raise SystemExit("segmentation: the words are not jieba's.")
    ours, theirs = medians(
        rounds,
        lambda: [separated_words(text) for text in texts],
        lambda: [" ".join(jieba.lcut(text)) for text in texts],
    )
    print(f"Chinese segmentation, {len(texts)} texts, {sum(map(len, texts))} characters, the same words:")
    line("squtr", ours, f"{theirs / ours:.1f} times as fast")
    line("jieba", theirs)


def build_and_search(name: str, language: str, texts: Sequence[str], rounds: int, seed: int) -> None:
    """One language."""
    tokenized = published_english if language == "en" else published_chinese
    ours, plain, theirs = medians(
        rounds,
        lambda: own_index(texts, language, "squtr-compat"),
        lambda: own_index(texts, language, "default"),
        lambda: published_index(texts, tokenized),
    )
    print(f"{name} index, {len(texts)} documents, {sum(map(len, texts))} characters:")
    line("squtr, squtr-compat", ours, f"{theirs / ours:.1f} times as fast")
    line("squtr, default", plain, f"{theirs / plain:.1f} times as fast")
    line("published way", theirs)

    rng = np.random.default_rng(seed)
    queries = [texts[int(i)][10:60] for i in rng.integers(0, len(texts), 1000)]
    query_tokens = (published_english_queries if language == "en" else published_chinese)(queries)
    peer, own = published_index(texts, tokenized), own_index(texts, language, "squtr-compat")

    def retrieve() -> tuple[Any, Any]:
        found: tuple[Any, Any] = peer.retrieve(query_tokens, k=DEPTH, show_progress=False)
        return found

    wrong = disagreements(retrieve(), own.search(queries, k=DEPTH))
    if wrong:
        raise SystemExit(f"{name}: {wrong} of {len(queries)} queries are ranked otherwise.")
    ours, theirs = medians(rounds, lambda: own.search(queries, k=DEPTH), retrieve)
    print(f"{name} search, {len(queries)} queries, {DEPTH} hits each, the same rankings:")
    line("squtr, queries cut too", ours, f"{theirs / ours:.1f} times as fast")
    line("bm25s, queries cut already", theirs)


def build_memory(n: int, seed: int) -> None:
    """Peak memory of processes of their own."""
    print(f"Peak memory of building, {n} English documents, less that of the documents:")
    peaks = {
        who: float(
            subprocess.run(
                [sys.executable, __file__, "--memory-of", who, "--documents", str(n), "--seed", str(seed)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for who in ("squtr", "published")
    }
    for who, peak in peaks.items():
        print(f"  {who:<44} {peak:>9.0f} MB")


def print_memory_of(who: str, n: int, seed: int) -> None:
    """Build once and print what the peak grew by, in MB."""
    texts = made_english(n, seed)
    import bm25s  # noqa: F401
    import nltk.stem.porter  # noqa: F401
    import scipy.sparse  # noqa: F401

    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    if who == "squtr":
        own_index(texts, "en", "squtr-compat")
    else:
        published_index(texts, published_english)
    print(_memory("VmHWM") - before)


def _memory(name: str) -> float:
    """A line of this process's status, in MB (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--english", type=Path, help="a BEIR folder instead of made texts")
    parser.add_argument("--chinese", type=Path, help="a BEIR folder instead of made texts")
    parser.add_argument("--memory-of", choices=("squtr", "published"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n, seed = arguments.documents, arguments.seed
    if arguments.memory_of:
        print_memory_of(arguments.memory_of, n, seed)
        return
    chinese = beir_texts(arguments.chinese, n) if arguments.chinese else made_chinese(n // 4, seed)
    segment(chinese, arguments.rounds)
    build_and_search("Chinese", "zh", chinese, arguments.rounds, seed)
    english = beir_texts(arguments.english, n) if arguments.english else made_english(n, seed)
    build_and_search("English", "en", english, arguments.rounds, seed)
    build_memory(5 * n, seed)


if __name__ == "__main__":
    main()
