"""Systems of every kind give the same numbers under mteb as under `squtr evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mteb
import pytest

import squtr
from squtr.errors import ModelError, UsageError
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.components.retrievers.hybrid import HybridRetriever
from squtr.harness.mteb.exchange import export_mteb
from squtr.harness.mteb.models import AudioTextModel, CascadeModel, RetrieverModel, TextModel
from squtr.harness.results.envelope import read_runs
from squtr.harness.systems.system import System
from squtr.loaders.data import LiveData

from .encoders_for_tests import HashedWordsEncoder
from .evaluate_runs_for_tests import evaluate_runs
from .fakes import WordRetriever
from .mteb_for_tests import Fused, Garbler, Halved, SeveralGarbler, SoundEncoder

METRICS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")
DEPTH = 11


def texts_of(data: LiveData) -> dict[str, list[str]]:
    return {language: [q.text for q in data.queries(subset)] for subset, language in data.subsets.items()}


def fused() -> Fused:
    return Fused(WordRetriever(), DenseRetriever(encoder=HashedWordsEncoder(width=32)))


def hybrid() -> HybridRetriever:
    return HybridRetriever(parts=[WordRetriever(), DenseRetriever(encoder=HashedWordsEncoder(width=32))], depth=5)


def systems(data: LiveData) -> dict[str, Any]:
    texts = texts_of(data)
    return {
        "n best": System(transcriber=SeveralGarbler(texts), retriever=WordRetriever(), n_best=3),
        "n best by score": System(
            transcriber=SeveralGarbler(texts),
            retriever=WordRetriever(),
            n_best=2,
            n_best_fusion="score",
            display_name="by score",
        ),
        "composite": System(transcriber=Garbler(texts), retriever=hybrid()),
        "front end": System(transcriber=Garbler(texts), retriever=WordRetriever(), front_end=Halved()),
        "all at once": System(transcriber=SeveralGarbler(texts), retriever=hybrid(), front_end=Halved(), n_best=3),
        "end to end": System(encoder=SoundEncoder(), front_end=Halved()),
    }


@pytest.fixture(scope="module")
def run(tiny: LiveData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    evaluate_runs(list(systems(tiny).values()), tiny, configs=["tiny-*"], out=out, resamples=1, samples=0, depth=DEPTH)
    return out


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported")
    export_mteb(run, out)
    return out


@pytest.mark.parametrize("kind", ["n best", "n best by score", "composite", "front end", "all at once", "end to end"])
@pytest.mark.filterwarnings("ignore:.* spoken queries failed")
def test_the_same_numbers(kind: str, tiny: LiveData, tiny_tasks: list[Any], run: Path, exported: Path) -> None:
    system = systems(tiny)[kind]
    model = squtr.mteb_model(system, depth=DEPTH, max_failed=1.0)
    found = mteb.evaluate(model, tiny_tasks, cache=None, show_progress_bar=False, co2_tracker=False)
    theirs = {scores["hf_subset"]: scores for result in found.task_results for scores in result.scores["test"]}
    ours = {r.result.data.config: r.result for r in read_runs(run) if r.result.system.name == system.name}
    assert set(theirs) == set(ours)
    assert len(ours) == 2 * 3
    for config, result in ours.items():
        assert theirs[config]["n_queries"] == 5
        for metric in METRICS:
            assert theirs[config][metric] == pytest.approx(result.scores[metric].value, abs=1e-5), (config, metric)
    # The exported results of the same system lie where mteb would put those of the model.
    meta = model.mteb_model_meta
    assert (exported / "results" / meta.model_name_as_path() / meta.revision / "SQuTRTinyZh.json").is_file()


def test_what_fails_is_told_and_too_much_is_refused(tiny: LiveData, tiny_tasks: list[Any]) -> None:
    """The front end refuses two of five clips."""
    for kind in ("front end", "end to end"):
        system = systems(tiny)[kind]
        with pytest.raises(ModelError, match=r"2 of 5 spoken queries failed for .*, more than 5 %; the first is"):
            mteb.evaluate(squtr.mteb_model(system), tiny_tasks[:1], cache=None, show_progress_bar=False)
        with pytest.warns(UserWarning, match="2 of 5 spoken queries failed for .* and find nothing"):
            mteb.evaluate(squtr.mteb_model(system, max_failed=0.4), tiny_tasks[:1], cache=None, show_progress_bar=False)


def test_several_transcripts_are_used(tiny: LiveData, tiny_tasks: list[Any]) -> None:
    """Else the test above would compare the same thing twice."""
    scores = []
    for n_best in (1, 3):
        model = squtr.mteb_model(
            System(transcriber=SeveralGarbler(texts_of(tiny)), retriever=WordRetriever(), n_best=n_best)
        )
        found = mteb.evaluate(model, tiny_tasks[:1], cache=None, show_progress_bar=False, co2_tracker=False)
        scores.append([entry["ndcg_at_10"] for entry in found.task_results[0].scores["test"]])
        assert ("depth" in model.mteb_model_meta.loader_kwargs) == (n_best > 1)
    assert scores[0] != scores[1]


def test_depth_is_for_systems_whose_ranking_depends_on_it(tiny: LiveData, tiny_tasks: list[Any]) -> None:
    composite, plain = fused(), WordRetriever()
    for retriever, asked in ((composite, composite.asked), (plain, None)):
        model = squtr.mteb_model(System(transcriber=Garbler(texts_of(tiny)), retriever=retriever), depth=3)
        found = mteb.evaluate(model, tiny_tasks[1:2], cache=None, show_progress_bar=False, co2_tracker=False)
        assert found.task_results[0].scores["test"][0]["ndcg_at_10"] > 0.9
        assert asked in (None, {3})
        assert model.mteb_model_meta.loader_kwargs.get("depth") == (None if asked is None else 3)
    revisions = {
        squtr.mteb_model(fused(), depth=depth).mteb_model_meta.revision for depth in (3, 100)
    } | {squtr.mteb_model(fused()).mteb_model_meta.revision}  # fmt: skip
    assert len(revisions) == 2
    with pytest.raises(UsageError, match="the depth is 0"):
        squtr.mteb_model(fused(), depth=0)


def test_a_dense_retriever_alone_is_an_encoder(tiny_tasks: list[Any], tmp_path: Path) -> None:
    encoder = HashedWordsEncoder(width=64)
    model = squtr.mteb_model(DenseRetriever(encoder=encoder))
    assert isinstance(model, TextModel)
    found = mteb.evaluate(model, tiny_tasks[1:2], cache=None, show_progress_bar=False, co2_tracker=False)
    assert found.task_results[0].scores["test"][0]["ndcg_at_10"] > 0.9
    assert {role for role, _ in encoder.encoded} == {"query", "document"}
    assert model.mteb_model_meta.revision == squtr.mteb_model(encoder).mteb_model_meta.revision
    assert isinstance(squtr.mteb_model(DenseRetriever(encoder=SoundEncoder())), AudioTextModel)
    # What ranks by something else than those vectors searches by itself.
    assert isinstance(squtr.mteb_model(DenseRetriever(encoder=encoder, storage="float16")), RetrieverModel)
    assert isinstance(squtr.mteb_model(fused()), RetrieverModel)


def test_short_forms() -> None:
    assert isinstance(squtr.mteb_model("faster-whisper:whisper-base + bm25"), CascadeModel)
    assert isinstance(squtr.mteb_model("spectral-gate | faster-whisper:whisper-base + bm25"), CascadeModel)
    for retriever in ("bm25", "rrf(bm25, dense:all-minilm-l6-v2)"):
        assert isinstance(squtr.mteb_model(retriever), RetrieverModel)
    with pytest.raises(ModelError, match=r"no weights were found.*org/none"):
        squtr.mteb_model("bm25 > rerank:org/none")
    assert isinstance(squtr.mteb_model("dense:all-minilm-l6-v2"), TextModel)
    assert isinstance(squtr.mteb_model("sentence-transformers:all-minilm-l6-v2"), TextModel)
