"""Recipes: choices are checked, and everything that decides bytes is in the fingerprint."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import SqutrError, UsageError
from squtr.loaders.recipe import choose_queries, open_recipe, share
from squtr.loaders.records import Query

from .collections_for_tests import make_collection

QUERIES = [Query(f"q{i}", "s", "en", f"text {i}", "abcd"[i % 4]) for i in range(68)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_collection(tmp_path_factory.mktemp("recipe") / "tiny"))


def test_stratified_choice() -> None:
    chosen = choose_queries(QUERIES, 20, seed=0)
    assert Counter(query.group for query in chosen) == dict.fromkeys("abcd", 5)
    assert [q.id for q in chosen] == [q.id for q in QUERIES if q in chosen]
    assert chosen != choose_queries(QUERIES, 20, seed=1)
    assert set(choose_queries(QUERIES, 8, seed=0)) < set(chosen)


@pytest.mark.parametrize("limit", [0, 68, 100])
def test_all_queries(limit: int) -> None:
    assert choose_queries(QUERIES, limit, seed=0) == QUERIES


@given(st.integers(0, 200), st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=6))
def test_shares_add_up(total: int, sizes: dict[str, int]) -> None:
    shares = share(total, sizes)
    assert sum(shares.values()) == total
    everything = sum(sizes.values())
    assert all(abs(shares[name] - total * sizes[name] / everything) < 1 for name in sizes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"languages": ["fr"]}, "unknown language 'fr'"),
        ({"subsets": ["tiny-e"]}, "Did you mean 'tiny-en'"),
        ({"languages": ["en"], "subsets": ["tiny-zh"]}, "no subset"),
        ({"conditions": ["noisy"]}, "unknown condition 'noisy'"),
        ({"conditions": ["text"]}, "has no audio"),
        ({"conditions": []}, "no condition"),
        ({"level": "wholly"}, "Did you mean 'whole'"),
        ({"limit": -1}, "limit is -1"),
        ({"noise": "syntetic"}, "Did you mean 'synthetic'"),
        ({"rirs": "simulatd"}, "Did you mean 'simulated'"),
    ],
)
def test_wrong_choices(root: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SqutrError, match=said):
        open_recipe(root, **({"conditions": ["reverb_high_noise"]} | options))


def test_fingerprint(root: str) -> None:
    base: dict[str, Any] = {"conditions": ["clean", "high_noise", "reverb"]}
    variants = [
        {},
        {"seed": 1},
        {"level": "active"},
        {"limit": 2},
        {"languages": ["en"]},
        {"conditions": ["clean", "high_noise"]},
    ]
    fingerprints = [open_recipe(root, **(base | variant)).recipe.fingerprint for variant in variants]
    assert len(set(fingerprints)) == len(variants)
    assert open_recipe(root, **base).recipe.fingerprint == fingerprints[0]


def test_no_bank_where_none_is_needed(root: str, tmp_path: Path) -> None:
    opened = open_recipe(root, conditions=["clean"], noise=str(tmp_path / "absent"))
    assert opened.context.noise is None
    assert opened.recipe.noise == ()


def test_duplicate_conditions_count_once(root: str) -> None:
    assert open_recipe(root, conditions=["clean", "clean"]).recipe.conditions == ("clean",)


def test_too_few_for_a_choice(root: str) -> None:
    with pytest.raises(UsageError):
        open_recipe(root, conditions=["snr_999"])
