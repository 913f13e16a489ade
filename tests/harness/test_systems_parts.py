"""Systems made of parts: hybrids, rerankers, ready transcripts and runs, wired as their classes want it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.components.retrievers.hybrid import HybridRetriever
from squtr.harness.components.retrievers.rerank import RerankedRetriever
from squtr.harness.systems import Overrides, System, load_system, load_systems, write_spec
from squtr.loaders.records import Document

HYBRID = "whisper-base + rrf(bm25, dense:all-minilm-l6-v2)"


def read_systems(path: Path, **options: Any) -> list[System]:
    return load_systems([str(path)], **options)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with ready transcripts and a ready run."""
    (tmp_path / "mine.jsonl").write_text('{"id": "q1", "text": "river"}\n', encoding="utf-8")
    (tmp_path / "mine.run").write_text("q1 Q0 d1 1 0.5 me\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cascade(text: str, **options: object) -> System:
    system = load_system(text, **options)  # type: ignore[arg-type]
    assert system.kind == "cascade"
    return system


def test_a_hybrid_searches_with_its_parts() -> None:
    system = cascade("whisper-base + score(bm25, bm25)")
    assert isinstance(system.retriever, HybridRetriever)
    assert [part.spec.name for part in system.retriever.parts] == ["BM25", "BM25"]
    system.retriever.index([Document("d1", "", "river stone"), Document("d2", "", "lamp")], language="en")
    assert [hit.document_id for hit in system.retriever.search(["lamp"], k=2)[0]] == ["d2"]


def test_parts_are_shared_and_told_in_the_result() -> None:
    one, two = load_systems([HYBRID, "whisper-base + bm25"])
    assert one.kind == "cascade"
    assert two.kind == "cascade"
    assert isinstance(one.retriever, HybridRetriever)
    assert one.retriever.parts[0] is two.retriever
    told = str(one.as_dict()["retriever"])
    assert "'rrf'" in told
    assert "all-MiniLM-L6-v2" in told


def test_caches_reach_parts_and_rerankers(tmp_path: Path) -> None:
    system = cascade(f"{HYBRID} > rerank:org/cross-encoder", cache=tmp_path)
    reranker = system.retriever
    assert isinstance(reranker, RerankedRetriever)
    (hybrid,) = reranker.parts
    assert isinstance(hybrid, HybridRetriever)
    caches = [reranker._cache, hybrid.parts[1]._cache]  # type: ignore[attr-defined]
    assert caches[0] is caches[1]
    assert caches[0].root == tmp_path / "embeddings"


def test_trust_reaches_parts_and_rerankers() -> None:
    text = f"{HYBRID} > rerank:org/cross-encoder"
    for trust in (True, False):
        system = cascade(text, options=Overrides(trust_remote_code=trust))
        assert isinstance(system.retriever, RerankedRetriever)
        (hybrid,) = system.retriever.parts
        assert isinstance(hybrid, HybridRetriever)
        assert hybrid.parts[1]._encoder._torch.trust_remote_code is trust  # type: ignore[attr-defined]
        assert system.retriever._model._torch.trust_remote_code is trust


def test_options_of_composites_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "transcriber: whisper-base\n"
        "retriever: {backend: hybrid, method: rrf, weights: [2, 1], constant: 9,"
        " parts: [bm25, {backend: bm25, k1: 2}]}\n"
        "reranker: {backend: rerank, model: org/cross-encoder, depth: 7}\n",
        encoding="utf-8",
    )
    (system,) = read_systems(path)
    assert system.kind == "cascade"
    assert isinstance(system.retriever, RerankedRetriever)
    assert system.retriever.part_depth(5) == 7
    assert system.retriever.parts[0].spec.settings["constant"] == 9.0
    (tmp_path / "again.yaml").write_text(write_spec(system), encoding="utf-8")
    (again,) = read_systems(tmp_path / "again.yaml")
    assert write_spec(again) == write_spec(system)
    path.write_text(
        "{transcriber: whisper-base, retriever: {backend: rerank, model: m, parts: [bm25], first: dense:m}}"
    )
    with pytest.raises(UnknownNameError, match="unknown option of rerank: 'first'"):
        read_systems(path)


def test_a_hybrid_is_written_and_read_back(tmp_path: Path) -> None:
    system = load_system(HYBRID)
    path = tmp_path / "spec.yaml"
    path.write_text(write_spec(system), encoding="utf-8")
    (again,) = read_systems(path)
    assert again.as_dict() == system.as_dict()


def test_ready_files(files: Path) -> None:
    both = cascade("transcripts:mine.jsonl + trec:mine.run")
    assert both.precomputed_transcripts is not None
    assert both.precomputed_run is not None
    assert both.precomputed_transcripts.transcripts("s", "clean", ["q1"])[0].text == "river"
    assert both.precomputed_run.hits("s", "clean", ["q1"], k=5)[0][0].document_id == "d1"
    alone = load_system("trec:mine.run")
    assert alone.kind == "run"
    assert alone.name == "mine"
    mixed = cascade("transcripts:mine.jsonl + bm25")
    assert mixed.precomputed_transcripts is not None
    assert mixed.searcher is not None
    path = files / "spec.yaml"
    for system in (both, alone, mixed):
        path.write_text(write_spec(system), encoding="utf-8")
        (again,) = read_systems(path)
        assert again.as_dict() == system.as_dict()


def test_what_ready_files_cannot_do(files: Path) -> None:
    with pytest.raises(UsageError, match="nothing to work on before precomputed output"):
        load_system("spectral-gate | transcripts:mine.jsonl + bm25")
    for retriever in ("rrf(bm25, trec:mine.run)", "trec:mine.run > rerank:m"):
        with pytest.raises(UsageError, match="cannot combine a precomputed run"):
            load_system(f"whisper-base + {retriever}")
    path = files / "spec.yaml"
    path.write_text("{transcriber: whisper-base, retriever: 'trec:mine.run', n_best: 2}", encoding="utf-8")
    with pytest.raises(UsageError, match="one ranking per query"):
        read_systems(path)
    path.write_text("{run: 'trec:mine.run', name: other}", encoding="utf-8")
    assert read_systems(path)[0].name == "other"


def test_n_best_of_ready_transcripts_and_of_a_recognizer(files: Path) -> None:
    path = files / "spec.yaml"
    path.write_text("{transcriber: 'transcripts:mine.jsonl', retriever: bm25, n_best: 3}", encoding="utf-8")
    (ready,) = read_systems(path)
    assert ready.name == "mine + BM25 (3-best)"
    path.write_text("{transcriber: whisper-base, retriever: bm25, n_best: 3}", encoding="utf-8")
    (heard,) = read_systems(path)
    assert heard.kind == "cascade"
    assert heard.transcriber.spec.settings["n_best"] == 3
    path.write_text(
        "{transcriber: {backend: faster-whisper, model: whisper-base, beam_size: 5, n_best: 2}, retriever: bm25,"
        " n_best: 3}",
        encoding="utf-8",
    )
    with pytest.raises(UsageError, match=r"spec\.yaml: n_best is 3, but whisper-base .* gives 2"):
        read_systems(path)


def test_front_ends_and_encoders(tmp_path: Path) -> None:
    system = load_system("wiener | clap:org/clap", options=Overrides(trust_remote_code=True))
    assert system.kind == "end-to-end"
    assert system.front_end is not None
    assert system.front_end.spec.kind == "front_end"
    assert "trust" not in write_spec(system)
