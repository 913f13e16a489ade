"""Keyed randomness."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from squtr.loaders.keyed import keyed_index, keyed_rng, keyed_seed


def test_golden() -> None:
    """These values are part of the recipe: if they change, every data set changes, and RECIPE_VERSION must too."""
    assert keyed_seed(0, "noise", "fiqa", "4641") == 317712435052915955039195908838425518268
    assert list(keyed_rng(0, "noise", "fiqa", "4641").integers(0, 1000, 4)) == [832, 203, 864, 618]


@given(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
def test_parts_do_not_run_together(a: str, b: str, c: str, d: str) -> None:
    assert (keyed_seed(0, "p", a, b) == keyed_seed(0, "p", c, d)) == ((a, b) == (c, d))


def test_purpose_and_seed_matter() -> None:
    assert len({keyed_seed(s, p, "x") for s in range(3) for p in ("noise", "room")}) == 6


def test_index_is_spread() -> None:
    counts = [0] * 5
    for i in range(2000):
        counts[keyed_index(5, 0, "voice", "mini-en", str(i))] += 1
    assert min(counts) > 330
