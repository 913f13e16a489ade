"""Several licenses merged to the one that a data set's card may state."""

from __future__ import annotations

import re
from collections.abc import Iterable

OTHER = "other"
"""What the Hub calls a license that it has no identifier for."""

ORDER = (
    "cc0-1.0", "unlicense", "pddl", "mit", "bsd-2-clause", "bsd-3-clause", "apache-2.0", "odc-by",
    "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-3.0", "cc-by-nc-4.0",
    "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0",
)  # fmt: skip
"""The licenses that can be merged, from the freest to the strictest, as the Hub writes them (SPDX in small letters)."""


def merge_licenses(statements: Iterable[str]) -> str:
    """The strictest license in `statements`, as the Hub writes it; `other` where that is not one known license.

    A statement is one or several SPDX identifiers joined by a comma, a semicolon or "and", with remarks in brackets. A
    share-alike license without a ban on commercial use cannot be merged with one that has it: nobody could keep both.

    >>> merge_licenses(["CC0-1.0 (text), Apache-2.0 (speech)", "CC-BY-4.0"])
    'cc-by-4.0'
    >>> merge_licenses(["CC-BY-SA-4.0", "CC-BY-NC-4.0"])
    'other'
    """
    found = {
        name.strip().lower()
        for statement in statements
        for name in re.split(r"[,;]|\band\b", re.sub(r"\([^)]*\)", "", statement), flags=re.IGNORECASE)
    }
    if not found or not found <= set(ORDER):
        return OTHER
    shared_freely = any(name.startswith("cc-by-sa") for name in found)
    not_commercial = any(name.startswith("cc-by-nc") for name in found)
    if shared_freely and not_commercial:
        return OTHER
    return max(found, key=ORDER.index)


def license_lines(statements: Iterable[str], place: str) -> list[str]:
    """The license in the metadata of a card, whose `place` says more where it is none that the Hub knows."""
    merged = merge_licenses(statements)
    return [f"license: {merged}"] if merged != OTHER else [f"license: {OTHER}", f"license_name: {place}"]
