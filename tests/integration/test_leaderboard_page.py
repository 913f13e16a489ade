"""The page on the Hub: published once, rebuilt when results change, and the new rank is on it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import DataError, HubError, UsageError
from squtr.harness.cli import main
from squtr.leaderboard.site.publish import STATE, Options, build_from, publish, state_of, watch
from squtr.leaderboard.submit import prepare, send
from squtr.loaders.hub.repository import Repository
from squtr.loaders.retries import Backoff

from ..leaderboard.runs_for_tests import make_run
from .conftest import OWNER, READER, STRANGER
from .hub import Fault, LocalHub

RESULTS, SPACE = "org/squtr-results", "org/squtr-leaderboard"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    run = make_run(tmp_path_factory.mktemp("leaderboard-page"), names=("words", "other"))
    return {name: run / "results" / f"garbler+{name}" for name in ("words", "other")}


@pytest.fixture
def store(as_default: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A Hub with an empty store of results, whose client caches in a folder of the test."""
    template = as_default.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", OWNER)
    as_default.storage.create(RESULTS)
    as_default.storage.write(RESULTS, "README.md", b"the store")
    yield as_default


def options(hub: LocalHub, **more: Any) -> Options:
    return Options(token=OWNER, endpoint=hub.endpoint, published=False, first=2, **more)


def submit(hub: LocalHub, folder: Path, token: str) -> int:
    """Offer results in a pull request, and return its number."""
    backoff = Backoff(sleep=lambda _: None)
    made, _ = prepare([folder])
    repository = Repository(RESULTS, token=token, endpoint=hub.endpoint, backoff=backoff)
    done = send(made, RESULTS, repository=repository)
    assert done.request
    return int(done.request.revision.rpartition("/")[2])


def board(hub: LocalHub) -> dict[str, Any]:
    """What the published page holds."""
    html = hub.storage.read(SPACE, "index.html").decode()
    match = re.search(r'id="data">(.*?)</script>', html, re.DOTALL)
    assert match
    return dict(json.loads(match[1]))


def commits(hub: LocalHub) -> int:
    return len(hub.storage.repos[SPACE].commits)


def test_from_two_submissions_to_the_rank_on_the_page(store: LocalHub, runs: dict[str, Path]) -> None:
    """Two people submit, both requests are merged, and each time the page is rebuilt once, with the new rank."""
    requests = [submit(store, runs["words"], STRANGER), submit(store, runs["other"], OWNER)]
    said: list[str] = []
    look = options(store, say=said.append)
    assert watch(RESULTS, SPACE, look, once=True) == 1
    assert board(store)["systems"] == []
    for merged, number in enumerate(requests, start=1):
        Repository(RESULTS, token=OWNER, endpoint=store.endpoint).merge(number)
        assert watch(RESULTS, SPACE, look, once=True) == 1
        found = board(store)
        assert len(found["systems"]) == merged
        assert {system["who"] for system in found["systems"]} == {"re-scored"}
        table = next(t for t in found["tables"] if (t["language"], t["condition"], t["subset"], t["metric"]) == (
                     "en", "clean", "", "ndcg_at_10"))  # fmt: skip
        # Both find the same documents: neither can be told apart from the other.
        assert table["rank"] == [1] * merged
        before = commits(store)
        assert watch(RESULTS, SPACE, look, once=True) == 0
        assert commits(store) == before
    assert found["results"]["name"] == RESULTS
    assert any("up to date" in text for text in said)
    assert json.loads(store.storage.read(SPACE, STATE))["state"] == state_of(RESULTS, look)
    card = store.storage.read(SPACE, "README.md").decode()
    assert "sdk: static" in card
    assert f"- {RESULTS}" in card


def test_watching_goes_on_when_the_hub_is_down(store: LocalHub) -> None:
    store.inject(Fault(r"^GET /api/datasets/org/squtr-results", status=404, message="gone", times=1))
    said: list[str] = []
    slept: list[float] = []
    done = watch(RESULTS, SPACE, options(store, say=said.append), every_s=60, sleep=slept.append, rounds=2)
    assert (done, slept) == (1, [60])
    assert "Looking again in 1 min" in said[0]
    store.inject(Fault(r"^GET /api/datasets/org/squtr-results", status=404, message="gone", times=1))
    with pytest.raises(HubError):
        watch(RESULTS, SPACE, options(store), once=True)


def test_pushing_is_one_commit_and_nothing_twice(
    store: LocalHub, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = prepare([runs["words"]])
    send(made, str(tmp_path / "store"))
    site = str(tmp_path / "site")
    assert main(["leaderboard", "build", "--results", str(tmp_path / "store"), "--out", site, "--compare", "0"]) == 0
    assert "systems" in capsys.readouterr().out
    assert main(["leaderboard", "push", SPACE, "--site", site]) == 0
    assert "Nothing was sent" in capsys.readouterr().out
    assert SPACE not in store.storage.repos
    assert main(["leaderboard", "push", SPACE, "--site", site, "--yes"]) == 0
    assert "5 files sent in one commit" in capsys.readouterr().out
    before = commits(store)
    there = set(store.storage.repos[SPACE].resolve("main").files) - {".gitattributes"}
    assert there == {"index.html", "README.md", "leaderboard.csv", "leaderboard.parquet", STATE}
    assert board(store)["systems"][0]["name"] == "garbler + words"
    assert main(["leaderboard", "push", SPACE, "--site", site, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sent"]["changed"] == []
    assert commits(store) == before


def test_who_may_not_write_is_told_so(store: LocalHub, tmp_path: Path) -> None:
    build_from(_empty(tmp_path), tmp_path / "site", options(store))
    with pytest.raises(HubError) as caught:
        publish(tmp_path / "site", SPACE, Options(token=READER, endpoint=store.endpoint))
    assert READER not in str(caught.value)
    with pytest.raises(DataError, match="holds no page"):
        publish(tmp_path, SPACE, options(store))
    with pytest.raises(UsageError, match="not the name of a Space"):
        publish(tmp_path / "site", "./x", options(store))


def test_a_folder_is_watched_too(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, site = tmp_path / "store", tmp_path / "site"
    for name in ("words", "other"):
        made, _ = prepare([runs[name]])
        send(made, str(store))
        places = ["--results", str(store), "--to", f"{site}/"]
        arguments = ["leaderboard", "watch", *places, "--once", "--json", "--compare", "0"]
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out)["rebuilt"] == 1
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out)["rebuilt"] == 0
    # Another title is another page.
    assert main([*arguments, "--title", "Ours"]) == 0
    assert json.loads(capsys.readouterr().out)["rebuilt"] == 1
    assert "<title>Ours</title>" in (site / "index.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in (site / STATE).read_text(encoding="utf-8")


def test_a_bad_file_hides_no_other(runs: dict[str, Path], tmp_path: Path) -> None:
    store = tmp_path / "store"
    made, _ = prepare([runs["words"]])
    send(made, str(store))
    path = next((store / "results").glob("*/*/*.json"))
    bad = path.with_name("20260101T000000Z-0123456789abcdef.json")
    shutil.copy(path, bad)
    built = build_from(str(store), tmp_path / "site", Options(published=False, first=0))
    assert built.site.entries == 1
    assert len(built.problems) == 1
    assert bad.name in built.problems[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["build", "--results", "./nowhere"], "does not exist"),
        (["push", "nonsense"], "not the name of a Space"),
        (["push", "org/x", "--site", "./nowhere"], "holds no page"),
        (["watch", "--results", ".", "--to", "./x", "--every", "0"], "more than 0"),
        (["build", "--results", ".", "--compare", "-1"], "-1"),
        (["sing"], "invalid choice"),
    ],
)
def test_mistakes_are_said_in_a_sentence(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["leaderboard", *arguments])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    assert status in (1, 2)
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def _empty(folder: Path) -> str:
    (folder / "store" / "results").mkdir(parents=True)
    return str(folder / "store")
