"""Results on the Hub: two submit at the same time, the pull requests are checked and merged, nothing is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from squtr.errors import HubError, UsageError
from squtr.harness.cli import main
from squtr.harness.results.envelope import Result, read_result, write_result
from squtr.leaderboard.eval_results import PATH, prepare_eval_results, send_eval_results
from squtr.leaderboard.store import read_store
from squtr.leaderboard.submit import Delivery, Submission, prepare, send
from squtr.loaders.hub.evaluation_file import SPLIT, task_name
from squtr.loaders.hub.repository import Repository
from squtr.loaders.retries import Backoff

from ..leaderboard.runs_for_tests import make_run
from .conftest import OWNER, READER, STRANGER
from .hub import Fault, LocalHub

REPO = "org/squtr-results"
COMMIT = r"^POST /api/datasets/org/squtr-results/commit/"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of results of each system."""
    run = make_run(tmp_path_factory.mktemp("leaderboard-hub"), names=("words", "other"))
    return {name: run / "results" / f"garbler+{name}" for name in ("words", "other")}


@pytest.fixture
def store(hub: LocalHub) -> LocalHub:
    hub.storage.create(REPO)
    hub.storage.write(REPO, "README.md", b"the store")
    return hub


@pytest.fixture
def home(store: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The Hub's cache in a folder of the test, and downloads from this Hub where nobody names another."""
    template = store.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    yield


def repository(hub: LocalHub, token: str, name: str = REPO, kind: str = "dataset") -> Repository:
    backoff = Backoff(sleep=lambda _: None, attempts=6)
    return Repository(name, kind, token=token, endpoint=hub.endpoint, backoff=backoff)  # type: ignore[arg-type]


def submission(folder: Path) -> Submission:
    found, validations = prepare([folder])
    assert all(validation.ok for validation in validations)
    return found


def offer(hub: LocalHub, folder: Path, token: str = STRANGER, *, direct: bool = False) -> Delivery:
    return send(submission(folder), REPO, direct=direct, repository=repository(hub, token))


def paths(hub: LocalHub, revision: str = "main") -> set[str]:
    return set(hub.storage.repos[REPO].resolve(revision).files) - {".gitattributes", "README.md"}


def test_two_submit_at_once(
    as_default: LocalHub,
    store: LocalHub,
    home: None,
    runs: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both pull requests are opened, checked, answered, merged; the store then has both systems, with records."""
    hub = as_default
    with ThreadPoolExecutor(2) as pool:
        pending = [pool.submit(offer, hub, runs["words"], STRANGER), pool.submit(offer, hub, runs["other"], OWNER)]
        done = [one.result() for one in pending]
    assert sorted(sent.request.revision for sent in done if sent.request) == ["refs/pr/1", "refs/pr/2"]
    assert [len(sent.added) for sent in done] == [12, 12]
    assert paths(hub) == set()
    monkeypatch.setenv("HF_TOKEN", OWNER)
    # What is suspicious in noise-made runs is warned of, and left to a person.
    status = main(["validate", "--requests", REPO, "--comment", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (status, told["ok"]) == (0, True)
    assert [request["number"] for request in told["requests"]] == [1, 2]
    assert all(file["who"] == "re-scored" for request in told["requests"] for file in request["files"])
    ((author, text),) = hub.storage.repos[REPO].requests[1]["comments"]
    assert author == "owner"
    assert "`squtr validate`: no errors in 6 results." in text
    for number in (1, 2):
        repository(hub, OWNER).merge(number)
    assert paths(hub) == {path for sent in done for path in sent.added}
    found = read_store(REPO, repository=repository(hub, READER))
    assert found.problems == ()
    assert [(entry.system, entry.who, len(entry.configs)) for entry in found.entries] == [
        ("garbler + other", "re-scored", 6),
        ("garbler + words", "re-scored", 6),
    ]
    entry = found.entries[0]
    table = found.numbers(entry, "en_clean")
    assert table is not None
    assert table.num_rows == 12
    # Submitted again, by anyone: nothing is sent.
    again = offer(hub, runs["words"], READER)
    assert (again.added, len(again.there), again.request) == ((), 6, None)
    assert main(["validate", "--requests", REPO]) == 0
    assert "no open pull request" in capsys.readouterr().out


def test_two_commit_at_once(store: LocalHub, runs: dict[str, Path]) -> None:
    """Direct commits on the same parent: the second is planned again, and both stay."""
    with ThreadPoolExecutor(2) as pool:
        pending = [pool.submit(offer, store, runs[name], OWNER, direct=True) for name in ("words", "other")]
        done = [one.result() for one in pending]
    assert paths(store) == {path for sent in done for path in sent.added}
    assert len(paths(store)) == 24


def test_someone_else_commits_meanwhile(store: LocalHub, runs: dict[str, Path]) -> None:
    store.inject(Fault(COMMIT, before=lambda: store.storage.write(REPO, "theirs.txt", b"x"), times=2))
    offer(store, runs["words"], OWNER, direct=True)
    assert len(paths(store)) == 13
    assert store.count("POST /api/datasets/org/squtr-results/commit/main 412") == 2


@pytest.mark.parametrize("drop", ["request", "response"])
def test_a_lost_answer_is_no_second_request(store: LocalHub, runs: dict[str, Path], drop: str) -> None:
    store.inject(Fault(COMMIT, drop=drop))  # type: ignore[arg-type]
    sent = offer(store, runs["words"])
    assert sent.request is not None
    assert sent.request.url.endswith("/discussions/1")
    assert len(store.storage.repos[REPO].requests) == 1
    # The same results at another time, while the request is open.
    again = offer(store, runs["words"], OWNER)
    assert again.request is not None
    assert (again.request.opened, again.request.url) == (False, sent.request.url)
    assert len(store.storage.repos[REPO].requests) == 1


def test_what_a_request_may_not_do(
    as_default: LocalHub,
    store: LocalHub,
    home: None,
    runs: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Change, remove, or add anything but results."""
    hub = as_default
    offer(hub, runs["words"], OWNER, direct=True)
    first = sorted(path for path in paths(hub) if path.endswith(".json"))[0]
    api = repository(hub, STRANGER)._api()
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    api.create_commit(
        REPO,
        [
            CommitOperationDelete(first),
            CommitOperationAdd("README.md", b"---\nlicense: mit\n---\nmine"),
            CommitOperationAdd(".github/workflows/x.yml", b"on: push"),
            CommitOperationAdd("results/squtr/a/evil.json", b"{}"),
        ],
        commit_message="Add results",
        repo_type="dataset",
        create_pr=True,
    )
    # What came to main after the branch was made is not removed by it.
    hub.storage.write(REPO, "results/squtr/new/20260101T000000Z-0123456789abcdef.json", b"{}")
    monkeypatch.setenv("HF_TOKEN", OWNER)
    assert main(["validate", "--requests", REPO, "--merge", "--comment"]) == 1
    said = capsys.readouterr().out
    assert f"error: '{first}': the file was removed; results stay" in said
    assert "error: 'README.md': the file was changed" in said
    assert "error: '.github/workflows/x.yml': only results are added" in said
    assert "error: 'results/squtr/a/evil.json': only results are added" in said
    assert "0123456789abcdef" not in said
    assert hub.storage.repos[REPO].requests[1]["status"] == "open"
    assert "cannot be taken" in hub.storage.repos[REPO].requests[1]["comments"][0][1]
    assert first in paths(hub)


def test_what_is_clean_is_merged_unless_it_changes_meanwhile(
    as_default: LocalHub, store: LocalHub, home: None, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    hub = as_default
    for name in ("words", "other"):
        offer(hub, runs[name] / "en_text.json")
    monkeypatch.setenv("HF_TOKEN", OWNER)
    path = "results/squtr/x/20260101T000000Z-0123456789abcdef.json"
    comment = r"^POST /api/datasets/org/squtr-results/discussions/2/comment"
    hub.inject(Fault(comment, before=lambda: hub.storage.write(REPO, path, b"{}", "refs/pr/2")))
    assert main(["validate", "--requests", REPO, "--merge", "--comment"]) == 0
    shown = capsys.readouterr()
    assert "#1 of stranger: Add 1 result of garbler + words" in shown.out
    assert "(merged)" in shown.out
    assert "#2 was changed while it was checked: not merged." in shown.err
    assert [request["status"] for request in hub.storage.repos[REPO].requests.values()] == ["merged", "open"]
    assert len(paths(hub)) == 2
    assert main(["validate", "--requests", REPO, "--merge", "--number", "2"]) == 1
    assert path not in paths(hub)


def test_a_forged_result_is_refused(
    as_default: LocalHub, store: LocalHub, home: None, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    hub = as_default
    found = submission(runs["words"])
    files = dict(found.files)
    name = next(path for path in files if path.endswith(".json"))
    files[name] = files[name].replace(b'"ndcg_at_10"', b'"ndcg_at_10" ', 1).replace(b"0.0833", b"0.9833")
    forged = json.loads(files[name])
    forged["result"]["scores"]["ndcg_at_10"]["value"] = 0.9
    files[name] = json.dumps(forged).encode()
    repository(hub, STRANGER).propose(files, title="x", description="")
    monkeypatch.setenv("HF_TOKEN", OWNER)
    assert main(["validate", "--requests", REPO, "--merge"]) == 1
    said = capsys.readouterr().out
    assert "its sha256 differs" in said
    assert "the result says 0.9, its records give" in said
    assert paths(hub) == set()


def test_refusals(store: LocalHub, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    found = submission(runs["words"])
    with pytest.raises(HubError, match="no dataset org/nothing"):
        send(found, "org/nothing", repository=repository(store, STRANGER, "org/nothing"))
    with pytest.raises(HubError, match="does not accept this token") as error:
        send(found, REPO, repository=repository(store, "hf_wrongwrongwrong"))
    assert "hf_wrong" not in str(error.value)
    with pytest.raises(HubError, match="may not do that"):
        send(found, REPO, direct=True, repository=repository(store, STRANGER))
    store.inject(Fault(COMMIT, status=500, message=f"failed for {OWNER}", times=100))
    with pytest.raises(HubError, match="the Hub answered 500") as error:
        send(found, REPO, repository=repository(store, OWNER))
    assert OWNER not in str(error.value)
    assert error.value.__cause__ is None
    with pytest.raises(UsageError, match="no result to send"):
        send(replace(found, parcels=()), REPO, repository=repository(store, OWNER))
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(HubError, match="not logged in"):
        repository(store, "").propose({"a": b"b"}, title="x", description="")
    assert paths(store) == set()


def one_model(folder: Path, out: Path, model: str = "org/whisper-tiny") -> Path:
    """The results of a folder as if a model on the Hub had made them; their records stay behind."""
    for path in sorted(folder.glob("*.json")):
        result = read_result(path)
        components = result.system.components
        if "transcriber" in components:
            named = {**components, "transcriber": {**components["transcriber"], "model": model}}
            result = result.model_copy(update={"system": result.system.model_copy(update={"components": named})})
        write_result(out, Result.model_validate(result.model_dump()))
    return out


def test_the_models_own_repository(
    as_default: LocalHub,
    store: LocalHub,
    home: None,
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub = as_default
    model = "org/whisper-tiny"
    hub.storage.create(model)
    theirs = [{"dataset": {"id": "cais/hle", "task_id": "default"}, "value": 20.9}]
    hub.storage.write(model, PATH, yaml.safe_dump(theirs).encode())
    monkeypatch.setenv("HF_TOKEN", STRANGER)
    folder = one_model(runs["words"], tmp_path / "run")
    command = ["submit", str(folder), "--to", REPO, "--eval-results", "--data-set", "org/squtr-mini"]
    hub.log.clear()
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "Nothing was sent." in said
    assert "To the model org/whisper-tiny: 4 values" in said
    assert hub.log == []
    assert main([*command, "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"Opened a pull request: {hub.endpoint}/datasets/{REPO}/discussions/1" in said
    assert f"On the model org/whisper-tiny: {hub.endpoint}/{model}/discussions/1" in said
    written = yaml.safe_load(hub.storage.read(model, PATH, "refs/pr/1"))
    entries = parse_eval_result_entries(written)
    assert written[0] == theirs[0]
    assert {entry.task_id for entry in entries[1:]} == {
        f"{task_name(subset)}_{subset}_{condition}_{SPLIT}"
        for subset in ("tiny-en", "tiny-zh")
        for condition in ("clean", "medium_noise")
    }
    assert {entry.dataset_id for entry in entries[1:]} == {"org/squtr-mini"}
    assert all(entry.source_url == f"https://huggingface.co/datasets/{REPO}" for entry in entries[1:])
    hub.storage.merge(model, 1)
    stored = [parcel.stored for parcel in prepare([folder])[0].parcels]
    (own,) = prepare_eval_results(stored, data_set="org/squtr-mini", results=REPO)
    assert len(yaml.safe_load(own.content(hub.storage.read(model, PATH)))) == 5
    hub.storage.write(model, PATH, b"- !!python/object/apply:os.system ['true']\n")
    with pytest.raises(ValueError, match="is no YAML"):
        send_eval_results(own, repository(hub, STRANGER, model, "model"))


def test_a_system_of_several_models_is_not_one(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs["words"], tmp_path / "r"))
    stored = [parcel.stored for parcel in prepare([folder])[0].parcels]
    with pytest.raises(UsageError, match="has 0 models"):
        prepare_eval_results(stored, data_set="org/squtr-mini")
    with pytest.raises(UsageError, match="no data set on the Hub"):
        prepare_eval_results(stored, data_set="")
    local = one_model(runs["words"], tmp_path / "local", "/home/me/model")
    with pytest.raises(UsageError, match="no name on the Hub"):
        prepare_eval_results([parcel.stored for parcel in prepare([local])[0].parcels], data_set="org/x")
