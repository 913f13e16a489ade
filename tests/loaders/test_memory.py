"""What is held at once does not grow with the number of queries. `scripts/speed/memory.py` measures it in megabytes."""

from __future__ import annotations

import threading
import weakref
from itertools import count
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from squtr.loaders import blocks as blocks_module
from squtr.loaders.blocks import render_rows
from squtr.loaders.build import build
from squtr.loaders.conditions import parse_condition
from squtr.loaders.in_order import in_order
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import CleanSpeech, Document, Qrel, Query, SpokenQuery
from squtr.loaders.rows import QUERY_COLUMNS, ROWS_PER_TABLE

CONDITIONS = ["clean", "high_noise"]
WORKERS = 2
AHEAD = 4 * WORKERS


class Alive:
    """Counts objects that are alive."""

    def __init__(self) -> None:
        self.now = self.most = self.ever = 0
        self._lock = threading.Lock()

    def born(self, thing: object) -> None:
        with self._lock:
            self.now += 1
            self.ever += 1
            self.most = max(self.most, self.now)
        weakref.finalize(thing, self._died)

    def _died(self) -> None:
        with self._lock:
            self.now -= 1


class Talk:
    """So many queries of a tenth of a second; knows which recordings are alive."""

    name, version, license = "talk", "1", "CC0-1.0"
    subsets: ClassVar[dict[str, str]] = {"talk": "en"}

    def __init__(self, size: int) -> None:
        self.size = size
        self.recordings = Alive()

    def queries(self, _: str) -> list[Query]:
        return [Query(f"q{i}", "talk", "en", f"question {i}") for i in range(self.size)]

    def documents(self, _: str) -> list[Document]:
        return [Document("d", "", "answer")]

    def qrels(self, _: str) -> list[Qrel]:
        return [Qrel("q0", "d", 1)]

    def speech(self, query: Query) -> CleanSpeech:
        samples = np.random.default_rng(int(query.id[1:])).normal(size=2400).astype(np.float32) * np.float32(0.1)
        self.recordings.born(samples)
        return CleanSpeech(samples)


class Row(SpokenQuery):
    """A row that can be watched: rows have slots."""

    __slots__ = ("__weakref__",)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Alive:
    alive, render_all = Alive(), blocks_module.render_all

    def render_watched(*arguments: object) -> list[list[SpokenQuery]]:
        made: list[list[SpokenQuery]] = []
        for (row,) in render_all(*arguments):  # type: ignore[arg-type]
            made.append([Row(**{name: getattr(row, name) for name in QUERY_COLUMNS})])
            alive.born(made[-1][0])
        return made

    monkeypatch.setattr(blocks_module, "render_all", render_watched)
    return alive


@pytest.mark.parametrize("size", [100, 400])
def test_a_build_holds_a_block_and_what_runs_ahead(size: int, tmp_path: Path, watched: Alive) -> None:
    source = Talk(size)
    arrow: list[int] = []
    before = pa.total_allocated_bytes()
    build(
        open_recipe(source, conditions=CONDITIONS),
        tmp_path / "data",
        workers=WORKERS,
        progress=lambda _: arrow.append(pa.total_allocated_bytes() - before),
    )
    assert source.recordings.ever == size
    assert watched.ever == size * len(CONDITIONS)
    # A block being collected, the one being written, and what is made meanwhile.
    assert watched.most <= (2 * ROWS_PER_TABLE + AHEAD + WORKERS) * len(CONDITIONS)
    assert source.recordings.most <= AHEAD + WORKERS
    clip = (tmp_path / "data/queries/en/talk/clean/test-00000-of-00001.parquet").stat().st_size / size
    assert max(arrow) < 3 * ROWS_PER_TABLE * len(CONDITIONS) * clip


def test_the_first_row_waits_for_few_others(watched: Alive) -> None:
    opened = open_recipe(Talk(400), conditions=["high_noise"])
    rows = render_rows(opened, parse_condition("high_noise"), opened.rows("talk", "high_noise"), workers=WORKERS)
    assert next(rows).id == "q0"
    rows.close()
    assert watched.ever <= AHEAD + WORKERS


@pytest.mark.parametrize("workers", [1, 3])
def test_work_without_end_is_taken_as_it_is_needed(workers: int) -> None:
    taken = count()
    made = in_order(lambda n: n * n, taken, workers=workers)
    assert [next(made) for _ in range(20)] == [n * n for n in range(20)]
    made.close()
    assert next(taken) <= 20 + 4 * workers
