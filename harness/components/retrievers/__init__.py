"""Retrievers: text query to ranked documents."""

from __future__ import annotations

from collections.abc import Mapping

from ..encoders import ENCODERS
from ..table import BackendSpec, table_of

_HERE = "harness.components.retrievers"
_MODEL = "harness.components.encoders.st_model:SentenceTransformersModel"
RETRIEVERS: Mapping[str, BackendSpec] = table_of(
    BackendSpec("bm25", f"{_HERE}.bm25:BM25Retriever", "", False),
    BackendSpec("dense", f"{_HERE}.dense:DenseRetriever", "torch", True, ENCODERS["sentence-transformers"].path),
    BackendSpec("dense-server", f"{_HERE}.dense:ServerDenseRetriever", "openai", True, ENCODERS["server"].path),
    BackendSpec("dense-mteb", "harness.mteb.reverse:MtebDenseRetriever", "mteb", True, ENCODERS["mteb"].path),
    BackendSpec("splade", f"{_HERE}.splade:SpladeRetriever", "torch", True, _MODEL),
    BackendSpec("colbert", f"{_HERE}.colbert:ColBERTRetriever", "torch", True, _MODEL),
    BackendSpec("hybrid", f"{_HERE}.hybrid:HybridRetriever", "", False),
    BackendSpec("route", f"{_HERE}.route:RouteRetriever", "", False),
    BackendSpec("rerank", f"{_HERE}.rerank:RerankedRetriever", "torch", True, _MODEL),
    BackendSpec("trec", f"{_HERE}.trec_run:TrecRun", "", True),
)
