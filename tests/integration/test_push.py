"""Pushing to a Hub: once, again, against resistance, and read back by the plain clients."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi, constants

from squtr.errors import DataError, HubError, IntegrityError, RecipeMismatchError, UsageError
from squtr.harness.cli import main
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.hub import push as push_module
from squtr.loaders.hub.push import PushReport, push
from squtr.loaders.manifest import MANIFEST_NAME, read_manifest
from squtr.loaders.recipe import open_recipe
from squtr.loaders.retries import Backoff

from .conftest import OWNER, READER, STRANGER
from .hub import Fault, LocalHub

REPO = "org/squtr"
COMMIT = r"^POST /api/datasets/org/squtr/commit/"
PUT = r"^PUT /large/"


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def send(hub: LocalHub, built: Path, slept: list[float]) -> Callable[..., PushReport]:
    """Pushes the built folder as the owner; waiting takes no time and is noted in `slept`."""

    def run(folder: Path = built, repo_id: str = REPO, **options: Any) -> PushReport:
        backoff = Backoff(sleep=slept.append, jitter=lambda: 0.0)
        return push(folder, repo_id, **{"token": OWNER, "endpoint": hub.endpoint, "backoff": backoff} | options)

    return run


def published(hub: LocalHub, revision: str = "main") -> set[str]:
    return set(hub.storage.repos[REPO].resolve(revision).files) - {".gitattributes"}


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_one_commit_and_nothing_twice(hub: LocalHub, built: Path, send: Callable[..., PushReport]) -> None:
    seen: list[tuple[str, int, int]] = []
    report = send(progress=lambda *step: seen.append(step))
    assert published(hub) == everything(built) == set(report.uploaded)
    assert (report.commits, report.unchanged, report.pull_request, report.deleted) == (1, 0, "", ())
    assert report.commit == hub.storage.repos[REPO].resolve("main").oid
    assert report.url == f"{hub.endpoint}/datasets/{REPO}"
    assert seen[-1][1] == seen[-1][2] > 0
    assert not hub.storage.repos[REPO].private
    for shard in read_manifest(built).shards:
        assert hashlib.sha256(hub.storage.read(REPO, shard.path)).hexdigest() == shard.sha256
    card = hub.storage.read(REPO, "README.md").decode()
    assert f'load_dataset("{REPO}", "zh_clean", split="test")' in card
    assert card == (built / "README.md").read_text(encoding="utf-8").replace("PATH OR ORG/NAME", REPO)

    hub.log.clear()
    again = send()
    assert (again.commits, again.uploaded, again.bytes) == (0, (), 0)
    assert again.commit == report.commit
    assert again.unchanged == len(report.uploaded)
    assert not [line for line in hub.log if not line.startswith(("GET", "HEAD"))]


def test_private_pull_request_tag_and_branch(hub: LocalHub, send: Callable[..., PushReport]) -> None:
    first = send(private=True, tag="v1.0")
    repo = hub.storage.repos[REPO]
    assert repo.private
    assert repo.refs["refs/tags/v1.0"] == first.commit
    assert send(tag="v1.0").tag == "v1.0"
    hub.storage.write(REPO, "notes.txt", b"by hand")
    with pytest.raises(HubError, match="names another commit"):
        send(tag="v1.0")
    branch = send(revision="next")
    assert branch.revision == "next"
    assert "notes.txt" in published(hub, "next")
    with pytest.raises(UsageError, match="before it is merged"):
        send(create_pr=True, tag="v2")
    with pytest.raises(UsageError, match="goes to main"):
        send(create_pr=True, revision="next")


def test_a_pull_request_of_someone_else(hub: LocalHub, built: Path, send: Callable[..., PushReport]) -> None:
    hub.storage.create(REPO)
    report = send(token=STRANGER, create_pr=True)
    assert report.pull_request == f"{hub.endpoint}/datasets/{REPO}/discussions/1"
    assert report.revision == "refs/pr/1"
    assert published(hub) == set()
    assert published(hub, "refs/pr/1") == everything(built)
    again = send(token=STRANGER, create_pr=True)
    assert (again.commits, again.pull_request) == (0, report.pull_request)
    hub.storage.merge(REPO, 1)
    assert send(create_pr=True).pull_request == ""
    assert len(hub.storage.repos[REPO].requests) == 1


@pytest.fixture(scope="session")
def parts(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders beside `built` (zh under clean and medium_noise) that were built from the same collection."""
    root = tmp_path_factory.mktemp("parts")
    for name, languages, conditions in (
        ("whole", ["en", "zh"], ["clean", "medium_noise"]),
        ("en", ["en"], ["clean", "medium_noise"]),
        ("en clean", ["en"], ["clean"]),
        ("zh low", ["zh"], ["low_noise"]),
        ("zh other", ["zh"], ["clean", "low_noise"]),
    ):
        build(open_recipe(str(collection), conditions=conditions, languages=languages), root / name)
    build(open_recipe(str(collection), conditions=["clean", "medium_noise"], languages=["en"], seed=4), root / "seed")
    return root


def test_a_part_is_added(hub: LocalHub, built: Path, parts: Path, send: Callable[..., PushReport]) -> None:
    send()
    hub.storage.write(REPO, "images/logo.png", b"a picture by hand")
    before = {path: hub.storage.read(REPO, path) for path in published(hub) if path.endswith(".parquet")}
    report = send(parts / "en")
    assert (report.commits, report.deleted) == (1, ())
    assert set(report.uploaded) == {s.path for s in read_manifest(parts / "en").shards} | {
        "README.md", "eval.yaml", MANIFEST_NAME,
    }  # fmt: skip
    assert published(hub) == everything(parts / "whole") | {"images/logo.png"}
    assert before.items() <= {path: hub.storage.read(REPO, path) for path in published(hub)}.items()
    manifest = json.loads(hub.storage.read(REPO, MANIFEST_NAME))
    whole = json.loads((parts / "whole" / MANIFEST_NAME).read_bytes())
    assert manifest["shards"] == whole["shards"]
    assert sorted(manifest["statistics"], key=str) == sorted(whole["statistics"], key=str)
    assert manifest["recipe"]["subsets"] == whole["recipe"]["subsets"]
    card = hub.storage.read(REPO, "README.md").decode()
    whole_card = (parts / "whole/README.md").read_text(encoding="utf-8")
    lines = [line for line in whole_card.splitlines() if line.startswith(("| tiny-", "- config_name:", "    - "))]
    assert len(lines) > 40
    assert set(lines) <= set(card.splitlines())
    assert b"tiny-en_clean" in hub.storage.read(REPO, "eval.yaml")
    assert b"tiny-zh_clean" in hub.storage.read(REPO, "eval.yaml")
    # Either part again changes nothing.
    for folder in (parts / "en", built):
        again = send(folder)
        assert (again.commits, again.uploaded) == (0, ())
        assert again.unchanged == len(published(hub)) - 1
    assert send(parts / "en clean").commits == 0


def test_a_condition_is_added(parts: Path, send: Callable[..., PushReport], api: HfApi, tmp_path: Path) -> None:
    send()
    report = send(parts / "zh low")
    assert report.deleted == ()
    local = Path(api.snapshot_download(REPO, repo_type="dataset", local_dir=tmp_path / "copy"))
    assert read_manifest(local).conditions == ["clean", "medium_noise", "low_noise"]
    assert main(["doctor", str(local)]) == 0


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("seed", "org/squtr holds another recipe (seed 0 there, 4 here)"),
        ("en clean", "the subset tiny-en would lack the condition medium_noise"),
    ],
)
def test_what_does_not_fit_is_refused(
    hub: LocalHub, parts: Path, send: Callable[..., PushReport], folder: str, message: str
) -> None:
    send()
    before = published(hub)
    with pytest.raises(RecipeMismatchError, match=re.escape(message)) as refused:
        send(parts / folder)
    assert "--replace" in refused.value.hint
    assert published(hub) == before


def test_another_version_of_the_manifest_is_refused(
    hub: LocalHub, parts: Path, send: Callable[..., PushReport]
) -> None:
    send()
    manifest = json.loads(hub.storage.read(REPO, MANIFEST_NAME))
    del manifest["recipe"]["sources"]
    manifest["recipe_fingerprint"] = "0" * 16
    hub.storage.write(REPO, MANIFEST_NAME, json.dumps(manifest).encode())
    with pytest.raises(RecipeMismatchError, match="earlier version"):
        send(parts / "en")
    hub.storage.write(REPO, MANIFEST_NAME, b"{}")
    with pytest.raises(RecipeMismatchError, match="cannot be read"):
        send(parts / "en")
    assert send(parts / "en", replace=True).deleted


def test_somebody_adds_another_part_meanwhile(
    hub: LocalHub, built: Path, parts: Path, send: Callable[..., PushReport]
) -> None:
    """Planned again on top of it: neither part goes."""

    def theirs() -> None:
        for path in everything(parts / "en"):
            hub.storage.write(REPO, path, (parts / "en" / path).read_bytes())

    hub.inject(Fault(COMMIT, before=theirs, times=1))
    send()
    assert published(hub) == everything(parts / "whole")
    assert set(json.loads(hub.storage.read(REPO, MANIFEST_NAME))["recipe"]["subsets"]) == {"tiny-en", "tiny-zh"}


def test_replace(hub: LocalHub, parts: Path, send: Callable[..., PushReport]) -> None:
    send()
    hub.storage.write(REPO, "images/logo.png", b"a picture by hand")
    other = parts / "zh other"
    report = send(other, replace=True)
    assert report.commits == 1
    assert report.deleted == ("queries/zh/tiny-zh/medium_noise/test-00000-of-00001.parquet",)
    assert published(hub) == everything(other) | {"images/logo.png"}
    assert "queries/zh/tiny-zh/clean/test-00000-of-00001.parquet" not in report.uploaded


def test_a_damaged_shard_is_not_sent(
    hub: LocalHub, built: Path, tmp_path: Path, send: Callable[..., PushReport]
) -> None:
    """Its hash was taken over by hand."""
    for place, form in (
        ("queries/zh/tiny-zh/clean", "new"),
        ("queries/zh/tiny-zh/clean", "old"),
        ("corpus/tiny-zh", "new"),
    ):
        folder = Path(shutil.copytree(built, tmp_path / f"{place} {form}"))
        shard = folder / place / "test-00000-of-00001.parquet"
        if form == "old":
            # Without checksums of pages.
            table = pq.read_table(shard, partitioning=None)
            pq.write_table(table, shard, compression="none", use_dictionary=False)
        content = bytearray(shard.read_bytes())
        audio = place.startswith("queries")
        at = content.rindex(b"fLaC") + 3000 if audio else 40
        content[at] ^= 1
        shard.write_bytes(content)
        manifest = json.loads((folder / MANIFEST_NAME).read_bytes())
        for row in manifest["shards"]:
            if folder / row["path"] == shard:
                row |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        (folder / MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")
        with pytest.raises(IntegrityError, match=re.escape(f"{place}/test-00000-of-00001.parquet")) as refused:
            send(folder)
        assert "is damaged" in refused.value.message
        assert "Remove that file" in refused.value.hint
    assert published(hub) == set()


def test_foreign_shards_are_not_removed(hub: LocalHub, send: Callable[..., PushReport]) -> None:
    hub.storage.create(REPO)
    hub.storage.write(REPO, "queries/mine.parquet", b"PAR1")
    with pytest.raises(HubError, match="did not write"):
        send()
    assert published(hub) == {"queries/mine.parquet"}


def test_many_files_go_in_several_commits(
    hub: LocalHub, built: Path, send: Callable[..., PushReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_module, "FILES_PER_COMMIT", 3)
    seen: list[set[str]] = []
    hub.inject(Fault(COMMIT, before=lambda: seen.append(published(hub)), times=10))
    report = send()
    assert report.commits == 3
    assert published(hub) == everything(built)
    assert all(MANIFEST_NAME not in there for there in seen)


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (Fault(COMMIT, status=500), [0.5]),
        (Fault(COMMIT, status=409), [0.5]),
        (Fault(COMMIT, status=412), [0.5]),
        (Fault(COMMIT, status=503, times=3), [0.5, 1.0, 2.0]),
        (Fault(COMMIT, status=429, headers={"Retry-After": "7"}), [7.0]),
        (Fault(COMMIT, drop="request"), [0.5]),
        (Fault(r"^POST /api/repos/create", status=502), [0.5]),
        (Fault(r"^GET /api/datasets/org/squtr$", drop="request"), [0.5]),
        (Fault(r"^POST /api/validate-yaml", status=500), [0.5]),
        (Fault(r"^POST .*/tag/", status=500), [0.5]),
        (Fault(r"^POST .*/tag/", drop="response"), [0.5]),
        # These the client repeats by itself before it gives up.
        (Fault(PUT, status=500), []),
        (Fault(PUT, drop="request", times=2), []),
        (Fault(PUT, drop="request", times=6 * 4), [0.5]),
        (Fault(r"/lfs/objects/batch", status=503), []),
        (Fault(r"^POST .*/preupload/", status=429, headers={"Retry-After": "1"}), []),
        (Fault(r"^GET .*/tree/", drop="request"), []),
    ],
    ids=lambda value: f"{value.on}{value.status}{value.drop}" if isinstance(value, Fault) else "",
)
def test_what_passes_is_waited_for(
    hub: LocalHub, built: Path, send: Callable[..., PushReport], slept: list[float], fault: Fault, waits: list[float]
) -> None:
    fault.happened = 0
    hub.inject(fault)
    told: list[str] = []
    report = send(tag="v1", waiting=told.append)
    assert fault.happened == fault.times
    assert published(hub) == everything(built)
    assert hub.storage.repos[REPO].log() == [
        f"Upload the squtr data set {read_manifest(built).recipe_fingerprint}",
        "initial commit",
    ]
    assert report.commits == 1
    assert slept == waits
    assert len(told) == len(waits)


@pytest.mark.parametrize("create_pr", [False, True])
def test_a_lost_answer_is_no_second_commit(
    hub: LocalHub, built: Path, send: Callable[..., PushReport], slept: list[float], create_pr: bool
) -> None:
    hub.inject(Fault(COMMIT, drop="response"))
    report = send(create_pr=create_pr)
    assert slept == [0.5]
    assert len(hub.storage.repos[REPO].log(report.revision)) == 2
    assert len(hub.storage.repos[REPO].requests) == int(create_pr)
    assert bool(report.pull_request) == create_pr
    assert published(hub, report.revision) == everything(built)


def test_someone_else_commits_meanwhile(hub: LocalHub, built: Path, send: Callable[..., PushReport]) -> None:
    """The parent is stale: planned again on top of the other commit, which stays."""
    hub.inject(Fault(COMMIT, before=lambda: hub.storage.write(REPO, "theirs.txt", b"theirs"), times=2))
    report = send()
    assert report.commits == 1
    assert published(hub) == everything(built) | {"theirs.txt"}
    assert hub.count("POST /api/datasets/org/squtr/commit/main 412") == 2


def test_a_stopped_push_continues(hub: LocalHub, built: Path, send: Callable[..., PushReport]) -> None:
    hub.inject(Fault(COMMIT, status=500, times=100))
    with pytest.raises(HubError, match="6 times: the Hub answered 500") as stopped:
        send()
    assert "what has arrived is kept" in stopped.value.hint
    shards = len(read_manifest(built).shards)
    assert hub.count("PUT /large/") == shards
    hub.app.faults.clear()
    send()
    assert hub.count("PUT /large/") == shards
    assert published(hub) == everything(built)


def test_resumed_upload_sends_only_what_is_missing(hub: LocalHub, built: Path, send: Callable[..., PushReport]) -> None:
    """The third file never gets through; the next push sends the rest only."""
    manifest = read_manifest(built)
    hub.inject(Fault(PUT + manifest.shards[2].sha256, status=403, times=100))
    with pytest.raises(HubError):
        send()
    hub.app.faults.clear()
    before = hub.count("PUT /large/")
    arrived = len(hub.storage.large)
    send()
    assert hub.count("PUT /large/") - before == len(manifest.shards) - arrived < len(manifest.shards)


@pytest.mark.parametrize(
    ("token", "private", "message"),
    [
        ("", False, "you are not logged in"),
        ("hf_expiredexpiredexpired", False, "does not accept this token"),
        (READER, False, "may not write to org/squtr"),
        (STRANGER, False, "may not write to org/squtr"),
        (OWNER, True, "exists and is public"),
    ],
)
def test_refusals(
    hub: LocalHub, send: Callable[..., PushReport], slept: list[float], token: str, private: bool, message: str
) -> None:
    hub.storage.create(REPO)
    with pytest.raises(HubError, match=message) as refused:
        send(token=token, private=private)
    assert refused.value.hint
    assert "\n" not in str(refused.value)
    assert slept == []
    assert published(hub) == set()


def test_refused_in_a_foreign_organization(hub: LocalHub, send: Callable[..., PushReport]) -> None:
    with pytest.raises(HubError, match="may not write to org/squtr"):
        send(token=STRANGER)
    assert hub.storage.repos == {}


def test_a_private_repository_is_not_told_about(hub: LocalHub, send: Callable[..., PushReport]) -> None:
    hub.storage.create(REPO, private=True)
    with pytest.raises(HubError, match="may not write"):
        send(token=STRANGER)


def test_offline(hub: LocalHub, send: Callable[..., PushReport], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set"):
        send()


def test_no_hub(built: Path, hub: LocalHub, send: Callable[..., PushReport], slept: list[float]) -> None:
    with pytest.raises(HubError, match="no answer from the Hub"):
        send(endpoint="http://127.0.0.1:9")
    assert len(slept) == 5


@pytest.mark.parametrize(
    "name",
    ["squtr", "org/a/b", "org/", "/x", "org/a b", "org/a--b", "../x", "org/x.git", "org/" + "x" * 96, "ör/g", "-o/x"],
)
def test_names(hub: LocalHub, send: Callable[..., PushReport], name: str) -> None:
    with pytest.raises(UsageError, match="not the name of a repository"):
        send(repo_id=name)
    assert hub.log == []


@pytest.mark.parametrize(
    "option", [{"tag": "v 1"}, {"tag": ""}, {"revision": "a..b"}, {"revision": "-x"}, {"tag": "x.lock"}]
)
def test_names_that_git_refuses(hub: LocalHub, send: Callable[..., PushReport], option: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="git"):
        send(**option)
    assert hub.log == []


def test_an_incomplete_folder_is_not_pushed(
    hub: LocalHub, built: Path, tmp_path: Path, send: Callable[..., PushReport]
) -> None:
    with pytest.raises(DataError, match=r"manifest\.json is missing"):
        send(tmp_path)
    folder = Path(shutil.copytree(built, tmp_path / "data"))
    shard = folder / read_manifest(folder).shards[0].path
    content = shard.read_bytes()
    for damaged, message in (
        (None, "is missing"),
        (content[:-1], "of its"),
        (content[:-1] + b"x", "not what was built"),
    ):
        shard.unlink()
        if damaged is not None:
            shard.write_bytes(damaged)
        with pytest.raises(IntegrityError, match=message):
            send(folder)
        shard.write_bytes(content)
    manifest = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
    (tmp_path / "secret.parquet").write_bytes(b"secret")
    outside = {"path": "qrels/../../secret.parquet", "bytes": 6, "rows": 1}
    outside["sha256"] = hashlib.sha256(b"secret").hexdigest()
    for change, message in (({"complete": False}, "not finished"), ({"shards": [outside]}, "no shard of this folder")):
        (folder / MANIFEST_NAME).write_text(json.dumps(manifest | change), encoding="utf-8")
        with pytest.raises(IntegrityError, match=message):
            send(folder)
    assert hub.log == []


def test_what_is_not_in_the_manifest_stays_at_home(
    hub: LocalHub, built: Path, tmp_path: Path, send: Callable[..., PushReport]
) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "data"))
    (folder / "diary.txt").write_text("private")
    (folder / "queries/old.parquet").write_bytes(b"PAR1")
    send(folder)
    assert published(hub) == everything(built)


def test_the_token_is_told_to_nobody(
    as_default: LocalHub,
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not even when the server repeats it in its errors."""
    hub = as_default
    monkeypatch.setenv("HF_TOKEN", OWNER)
    monkeypatch.setattr(push_module, "Backoff", lambda: Backoff(sleep=lambda _: None))
    hub.inject(
        Fault(COMMIT, status=500, message=f"failed for Bearer {OWNER}"),
        Fault(COMMIT, status=400, message=f"bad header: authorization: Bearer {OWNER}, {OWNER}"),
    )
    assert main(["push", str(built), REPO]) == 1
    shown = capfd.readouterr()
    assert "bad header" in shown.err
    assert "failed for" in shown.err
    assert OWNER not in shown.out + shown.err + caplog.text
    with pytest.raises(HubError) as refused:
        hub.inject(Fault(COMMIT, status=400, message=f"again {OWNER}"))
        push(built, REPO, token=OWNER, endpoint=hub.endpoint)
    assert refused.value.__cause__ is refused.value.__context__ is None
    assert OWNER not in repr(refused.value)
    assert main(["push", str(built), REPO, "--json"]) == 0
    assert OWNER not in capfd.readouterr().out
    for files in (hub.storage.blobs, hub.storage.large):
        assert all(OWNER.encode() not in content for content in files.values())


def test_the_command(
    as_default: LocalHub, built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["push", str(built), REPO]) == 1
    assert "you are not logged in" in capsys.readouterr().err
    monkeypatch.setenv("HF_TOKEN", OWNER)
    assert main(["push", str(built), "squtr"]) == 2
    assert main(["push", str(built), REPO, "--private", "--tag", "v1"]) == 0
    shown = capsys.readouterr()
    files = len(everything(built))
    assert re.search(rf"Pushed {files} files \(\d+\.\d MB\); 0 were there already\.", shown.out)
    assert "tag v1" in shown.out
    assert main(["push", str(built), REPO]) == 0
    assert f"Nothing to push: all {files} files" in capsys.readouterr().out
    hub = as_default
    hub.storage.write(REPO, "queries/zh/old/clean/test-00000-of-00001.parquet", b"PAR1")
    assert main(["push", str(built), REPO]) == 1
    assert "--replace does" in capsys.readouterr().err
    assert main(["push", str(built), REPO, "--replace"]) == 0
    assert ", 1 removed; " in capsys.readouterr().out
    assert main(["push", str(built), REPO, "--create-pr", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["commits"], told["unchanged"]) == (0, files)


ROUND_TRIP = """
import hashlib, json, sys
from datasets import load_dataset
told = {{}}
for streaming in (False, True):
    rows = load_dataset({repo!r}, "zh_medium_noise", split="test", streaming=streaming, revision={revision!r})
    told[f"audio {{streaming}}"] = [[row["id"], hashlib.sha256(row["audio"]["bytes"]).hexdigest()] for row in rows]
    qrels = load_dataset({repo!r}, "tiny-zh-qrels", split="test", streaming=streaming)
    told[f"qrels {{streaming}}"] = [[row["query-id"], row["corpus-id"], row["score"]] for row in qrels]
corpus = load_dataset({repo!r}, "tiny-zh-corpus", split="test")
told["corpus"] = corpus.to_list()
print(json.dumps(told))
"""


def test_round_trip(
    hub: LocalHub, built: Path, send: Callable[..., PushReport], apart: Callable[..., str], api: HfApi, tmp_path: Path
) -> None:
    """Built, pushed (private), and loaded by `datasets` in another process: the same audio, judgments and corpus."""
    send(private=True, tag="v1")
    told = json.loads(apart(ROUND_TRIP.format(repo=REPO, revision="v1")).splitlines()[-1])
    data = BuiltData(built)
    audio = [[q.id, hashlib.sha256(q.audio).hexdigest()] for q in data.spoken("tiny-zh", "medium_noise")]
    assert told["audio False"] == told["audio True"] == audio
    judged = [[q, d, score] for q, grades in data.qrels("tiny-zh").items() for d, score in grades.items()]
    assert told["qrels False"] == told["qrels True"] == judged
    assert told["corpus"] == [{"id": d.id, "title": d.title, "text": d.text} for d in data.documents("tiny-zh")]
    # The whole repository, downloaded, is a built folder again.
    local = Path(api.snapshot_download(REPO, repo_type="dataset", local_dir=tmp_path / "copy"))
    assert main(["doctor", str(local)]) == 0
