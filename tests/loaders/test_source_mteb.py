"""Retrieval data in the form of the Hub's mteb organization, read from local folders of parquet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.loaders.records import Document, Qrel
from squtr.loaders.sources import load_source
from squtr.loaders.sources.mteb_collection import PUBLISHED, MtebCollection, MtebSource
from squtr.loaders.sources.release import SUBSETS

from .sources_for_tests import make_mteb, make_recordings

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("ids", [("_id", "query-id", "corpus-id"), ("id", "qid", "pid")])
@pytest.mark.parametrize("config", ["default", "qrels"])
def test_a_folder(tmp_path: Path, ids: tuple[str, str, str], config: str) -> None:
    source = load_source(f"mteb:{make_mteb(tmp_path / 'Fr_Data', ids=ids, qrels_config=config)}?language=fr")
    assert dict(source.subsets) == {"fr-data": "fr"}
    assert source.name == "mteb:fr-data"
    assert [q.id for q in source.queries("fr-data")] == ["q2", "q1"]
    assert list(source.documents("fr-data"))[:2] == [Document("d0", "", "a"), Document("d1", "t1", "b")]
    assert source.qrels("fr-data") == [Qrel("q1", "d1", 1), Qrel("q2", "d2", 2)]
    with pytest.raises(AudioError, match="texts only"):
        source.speech(source.queries("fr-data")[0])


def test_with_recordings(tmp_path: Path) -> None:
    root = make_mteb(tmp_path / "m")
    voices = make_recordings(tmp_path / "v", [{"file": "1.wav", "text": "What is 1?"}])
    source = load_source(f"mteb:{root}?language=en&speech={voices}&missing=skip")
    assert [source.speech(q).samples.size for q in source.queries("m")] == [12_000]


def test_the_version_of_a_folder_follows_its_content(tmp_path: Path) -> None:
    root = make_mteb(tmp_path / "m")
    before = load_source(f"mteb:{root}?language=en").version
    assert load_source(f"mteb:{make_mteb(tmp_path / 'copy' / 'm')}?language=en").version == before
    assert load_source(f"mteb:{root}?language=en&split=dev").version != before
    (root / "extra.parquet").write_bytes(b"x")
    assert load_source(f"mteb:{root}?language=en").version != before


def test_a_missing_split_and_a_missing_config(tmp_path: Path) -> None:
    root = make_mteb(tmp_path / "m")
    text = (root / "README.md").read_text()
    two = text.replace(
        "    path: qrels/*.parquet", "    path: qrels/*.parquet\n  - split: dev\n    path: qrels/*.parquet"
    )
    (root / "README.md").write_text(two)
    with pytest.raises(DataError, match=r"no split 'train' in its config default.*test, dev"):
        load_source(f"mteb:{root}?language=en&split=train").queries("m")
    (root / "README.md").write_text(text.replace("config_name: corpus", "config_name: passages"))
    with pytest.raises(DataError, match=r"no config corpus or en-corpus.*passages"):
        load_source(f"mteb:{root}?language=en").qrels("m")


def test_the_published_subsets_are_pinned() -> None:
    source = load_source("mteb")
    assert tuple(source.subsets) == SUBSETS
    assert list(source.subsets.values()) == ["en"] * 3 + ["zh"] * 3
    assert all(re.fullmatch("[0-9a-f]{40}", collection.revision) for collection in PUBLISHED)
    one = load_source("mteb:mteb/T2Retrieval")
    assert dict(one.subsets) == {"t2retrieval": "zh"}
    assert one.version == PUBLISHED[-1].revision
    assert load_source("mteb:mteb/T2Retrieval?split=train").version != one.version
    with pytest.raises(UnknownNameError, match="Did you mean 'fiqa'"):
        source.queries("fiqaa")
    with pytest.raises(UsageError, match="options but no repository"):
        load_source("mteb?split=dev")


def test_the_published_pins_are_those_of_mteb() -> None:
    mteb = pytest.importorskip("mteb", reason="needs mteb")
    if mteb.__version__ != "2.26.24":
        pytest.skip("the pins were taken from mteb 2.26.24")
    tasks = ("FiQA2018", "HotpotQA", "NQ", "MedicalRetrieval", "DuRetrieval", "T2Retrieval")
    for collection, task in zip(PUBLISHED, tasks, strict=True):
        metadata = mteb.get_task(task).metadata
        assert metadata.dataset == {"path": collection.repository, "revision": collection.revision}
        assert metadata.eval_splits == [collection.split]


def test_a_commit_and_a_language_are_required(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no revision"):
        load_source("mteb:org/name?language=en")
    with pytest.raises(UsageError, match="does not say its language"):
        load_source(f"mteb:org/name@{COMMIT}")
    with pytest.raises(UsageError, match="revision 'main'"):
        MtebSource([MtebCollection("x", "en", "org/name", "main", "test")])


def test_the_hub_is_asked_for_that_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = make_mteb(tmp_path / "m")
    asked: list[tuple[str, str]] = []
    for name in ("get_dataset_config_names", "get_dataset_split_names", "load_dataset"):
        original = getattr(datasets, name)

        def ask(place: str, *arguments: Any, revision: str, original: Any = original, **options: Any) -> Any:
            asked.append((place, revision))
            return original(str(root), *arguments, **options)

        monkeypatch.setattr(datasets, name, ask)
    source = load_source(f"mteb:org/name@{COMMIT}?language=fr")
    assert source.version == f"{COMMIT} (name fr test)"
    assert [q.id for q in source.queries("name")] == ["q2", "q1"]
    assert set(asked) == {("org/name", COMMIT)}
    assert len(asked) == 6


def test_a_hub_out_of_reach() -> None:
    with pytest.raises(DataError, match=r"mteb/fiqa at 27a16881.* cannot be loaded"):
        load_source("mteb:mteb/fiqa").queries("fiqa")


def test_a_path_that_hides_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_mteb(tmp_path / "mteb" / "fiqa")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="hides the repository"):
        load_source("mteb").queries("fiqa")


def make_multilingual(root: Path, layout: str) -> Path:
    """Two languages with their configs, or one; `layout` says how."""
    prefixes = [""] if layout == "plain" else ["es-", "fr-"]
    lines = ["---", "configs:"]
    for prefix in prefixes:
        tables: dict[str, dict[str, list[Any]]] = {
            "corpus": {"_id": ["d1", "d2"], "title": ["", "t"], "text": [f"{prefix}a", "b"]},
            "queries": {"_id": [1, 2, 3], "text": [f"{prefix}one", "two", "three"]},
            "qrels": {"query-id": ["1", "3"], "corpus-id": ["d1", "d2"], "score": [1, 2]},
        }
        for name, columns in tables.items():
            config = "query" if layout == "query" and name == "queries" else f"{prefix}{name}"
            config = "default" if config == "qrels" else config
            if f"- config_name: {config}" in lines:
                continue
            split = "test" if name == "qrels" or layout == "splits" else name
            (root / config).mkdir(parents=True)
            pq.write_table(pa.table(columns), root / config / f"{split}-0.parquet")
            lines += [
                f"- config_name: {config}",
                "  data_files:",
                f"  - split: {split}",
                f"    path: {config}/*.parquet",
            ]
    (root / "README.md").write_text("\n".join([*lines, "---", ""]))
    return root


@pytest.mark.parametrize("layout", ["plain", "splits", "languages", "query"])
def test_every_layout_reads_as_mteb_reads_it(tmp_path: Path, layout: str) -> None:
    loaders = pytest.importorskip("mteb.abstasks.retrieval_dataset_loaders", reason="needs mteb")
    root = make_multilingual(tmp_path / "m", layout)
    source = load_source(f"mteb:{root}?language=es")
    config = None if layout == "plain" else "es"
    theirs = loaders.RetrievalDatasetLoader(str(root), None, split="test", config=config).load()
    assert {q.id: q.text for q in source.queries("m")} == dict(
        zip(theirs["queries"]["id"], theirs["queries"]["text"], strict=True)
    )
    assert [d.text for d in source.documents("m")] == list(theirs["corpus"]["text"])
    grades: dict[str, dict[str, int]] = {}
    for qrel in source.qrels("m"):
        grades.setdefault(qrel.query_id, {})[qrel.document_id] = qrel.score
    assert grades == theirs["relevant_docs"]


def test_several_languages_become_several_subsets(tmp_path: Path) -> None:
    root = make_multilingual(tmp_path / "m", "languages")
    source = load_source(f"mteb:{root}")
    assert dict(source.subsets) == {"m-es": "es", "m-fr": "fr"}
    assert [source.queries(subset)[0].text for subset in source.subsets] == ["es-one", "fr-one"]
    named = load_source(f"mteb:{root}?language=pt&config=fr")
    assert [q.text for q in named.queries("m")] == ["fr-one", "three"]


def test_configs_of_a_language_are_not_read_with_others(tmp_path: Path) -> None:
    root = make_multilingual(tmp_path / "m", "languages")
    readme, text = root / "README.md", (root / "README.md").read_text()
    readme.write_text(text.replace("config_name: es-qrels", "config_name: default"))
    with pytest.raises(DataError, match="no config default or qrels or es-qrels"):
        load_source(f"mteb:{root}?language=es").qrels("m")
    readme.write_text(text.replace("config_name: fr-corpus", "config_name: corpus"))
    with pytest.raises(UsageError, match="does not say its language"):
        load_source(f"mteb:{root}")


def test_configs_that_do_not_say_their_language(tmp_path: Path) -> None:
    root = make_multilingual(tmp_path / "m", "languages")
    text = (root / "README.md").read_text()
    (root / "README.md").write_text(text.replace("config_name: es-", "config_name: spanish-"))
    with pytest.raises(UsageError, match=r"'spanish' is no language code.*config=spanish&language=en"):
        load_source(f"mteb:{root}")
    assert load_source(f"mteb:{root}?config=spanish&language=es").queries("m")[0].text == "es-one"
