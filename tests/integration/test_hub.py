"""The local Hub behaves towards the real client as the tests of pushing assume."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from .conftest import READER, STRANGER
from .hub import LocalHub

REPO = "org/data"
PARQUET = b"PAR1" + bytes(range(256)) * 100


def upload(api: HfApi, files: dict[str, bytes], **options: object) -> object:
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    return api.create_commit(REPO, operations, commit_message="add", repo_type="dataset", **options)


@pytest.fixture
def repo(api: HfApi) -> str:
    return api.create_repo(REPO, repo_type="dataset").repo_id


def test_commit_list_and_download(hub: LocalHub, api: HfApi, repo: str, tmp_path: Path) -> None:
    files = {f"deep/folder/{n:02d}.txt": b"%d" % n for n in range(25)} | {"a.parquet": PARQUET}
    upload(api, files)
    assert set(api.list_repo_files(repo, repo_type="dataset")) == set(files) | {".gitattributes"}
    there = {entry.path: entry for entry in api.list_repo_tree(repo, repo_type="dataset", recursive=True)}
    assert there["a.parquet"].lfs.size == len(PARQUET)
    assert "deep/folder" in there
    assert hub.count("GET /api/datasets/org/data/tree/main") == 2 * 3
    for path, content in (("a.parquet", PARQUET), ("deep/folder/07.txt", b"7")):
        local = api.hf_hub_download(repo, path, repo_type="dataset", cache_dir=tmp_path)
        assert Path(local).read_bytes() == content
    (info,) = api.get_paths_info(repo, ["a.parquet", "no"], repo_type="dataset")
    assert info.size == len(PARQUET)
    with pytest.raises(EntryNotFoundError):
        api.hf_hub_download(repo, "nothing.txt", repo_type="dataset", cache_dir=tmp_path)
    with pytest.raises(RevisionNotFoundError):
        api.repo_info(repo, repo_type="dataset", revision="v9")


def test_a_stale_parent_is_refused(api: HfApi, hub: LocalHub, repo: str) -> None:
    head = api.repo_info(repo, repo_type="dataset").sha
    hub.storage.write(repo, "other.txt", b"someone else")
    with pytest.raises(HfHubHTTPError) as refused:
        upload(api, {"mine.txt": b"1"}, parent_commit=head)
    assert refused.value.response.status_code == 412


def test_tags_branches_and_requests(api: HfApi, hub: LocalHub, repo: str) -> None:
    upload(api, {"one.txt": b"1"})
    api.create_tag(repo, tag="v1", repo_type="dataset")
    api.create_branch(repo, branch="dev", repo_type="dataset")
    opened = upload(HfApi(endpoint=hub.endpoint, token=STRANGER), {"two.txt": b"2"}, create_pr=True)
    refs = api.list_repo_refs(repo, repo_type="dataset", include_pull_requests=True)
    assert [ref.name for ref in refs.tags] == ["v1"]
    assert {ref.name for ref in refs.branches} == {"main", "dev"}
    assert [ref.ref for ref in refs.pull_requests] == ["refs/pr/1"] == [opened.pr_revision]
    assert "two.txt" not in api.list_repo_files(repo, repo_type="dataset")
    assert "two.txt" in api.list_repo_files(repo, repo_type="dataset", revision="refs/pr/1")
    hub.storage.merge(repo, 1)
    assert "two.txt" in api.list_repo_files(repo, repo_type="dataset")
    with pytest.raises(HfHubHTTPError):
        api.create_tag(repo, tag="v1", repo_type="dataset")


def test_who_may_what(api: HfApi, hub: LocalHub) -> None:
    api.create_repo(REPO, repo_type="dataset", private=True)
    stranger = HfApi(endpoint=hub.endpoint, token=STRANGER)
    with pytest.raises(RepositoryNotFoundError):
        stranger.repo_info(REPO, repo_type="dataset")
    with pytest.raises(HfHubHTTPError, match="403"):
        upload(HfApi(endpoint=hub.endpoint, token=READER), {"a.txt": b""})
    with pytest.raises(HfHubHTTPError, match="401"):
        HfApi(endpoint=hub.endpoint, token="hf_invalidinvalid").repo_info(REPO, repo_type="dataset")
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_repo(REPO, repo_type="dataset")
    with pytest.raises(HfHubHTTPError, match="403"):
        stranger.create_repo("org/mine", repo_type="dataset")
    assert api.whoami()["name"] == "owner"


def test_what_the_hub_does_not_take(api: HfApi, repo: str) -> None:
    with pytest.raises(ValueError, match="metadata"):
        upload(api, {"README.md": b"---\nlicense: mine\n---\n"})
    with pytest.raises(HfHubHTTPError, match=r"eval\.yaml"):
        upload(api, {"eval.yaml": b"tasks: []\n"})
