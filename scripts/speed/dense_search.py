"""Dense retrieval: encoding beside its matrix products, search beside its matrix product, and the memory of a search.

- encoding: tokens per second of `SentenceTransformerEncoder` with MiniLM, of sentence-transformers' own `encode` at its
  defaults, and of the matrix products alone that these tokens need (every layer's, without padding where the layer
  works on single tokens). Texts are words of the `mini` corpora, 5 to 250 in a text;
- search: the best 100 of random unit vectors for random queries, by `VectorIndex` from memory and from mapped files
  (float32, float16), by the numpy product of queries and blocks alone, by faiss flat and by mteb's search;
- memory: peak of a process that searches a corpus on disk, for few vectors and for more, beside the vectors' size.

Contenders take turns in one process. Processor time counts, all threads together, so that what else runs on the machine
disturbs little, and of the rounds the median. Peaks have a process of their own.

    OMP_NUM_THREADS=1 python scripts/speed/dense_search.py [--rounds 3] [--documents 500000] [--only search]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from squtr.harness.components.retrievers.corpus_vectors import BLOCK_DOCUMENTS
from squtr.harness.components.retrievers.stored_vectors import (
    FileBlock,
    HeldBlock,
    Storage,
    VectorBlock,
    stored,
    write_block,
)
from squtr.harness.components.retrievers.vector_index import VectorIndex
from squtr.harness.components.retrievers.vector_products import NumpyProducts
from squtr.loaders.document_ids import DocumentIds

WIDTH, K = 384, 100


def unit_vectors(n: int, seed: int) -> NDArray[np.float32]:
    """(n, WIDTH) float32 of unit length."""
    vectors = np.random.default_rng(seed).standard_normal((n, WIDTH), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def document_ids(n: int) -> DocumentIds:
    """Ids of a corpus of `n` documents."""
    return DocumentIds.of(f"d{i:08}" for i in range(n))


def blocks_in_files(folder: Path, documents: int, storage: Storage) -> list[VectorBlock]:
    """Blocks of random vectors in files."""
    blocks: list[VectorBlock] = []
    for start in range(0, documents, BLOCK_DOCUMENTS):
        size = min(BLOCK_DOCUMENTS, documents - start)
        path = folder / f"{start:09}-{storage}.npy"
        if not path.exists():
            write_block(path, stored(unit_vectors(size, start), storage))
        blocks.append(FileBlock(path, (size, WIDTH)))
    return blocks


def in_turns(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median of the processor seconds of each, after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, contender in contenders.items():
            started = time.process_time()
            contender()
            if number:
                seconds[name].append(time.process_time() - started)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def search_seconds(*, documents: int = 500_000, queries: int = 1000, rounds: int = 3) -> dict[str, float]:
    """Processor seconds of a search of `queries` in `documents`, by contender.

    `product` is the numpy product of queries and blocks alone.
    """
    asked = unit_vectors(queries, 1 << 40)
    ids = document_ids(documents)
    with tempfile.TemporaryDirectory() as folder:
        mapped = blocks_in_files(Path(folder), documents, "float32")
        half = blocks_in_files(Path(folder), documents, "float16")
        vectors = np.concatenate([np.asarray(block.read()) for block in mapped])
        starts = range(0, documents, BLOCK_DOCUMENTS)
        held: list[VectorBlock] = [HeldBlock(vectors[start : start + BLOCK_DOCUMENTS]) for start in starts]
        scores = np.empty((queries, BLOCK_DOCUMENTS), dtype=np.float32)

        def product() -> None:
            for block in held:
                np.matmul(asked, block.read().T, out=scores[:, : block.shape[0]])

        def searching(blocks: list[VectorBlock]) -> Callable[[], object]:
            index = VectorIndex(ids, blocks, products=NumpyProducts())
            return lambda: index.search(asked, k=K)

        contenders: dict[str, Callable[[], object]] = {
            "product": product,
            "squtr": searching(held),
            "squtr, mapped": searching(mapped),
            "squtr, mapped float16": searching(half),
        }
        if importlib.util.find_spec("faiss"):
            import faiss

            flat = faiss.IndexFlatIP(WIDTH)
            flat.add(vectors)
            contenders["faiss flat"] = lambda: flat.search(asked, K)
        if importlib.util.find_spec("mteb"):
            contenders["mteb"] = mteb_search(vectors, asked, list(ids))
        return in_turns(contenders, rounds)


def mteb_search(vectors: NDArray[np.float32], asked: NDArray[np.float32], ids: list[str]) -> Callable[[], object]:
    """mteb's search over vectors that are ready: its encoder hands them out."""
    import datasets
    import mteb
    import torch
    from mteb.models.search_wrappers import SearchEncoderWrapper

    datasets.disable_progress_bars()
    logging.getLogger("mteb").setLevel(logging.ERROR)
    corpus = datasets.Dataset.from_dict({"id": ids, "title": [""] * len(ids), "text": ["x"] * len(ids)})
    names = [f"q{i}" for i in range(len(asked))]
    queries = datasets.Dataset.from_dict({"id": names, "text": ["x"] * len(names)})
    metadata = mteb.get_task("NFCorpus").metadata

    class Ready:
        """Gives the vectors in the order in which mteb asks for them."""

        mteb_model_meta = None
        given = 0

        def encode(self, inputs: Any, *, prompt_type: Any, **_: Any) -> torch.Tensor:
            if str(prompt_type.value) == "query":
                self.given = 0
                return torch.from_numpy(asked)
            first, self.given = self.given, self.given + len(inputs.dataset)
            return torch.from_numpy(vectors[first : self.given])

        def similarity(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
            return one @ two.T

    def search() -> object:
        wrapper = SearchEncoderWrapper(Ready())
        where: dict[str, Any] = {"task_metadata": metadata, "hf_split": "test", "hf_subset": "default"}
        options = {"show_progress_bar": False}
        wrapper.index(corpus, **where, encode_kwargs=options)
        return wrapper.search(queries, **where, top_k=K, encode_kwargs=options)

    return search


def encoding_seconds(*, texts: int = 300, rounds: int = 3, model: str = "all-minilm-l6-v2") -> dict[str, float]:
    """Processor seconds to encode `texts` documents on the CPU, by contender.

    `products` are the matrix products alone.
    """
    import torch

    from squtr.harness.components.encoders.sentence_transformers import SentenceTransformerEncoder
    from squtr.loaders.sources import load_source

    source = load_source("mini")
    words = [word for document in source.documents("mini-en") for word in document.contents.split()]
    rng = np.random.default_rng(0)
    sizes = np.clip(rng.lognormal(4.0, 0.6, texts), 5, 250).astype(int)
    contents = [" ".join(rng.choice(words, size)) for size in sizes]
    encoder = SentenceTransformerEncoder(model, device="cpu")
    theirs = encoder._model
    prompt = str(encoder.spec.settings["document_prompt"])
    batches = list(encoder._batches(contents, "document"))
    lengths = dict(enumerate(encoder._lengths([prompt + text for text in contents])))
    config = theirs.transformers_model.config
    width, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads

    def products() -> None:
        attention, out = torch.randn(width, 3 * width), torch.randn(width, width)
        up, down = torch.randn(width, inner), torch.randn(inner, width)
        with torch.inference_mode():
            for batch in batches:
                tokens = sum(lengths[row] for row in batch.rows)
                hidden, wide = torch.empty(tokens, width).fill_(0.5), torch.empty(tokens, inner).fill_(0.5)
                shape = (len(batch.rows) * heads, batch.width)
                parts, weights = torch.full((*shape, width // heads), 0.5), torch.full((*shape, batch.width), 0.5)
                for _ in range(config.num_hidden_layers):
                    _ = hidden @ attention, parts @ parts.transpose(1, 2), weights @ parts
                    _ = hidden @ out, hidden @ up, wide @ down

    contenders: dict[str, Callable[[], object]] = {
        "products": products,
        "squtr": lambda: encoder.encode(contents, role="document"),
        "sentence-transformers": lambda: theirs.encode(
            contents, prompt=prompt, normalize_embeddings=True, show_progress_bar=False
        ),
    }
    return {**in_turns(contenders, rounds), "tokens": float(sum(lengths.values()))}


def memory_mb(documents: int, storage: Storage, *, queries: int = 1000) -> dict[str, float]:
    """Peak memory in MB of a process that searches `documents` on disk, what it had before, and the vectors' size."""
    with tempfile.TemporaryDirectory() as folder:
        blocks = blocks_in_files(Path(folder), documents, storage)
        size = sum(block.read().nbytes for block in blocks) / 1e6
        command = [sys.executable, __file__, "--peak", folder, str(documents), storage, str(queries)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return {**found, "vectors": size}


def print_peak(folder: str, documents: str, storage: str, queries: str) -> None:
    """Search, in the process whose memory is measured."""
    blocks = blocks_in_files(Path(folder), int(documents), storage)  # type: ignore[arg-type]
    index = VectorIndex(document_ids(int(documents)), blocks, products=NumpyProducts())
    asked = unit_vectors(int(queries), 1 << 40)
    before = peak_mb()
    index.search(asked, k=K)
    print(json.dumps({"before": before, "peak": peak_mb()}))


def peak_mb() -> float:
    """Peak resident memory so far, mapped pages included (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def print_ratios(title: str, seconds: Mapping[str, float], base: str) -> None:
    """Seconds of each, and how many times those of `base`."""
    print(f"\n{title}")
    for name, taken in seconds.items():
        print(f"  {name:<24}{taken:>9.2f} s{taken / seconds[base]:>9.2f} x {base}")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Dense retrieval beside its matrix products and its peers.")
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--only", choices=("encoding", "search", "memory"), nargs="+")
    parser.add_argument("--peak", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        print_peak(*arguments.peak)
        return
    chosen = arguments.only or ("encoding", "search", "memory")
    if "search" in chosen:
        seconds = search_seconds(documents=arguments.documents, queries=arguments.queries, rounds=arguments.rounds)
        title = f"the best {K} of {arguments.documents:,} x {WIDTH} for {arguments.queries:,} queries"
        print_ratios(title, seconds, "product")
    if "encoding" in chosen:
        seconds = encoding_seconds(texts=arguments.texts, rounds=arguments.rounds)
        tokens = seconds.pop("tokens")
        print_ratios(f"{arguments.texts} texts, {tokens:,.0f} tokens, MiniLM on the CPU", seconds, "products")
        print(f"  squtr reaches {seconds['products'] / seconds['squtr']:.2f} of its matrix products' speed,")
        print(f"  {seconds['sentence-transformers'] / seconds['squtr']:.2f} times that of sentence-transformers.")
    if "memory" in chosen:
        print(f"\npeak memory of searching vectors on disk, {arguments.queries:,} queries")
        storages: tuple[Storage, ...] = ("float32", "float16")
        for storage in storages:
            for documents in arguments.sizes:
                found = memory_mb(documents, storage, queries=arguments.queries)
                print(
                    f"  {storage:<10}{documents:>11,} documents: {found['peak']:>6.0f} MB, before it "
                    f"{found['before']:.0f} MB; the vectors take {found['vectors']:.0f} MB"
                )


if __name__ == "__main__":
    main()
