"""Systems of the harness as models of mteb, models of mteb in the harness, and the same numbers both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest

import squtr
from squtr.errors import MissingExtraError, ModelError, UsageError
from squtr.harness.components import load_audio_text_encoder, load_retriever, load_text_encoder
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.data import open_data
from squtr.harness.mteb import versions
from squtr.harness.mteb.models import AudioTextModel, CascadeModel, RetrieverModel, TextModel
from squtr.harness.mteb.reverse import MtebAudioTextEncoder, MtebTextEncoder
from squtr.harness.protocols import ComponentSpec
from squtr.harness.systems import load_system
from squtr.harness.systems.system import System
from squtr.loaders.data import LiveData
from squtr.loaders.partial import PartialData

from ..loaders.collections_for_tests import speech_like
from .encoders_for_tests import HashedWordsEncoder, save_random_model
from .evaluate_runs_for_tests import evaluate_runs
from .fakes import WordRetriever
from .mteb_for_tests import Garbler, SoundEncoder, SpyEncoder

CONDITIONS = ("clean", "high_noise")
METRICS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")


def texts_of(data: Any) -> dict[str, list[str]]:
    return {
        language: [query.text for query in data.queries(subset)]
        for subset, language in data.subsets.items()
        if language in {"en", "zh"}
    }


def evaluate(model: Any, tasks: Any, **options: Any) -> dict[str, dict[str, Any]]:
    options.setdefault("cache", None)
    found = mteb.evaluate(model, tasks, show_progress_bar=False, co2_tracker=False, **options)
    return {scores["hf_subset"]: scores for result in found.task_results for scores in result.scores["test"]}


def test_a_cascade_hears_once_and_indexes_once(tiny: LiveData, tiny_tasks: list[Any]) -> None:
    garbler, words = Garbler(texts_of(tiny)), WordRetriever()
    model = squtr.mteb_model(System(transcriber=garbler, retriever=words))
    assert isinstance(model, CascadeModel)
    first = evaluate(model, tiny_tasks)
    assert garbler.calls == 2 * 5 * len(CONDITIONS)
    # The typed control has the same corpus, but comes as another object: its content tells.
    assert words.indexed == 2
    second = evaluate(model, tiny_tasks)
    assert garbler.calls == 2 * 5 * len(CONDITIONS)
    assert {k: v["main_score"] for k, v in first.items()} == {k: v["main_score"] for k, v in second.items()}


def test_transcripts_are_shared_with_squtr_evaluate(tiny: LiveData, tiny_tasks: list[Any], tmp_path: Path) -> None:
    first = Garbler(texts_of(tiny))
    evaluate_runs(
        [System(transcriber=first, retriever=WordRetriever())], tiny, configs=["en_clean"], cache=tmp_path, resamples=10
    )
    again = Garbler(texts_of(tiny))
    evaluate(squtr.mteb_model(System(transcriber=again, retriever=WordRetriever()), cache=tmp_path), tiny_tasks[:1])
    assert again.calls == 5 * (len(CONDITIONS) - 1)
    third = Garbler(texts_of(tiny))
    evaluate_runs(
        [System(transcriber=third, retriever=WordRetriever())],
        tiny,
        configs=["en_high_noise"],
        cache=tmp_path,
        resamples=10,
    )
    assert third.calls == 0


def test_a_retriever_takes_typed_queries_only(tiny_tasks: list[Any]) -> None:
    model = squtr.mteb_model(WordRetriever())
    assert isinstance(model, RetrieverModel)
    assert evaluate(model, tiny_tasks[1:2])["tiny-en_text"]["ndcg_at_10"] > 0.9
    with pytest.raises(ValueError, match="none overlap"):
        evaluate(model, tiny_tasks[:1])
    with pytest.raises(UsageError, match="typed queries"):
        model.index(tiny_tasks[0].dataset["tiny-en_clean"]["test"]["corpus"], **about(tiny_tasks[0]))
        model.search(tiny_tasks[0].dataset["tiny-en_clean"]["test"]["queries"], top_k=3, **about(tiny_tasks[0]))
    with pytest.raises(UsageError, match="cannot rerank"):
        model.search(None, top_k=3, top_ranked={"q0": ["d0"]}, **about(tiny_tasks[0]))


def about(task: Any) -> dict[str, Any]:
    return {"task_metadata": task.metadata, "hf_subset": "tiny-en_clean"}


def test_an_encoder_of_texts(tiny_tasks: list[Any]) -> None:
    encoder = HashedWordsEncoder(width=64)
    model = squtr.mteb_model(encoder)
    assert isinstance(model, TextModel)
    assert evaluate(model, tiny_tasks[1:2])["tiny-en_text"]["ndcg_at_10"] > 0.9
    assert {role for role, _ in encoder.encoded} == {"query", "document"}


def test_metadata_is_honest(tiny: LiveData) -> None:
    cascade = System(transcriber=Garbler(texts_of(tiny)), retriever=load_retriever("dense:all-minilm-l6-v2"))
    meta = squtr.mteb_model(cascade).mteb_model_meta
    assert meta.name == "squtr/garbler+all-MiniLM-L6-v2"
    assert meta.languages == ["eng-Latn"]
    assert meta.modalities == ["audio", "text"]
    assert meta.model_type == ["dense"]
    assert meta.framework == ["Sentence Transformers", "PyTorch"]
    assert meta.open_weights is None  # of the recognizer of these tests nothing is known
    assert meta.n_parameters is None
    components = meta.loader_kwargs["components"]
    assert components["retriever"]["revision"] == cascade.retriever.spec.revision
    lexical = squtr.mteb_model("bm25").mteb_model_meta
    assert (lexical.modalities, lexical.model_type, lexical.framework) == (["text"], ["sparse"], ["NumPy"])
    assert lexical.open_weights is True
    assert lexical.similarity_fn_name is None
    # What decides the output decides the revision; a display name does not.
    assert squtr.mteb_model("bm25", name="other").mteb_model_meta.revision == lexical.revision
    assert squtr.mteb_model(load_retriever("bm25", k1=1.2)).mteb_model_meta.revision != lexical.revision
    stated = squtr.mteb_model("bm25", meta={"license": "apache-2.0", "n_parameters": 0}).mteb_model_meta
    assert (stated.license, stated.n_parameters) == ("apache-2.0", 0)
    with pytest.raises(ModelError, match="mteb refuses the metadata of squtr/BM25"):
        squtr.mteb_model("bm25", meta={"no_such_field": 1})


class Ready:
    """A transcriber's place taken by a file."""

    spec = ComponentSpec("transcriber", "transcripts", "file", revision="1")

    def supports(self, language: str) -> bool:
        return True

    def transcripts(self, subset: str, condition: str, query_ids: Any) -> Any:
        raise AssertionError


def test_what_cannot_be_run(tiny: LiveData) -> None:
    with pytest.raises(UsageError, match=r"is precomputed by query and condition.*squtr export"):
        squtr.mteb_model(System(transcriber=Ready(), retriever=WordRetriever()))
    with pytest.raises(UsageError, match="neither searches nor encodes"):
        squtr.mteb_model(3)


def test_sound_that_is_not_of_the_benchmark(tiny_tasks: list[Any]) -> None:
    """Another task of mteb may have loud or stacked sound."""
    import datasets

    garbler = Garbler({"en": ["stone", "river"]})
    model = squtr.mteb_model(System(transcriber=garbler, retriever=WordRetriever()))
    loud = 3 * speech_like(1, 0.5)

    class Rows(list):
        column_names = ("id", "audio")

        def __getitem__(self, key: Any) -> Any:
            return [row["id"] for row in self] if key == "id" else super().__getitem__(key)

    corpus = datasets.Dataset.from_dict({"id": ["d0", "d1"], "text": ["stone", "river"]})
    model.index(corpus, **about(tiny_tasks[0]))
    rows = Rows(
        [{"id": f"q{i}", "audio": {"array": a, "sampling_rate": 24_000}} for i, a in enumerate((loud, loud[None]))]
    )
    found = model.search(rows, top_k=2, **about(tiny_tasks[0]))
    assert set(found) == {"q0", "q1"}
    assert garbler.calls == 1


# Models of mteb in the harness.


def test_there_and_back() -> None:
    encoder, words = SoundEncoder(), ["a river of stone", "lamp", "stone lamp garden"]
    back = MtebAudioTextEncoder(squtr.mteb_model(encoder, max_failed=1.0))
    clips = [speech_like(seed, 0.5) for seed in range(6)]
    direct = encoder.encode_audio([squtr_resampled(clip) for clip in clips], language="en")
    np.testing.assert_allclose(back.encode_audio(clips, language="en"), direct, atol=1e-6)
    for role in ("query", "document"):
        np.testing.assert_allclose(back.encode(words, role=role), encoder.encode(words, role=role), atol=1e-6)
    assert back.encode([], role="query").shape[0] == back.encode_audio([], language="zh").shape[0] == 0
    assert back.supports("zh")
    assert not back.supports("es")
    assert back.spec.kind == "audio_text_encoder"
    assert back.spec.revision == squtr.mteb_model(encoder).mteb_model_meta.revision


def squtr_resampled(clip: np.ndarray) -> np.ndarray:
    from squtr.loaders.audio import resample

    return resample(clip, 24_000, 16_000)


def test_a_model_of_mteb_as_a_system(tiny: LiveData, tiny_tasks: list[Any]) -> None:
    theirs = evaluate(SpyEncoder(), tiny_tasks[:2])
    records = evaluate_runs(
        [System(encoder=MtebAudioTextEncoder(SpyEncoder()))], tiny, configs=["tiny-en_*"], resamples=10
    )
    assert {record.result.data.config for record in records} == set(theirs)
    for record in records:
        for metric in METRICS:
            ours = record.result.scores[metric].value
            assert theirs[record.result.data.config][metric] == pytest.approx(ours, abs=1e-5)


class Odd(SpyEncoder):
    """Vectors as the test wants them."""

    def __init__(self, vectors: Any, similarity: str | None = None, modalities: tuple[str, ...] = ("text",)) -> None:
        super().__init__()
        self.vectors = vectors
        meta = self.mteb_model_meta
        fields = meta.model_dump() | {"similarity_fn_name": similarity, "modalities": list(modalities)}
        self.mteb_model_meta = type(meta).model_validate(fields)

    def encode(self, inputs: Any, **_: Any) -> Any:
        return np.array(self.vectors, dtype=np.float32)


def test_models_that_do_not_fit() -> None:
    assert MtebTextEncoder(Odd([[3.0, 4.0]])).encode(["x"], role="query").tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)]
    ]
    with pytest.raises(ModelError, match="not of unit length"):
        MtebTextEncoder(Odd([[3.0, 4.0]], "dot")).encode(["x"], role="query")
    assert MtebTextEncoder(Odd([[0.6, 0.8]], "dot")).encode(["x"], role="query").shape == (1, 2)
    with pytest.raises(ModelError, match="shape"):
        MtebTextEncoder(Odd([[1.0, 0.0]])).encode(["x", "y"], role="query")
    for vector in ([0.0, 0.0], [float("nan"), 1.0]):
        with pytest.raises(ModelError, match="without direction for the text 'x'"):
            MtebTextEncoder(Odd([vector])).encode(["x"], role="query")
    with pytest.raises(ModelError, match="ranks by MaxSim"):
        MtebTextEncoder(Odd([[1.0]], "MaxSim"))
    with pytest.raises(ModelError, match="does not take audio"):
        MtebAudioTextEncoder(Odd([[1.0]]))
    with pytest.raises(UsageError, match="object is no encoder of mteb"):
        MtebTextEncoder(object())
    with pytest.raises(UsageError, match="batch_size"):
        MtebTextEncoder(SpyEncoder(), batch_size=0)
    silent = MtebAudioTextEncoder(Odd([[0.0, 0.0]], modalities=("audio", "text")))
    assert np.isnan(silent.encode_audio([speech_like(1, 0.3)], language="en")).all()


@pytest.mark.parametrize(
    ("kind", "fault"), [("BertForSequenceClassification", "toy lacks 2 weights.*classifier"), ("BertModel", "")]
)
def test_weights_that_a_loader_makes_up_are_refused(kind: str, fault: str, tmp_path: Path) -> None:
    import transformers
    from mteb.models import ModelMeta

    folder = save_random_model(tmp_path)

    def load(name: str, **_: Any) -> Any:
        return getattr(transformers, kind).from_pretrained(folder)

    meta = ModelMeta.create_empty({"name": "org/toy", "revision": "1"}).model_copy(update={"loader": load})
    if not fault:
        assert type(versions.load_bridge().load_model(meta, device=None)).__name__ == kind
        return
    with pytest.raises(ModelError, match=fault):
        versions.load_bridge().load_model(meta, device=None)


def test_rows_of_the_tables() -> None:
    name = "intfloat/multilingual-e5-small"
    assert isinstance(load_text_encoder(f"mteb:{name}"), MtebTextEncoder)
    dense = load_retriever(f"dense-mteb:{name}", storage="float16")
    assert (dense.spec.backend, dense.spec.model) == ("dense-mteb", name)
    assert dense.spec.settings["encoder_backend"] == "mteb"
    assert dense.supports("zh")
    cascade = load_system(f"faster-whisper:whisper-base + dense-mteb:{name}")
    assert cascade.name == "whisper-base + multilingual-e5-small"
    assert squtr.mteb_model(cascade).mteb_model_meta.similarity_fn_name.value == "cosine"
    sound = load_audio_text_encoder("mteb:laion/clap-htsat-unfused", batch_size=8)
    assert isinstance(sound, MtebAudioTextEncoder)
    system = load_system("spectral-gate | mteb:laion/clap-htsat-unfused")
    assert system.kind == "end-to-end"
    assert system.encoder.spec.fingerprint == sound.spec.fingerprint
    with pytest.raises(ModelError, match=r"does not take audio.*dense-mteb:intfloat"):
        load_system(f"mteb:{name}")
    with pytest.raises(ModelError, match="mteb does not find the model 'no/such'"):
        load_text_encoder("mteb:no/such")
    with pytest.raises(UsageError, match="needs a model"):
        load_text_encoder("mteb")


def test_without_mteb_the_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "installed_version", lambda: "")
    for load, name in (
        (load_text_encoder, "mteb:org/name"),
        (load_audio_text_encoder, "mteb:org/name"),
        (load_retriever, "dense-mteb:org/name"),
        (load_system, "mteb:org/name"),
    ):
        with pytest.raises(MissingExtraError, match=r"squtr\[mteb\]"):
            load(name)


def test_models_by_name() -> None:
    named = MtebTextEncoder("sentence-transformers/all-MiniLM-L6-v2")
    assert named.spec.revision == mteb.get_model_meta("sentence-transformers/all-MiniLM-L6-v2").revision
    assert named.supports("en")
    assert not named.supports("zh")
    with pytest.raises(ModelError, match="runs code from its repository"):
        MtebTextEncoder("jinaai/jina-embeddings-v3")
    assert MtebTextEncoder("jinaai/jina-embeddings-v3", trust_remote_code=True).spec.backend == "mteb"
    # Offline, weights cannot be had: one sentence.
    with pytest.raises(ModelError, match="mteb cannot load"):
        MtebTextEncoder("intfloat/e5-base").encode(["x"], role="query")


# The same numbers, on real speech.

QUERIES = 16


@pytest.mark.slow
def test_the_same_numbers_both_ways_on_mini(tmp_path: Path) -> None:
    mini = PartialData(open_data("mini"), limit=QUERIES)
    texts = texts_of(mini)
    embeddings = DirectoryEmbeddingCache(tmp_path)

    def systems() -> list[Any]:
        return [
            System(transcriber=Garbler(texts), retriever=load_retriever("bm25")),
            System(
                transcriber=Garbler({"en": texts["en"]}),
                retriever=load_retriever("dense:all-minilm-l6-v2", cache=embeddings),
            ),
            System(encoder=SoundEncoder()),
        ]

    configs = [f"mini-{language}_{condition}" for language in ("en", "zh") for condition in CONDITIONS]
    records = evaluate_runs(systems(), mini, configs=configs, resamples=10)
    tasks = squtr.mteb_tasks(data=mini, languages=["en", "zh"], conditions=CONDITIONS)
    for task in tasks:
        task.load_data()
    compared = 0
    for system in systems():
        supported = [task for task in tasks if system.supports(task.info.language)]
        model = squtr.mteb_model(system, max_failed=1.0)
        theirs = evaluate(model, supported)
        assert isinstance(model, AudioTextModel) == (system.kind == "end-to-end")
        ours = [r.result for r in records if r.result.system.name == system.name]
        assert {result.data.config for result in ours} == set(theirs)
        # Some queries find nothing, and count.
        assert sum(scores["queries_without_hits"] for scores in theirs.values()) > 2
        for result in ours:
            found = theirs[result.data.config]
            assert found["n_queries"] == result.scores["ndcg_at_10"].n == QUERIES
            for metric in METRICS:
                assert found[metric] == pytest.approx(result.scores[metric].value, abs=1e-5), (result.key, metric)
                compared += 1
    assert compared == 3 * (6 + 3 + 6)
