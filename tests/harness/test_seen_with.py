"""The table of what backends were seen with claims no more than a test shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from squtr.harness.components.seen_with import NEVER, SEEN_WITH, SeenWith, seen_with_table
from squtr.harness.systems.short_form import TABLES

ROOT = Path(__file__).resolve().parents[2]


def test_every_backend_has_a_row_and_every_row_a_backend() -> None:
    assert {(row.role, row.backend) for row in SEEN_WITH} == {
        (role, backend) for role, table in TABLES.items() for backend in table
    }


@pytest.mark.parametrize("row", SEEN_WITH, ids=lambda row: f"{row.backend}-{row.what}")
def test_every_row_names_a_test_that_exists(row: SeenWith) -> None:
    if not row.test:
        assert row.seen == NEVER, "what was seen with something names the test that shows it"
        return
    file, _, function = row.test.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert not function or re.search(rf"^def {function}\(", text, re.MULTILINE), f"{file} has no {function}"
    assert row.with_ and row.what


def test_rows_are_unique_and_in_the_table() -> None:
    keys = [(row.role, row.backend, row.what) for row in SEEN_WITH]
    assert len(keys) == len(set(keys))
    assert len(seen_with_table()) == len(SEEN_WITH) + 2
