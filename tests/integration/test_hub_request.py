"""Pull requests with files on someone's data set: opened once, against resistance, and never without --yes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi

from squtr.errors import HubError, UsageError
from squtr.harness.cli import main
from squtr.harness.evaluation.options import Options
from squtr.harness.systems.system import System
from squtr.loaders.data import BuiltData
from squtr.loaders.hub.repository import Repository, Sent
from squtr.loaders.retries import Backoff

from ..harness.evaluate_runs_for_tests import evaluate_records
from ..harness.fakes import WordRetriever
from ..harness.mteb_for_tests import Garbler
from .conftest import OWNER, READER, STRANGER
from .hub import Fault, LocalHub

REPO = "org/results"
COMMIT = r"^POST /api/datasets/org/results/commit/"
FILES = {"results/a__b/1/SQuTRX.json": b'{"x": 1}\n', "results/a__b/1/model_meta.json": b"{}\n"}


@pytest.fixture
def offer(hub: LocalHub) -> Callable[..., Sent]:
    """Opens a request as a stranger, without waiting."""
    hub.storage.create(REPO)

    def run(files: dict[str, bytes] = FILES, repo_id: str = REPO, **options: Any) -> Sent:
        given = {"token": STRANGER, "endpoint": hub.endpoint, "backoff": Backoff(sleep=lambda _: None)}
        repository = Repository(repo_id, **{**given, **options})
        return repository.propose(files, title="Add results", description="**All** of them.", replacing=True)

    return run


def there(hub: LocalHub, revision: str) -> dict[str, bytes]:
    files = hub.storage.repos[REPO].resolve(revision).files
    return {path: hub.storage.read(REPO, path, revision) for path in files if path != ".gitattributes"}


def test_a_request_is_opened_once(hub: LocalHub, offer: Callable[..., Sent]) -> None:
    hub.storage.write(REPO, "README.md", b"of the owner")
    first = offer()
    assert first == Sent(REPO, f"{hub.endpoint}/datasets/{REPO}/discussions/1", "refs/pr/1", tuple(FILES), opened=True)
    assert there(hub, "main") == {"README.md": b"of the owner"}
    assert there(hub, "refs/pr/1") == {"README.md": b"of the owner", **FILES}
    request = hub.storage.repos[REPO].requests[1]
    assert (request["title"], request["description"], request["author"]) == (
        "Add results", "**All** of them.", "stranger",
    )  # fmt: skip
    again = offer()
    assert (again.url, again.opened) == (first.url, False)
    # Other content under the same title is another request, and holds what main lacks.
    other = offer({**FILES, "results/a__b/1/SQuTRY.json": b"{}"})
    assert (other.revision, other.opened) == ("refs/pr/2", True)
    hub.storage.merge(REPO, 1)
    last = offer()
    assert (last.url, last.added, last.opened) == ("", (), False)
    assert offer({**FILES, "results/a__b/1/SQuTRZ.json": b"{}"}).added == ("results/a__b/1/SQuTRZ.json",)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(COMMIT, status=500),
        Fault(COMMIT, status=429, headers={"Retry-After": "1"}),
        Fault(COMMIT, drop="request"),
        Fault(COMMIT, drop="response"),
        Fault(r"^GET /api/datasets/org/results/discussions", status=503),
        Fault(r"^POST .*/paths-info/", drop="request"),
    ],
    ids=lambda fault: f"{fault.on}{fault.status}{fault.drop}",
)
def test_what_passes_is_waited_for(hub: LocalHub, offer: Callable[..., Sent], fault: Fault) -> None:
    fault.happened = 0
    hub.inject(fault)
    report = offer()
    assert fault.happened == 1
    assert report.url.endswith("/discussions/1")
    assert len(hub.storage.repos[REPO].requests) == 1
    assert there(hub, "refs/pr/1") == FILES


def test_what_is_refused(
    hub: LocalHub, offer: Callable[..., Sent], api: HfApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="not the name of a repository"):
        offer(repo_id="results")
    with pytest.raises(HubError, match="there is no dataset org/nothing on the Hub"):
        offer(repo_id="org/nothing")
    with pytest.raises(HubError, match="does not accept this token") as error:
        offer(token="hf_wrongwrongwrong")
    assert "hf_wrong" not in str(error.value)
    hub.inject(Fault(COMMIT, status=403, message="pull requests are disabled"))
    with pytest.raises(HubError, match="may not do that"):
        offer(token=READER)
    hub.inject(Fault(COMMIT, status=500, times=100))
    with pytest.raises(HubError, match="6 times: the Hub answered 500"):
        offer()
    assert not hub.storage.repos[REPO].requests
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(HubError, match="not logged in"):
        offer(token=None)


def test_results_are_submitted(
    as_default: LocalHub,
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub, data, run = as_default, BuiltData(built), tmp_path / "run"
    texts = {language: [query.text for query in data.queries(subset)] for subset, language in data.subsets.items()}
    system = System(transcriber=Garbler(texts), retriever=WordRetriever())
    evaluate_records([system], data, out=run, options=Options(resamples=1, samples=0))
    hub.storage.create(REPO)
    monkeypatch.setenv("HF_TOKEN", STRANGER)
    command = ["submit", "--mteb", str(run), "--out", str(tmp_path / "out"), "--to", REPO]
    hub.log.clear()
    assert main(command) == 0
    assert "Nothing was sent." in capsys.readouterr().out
    assert not hub.log
    assert main([*command, "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"Opened a pull request with 3 files: {hub.endpoint}/datasets/{REPO}/discussions/1" in said
    assert "Nothing was sent" not in said
    prepared = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for path in (tmp_path / "out" / "results").rglob("*.json")
    }
    assert there(hub, "refs/pr/1") == prepared
    request = hub.storage.repos[REPO].requests[1]
    assert request["title"] == "Add results on SQuTR for squtr/garbler+words"
    assert request["description"] == (tmp_path / "out" / "pull-request.md").read_text(encoding="utf-8")
    assert main([*command, "--yes", "--json"]) == 0
    sent = json.loads(capsys.readouterr().out)["sent"]
    assert (sent["opened"], sent["revision"]) == (False, "refs/pr/1")
    hub.storage.merge(REPO, 1)
    assert main([*command, "--yes"]) == 0
    assert "has all these files already" in capsys.readouterr().out
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    assert main([*command, "--yes"]) == 1
    assert "not logged in" in capsys.readouterr().err
    assert OWNER not in said
