"""Words: who may name a benchmark, and the words that are not used here, with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("loaders", "harness", "leaderboard", "src", "dataset_cards", "scripts")
pytestmark = pytest.mark.skipif(not (ROOT / "harness").is_dir(), reason="only in a checkout")

BENCHMARKS = r"rir[_-]mega|RIR-Mega|\bescucha|_escucha|ESCUCHA|BENCHMARKS\[\"|benchmark(?:=| == | in .)\""
"""`squtr` is the package's name too: it is looked for where a benchmark is chosen or compared."""

MAY_NAME_BENCHMARKS = {
    "harness/tasks/": "tasks",
    "harness/benchmarks.py": "the table of benchmarks",
    "loaders/sources/": "sources",
    "leaderboard/published/": "published results",
    "dataset_cards/": "citations",
    "harness/mteb/catalog.py": "the tasks as mteb lists them, published under the benchmark's name",
    # The same names for something else.
    "loaders/rirs/rir_mega.py": "RIR-Mega is also a bank of impulse responses",
    "loaders/banks/": "RIR-Mega is also a bank of impulse responses; what the publication took from DEMAND",
    "loaders/rirs/plan.py": "a key of random draws: another one gives other data",
    "scripts/make_questions_mini.py": "a key of random draws: another one gives other data",
    "harness/components/transcribers/presets.py": "published decode settings, by the publication's name",
    "harness/text/": "`squtr-compat` is the published scoring",
}


def files(*suffixes: str, rooms: tuple[str, ...] = ROOMS) -> Iterator[tuple[str, str]]:
    """(path, text) of the files of the rooms with these suffixes."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*")):
            # `src/squtr` links to the rooms.
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in suffixes and not re.match(
                r"src/squtr/(?:loaders|harness|leaderboard|dataset_cards)/", name
            ):
                yield name, path.read_text(encoding="utf-8")


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not examples of commands, which users type as they are."""
    for number, line in enumerate(text.splitlines(), 1):
        if not re.match(r"\s+squtr [a-z]+ ", line):
            yield number, line


def test_benchmarks_are_named_in_few_places() -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in files(".py", ".html", ".js")
        if not name.startswith(tuple(MAY_NAME_BENCHMARKS))
        for number, line in code_lines(text)
        if re.search(BENCHMARKS, line)
    ]
    assert found == []
