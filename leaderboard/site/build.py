"""Building the site: entries in, a folder of static files out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ... import __version__
from ...errors import UsageError
from ...harness.results.files import write_atomically
from ..entry import Entry
from .document import Origin, document
from .order import KeptRecords, Ranker, RecordRanker, Records
from .page import DEFAULT_TITLE, page
from .pairs import FIRST, paired_tests
from .rows import as_csv, as_parquet, board_table
from .steadiness import steadiness
from .tables import groups, plain, tables

PAGE = "index.html"
CARD = "README.md"
FILES = (PAGE, "leaderboard.parquet", "leaderboard.csv", CARD)
"""What a site consists of."""


@dataclass(frozen=True, slots=True)
class Site:
    """What was built: where, of how many entries and tables, with how many paired tests, and the page's size."""

    folder: Path
    entries: int
    tables: int
    tests: int
    page_bytes: int


def build_site(
    entries: Sequence[Entry],
    out: Path,
    *,
    records: Records | None = None,
    ranker: Ranker | None = None,
    first: int = FIRST,
    origin: Origin | None = None,
    title: str = DEFAULT_TITLE,
    progress: Callable[[int, int], None] | None = None,
) -> Site:
    """Write the site of `entries` into the folder `out`, and say what it is.

    `records` gives the per-query table of an entry's config: ranks and the paired tests of the `first` systems of each
    place need it, without it there are positions only. `ranker` may decide the ranks in its place. The same entries,
    records and versions give the same bytes. Other files in `out` are left alone.

    Raises `UsageError` if `out` is a file or `first` below 0, `StorageError` if the disk refuses.
    """
    if first < 0:
        raise UsageError(f"the number of systems to compare is {first}.", hint="Give 0 or more.")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file.", hint="Give the folder to write the site into.")
    place = origin or Origin()
    found = groups(entries)
    made = tables(found)
    records = KeptRecords(records) if records else None
    ranks = ranker or RecordRanker(records)
    tests = paired_tests(made, records, first=first, ranker=ranks, progress=progress) if records and first else {}
    steady = steadiness(found, made, records)
    board = document(
        found, made, ranker=ranks, pairs=tests, steady=steady, first=first, origin=place, squtr_version=__version__
    )
    content = page(board, title).encode("utf-8")
    rows = board_table(found, made, ranks)
    write_atomically(out / "leaderboard.parquet", as_parquet(rows))
    write_atomically(out / "leaderboard.csv", as_csv(rows))
    write_atomically(out / CARD, card(title, place).encode("utf-8"))
    # Last: a folder with a page is complete.
    write_atomically(out / PAGE, content)
    return Site(out, len(entries), len(made), sum(len(own) for own in tests.values()), len(content))


def card(title: str = DEFAULT_TITLE, origin: Origin | None = None) -> str:
    """The README of the site: as the card of a Space it says what the Hub has to serve."""
    front: dict[str, object] = {
        "title": plain(title, 80),
        "emoji": "🎙️",
        "colorFrom": "blue",
        "colorTo": "green",
        "sdk": "static",
        "pinned": False,
        "license": "apache-2.0",
        "short_description": "Retrieval from spoken queries, in noise and in rooms",
        "tags": ["leaderboard", "speech", "retrieval", "squtr"],
    }
    source = ""
    if origin and origin.name and origin.address:
        front["datasets"] = [origin.name]
        source = f" from the results in [{origin.name}]({origin.address})"
    matter = yaml.safe_dump(front, allow_unicode=True, sort_keys=False)
    return (
        f"---\n{matter}---\n\n# {plain(title, 80)}\n\nBuilt by `squtr leaderboard build`{source}. "
        "`index.html` needs no server and loads nothing from elsewhere.\n\n"
        "The same numbers as a table, one row per system, place and metric:\n\n"
        "```python\nfrom datasets import load_dataset\n\n"
        'board = load_dataset("parquet", data_files="leaderboard.parquet", split="train")\n```\n'
    )
