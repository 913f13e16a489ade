"""Conditions and config names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UnknownNameError, UsageError
from squtr.loaders.conditions import (
    STANDARD_CONDITIONS,
    QueryConfig,
    TableConfig,
    config_names,
    parse_condition,
    parse_config,
)

SUBSETS = {"fiqa": "en", "nq": "en", "duretrieval": "zh"}


@pytest.mark.parametrize("name", STANDARD_CONDITIONS)
def test_standard_conditions_parse_to_themselves(name: str) -> None:
    condition = parse_condition(name)
    assert condition.name == name
    assert condition.reverb == name.startswith("reverb")
    assert (condition.snr_db is not None) == name.endswith("noise")


@given(level=st.integers(-60, 100), reverb=st.booleans())
def test_any_level(level: int, reverb: bool) -> None:
    condition = parse_condition(f"{'reverb_' if reverb else ''}snr_{level}")
    assert condition.snr_db == level
    assert condition.reverb is reverb


def test_half_decibels() -> None:
    assert parse_condition("snr_2.5").snr_db == 2.5


@pytest.mark.parametrize("name", ["snr_5.0", "snr_05", "snr_-0", "snr_101", "snr_-61", "reverb_snr_200"])
def test_one_level_has_one_name(name: str) -> None:
    with pytest.raises(UsageError):
        parse_condition(name)


@pytest.mark.parametrize(("wrong", "right"), [("cleen", "clean"), ("hihg_noise", "high_noise"), ("reverbb", "reverb")])
def test_unknown_condition_suggests_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(UnknownNameError, match=f"Did you mean '{right}'"):
        parse_condition(wrong)


def test_language_config_takes_all_its_subsets() -> None:
    config = parse_config("en_medium_noise", SUBSETS)
    assert isinstance(config, QueryConfig)
    assert config.subsets == ("fiqa", "nq")


def test_tables() -> None:
    assert parse_config("nq-corpus", SUBSETS) == TableConfig("nq-corpus", "nq", "corpus")


@pytest.mark.parametrize("name", ["fr_clean", "fiqaa_clean", "en", "fiqa-corpsu", "clean", ""])
def test_unknown_config(name: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown config"):
        parse_config(name, SUBSETS)


def test_wrong_condition_behind_a_right_language() -> None:
    with pytest.raises(UnknownNameError, match="condition 'klean'"):
        parse_config("en_klean", SUBSETS)


def test_every_listed_name_parses() -> None:
    names = config_names(SUBSETS, STANDARD_CONDITIONS)
    assert len(names) == len(set(names)) == (2 + 3) * 8 + 6
    for name in names:
        assert parse_config(name, SUBSETS).name == name
