"""Results in mteb's layout and back: read by mteb itself, marked as aggregates, nothing made up."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mteb
import pytest
from mteb.models import ModelMeta

import squtr
from squtr.errors import DataError, UnknownNameError
from squtr.harness.cli import export as export_command
from squtr.harness.cli import import_ as import_command
from squtr.harness.mteb.exchange import export_mteb, import_mteb
from squtr.harness.mteb.versions import installed_version
from squtr.harness.results.envelope import Result, RunRecord, Score, item_schema, items_table, read_runs, write_run
from squtr.harness.systems.system import System
from squtr.loaders.data import LiveData

from .evaluate_runs_for_tests import evaluate_runs
from .fakes import WordRetriever
from .mteb_for_tests import Garbler, SoundEncoder, SpyEncoder

CONDITIONS = ("clean", "high_noise")
METRICS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")


def cascade(data: LiveData) -> System:
    texts = {lang: [q.text for q in data.queries(subset)] for subset, lang in data.subsets.items()}
    return System(transcriber=Garbler(texts), retriever=WordRetriever())


@pytest.fixture(scope="module")
def run(tiny: LiveData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    evaluate_runs([cascade(tiny), System(encoder=SoundEncoder())], tiny, out=out, resamples=10, samples=0)
    return out


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported")
    export_mteb(run, out)
    return out


def test_mteb_reads_what_was_exported(run: Path, exported: Path, tiny: LiveData) -> None:
    loaded = mteb.ResultCache(exported).load_results()
    assert {result.model_name for result in loaded} == {"squtr/garbler+words", "squtr/sound-encoder"}
    ours = {r.result.key: r.result for r in read_runs(run)}
    for model in loaded:
        system = {"squtr/garbler+words": "garbler + words", "squtr/sound-encoder": "sound encoder"}[model.model_name]
        assert {task.task_name for task in model.task_results} == {
            "SQuTRTinyEn", "SQuTRTinyEnText", "SQuTRTinyZh", "SQuTRTinyZhText",
        }  # fmt: skip
        for task in model.task_results:
            assert task.dataset_revision == tiny.revision
            assert task.mteb_version is None
            for scores in task.scores["test"]:
                subset, _, condition = scores["hf_subset"].partition("_")
                result = ours[system, f"{tiny.subsets[subset]}_{condition}"]
                assert scores["main_score"] == scores_of(result, subset)["ndcg_at_10"].value
                assert scores["n_queries"] == 5
                assert scores["languages"] == [{"en": "eng-Latn", "zh": "cmn-Hans"}[tiny.subsets[subset]]]
    table = mteb.ResultCache(exported).load_results(tasks=squtr.mteb_benchmark(data=tiny)).get_benchmark_result()
    assert set(table["Model"]) == {"squtr/garbler+words", "squtr/sound-encoder"}
    assert table["__cg__Condition::0 dB"].notna().all()


def test_the_model_is_the_one_that_mteb_evaluates(exported: Path, tiny: LiveData, tmp_path: Path) -> None:
    """Results of both ways lie in the same place and say the same of the model."""
    for system in (cascade(tiny), System(encoder=SoundEncoder())):
        model = squtr.mteb_model(system, max_failed=1.0)
        meta = model.mteb_model_meta
        place = exported / "results" / meta.model_name_as_path() / meta.revision
        theirs = ModelMeta.model_validate_json_resolved(
            json.dumps({k: v for k, v in read(place / "model_meta.json").items() if k != "is_cross_encoder"})
        )
        assert theirs == meta
        cache = mteb.ResultCache(tmp_path)
        mteb.evaluate(model, squtr.mteb_tasks(data=tiny), cache=cache, show_progress_bar=False, co2_tracker=False)
        own = tmp_path / "results" / place.relative_to(exported / "results")
        assert {p.name for p in place.iterdir()} == {p.name for p in own.iterdir()} - {"run_settings.jsonl"}
        for path in place.glob("SQuTR*.json"):
            mine = {entry["hf_subset"]: entry for entry in read(path)["scores"]["test"]}
            for entry in read(own / path.name)["scores"]["test"]:
                for metric in METRICS:
                    assert mine[entry["hf_subset"]][metric] == pytest.approx(entry[metric], abs=1e-5)


def scores_of(result: Result, subset: str) -> Mapping[str, Score]:
    group = result.group("subset", subset)
    return result.scores if group is None else group.scores


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_there_and_back(run: Path, exported: Path, tmp_path: Path) -> None:
    found = import_mteb(exported, tmp_path)
    assert found.skipped == ()
    before = {r.result.key: r.result for r in read_runs(run)}
    imported = read_runs(tmp_path)
    assert len(imported) == len(found.paths) == 2 * 2 * (1 + len(CONDITIONS))
    for record in imported:
        result = record.result
        assert result.origin == "imported"
        assert record.items.schema.names == item_schema().names
        assert record.items.num_rows == 0
        (subset,) = result.data.subsets
        original = before[result.system.name, f"{result.data.language}_{result.data.condition}"]
        assert result.system.kind == original.system.kind
        for role in ("retriever", "encoder"):
            assert result.system.components.get(role) == original.system.components.get(role)
        assert result.data.revision == original.data.revision
        for name in METRICS:
            score = result.scores[name]
            assert score.value == scores_of(original, subset)[name].value
            assert (score.low, score.high, score.n) == (None, None, 5)
        if result.data.condition == "high_noise":
            loss = result.losses["clean"]["ndcg_at_10"].absolute
            assert loss.value == pytest.approx(original.losses["clean"]["ndcg_at_10"].absolute.value)
            assert loss.low is None
        assert result.timing.stages == {}


def test_results_that_mteb_computed(tiny: LiveData, tmp_path: Path) -> None:
    cache = mteb.ResultCache(tmp_path / "cache")
    tasks = squtr.mteb_tasks(data=tiny, languages=["zh"])
    theirs = mteb.evaluate(SpyEncoder(), tasks, cache=cache, show_progress_bar=False, co2_tracker=False)
    foreign = tmp_path / "cache" / "results" / "org__spy" / "1" / "NQ.json"
    own = next((tmp_path / "cache").rglob("SQuTRTinyZh.json"))
    content = read(own) | {"task_name": "NQ"}
    content["scores"]["test"][0]["hf_subset"] = "default"
    content["scores"]["test"] = content["scores"]["test"][:1]
    foreign.write_text(json.dumps(content), encoding="utf-8")
    found = import_mteb(tmp_path / "cache", tmp_path / "run")
    assert found.skipped == ("NQ",)
    results = {r.result.data.config: r.result for r in read_runs(tmp_path / "run")}
    scores = {s["hf_subset"]: s for task in theirs.task_results for s in task.scores["test"]}
    assert set(results) == set(scores) == {"tiny-zh_text", *(f"tiny-zh_{condition}" for condition in CONDITIONS)}
    for config, result in results.items():
        assert result.scores["ndcg_at_10"].value == pytest.approx(scores[config]["ndcg_at_10"], abs=1e-6)
        assert result.system.name == "org/spy"
        assert result.system.components["encoder"]["revision"] == "1"
        assert result.environment.packages == {"mteb": installed_version()}


def test_what_cannot_be_exported(run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        export_mteb(tmp_path / "none", tmp_path)
    record = read_runs(run)[0]
    part = record.result.data.model_copy(update={"partial": True, "n_total": 99})
    write_run(tmp_path / "part", RunRecord(record.result.model_copy(update={"data": part}), record.items))
    with pytest.raises(DataError, match="of 5 of 99 queries"):
        export_mteb(tmp_path / "part", tmp_path)
    clean = next(r for r in read_runs(run) if r.result.data.config == "en_clean")
    group = clean.result.group("subset", "tiny-en")
    assert group is not None
    changed = group.scores | {"ndcg_at_10": group.scores["ndcg_at_10"].model_copy(update={"value": 0.123})}
    other = clean.result.model_copy(
        update={
            "data": clean.result.data.model_copy(update={"config": "tiny-en_clean"}),
            "by_group": {"subset": [group.model_copy(update={"scores": changed})]},
        }
    )
    for result, items in ((clean.result, clean.items), (other, items_table([], item_schema()))):
        write_run(tmp_path / "two", RunRecord(result, items))
    with pytest.raises(DataError, match="two different results on tiny-en_clean"):
        export_mteb(tmp_path / "two", tmp_path)
    imported = clean.result.model_copy(update={"origin": "imported"})
    write_run(tmp_path / "theirs", RunRecord(imported, items_table([], item_schema())))
    with pytest.raises(DataError, match="was imported: it is another tool's result"):
        export_mteb(tmp_path / "theirs", tmp_path)
    with pytest.raises(UnknownNameError, match=r"Did you mean 'garbler \+ words'"):
        export_mteb(run, tmp_path, systems=["garbler + word"])


def test_a_part_is_marked(run: Path, tmp_path: Path) -> None:
    (record,) = [r for r in read_runs(run) if r.result.key == ("garbler + words", "zh_clean")]
    part = record.result.data.model_copy(update={"partial": True, "n_total": 99})
    write_run(tmp_path / "part", RunRecord(record.result.model_copy(update={"data": part}), record.items))
    (_, path) = export_mteb(tmp_path / "part", tmp_path / "out", partial=True)
    (entry,) = read(path)["scores"]["test"]
    assert entry["partial"] is True
    failures = record.result.failures
    assert (entry["undecodable_queries"], entry["queries_without_hits"]) == (failures["failed"], failures["missing"])
    (back,) = import_mteb(tmp_path / "out", tmp_path / "back").paths
    assert read(back)["data"]["partial"] is True


def test_what_cannot_be_imported(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        import_mteb(tmp_path / "none", tmp_path)
    with pytest.raises(DataError, match="no results of this benchmark"):
        import_mteb(tmp_path, tmp_path / "out")

    def changed(name: str, change: Any) -> Path:
        folder = tmp_path / name
        shutil.copytree(exported, folder)
        path = next(folder.rglob("SQuTRTinyEn.json"))
        content = read(path)
        change(content["scores"]["test"][0])
        path.write_text(json.dumps(content), encoding="utf-8")
        return folder

    with pytest.raises(DataError, match=r"SQuTRTinyEn\.json: ndcg_at_10 of tiny-en_clean is nan"):
        import_mteb(changed("nan", lambda entry: entry.update(ndcg_at_10=float("nan"))), tmp_path / "out")
    with pytest.raises(DataError, match="has no ndcg_at_10"):
        import_mteb(changed("none", lambda entry: entry.pop("ndcg_at_10")), tmp_path / "out")
    with pytest.raises(DataError, match="n_queries of tiny-en_clean is -1"):
        import_mteb(changed("count", lambda entry: entry.update(n_queries=-1)), tmp_path / "out")
    with pytest.raises(DataError, match="one known language"):
        import_mteb(changed("language", lambda entry: entry.update(languages=["xxx-Latn"])), tmp_path / "out")
    twice = tmp_path / "twice"
    shutil.copytree(exported, twice)
    folder = next(twice.rglob("SQuTRTinyEn.json")).parent
    shutil.copytree(folder, folder.parent / "other")
    with pytest.raises(DataError, match="are both about"):
        import_mteb(twice, tmp_path / "out")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "SQuTRTinyEn.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        import_mteb(broken, tmp_path / "out")


def test_commands(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(module: Any, *arguments: str) -> str:
        parser = argparse.ArgumentParser()
        module.configure(parser)
        assert module.run(parser.parse_args(arguments)) == 0
        return capsys.readouterr().out

    said = call(export_command, "mteb", str(run), "--out", str(tmp_path / "out"))
    assert "Wrote 8 task results of 2 systems" in said
    said = call(import_command, "mteb", str(tmp_path / "out"), "--out", str(tmp_path / "back"))
    assert "Imported 12 results" in said
    assert "without intervals" in said
    files = json.loads(call(export_command, "mteb", str(run), "--out", str(tmp_path / "out"), "--json"))
    assert len(files["files"]) == 2 * (1 + 4)
    assert all(Path(path).is_file() for path in files["files"])
    found = json.loads(call(import_command, "mteb", str(tmp_path / "out"), "--out", str(tmp_path / "b"), "--json"))
    assert (len(found["files"]), found["skipped"]) == (12, [])
