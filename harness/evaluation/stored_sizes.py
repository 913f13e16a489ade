"""How many bytes an evaluation keeps, by formula; the constants were measured (SQLite 3, zlib, Parquet)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .workload import CellLoad

_PAGES = 1.35
"""Bytes of a file of SQLite per byte of its rows."""
_CLIP, _TRANSCRIPT, _RANKING, _REPLY = 90, 125, 330, 180
_HIT = 14.0
"""Of a ranking: a score in float64 and an id, compressed together."""
_KEY = 32
_RUN, _ITEM, _RANKED = 35_000, 200, 14.0
_KEPT = 10
"""The documents of a ranking that the records keep."""


@dataclass(frozen=True, slots=True)
class Stored:
    what: str
    component: str
    items: int
    bytes: int


def stored_transcripts(component: str, cells: Iterable[CellLoad]) -> Stored:
    cells = list(cells)
    items = sum(c.items for c in cells)
    held = sum(c.items * (_CLIP + _TRANSCRIPT + c.text_bytes) for c in cells)
    return Stored("transcripts", component, items, round(held * _PAGES))


def stored_rankings(component: str, cells: Iterable[CellLoad], depth: int) -> Stored:
    """At most: a text that was searched with before is not searched with again."""
    items = sum(c.items for c in cells)
    return Stored("rankings", component, items, round(items * (_RANKING + depth * _HIT) * _PAGES))


def stored_vectors(component: str, documents: int, queries: int, dimension: int, width: int) -> Stored:
    """Of a corpus in its storage type, of queries in float32 with their keys."""
    held = documents * dimension * width + queries * (4 * dimension + _KEY)
    return Stored("vectors", component, documents + queries, held if dimension else 0)


def stored_replies(component: str, items: int) -> Stored:
    return Stored("replies", component, items, round(items * _REPLY * _PAGES))


def stored_records(items: int, runs: int, *, ranked: bool) -> Stored:
    return Stored("results", "", items, round(runs * _RUN + items * (_ITEM + (_KEPT * _RANKED if ranked else 0))))
