"""A running Hub, the client set up for it, and small built data sets."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi, constants
from huggingface_hub.utils import _http

from squtr.loaders.build import build
from squtr.loaders.recipe import open_recipe

from ..loaders.collections_for_tests import make_collection
from .hub import LocalHub, Storage, User, serve

OWNER, READER, STRANGER = "hf_ownerownerowner", "hf_readerreaderreader", "hf_strangerstranger"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A Hub with an owner of `org`, one whose token only reads, and a stranger."""
    users = {OWNER: User("owner", ("org",)), READER: User("owner", ("org",), writes=False), STRANGER: User("stranger")}
    # The tests are offline but for this machine, and the client's own waiting is not what they are about.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(_http, "time", types.SimpleNamespace(sleep=lambda _: None))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with serve(Storage(users)) as running:
        yield running
    _http.close_session()


@pytest.fixture
def as_default(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> LocalHub:
    """The Hub where nobody names another, as with `HF_ENDPOINT`. Good for what goes through `HfApi`."""
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    return hub


@pytest.fixture
def api(hub: LocalHub) -> HfApi:
    return HfApi(endpoint=hub.endpoint, token=OWNER)


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_collection(tmp_path_factory.mktemp("hub") / "tiny")


@pytest.fixture(scope="session")
def built(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("published") / "data"
    build(open_recipe(str(collection), conditions=["clean", "medium_noise"], languages=["zh"]), out)
    return out


@pytest.fixture
def apart(hub: LocalHub, tmp_path: Path) -> Callable[..., str]:
    """Runs Python code in an interpreter of its own that has this Hub as its Hub; returns what it printed."""

    def run(code: str, token: str = OWNER) -> str:
        environment = os.environ | {
            "HF_ENDPOINT": hub.endpoint,
            "HF_HOME": str(tmp_path / "home"),
            "HF_TOKEN": token,
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
