"""Data by name: the parts of a data set on the Hub that are needed, folders, the embedded collection."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import HfApi, constants

from squtr.errors import DataError, HubError, UnknownNameError, UsageError
from squtr.harness.data import HubData, needed_parts, open_data
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData, LiveData
from squtr.loaders.hub.push import push
from squtr.loaders.recipe import open_recipe
from squtr.loaders.retries import Backoff

from .conftest import OWNER, STRANGER
from .hub import Fault, LocalHub

REPO = "org/tiny"
TABLES = [f"{table}/{subset}" for table in ("corpus", "qrels") for subset in ("tiny-en", "tiny-zh")]
CONDITIONS = ["clean", "medium_noise", "reverb"]


@pytest.fixture(scope="module")
def built(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("both") / "data"
    build(open_recipe(str(collection), conditions=CONDITIONS), out)
    return out


@pytest.fixture
def published(hub: LocalHub, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalHub:
    """The Hub with the data set, an empty cache, and a working directory without a folder of that name."""
    push(built, REPO, token=OWNER, endpoint=hub.endpoint)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    hub.log.clear()
    return hub


@pytest.fixture
def opened(published: LocalHub) -> Callable[..., HubData]:
    def run(name: str = REPO, token: str = OWNER, **options: object) -> HubData:
        api = HfApi(endpoint=published.endpoint, token=token)
        backoff = Backoff(attempts=3, sleep=lambda _: None)
        data = open_data(name, **{"api": api, "backoff": backoff} | options)
        assert isinstance(data, HubData)
        return data

    return run


def shards(data: BuiltData) -> set[str]:
    return {path.relative_to(data.folder).as_posix() for path in data.folder.rglob("*.parquet")}


def test_all_of_it_is_what_was_built(opened: Callable[..., HubData], built: Path, published: LocalHub) -> None:
    data, local = opened(), BuiltData(built)
    assert (data.revision, data.manifest_sha256) == (local.revision, local.manifest_sha256)
    assert (data.subsets, data.conditions) == (local.subsets, local.conditions)
    assert data.origin == f"{REPO}@{published.storage.repos[REPO].resolve('main').oid}"
    for subset in local.subsets:
        assert list(data.queries(subset)) == list(local.queries(subset))
        assert list(data.documents(subset)) == list(local.documents(subset))
        assert data.qrels(subset) == local.qrels(subset)
        for condition in CONDITIONS:
            there, here = list(data.spoken(subset, condition)), list(local.spoken(subset, condition))
            assert [(q.id, q.audio) for q in there] == [(q.id, q.audio) for q in here]


def test_only_what_is_asked_for_is_downloaded(opened: Callable[..., HubData], built: Path) -> None:
    data = opened(configs=["en_reverb", "zh_text"])
    assert shards(data) == {
        *(f"queries/en/tiny-en/reverb/{name}" for name in names(built, "queries/en/tiny-en/reverb")),
        *(f"queries/zh/tiny-zh/clean/{name}" for name in names(built, "queries/zh/tiny-zh/clean")),
        *(f"{f}/{name}" for f in TABLES for name in names(built, f)),
    }
    assert (data.folder / "README.md").is_file()
    assert data.subsets == {"tiny-en": "en", "tiny-zh": "zh"}
    assert data.conditions == ["clean", "reverb"]
    local = BuiltData(built)
    for subset in data.subsets:
        assert list(data.queries(subset)) == list(local.queries(subset))
        assert data.qrels(subset) == local.qrels(subset)
    assert len(list(data.spoken("tiny-en", "reverb"))) == 5
    with pytest.raises(DataError, match=r"tiny-en under clean of org/tiny@.* was not downloaded"):
        list(data.spoken("tiny-en", "clean"))


def test_one_language_needs_nothing_of_the_other(opened: Callable[..., HubData]) -> None:
    data = opened(configs=["zh_*"])
    assert not [path for path in shards(data) if "tiny-en" in path]
    assert data.subsets == {"tiny-zh": "zh"}
    with pytest.raises(DataError, match=r"tiny-en of org/tiny@.* was not downloaded"):
        data.queries("tiny-en")
    more = opened(configs=["en_clean"])
    assert more.subsets == {"tiny-en": "en"}
    assert len(list(more.spoken("tiny-en", "clean"))) == 5


def names(built: Path, folder: str) -> list[str]:
    return [path.name for path in (built / folder).iterdir()]


def test_nothing_is_downloaded_twice(opened: Callable[..., HubData], published: LocalHub) -> None:
    opened(configs=["en_clean"])
    published.log.clear()
    opened(configs=["en_clean"])
    assert not [line for line in published.log if ".parquet" in line]


def test_without_network_the_cache_serves(
    opened: Callable[..., HubData], published: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(configs=["en_clean"])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    again = opened(configs=["en_clean"])
    assert again.folder == first.folder
    assert len(list(again.spoken("tiny-en", "clean"))) == 5
    with pytest.raises(HubError, match=r"downloading org/tiny@[0-9a-f]{8} failed: HF_HUB_OFFLINE is set"):
        opened(configs=["en_reverb"])
    broken = next(path for path in first.folder.rglob("*.parquet") if "clean" in path.parts)
    content = broken.read_bytes()
    broken.unlink()
    broken.write_bytes(content[:-1])
    with pytest.raises(
        HubError, match=rf"{broken.name} of org/tiny@.* has {len(content) - 1} bytes, .* {len(content)}"
    ):
        opened(configs=["en_clean"])
    with pytest.raises(HubError, match=r"no folder org/other here.*HF_HUB_OFFLINE"):
        opened("org/other")


def test_a_revision(opened: Callable[..., HubData], published: LocalHub, api: HfApi) -> None:
    api.create_tag(REPO, tag="v1", repo_type="dataset")
    commit = published.storage.repos[REPO].resolve("main").oid
    published.storage.write(REPO, "other.txt", b"later")
    assert opened(f"{REPO}@v1", configs=["en_clean"]).origin == f"{REPO}@{commit}"
    assert opened(f"{REPO}@{commit}", configs=["en_clean"]).origin == f"{REPO}@{commit}"
    assert opened(REPO, configs=["en_clean"]).origin != f"{REPO}@{commit}"
    with pytest.raises(HubError, match=r"no folder org/tiny here.*org/tiny@v9"):
        opened(f"{REPO}@v9")
    with pytest.raises(UsageError, match="is no revision"):
        opened(f"{REPO}@")


def test_trouble_that_passes(opened: Callable[..., HubData], published: LocalHub) -> None:
    published.inject(Fault(r"^(GET|HEAD) /datasets/org/tiny/resolve/.*manifest", status=503))
    assert len(list(opened(configs=["en_clean"]).spoken("tiny-en", "clean"))) == 5


def test_no_such_repository(opened: Callable[..., HubData], published: LocalHub, api: HfApi) -> None:
    with pytest.raises(HubError) as refused:
        opened("org/absent")
    assert "no folder org/absent here, and on the Hub no data set org/absent" in str(refused.value)
    api.create_repo("org/hidden", repo_type="dataset", private=True)
    with pytest.raises(HubError, match="that you may read"):
        opened("org/hidden", token=STRANGER)
    api.create_repo("org/plain", repo_type="dataset")
    with pytest.raises(DataError, match=r"not one that squtr built: manifest\.json is missing"):
        opened("org/plain")


def test_a_config_that_is_not_there(opened: Callable[..., HubData], published: LocalHub) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'en_clean'"):
        opened(configs=["en_claen"])
    assert not [line for line in published.log if ".parquet" in line]


def test_a_folder_goes_first(published: LocalHub, built: Path) -> None:
    shutil.copytree(built, REPO)
    published.log.clear()
    data = open_data(REPO)
    assert type(data) is BuiltData
    assert not published.log
    Path("mini").mkdir()
    with pytest.raises(DataError, match="was taken for the folder here"):
        open_data("mini")
    shutil.copytree(built, "mini", dirs_exist_ok=True)
    assert type(open_data("mini")) is BuiltData


@pytest.mark.parametrize(
    "name", ["./absent", "/no/such/folder", "absent", "a/b/c", "../x", "~/no-such-folder", "./a/b"]
)
def test_a_path_never_goes_to_the_hub(published: LocalHub, name: str) -> None:
    with pytest.raises(DataError, match=r"does not exist.*ORG/NAME"):
        open_data(name, api=HfApi(endpoint=published.endpoint))
    assert not published.log


def test_a_file_is_no_data(published: LocalHub) -> None:
    Path("org").mkdir()
    Path("org/tiny").write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match="org/tiny is a file"):
        open_data(REPO)


def test_the_embedded_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = open_data("mini")
    assert isinstance(data, LiveData)
    assert "reverb_high_noise" in data.conditions
    wider = open_data("mini", configs=["zh_snr_-5", "en_clean", "es_text", "en_*"])
    assert list(wider.conditions) == [*data.conditions, "snr_-5"]
    # What is asked for among the standard conditions does not change what the results are about.
    assert open_data("mini", configs=["en_clean"]).revision == data.revision
    with pytest.raises(UnknownNameError, match="Did you mean 'clean'"):
        open_data("mini", configs=["en_claen"])


def test_parts() -> None:
    subsets = {"fiqa": "en", "nq": "en", "duretrieval": "zh"}
    assert needed_parts(None, subsets, ["clean"]) == {"fiqa": ["clean"], "nq": ["clean"], "duretrieval": ["clean"]}
    assert needed_parts(["fiqa_*"], subsets, ["clean", "reverb"]) == {"fiqa": ["clean", "reverb"]}
    assert needed_parts(["*_snr_?"], subsets, ["clean", "snr_5"])["duretrieval"] == ["snr_5"]
    with pytest.raises(UnknownNameError):
        needed_parts(["fr_*"], subsets, ["clean"])
