"""Write the tables of backends and options into docs/systems.md; a test fails while they are not up to date."""

from __future__ import annotations

from pathlib import Path

from squtr.harness.systems.option_table import with_tables

PAGE = Path(__file__).resolve().parent.parent / "docs" / "systems.md"

if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
