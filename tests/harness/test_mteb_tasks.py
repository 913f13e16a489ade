"""The tasks and the benchmark of mteb: what they say, what a model sees, and that every query counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mteb
import numpy as np
import pytest
from mteb._create_dataloaders import create_dataloader
from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader
from mteb.models import MultiVectorSearchEncoderWrapper
from mteb.models.model_implementations.pylate_models import PylateSearchEncoder
from mteb.types import PromptType

import squtr
from squtr.errors import DataError, MissingExtraError, ModelError, UnknownNameError, UsageError
from squtr.harness.metrics.ranking import score_ranking
from squtr.harness.mteb import versions
from squtr.loaders.build import build
from squtr.loaders.data import LiveData
from squtr.loaders.recipe import open_recipe

from ..loaders.collections_for_tests import make_collection, write_jsonl
from .mteb_for_tests import Renamed, SpyEncoder, spectrum_vector, words_vector

CONDITIONS = ("clean", "high_noise", "snr_-5")
TRANSCRIPTS = {"river", "stone", "lamp", "garden", "bridge"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_collection(tmp_path_factory.mktemp("mteb") / "tiny")


@pytest.fixture(scope="module")
def live(root: Path) -> LiveData:
    return LiveData(open_recipe(str(root), conditions=CONDITIONS))


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "data"
    build(open_recipe(str(root), conditions=CONDITIONS), folder)
    return folder


def evaluate(model: Any, tasks: Any) -> dict[str, dict[str, Any]]:
    """Scores by config."""
    found = mteb.evaluate(model, tasks, cache=None, show_progress_bar=False, co2_tracker=False)
    return {scores["hf_subset"]: scores for result in found.task_results for scores in result.scores["test"]}


def test_what_a_task_says(live: LiveData) -> None:
    data = Renamed(live, {"fiqa": "tiny-en", "t2retrieval": "tiny-zh"})
    tasks = squtr.mteb_tasks(data=data)
    assert [task.metadata.name for task in tasks] == [
        "SQuTRFiQA", "SQuTRFiQAText", "SQuTRT2Retrieval", "SQuTRT2RetrievalText",
    ]  # fmt: skip
    spoken, typed = tasks[0].metadata, tasks[1].metadata
    assert (spoken.type, spoken.category, spoken.modalities) == ("Any2AnyRetrieval", "a2t", ["audio", "text"])
    assert (typed.type, typed.category, typed.modalities) == ("Retrieval", "t2t", ["text"])
    assert spoken.main_score == typed.main_score == "ndcg_at_10"
    assert spoken.eval_langs == {f"fiqa_{condition}": ["eng-Latn"] for condition in CONDITIONS}
    assert typed.eval_langs == {"fiqa_text": ["eng-Latn"]}
    assert tasks[2].metadata.eval_langs["t2retrieval_clean"] == ["cmn-Hans"]
    assert spoken.revision == typed.revision == live.revision
    assert spoken.license == "apache-2.0" or spoken.license == "cc0-1.0"
    assert "2602.12783" in spoken.bibtex_citation
    assert mteb.get_task("FiQA2018").metadata.bibtex_citation in spoken.bibtex_citation
    assert spoken.prompt == mteb.get_task("FiQA2018").metadata.prompt
    assert {"Financial", "Spoken"} <= set(spoken.domains)
    assert "Spoken" not in typed.domains
    for task in tasks:
        assert task.metadata.is_filled()
        task.metadata._validate_metadata()


def test_names_of_other_subsets(live: LiveData) -> None:
    assert [t.metadata.name for t in squtr.mteb_tasks(data=live, text=False)] == ["SQuTRTinyEn", "SQuTRTinyZh"]


def test_choosing(live: LiveData) -> None:
    (spoken, typed) = squtr.mteb_tasks(data=live, languages=["zh"], conditions=["clean"])
    assert spoken.hf_subsets == ["tiny-zh_clean"]
    assert set(spoken.metadata.eval_langs) == {f"tiny-zh_{condition}" for condition in CONDITIONS}
    assert typed.hf_subsets == ["tiny-zh_text"]
    assert len(squtr.mteb_tasks(data=live, conditions=["text"])) == 2
    with pytest.raises(UnknownNameError, match="Did you mean 'clean'"):
        squtr.mteb_tasks(data=live, conditions=["cleen"])
    with pytest.raises(UnknownNameError, match="tiny-en"):
        squtr.mteb_tasks(data=live, subsets=["tiny-e"])
    with pytest.raises(UnknownNameError, match="language"):
        squtr.mteb_tasks(data=live, languages=["fr"])
    with pytest.raises(UsageError, match="Leave one"):
        squtr.mteb_tasks(data=live, languages=["zh"], subsets=["tiny-en"])
    with pytest.raises(UsageError, match="no condition"):
        squtr.mteb_tasks(data=live, conditions=["text"], text=False)


@pytest.mark.parametrize("kind", ["on the fly", "built"])
def test_a_model_sees_id_and_sound_alone(kind: str, live: LiveData, built: Path) -> None:
    spy = SpyEncoder()
    evaluate(spy, squtr.mteb_tasks(data=live if kind == "on the fly" else built, languages=["en"]))
    spoken = [batch for batch in spy.batches if "audio" in batch]
    assert len(spoken) == len(CONDITIONS)
    for batch in spoken:
        assert set(batch) == {"id", "audio"}
        assert batch["id"] == ["q0", "q1", "q2", "q3", "q4"]
        for item in batch["audio"]:
            assert set(item) == {"array", "sampling_rate"}
            assert item["sampling_rate"] == 24_000
            assert item["array"].dtype == np.float32
            assert item["array"].ndim == 1
    for dataset in spy.datasets:
        if "audio" in dataset.column_names:
            assert set(dataset.features) == {"id", "audio"}
    seen = json.dumps([[key, value] for batch in spoken for key, value in batch.items() if key != "audio"])
    assert not TRANSCRIPTS & set(seen.replace('"', " ").split())
    # Nor is the model told the condition: mteb's subset is the first one's, whichever it is.
    assert spy.told == {("SQuTRTinyEn", "tiny-en_clean"), ("SQuTRTinyEnText", "tiny-en_text")}
    typed = [batch for batch in spy.batches if "query" in batch]
    assert {key for batch in typed for key in batch} == {"id", "text", "query"}
    assert "torchcodec" not in sys.modules
    assert "torchaudio" not in sys.modules


@pytest.mark.parametrize("give", ["numpy", "float32", "bfloat16"])
def test_a_corpus_is_embedded_once(give: str, live: LiveData) -> None:
    spy = SpyEncoder(give)
    tasks = squtr.mteb_tasks(data=live, languages=["en"], text=False)
    scores = evaluate(spy, tasks)
    assert set(scores) == {f"tiny-en_{condition}" for condition in CONDITIONS}
    assert spy.documents == 12
    # Another model has its own vectors.
    other = SpyEncoder(give)
    assert evaluate(other, tasks).keys() == scores.keys()
    assert other.documents == 12


def many_vectors(base: type, kind: str) -> Any:
    """A model of mteb's with a vector per word, or per part of a sound, of that family."""
    import torch

    class ManyVectors(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self.mteb_model_meta = SpyEncoder().mteb_model_meta
            self.documents: list[str] = []
            self.folders: list[Path] = []

        def _encode(self, inputs: Any, *, prompt_type: Any, **_: Any) -> Any:
            batches = list(inputs)
            texts = [text for batch in batches for text in batch.get("text", ())]
            clips = [item["array"] for batch in batches for item in batch.get("audio", ())]
            found = [np.stack([words_vector(word) for word in text.split()]) for text in texts]
            found += [np.stack([spectrum_vector(part) for part in np.array_split(clip, 3)]) for clip in clips]
            if prompt_type.value == "document":
                self.documents += texts
            return found if kind == "numpy" else [torch.from_numpy(v).to(getattr(torch, kind)) for v in found]

        def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
            def plain(one: Any) -> Any:
                return np.asarray(one.float() if hasattr(one, "float") else one)

            return np.array([[float((plain(q) @ plain(d).T).max(1).sum()) for d in embeddings2] for q in embeddings1])

        def _pylate_full_corpus_search(
            self, query_idx_to_id: Any, query_embeddings: Any, top_k: int, **rest: Any
        ) -> Any:
            self.folders.append(self._index_dir)
            assert not list(self._index_dir.iterdir())
            (self._index_dir / "index").touch()
            rest = {name: rest[name] for name in ("task_metadata", "hf_subset", "hf_split")}
            loader = create_dataloader(
                self.task_corpus, task_metadata=rest["task_metadata"], prompt_type=PromptType.document, batch_size=5
            )
            scores = self.similarity(query_embeddings, self._encode(loader, prompt_type=PromptType.document, **rest))
            ids = self.task_corpus["id"]
            return {q: list(zip(scores[i].tolist(), ids, strict=True)) for i, q in query_idx_to_id.items()}

    return ManyVectors()


@pytest.mark.parametrize(
    ("base", "kind"),
    [
        (MultiVectorSearchEncoderWrapper, "numpy"),
        (MultiVectorSearchEncoderWrapper, "float32"),
        (MultiVectorSearchEncoderWrapper, "bfloat16"),
        (PylateSearchEncoder, "float32"),
    ],
)
def test_several_vectors_per_text_are_made_once(base: type, kind: str, live: LiveData) -> None:
    (task,) = squtr.mteb_tasks(data=live, languages=["en"], text=False)
    model = many_vectors(base, kind)
    scores = evaluate(model, [task])
    assert len(model.documents) == 12
    # The same as one condition at a time, each with a model of its own.
    alone = {}
    for condition in CONDITIONS:
        alone |= evaluate(
            many_vectors(base, kind), squtr.mteb_tasks(data=live, languages=["en"], conditions=[condition], text=False)
        )
    assert {k: v["ndcg_at_10"] for k, v in scores.items()} == {k: v["ndcg_at_10"] for k, v in alone.items()}
    assert len(set(model.folders)) == (len(CONDITIONS) if base is PylateSearchEncoder else 0)
    assert not any(folder.exists() for folder in model.folders)


def test_vectors_are_not_kept_where_space_is_short(live: LiveData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))
    spy = SpyEncoder()
    evaluate(spy, squtr.mteb_tasks(data=live, languages=["en"], text=False))
    assert spy.documents == len(CONDITIONS) * 12


def test_what_was_kept_is_removed(live: LiveData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (task,) = squtr.mteb_tasks(data=live, languages=["en"], text=False)
    task.load_data()
    evaluate(SpyEncoder(), [task])
    assert list(tmp_path.rglob("*.npy"))
    task.unload_data()
    assert not list(tmp_path.iterdir())


def test_scores_are_ours(live: LiveData) -> None:
    spy = SpyEncoder()
    scores = evaluate(spy, squtr.mteb_tasks(data=live, languages=["en"], text=False))
    documents = {d.id: d.contents for d in live.documents("tiny-en")}
    matrix = np.array([words_vector(text) for text in documents.values()], dtype=np.float64)
    sounds = [batch["audio"] for batch in spy.batches if "audio" in batch]
    for condition, clips in zip(CONDITIONS, sounds, strict=True):
        run = {
            f"q{i}": dict(zip(documents, matrix @ spectrum_vector(clip["array"]), strict=True))
            for i, clip in enumerate(clips)
        }
        ours = score_ranking(live.qrels("tiny-en"), run).mean
        for metric in ("ndcg_at_10", "mrr_at_10", "recall_at_10"):
            assert scores[f"tiny-en_{condition}"][metric] == pytest.approx(ours[metric], abs=1e-5)


def test_a_folder_and_the_same_on_the_fly(live: LiveData, built: Path) -> None:
    ours, theirs = (evaluate(SpyEncoder(), squtr.mteb_tasks(data=data, languages=["zh"])) for data in (live, built))
    assert {k: v["ndcg_at_10"] for k, v in ours.items()} == {k: v["ndcg_at_10"] for k, v in theirs.items()}


def test_mteb_itself_reads_the_layout(built: Path) -> None:
    data = RetrievalDatasetLoader(str(built), revision="main", config="tiny-zh_high_noise").load()
    assert data["queries"].column_names == ["id", "audio"]
    assert len(data["corpus"]) == 12
    assert data["relevant_docs"]["q3"] == {"d3": 2}


def test_a_source_and_a_condition_of_ones_own(root: Path) -> None:
    (task,) = squtr.mteb_tasks(data=str(root), languages=["en"], conditions=["snr_3"], text=False)
    assert task.hf_subsets == ["tiny-en_snr_3"]
    assert evaluate(SpyEncoder(), [task])["tiny-en_snr_3"]["n_queries"] == 5


def test_several_rows_of_a_query_are_refused(root: Path, tmp_path: Path) -> None:
    build(open_recipe(str(root), conditions=["clean", "snr_5"], draws=2), tmp_path / "data")
    with pytest.raises(DataError, match="several draws of noise per utterance, and mteb has one row per query"):
        squtr.mteb_tasks(data=str(tmp_path / "data"))


def test_an_unfinished_or_earlier_folder(built: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "old"
    shutil.copytree(built, folder)
    card = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(card) if line.endswith("-queries"))
    last = next(i for i, line in enumerate(card) if line == "---" and i > first)
    (folder / "README.md").write_text("\n".join([*card[:first], *card[last:]]), encoding="utf-8")
    (task,) = squtr.mteb_tasks(data=folder, languages=["en"], text=False)
    with pytest.raises(DataError, match="run the same `squtr build` again"):
        task.load_data()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(manifest | {"complete": False}), encoding="utf-8")
    with pytest.raises(DataError, match="not finished"):
        squtr.mteb_tasks(data=folder)


@pytest.mark.parametrize("broken", [b"", b"fLaC and nothing more"])
def test_sound_that_cannot_be_decoded_scores_zero(live: LiveData, broken: bytes) -> None:
    whole = evaluate(SpyEncoder(), squtr.mteb_tasks(data=live, languages=["en"], text=False))
    data = Renamed(live, {"tiny-en": "tiny-en"}, {"q1": broken})
    spy = SpyEncoder()
    found = evaluate(spy, squtr.mteb_tasks(data=data, text=False))
    assert all("q1" not in batch["id"] for batch in spy.batches if "audio" in batch)
    for config, scores in found.items():
        assert (scores["n_queries"], scores["undecodable_queries"], scores["queries_without_hits"]) == (5, 1, 1)
        assert scores["recall_at_100"] == pytest.approx(4 / 5)
        assert scores["ndcg_at_10"] <= whole[config]["ndcg_at_10"]


class Forgetful:
    """Searches, but leaves queries out, and gives the others what it is told to."""

    def __init__(self, score: float = 1.0) -> None:
        self.mteb_model_meta = SpyEncoder().mteb_model_meta
        self.score = score
        self.indexed = 0

    def index(self, corpus: Any, **_: Any) -> None:
        self.indexed += 1

    def search(self, queries: Any, *, top_k: int, **_: Any) -> Any:
        return {id_: {f"d{id_[1:]}": self.score} for id_ in queries["id"] if id_ != "q4"}


def test_queries_that_a_model_leaves_out_count(live: LiveData) -> None:
    scores = evaluate(Forgetful(), squtr.mteb_tasks(data=live, languages=["en"]))
    assert len(scores) == 1 + len(CONDITIONS)
    for found in scores.values():
        assert found["ndcg_at_10"] == pytest.approx(4 / 5)
        assert found["mrr_at_10"] == pytest.approx(4 / 5)
        assert found["queries_without_hits"] == 1


def test_scores_that_are_no_numbers(live: LiveData) -> None:
    tasks = squtr.mteb_tasks(data=live, languages=["en"], conditions=["clean"], text=False)
    with pytest.raises(DataError, match=r"document 'd0' for query 'q0' is nan"):
        evaluate(Forgetful(float("nan")), tasks)
    assert evaluate(Forgetful(float("-inf")), tasks)["tiny-en_clean"]["ndcg_at_10"] == 0


def test_no_model_at_all(live: LiveData) -> None:
    (task,) = squtr.mteb_tasks(data=live, languages=["en"], conditions=["clean"], text=False)
    with pytest.raises(ModelError, match="object is no model of mteb"):
        task.evaluate(object(), encode_kwargs={})


def test_queries_without_relevant_documents_are_left_out(root: Path, tmp_path: Path) -> None:
    collection = make_collection(tmp_path / "graded")
    write_jsonl(
        collection / "qrels.en.jsonl",
        [{"query-id": f"q{i}", "corpus-id": f"d{i}", "score": int(i > 0)} for i in range(4)],
    )
    scores = evaluate(SpyEncoder(), squtr.mteb_tasks(data=str(collection), languages=["en"], conditions=["clean"]))
    assert scores["tiny-en_clean"]["n_queries"] == scores["tiny-en_text"]["n_queries"] == 3


def test_the_tables_of_the_benchmark(live: LiveData, tmp_path: Path) -> None:
    benchmark = squtr.mteb_benchmark(data=live)
    assert [task.metadata.name for task in benchmark] == [
        "SQuTRTinyEn", "SQuTRTinyEnText", "SQuTRTinyZh", "SQuTRTinyZhText",
    ]  # fmt: skip
    cache = mteb.ResultCache(tmp_path)
    mteb.evaluate(SpyEncoder(), benchmark, cache=cache, show_progress_bar=False, co2_tracker=False)
    loaded = cache.load_results(tasks=benchmark)
    scores = {s["hf_subset"]: s["main_score"] for r in loaded.model_results[0].task_results for s in r.scores["test"]}
    (row,) = loaded.get_benchmark_result().to_dict("records")
    assert row["Model"] == "org/spy"
    labels = {"clean": "clean", "high_noise": "0 dB", "snr_-5": "-5 dB", "text": "text"}
    for condition, label in labels.items():
        mean = (scores[f"tiny-en_{condition}"] + scores[f"tiny-zh_{condition}"]) / 2
        assert row[f"__cg__Condition::{label}"] == pytest.approx(mean)
    spoken = {tag: np.mean([scores[f"tiny-{lang}_{c}"] for c in CONDITIONS]) for tag, lang in
              (("eng-Latn", "en"), ("cmn-Hans", "zh"))}  # fmt: skip
    for tag, mean in spoken.items():
        assert row[f"__cg__Language::{tag}"] == pytest.approx(mean)
    assert row["Mean (Task)"] == pytest.approx(np.mean(list(spoken.values())))
    ours = benchmark.get_score(loaded)["org/spy"]
    assert ours["Mean(Task)"] == pytest.approx(row["Mean (Task)"])
    assert ours["Condition::0 dB"] == pytest.approx(row["__cg__Condition::0 dB"])
    languages = benchmark._create_per_language_table(loaded._to_results_df(benchmark.tasks)).to_dicts()
    assert {"eng-Latn", "cmn-Hans"} <= set(languages[0])


def test_a_missing_condition_is_null_in_the_table(live: LiveData, tmp_path: Path) -> None:
    cache = mteb.ResultCache(tmp_path)
    part = squtr.mteb_tasks(data=live, conditions=["clean"])
    mteb.evaluate(SpyEncoder(), part, cache=cache, show_progress_bar=False, co2_tracker=False)
    benchmark = squtr.mteb_benchmark(data=live)
    (row,) = cache.load_results(tasks=benchmark).get_benchmark_result().to_dict("records")
    assert row["__cg__Condition::clean"] > 0
    assert row["__cg__Condition::0 dB"] != row["__cg__Condition::0 dB"] or row["__cg__Condition::0 dB"] is None
    whole = mteb.evaluate(SpyEncoder(), benchmark, cache=cache, show_progress_bar=False, co2_tracker=False)
    assert {len(r.scores["test"]) for r in whole.task_results} == {1, len(CONDITIONS)}


def test_statistics_are_kept_at_home(live: LiveData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    (task,) = squtr.mteb_tasks(data=live, languages=["en"], text=False, conditions=["clean"])
    statistics = task.calculate_descriptive_statistics()["test"]
    assert set(statistics["hf_subset_descriptive_stats"]) == {f"tiny-en_{c}" for c in CONDITIONS}
    clean = statistics["hf_subset_descriptive_stats"]["tiny-en_clean"]
    assert (clean["num_queries"], clean["num_documents"]) == (5, 12)
    assert clean["queries_text_statistics"] is None
    assert clean["queries_audio_statistics"]["sampling_rates"] == {24_000: 5}
    assert task.metadata.descriptive_stat_path.is_relative_to(tmp_path)
    assert task.metadata.n_samples == {"test": 3 * (5 + 12)}


@pytest.mark.parametrize(("installed", "message"), [("", r"pip install 'squtr\[mteb\]'"), ("2.99.0", "2.26 only")])
def test_without_a_fitting_mteb(installed: str, message: str, live: LiveData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "installed_version", lambda: installed)
    for call in (
        lambda: squtr.mteb_tasks(data=live),
        lambda: squtr.mteb_benchmark(data=live),
        lambda: squtr.mteb_model("bm25"),
    ):
        with pytest.raises(MissingExtraError, match=message):
            call()


def test_an_mteb_that_does_not_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("libtorchaudio.so: undefined symbol")

    monkeypatch.setattr(versions.importlib, "import_module", broken)
    with pytest.raises(MissingExtraError, match="libtorchaudio"):
        versions.load_bridge()
