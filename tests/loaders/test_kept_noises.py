"""What code makes, noises and rooms, is made once on a machine, and is the same kept or not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.loaders.banks import decoded
from squtr.loaders.banks.decoded import kept_by_code, memory_cost
from squtr.loaders.noise.synthetic import SyntheticNoises
from squtr.loaders.rirs.simulated import SimulatedRirs

NOISE, ROOM = "synthetic_pink_v02", "simulated_room_02"
BANKS: list[tuple[type[Any], str]] = [(SyntheticNoises, NOISE), (SimulatedRirs, ROOM)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def kept(home: Path) -> list[Path]:
    return sorted((home / "decoded").iterdir())


def never(*_: object) -> Any:
    raise AssertionError("made again")


@pytest.mark.parametrize(("bank", "id_"), BANKS)
def test_it_is_made_once(bank: type[Any], id_: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bank().read(id_)
    assert len(kept(home)) == 1
    monkeypatch.setattr(bank, "_make", never)
    again = bank().read(id_)
    assert np.array_equal(first, again)
    assert not first.flags.writeable
    assert not again.flags.writeable
    assert memory_cost(again) < 10_000
    monkeypatch.undo()
    monkeypatch.setattr(decoded, "LARGEST_BYTES", 0)
    monkeypatch.setenv("SQUTR_HOME", str(home.parent / "elsewhere"))
    assert np.array_equal(bank().read(id_), again)


@pytest.mark.parametrize("place", [200, -40, -1])
def test_a_kept_one_that_changed_is_made_again(place: int, home: Path) -> None:
    made = SimulatedRirs().read(ROOM).copy()
    (path,) = kept(home)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.unlink()
    path.write_bytes(content)
    assert np.array_equal(SimulatedRirs().read(ROOM), made)
    assert path.read_bytes() != content
    for broken in (b"", bytes(content[:100]), path.read_bytes()[:-32]):
        path.unlink()
        path.write_bytes(broken)
        assert np.array_equal(SimulatedRirs().read(ROOM), made)


@pytest.mark.parametrize(("bank", "id_"), BANKS)
def test_a_home_that_cannot_be_written_only_costs_time(
    bank: type[Any], id_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bank().read(id_)
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "file" / "home"))
    assert np.array_equal(bank().read(id_), made)


def test_other_code_and_other_packages_are_other_samples(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code.py"

    def make(value: float) -> Callable[[], Any]:
        return lambda: np.full(10, value, dtype=np.float32)

    code.write_text("one")
    assert kept_by_code("a", (code,), ("numpy",), make(1.0))[0] == 1.0
    assert kept_by_code("a", (code,), ("numpy",), make(2.0))[0] == 1.0
    assert kept_by_code("b", (code,), ("numpy",), make(3.0))[0] == 3.0
    monkeypatch.setattr(decoded, "version", lambda package: "another")
    assert kept_by_code("a", (code,), ("numpy",), make(4.0))[0] == 4.0
    monkeypatch.undo()
    decoded._code_digest.cache_clear()
    code.write_text("two")
    monkeypatch.setenv("SQUTR_HOME", str(home))
    assert kept_by_code("a", (code,), ("numpy",), make(5.0))[0] == 5.0
    assert kept_by_code("a", (tmp_path / "none.py",), ("numpy",), make(6.0))[0] == 6.0


def test_processes_may_make_it_at_the_same_time(home: Path) -> None:
    code = (
        "import hashlib; from squtr.loaders.banks import load_noise_bank as load; "
        f"print(hashlib.sha256(load('synthetic').read({NOISE!r}).tobytes()).hexdigest())"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate()[0] for process in started}
    assert len(said) == 1
    assert len(kept(home)) == 1
