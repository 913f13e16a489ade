"""The wheel and the sdist: what is in them, and that the wheel works where only it is installed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import squtr

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("loaders", "harness", "leaderboard", "dataset_cards")
LIMIT_MB = 25

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Output of a command that does not see this interpreter's settings."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(kind: str, source: Path, target: Path) -> Path:
    """Builds as pip does, but in this environment instead of a fresh one."""
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target, cwd=source)
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def package_files() -> set[str]:
    """Every file of the rooms, and of the package itself, as it should be installed."""
    own = {f"squtr/{path.name}" for path in (ROOT / "src" / "squtr").iterdir() if path.is_file()}
    return own | {
        f"squtr/{path.relative_to(ROOT).as_posix()}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_rooms_inside_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(contents(wheel))
    metadata = f"squtr-{squtr.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"squtr", metadata}
    assert {name for name in names if name.startswith("squtr/")} == package_files()
    assert f"{metadata}/licenses/LICENSE" in names


def test_the_wheel_holds_the_embedded_data(wheel: Path) -> None:
    names = set(contents(wheel))
    for language in ("en", "zh", "es"):
        assert f"squtr/loaders/data/mini/queries.{language}.jsonl" in names
    assert wheel.stat().st_size < LIMIT_MB * 1e6


def test_the_wheel_holds_no_links(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert not [info.filename for info in archive.infolist() if stat.S_ISLNK(info.external_attr >> 16)]


def test_the_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        assert not [member.name for member in archive.getmembers() if not member.isfile()]
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    for name in ("Makefile", "constraints.txt", "tests/test_packaging.py", "scripts/check"):
        assert (source / name).is_file()
    assert contents(build("wheel", source, tmp_path / "wheel")) == contents(wheel)


def test_the_wheel_works_alone(wheel: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    run(sys.executable, "-m", "venv", "--without-pip", clean, cwd=tmp_path)
    python = clean / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python),
        *("install", "--quiet", "--no-deps", "--no-index", wheel),
        cwd=tmp_path,
    )
    # The dependencies are lent by this environment. They come after the wheel's own folder on the path, and lines of
    # .pth files in a folder that was added this way are not read, so this checkout stays out of sight.
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    (packages / "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")

    assert "demo" in run(clean / "bin" / "squtr", "--help", cwd=tmp_path)
    assert "demo" in run(python, "-m", "squtr", "--help", cwd=tmp_path)
    code = "import doctest, squtr, squtr.loaders.conditions as m; print(squtr.__file__, *doctest.testmod(m))"
    where, failed, attempted = run(python, "-c", code, cwd=tmp_path).split()
    assert Path(where).is_relative_to(clean)
    assert (int(failed), int(attempted) > 0) == (0, True)
    top_level = f"import importlib.util as u; print([n for n in {ROOMS!r} if u.find_spec(n)])"
    assert run(python, "-c", top_level, cwd=tmp_path).strip() == "[]"
