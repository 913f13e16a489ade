"""Submissions: the folder as mteb has it, every file checked, a text that says what is open, and nothing sent."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import pytest

import squtr
from squtr.errors import DataError, StorageError, UnknownNameError, UsageError
from squtr.harness.cli import main
from squtr.harness.mteb import submission as submission_module
from squtr.harness.mteb import submission_checks
from squtr.harness.mteb.exchange import export_mteb, import_mteb
from squtr.harness.mteb.models import mteb_model
from squtr.harness.mteb.submission import prepare_mteb_submission
from squtr.harness.mteb.versions import installed_version
from squtr.harness.results.envelope import RunRecord, read_runs, write_run
from squtr.harness.systems.system import System
from squtr.loaders.data import LiveData

from .evaluate_runs_for_tests import evaluate_runs
from .fakes import WordRetriever
from .mteb_for_tests import Garbler, SpyEncoder

TASKS = ["SQuTRTinyEn", "SQuTRTinyEnText", "SQuTRTinyZh", "SQuTRTinyZhText"]
PLACE = "results/squtr__garbler+words"


def cascade(data: LiveData, name: str = "") -> System:
    texts = {language: [q.text for q in data.queries(subset)] for subset, language in data.subsets.items()}
    return System(transcriber=Garbler(texts), retriever=WordRetriever(), display_name=name)


@pytest.fixture(scope="module")
def run(tiny: LiveData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `squtr evaluate` writes."""
    out = tmp_path_factory.mktemp("run")
    evaluate_runs([cascade(tiny)], tiny, out=out, resamples=1, samples=0)
    return out


@pytest.fixture(scope="module")
def cache(tiny: LiveData, tiny_tasks: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mteb writes: two models on our tasks."""
    out = tmp_path_factory.mktemp("cache")
    for model in (SpyEncoder(), mteb_model(cascade(tiny))):
        mteb.evaluate(model, tiny_tasks, cache=mteb.ResultCache(out), show_progress_bar=False, co2_tracker=False)
    return out


@pytest.fixture
def changed(cache: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the cache with one file changed."""

    def change(name: str, edit: Callable[[Any], None], model: str = "org__spy") -> Path:
        folder = tmp_path / "changed"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(cache, folder)
        (path,) = (folder / "results" / model).glob(f"*/{name}")
        content = json.loads(path.read_text(encoding="utf-8"))
        edit(content)
        path.write_text(json.dumps(content), encoding="utf-8")
        return folder

    return change


def test_results_of_squtr(run: Path, tmp_path: Path, tiny: LiveData) -> None:
    found = prepare_mteb_submission(run, tmp_path / "out")
    assert found.models == ("squtr/garbler+words",)
    assert found.title == "Add results on SQuTR for squtr/garbler+words"
    (place,) = (tmp_path / "out" / PLACE).iterdir()
    assert sorted(path.name for path in place.iterdir()) == [*(f"{name}.json" for name in TASKS), "model_meta.json"]
    assert set(found.files) == {p.relative_to(tmp_path / "out").as_posix() for p in place.iterdir()}
    # Exactly what the export writes, and mteb reads it.
    export_mteb(run, tmp_path / "exported")
    for path, content in found.files.items():
        assert (tmp_path / "out" / path).read_bytes() == content == (tmp_path / "exported" / path).read_bytes()
    (loaded,) = mteb.ResultCache(tmp_path / "out").load_results()
    assert {task.task_name for task in loaded.task_results} == set(TASKS)
    body = found.body_path.read_text(encoding="utf-8")
    assert body == found.body
    (clean,) = (r.result for r in read_runs(run) if r.result.data.config == "en_clean")
    assert f"| `squtr/garbler+words` | tiny-en | 5 | {clean.scores['ndcg_at_10'].value:.4f} |" in body
    assert "| model | data | n | clean | 0 dB | text |" in body
    assert f"tiny, revision {tiny.revision}" in body
    assert f"squtr {squtr.__version__}" in body
    assert "These are squtr's own and not in `mteb`'s registry: SQuTRTinyEn," in body
    assert "squtr evaluate SYSTEM --data tiny --configs tiny-en_clean" in body
    # Nothing of this machine is told.
    assert str(tmp_path.parent) not in body
    said = " ".join(found.open_points)
    for point in ("tasks SQuTRTinyEn", "models squtr/garbler+words", "not computed by mteb"):
        assert point in said
        assert point in body
    # Again is the same; other results in the folder are not.
    assert prepare_mteb_submission(run, tmp_path / "out").files == found.files
    (tmp_path / "out" / "results" / "theirs.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"theirs\.json is not of this submission"):
        prepare_mteb_submission(run, tmp_path / "out")


def test_results_of_mteb(cache: Path, tmp_path: Path) -> None:
    (spy,) = (cache / "results" / "org__spy").iterdir()
    foreign = tmp_path / "with more"
    shutil.copytree(cache, foreign)
    (theirs,) = (foreign / "results" / "org__spy").iterdir()
    content = json.loads((theirs / "SQuTRTinyEn.json").read_text(encoding="utf-8")) | {"task_name": "NQ"}
    content["scores"]["test"] = [content["scores"]["test"][0] | {"hf_subset": "default"}]
    (theirs / "NQ.json").write_text(json.dumps(content), encoding="utf-8")
    (theirs / "experiments" / "other").mkdir(parents=True)
    with (theirs / "run_settings.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"task": "NQ", "splits": ["test"], "subsets": ["default"], "version": {"mteb": "2.1.0"}}\n')
    found = prepare_mteb_submission(foreign, tmp_path / "out")
    assert found.models == ("org/spy", "squtr/garbler+words")
    assert found.skipped == ("NQ", "the experiments of org/spy")
    out = tmp_path / "out" / "results" / "org__spy" / spy.name
    assert {p.name for p in out.iterdir()} == {p.name for p in spy.iterdir()}
    for name in TASKS:
        assert (out / f"{name}.json").read_bytes() == (spy / f"{name}.json").read_bytes()
    assert "NQ" not in (out / "run_settings.jsonl").read_text(encoding="utf-8")
    assert not any("not computed by mteb" in point for point in found.open_points)
    assert f"mteb {installed_version()}" in found.body
    assert "mteb.get_model('org/spy', '1')" in found.body
    assert "squtr.mteb_model(system)" in found.body
    assert "conditions=['clean', 'high_noise'])" in found.body
    one = prepare_mteb_submission(cache, tmp_path / "one", systems=["org/spy"])
    assert one.models == ("org/spy",)
    with pytest.raises(UnknownNameError, match="org/spy"):
        prepare_mteb_submission(cache, tmp_path / "none", systems=["org/spi"])


def test_what_is_not_whole(run: Path, cache: Path, changed: Callable[..., Path], tmp_path: Path) -> None:
    def refused(folder: Path, message: str) -> None:
        with pytest.raises(DataError, match=message) as error:
            prepare_mteb_submission(folder, tmp_path / "out")
        assert "--allow-partial" in error.value.hint
        assert not (tmp_path / "out").exists()
        found = prepare_mteb_submission(folder, tmp_path / "allowed", allow_partial=True)
        assert any(
            point.startswith(error.value.message.partition(" (and ")[0].rstrip(".")) for point in found.open_points
        )
        assert "## What is open" in found.body
        shutil.rmtree(tmp_path / "allowed")

    def drop(content: Any) -> None:
        content["scores"]["test"] = [e for e in content["scores"]["test"] if e["hf_subset"] != "tiny-zh_high_noise"]

    refused(changed("SQuTRTinyZh.json", drop), "SQuTRTinyZh of org/spy lacks the conditions high_noise")
    fewer = changed("SQuTRTinyZh.json", lambda c: c["scores"]["test"][0].update(n_queries=4))
    refused(fewer, r"different numbers of queries: tiny-zh_clean 4, tiny-zh_high_noise 5, tiny-zh_text 5")
    failed = changed("SQuTRTinyEn.json", lambda c: c["scores"]["test"][1].update(undecodable_queries=5))
    refused(failed, "tiny-en_high_noise of org/spy failed: none of its 5 queries")
    folder = changed("SQuTRTinyZh.json", lambda _: None)
    next(folder.rglob("org__spy/*/SQuTRTinyZhText.json")).unlink()
    refused(folder, "org/spy lacks the typed controls SQuTRTinyZhText")
    # A run of squtr knows its data: a condition that no task has is missing too.
    part = tmp_path / "part"
    for record in read_runs(run):
        if record.result.data.condition != "high_noise":
            write_run(part, record)
    refused(part, "lacks the conditions high_noise")
    part = tmp_path / "partial"
    for record in read_runs(run):
        data = record.result.data.model_copy(update={"partial": True, "n_total": 99})
        write_run(part, RunRecord(record.result.model_copy(update={"data": data}), record.items))
    refused(part, r"tiny-en_clean of squtr/garbler\+words is partial: 5 queries")


def test_the_published_conditions_are_known(cache: Path, tmp_path: Path) -> None:
    text = {p: p.read_text(encoding="utf-8") for p in (cache / "results" / "org__spy").rglob("*.json*")}
    for path, content in text.items():
        name = path.name.replace("SQuTRTinyEn", "SQuTRFiQA")
        there = tmp_path / "cache" / path.relative_to(cache).with_name(name)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(content.replace("tiny-en", "fiqa").replace("SQuTRTinyEn", "SQuTRFiQA"), encoding="utf-8")
    with pytest.raises(DataError, match="SQuTRFiQA of org/spy lacks the conditions low_noise, medium_noise"):
        prepare_mteb_submission(tmp_path / "cache", tmp_path / "out")


def test_files_that_are_wrong(changed: Callable[..., Path], tmp_path: Path) -> None:
    def refused(message: str, edit: Callable[[Any], Any], name: str = "SQuTRTinyEn.json") -> None:
        with pytest.raises(DataError, match=message):
            prepare_mteb_submission(changed(name, edit), tmp_path / "out")

    def entry(**values: Any) -> Callable[[Any], None]:
        return lambda content: content["scores"]["test"][0].update(values)

    refused(r"recall_at_100 of tiny-en_clean is 1\.5", entry(recall_at_100=1.5))
    refused("map_at_10 of tiny-en_clean is nan", entry(map_at_10=float("nan")))
    refused("wer of tiny-en_clean is -1", entry(wer=-1))
    refused("precision_at_1 of tiny-en_clean is True", entry(precision_at_1=True))
    refused("main score of tiny-en_clean is 0.25", entry(main_score=0.25, ndcg_at_10=0.5))
    refused("n_queries of tiny-en_clean is 0", entry(n_queries=0))
    refused("n_queries of tiny-en_clean is None", lambda c: c["scores"]["test"][0].pop("n_queries"))
    refused("queries_without_hits of tiny-en_clean is 6", entry(queries_without_hits=6))
    refused("one known language", entry(languages=["xxx-Latn"]))
    refused("has tiny-en_clean twice", lambda c: c["scores"]["test"].append(c["scores"]["test"][0]))
    refused("no scores of the split 'test'", lambda c: c["scores"].update(train=c["scores"]["test"]))
    refused("which revision of the data", lambda c: c.update(dataset_revision=""))
    refused("mteb refuses", lambda c: c.update(evaluation_time="long"))
    refused("mteb refuses .*model_meta", lambda c: c.update(n_parameters="many"), "model_meta.json")
    refused("not what its folders are called", lambda c: c.update(revision="2"), "model_meta.json")
    # A file of another task of ours under this name.
    folder = changed("SQuTRTinyEn.json", lambda _: None)
    path = next(folder.rglob("org__spy/*/SQuTRTinyEn.json"))
    path.write_bytes((path.parent / "SQuTRTinyZh.json").read_bytes())
    with pytest.raises(DataError, match="is of the task 'SQuTRTinyZh'"):
        prepare_mteb_submission(folder, tmp_path / "out")
    path.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        prepare_mteb_submission(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_run_settings(changed: Callable[..., Path], tmp_path: Path) -> None:
    folder = changed("SQuTRTinyEn.json", lambda _: None)
    settings = next(folder.rglob("org__spy/*/run_settings.jsonl"))
    lines = settings.read_text(encoding="utf-8").splitlines()
    settings.write_text("\n".join(line for line in lines if '"SQuTRTinyZhText"' not in line), encoding="utf-8")
    found = prepare_mteb_submission(folder, tmp_path / "out", systems=["org/spy"])
    assert any("scores of org/spy were not computed by mteb, or lack its" in point for point in found.open_points)
    # The form of earlier versions of mteb.
    old = [
        json.dumps({**{k: v for k, v in json.loads(line).items() if k not in {"splits", "subsets"}},
                    "split": "test", "subset": subset})
        for line in lines for subset in json.loads(line)["subsets"]
    ]  # fmt: skip
    settings.write_text("\n".join(old), encoding="utf-8")
    found = prepare_mteb_submission(folder, tmp_path / "old", systems=["org/spy"])
    assert not any("not computed by mteb" in point for point in found.open_points)
    settings.write_text('{"task": "SQuTRTinyEn"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"run_settings\.jsonl, line 1, is no entry"):
        prepare_mteb_submission(folder, tmp_path / "broken")


def test_folders_that_are_wrong(run: Path, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        prepare_mteb_submission(tmp_path / "none", tmp_path / "out")
    empty = tmp_path / "empty"
    (empty / "partial-first-5" / "results").mkdir(parents=True)
    with pytest.raises(DataError, match="holds no results") as error:
        prepare_mteb_submission(empty, tmp_path / "out")
    assert "partial-first-5" in error.value.hint
    for out in (run, run / "results"):
        with pytest.raises(UsageError, match="holds the results themselves"):
            prepare_mteb_submission(run, out)
    import_mteb(cache, tmp_path / "imported")
    with pytest.raises(DataError, match="was imported"):
        prepare_mteb_submission(tmp_path / "imported", tmp_path / "out")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file", encoding="utf-8")
    with pytest.raises(StorageError, match="cannot write"):
        prepare_mteb_submission(run, blocked)


def test_without_mteb(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission_checks, "installed_version", lambda: "")
    found = prepare_mteb_submission(run, tmp_path / "out")
    assert any("mteb is not installed" in point for point in found.open_points)
    assert "was not looked up" in found.body
    monkeypatch.setattr(submission_checks, "installed_version", lambda: "2.26.24")

    def broken() -> None:
        raise submission_checks.MissingExtraError("mteb 2.26.24 does not import: no torch.")

    monkeypatch.setattr(submission_checks, "load_bridge", broken)
    found = prepare_mteb_submission(run, tmp_path / "out")
    assert any("does not import: no torch." in point for point in found.open_points)


def test_folders_of_this_machine_are_named(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "run"
    for record in read_runs(run):
        system = record.result.system
        components = {
            role: {**spec, "model": "/home/someone/model"} if role == "retriever" else spec
            for role, spec in system.components.items()
        }
        data = record.result.data.model_copy(update={"source": "/home/someone/my-texts"})
        changes = {"system": system.model_copy(update={"components": components}), "data": data}
        write_run(moved, RunRecord(record.result.model_copy(update=changes), record.items))
    found = prepare_mteb_submission(moved, tmp_path / "out")
    assert "The metadata names folders of one machine: /home/someone/model." in found.open_points
    assert "my-texts, revision" in found.body
    assert "/home/someone/my-texts" not in found.body


def test_commands_for_github(run: Path, tmp_path: Path) -> None:
    """They are run up to the push, with `gh` and its fork played by a local repository."""
    found = prepare_mteb_submission(run, tmp_path / "it's out")
    commands = found.github_commands("someone/our-results")
    assert len({tuple(commands), tuple(found.github_commands("someone/our-results"))}) == 1
    parsed = [shlex.split(command) for command in commands]
    assert [words[:2] for words in parsed] == [
        ["gh", "repo"], ["cd", "our-results"], ["git", "switch"], ["cp", "-r"], ["git", "add"], ["git", "commit"],
        ["git", "push"], ["gh", "pr"],
    ]  # fmt: skip
    assert parsed[0][3] == "someone/our-results"
    branch = parsed[2][-1]
    assert parsed[7][parsed[7].index("--head") + 1].endswith(f":{branch}")
    assert Path(parsed[7][-1]).read_text(encoding="utf-8") == found.body
    assert parsed[7][parsed[7].index("--title") + 1] == found.title
    here = tmp_path / "our-results"
    script = ["set -e", f"git init -q {shlex.quote(str(here))}", f"cd {shlex.quote(str(here))}", *commands[2:6]]
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(
        ["bash", "-c", "\n".join(script)], check=True, capture_output=True, env={"PATH": "/usr/bin:/bin", **identity}
    )
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", branch], cwd=here, check=True, capture_output=True, text=True
    )
    assert set(listed.stdout.splitlines()) == set(found.files)


def test_the_command(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["submit", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("something was sent")

    monkeypatch.setattr("squtr.loaders.hub.repository.Repository.propose", never)
    out = str(tmp_path / "out")
    assert call()[0] == call(str(run), "--out", out)[0] == 2
    assert "--mteb: results on the tasks of mteb" in call(str(run), "--out", out)[2]
    assert call("--mteb")[2].endswith("Write squtr submit --mteb RUN --out DIR.\n")
    status, said, _ = call("--mteb", str(run), "--out", out)
    assert status == 0
    assert "Prepared 4 task results of squtr/garbler+words" in said
    assert "Nothing was sent." in said
    assert "gh repo fork embeddings-benchmark/results" in said
    assert said.count("Open: ") == 3
    assert "--to ORG/NAME --yes" in said
    status, said, _ = call("--mteb", str(run), "--out", out, "--to", "org/results")
    assert status == 0
    assert "With --yes, a pull request with these 5 files" in said
    assert "gh repo fork" not in said
    status, _, error = call("--mteb", str(run), "--out", out, "--yes")
    assert status == 2
    assert "none is named" in error
    status, said, _ = call("--mteb", str(run), "--out", out, "--github", "me/results", "--json")
    told = json.loads(said)
    assert told["sent"] is None
    assert Path(told["body"]).is_file()
    assert len(told["files"]) == 5
    assert told["commands"][0].startswith("gh repo fork me/results")
    status, _, error = call("--mteb", str(run), "--out", out, "--system", "garbler + word")
    assert status == 2
    assert "Did you mean 'garbler + words'" in error


def test_short_forms_of_components() -> None:
    from squtr.harness.mteb.submission_text import short_form

    whisper, bm25 = {"backend": "faster-whisper", "model": "org/whisper"}, {"backend": "bm25", "model": ""}
    assert short_form({"transcriber": whisper, "retriever": bm25}) == "faster-whisper:org/whisper + bm25"
    for other in ({"backend": "hybrid"}, {"backend": "mine", "model": "x"}, {"backend": "dense", "model": "/home/x"},
                  {"backend": "dense", "model": "a b"}, {"backend": "dense"}):  # fmt: skip
        assert short_form({"transcriber": whisper, "retriever": other}) == ""
    assert short_form({"retriever": bm25}) == ""


def test_a_full_disk_is_said(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(submission_module.tempfile, "TemporaryDirectory", full)
    with pytest.raises(StorageError, match="No space left"):
        prepare_mteb_submission(run, tmp_path / "out")
