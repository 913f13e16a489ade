"""Keyed randomness: what is drawn for an item depends on the item's key alone, never on order.

Every draw is seeded by `sha256(benchmark version, seed, purpose, subset, query id)`, so that an item built alone, in
any order, in any number of workers, streaming or not, has the same bytes.
"""

from __future__ import annotations

import hashlib

import numpy as np

RECIPE_VERSION = "1"
"""Version of the recipe: raised whenever the same recipe would give other bytes."""


def keyed_seed(seed: int, purpose: str, *parts: str) -> int:
    """A 128-bit seed for one purpose and one item.

    `purpose` says what is drawn ("noise", "room", "voice", …); `parts` are normally the subset and the query id. The
    parts are length-prefixed, so that ("ab", "c") and ("a", "bc") differ.

    >>> keyed_seed(0, "noise", "fiqa", "4641") == keyed_seed(0, "noise", "fiqa", "4641")
    True
    >>> keyed_seed(0, "noise", "fi", "qa4641") == keyed_seed(0, "noise", "fiqa", "4641")
    False
    """
    digest = hashlib.sha256()
    for part in (RECIPE_VERSION, str(seed), purpose, *parts):
        encoded = part.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return int.from_bytes(digest.digest()[:16], "big")


def keyed_rng(seed: int, purpose: str, *parts: str) -> np.random.Generator:
    """A generator (Philox, stable across platforms) for one purpose and one item."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(keyed_seed(seed, purpose, *parts))))


def keyed_index(n: int, seed: int, purpose: str, *parts: str) -> int:
    """A uniform draw from `range(n)`; `n` must be positive."""
    return keyed_seed(seed, purpose, *parts) % n
