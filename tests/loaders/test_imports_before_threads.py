"""Packages that threads need are imported before there are threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from squtr.loaders.in_order import import_before_threads

WATCH = """
import sys, threading
import importlib.abc

class Watch(importlib.abc.MetaPathFinder):
    found = []
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread() and name.partition(".")[0] in ("scipy", "openai"):
            self.found.append(name)
        return None

sys.meta_path.insert(0, Watch())
"""
WORK = {
    "a front end": """
import numpy as np
from squtr.harness.components.front_ends.common import enhance_each
clips = [np.random.default_rng(i).standard_normal(16000).astype("float32") * 0.1 for i in range(4)]
def work(clip):
    from scipy import signal
    return signal.lfilter([1.0], [1.0], clip)
enhance_each(clips, work, name="e", threads=3)
""",
    "a server": """
from squtr.harness.components.model_server import ModelServer
server = ModelServer("http://localhost:1/v1", attempts=1)
def ask(i):
    try:
        server.post("x", {})
    except Exception:
        pass
server.each(range(4), ask)
""",
}


def test_what_is_missing_is_left_to_who_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_before_threads("squtr_no_such_package.part")
    (tmp_path / "squtr_broken.py").write_text("import squtr_no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="squtr_no_such_package"):
        import_before_threads("squtr_broken")


@pytest.mark.parametrize("name", WORK)
def test_threads_find_no_package_to_import(name: str) -> None:
    code = WATCH + WORK[name] + "\nprint(sorted(Watch.found))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
