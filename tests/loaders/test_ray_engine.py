"""Building through Ray Data on a local cluster with two workers: the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from squtr.loaders.build import build
from squtr.loaders.manifest import read_manifest
from squtr.loaders.recipe import open_recipe

from .collections_for_tests import make_collection

pytest.importorskip("ray")

CODE = """
import sys
from pathlib import Path
from squtr.errors import AudioError
from squtr.loaders.build import build
from squtr.loaders.ray_engine import RayEngine
from squtr.loaders.recipe import open_recipe

root, broken, out = sys.argv[1:]
engine = RayEngine(num_cpus=2)
build(open_recipe(root, conditions=["clean", "reverb_snr_5"]), Path(out), engine=engine)
try:
    build(open_recipe(broken, conditions=["clean"]), Path(out + "-broken"), engine=engine)
except AudioError as error:
    print(error.message)
"""


@pytest.mark.slow
def test_two_workers_give_the_same_bytes(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny", queries=70, documents=70)
    broken = make_collection(tmp_path / "broken", queries=3)
    (broken / "speech/en/q1.flac").write_bytes(b"not a sound")
    # In a process of its own: Ray's threads and signal handlers would stay with the other tests.
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(root), str(broken), str(tmp_path / "ray")],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "of query 'q1' cannot be read" in done.stdout
    build(open_recipe(str(root), conditions=["clean", "reverb_snr_5"]), tmp_path / "threads")
    assert read_manifest(tmp_path / "ray") == read_manifest(tmp_path / "threads")
