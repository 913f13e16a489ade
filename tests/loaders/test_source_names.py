"""How sources are written, and what a wrong name is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, SqutrError, UnknownNameError, UsageError
from squtr.loaders.sources import SOURCES, load_source
from squtr.loaders.sources.names import check_language, hub_place, parse_source_name
from squtr.loaders.sources.tables import subset_name

from .collections_for_tests import make_collection
from .sources_for_tests import make_beir, make_release

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_path_and_value_can_be_written(place: str, value: str) -> None:
    def quoted(text: str) -> str:
        return text.replace("%", "%25").replace("?", "%3F").replace("&", "%26")

    name = parse_source_name(f"beir:{quoted(place)}?speech={quoted(value)}&split=dev")
    assert (name.kind, name.place, name.option("speech"), name.option("split")) == ("beir", place, value, "dev")


@pytest.mark.parametrize("text", ["beir:x?split", "beir:x?=dev", "beir:x?split="])
def test_an_option_without_name_or_value(text: str) -> None:
    with pytest.raises(UsageError, match=r"option=value"):
        parse_source_name(text)


def test_an_option_given_twice() -> None:
    with pytest.raises(UsageError, match="'split' twice"):
        parse_source_name("beir:x?split=a&split=b")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bier:x", "unknown source 'bier'. Did you mean 'beir'?"),
        ("minni?speech=x", "Did you mean 'mini'?"),
        ("beir:x?langage=en", "unknown option of the source beir: 'langage'. Did you mean 'language'?"),
        ("release:x?language=en", "Known: channel, file, missing, speech"),
        ("mini:x", "takes no place"),
        ("beir", "names no folder"),
        ("mini?missing=skip", "Add speech=DIR"),
        ("", "has no name"),
    ],
)
def test_wrong_names(name: str, said: str) -> None:
    with pytest.raises(SqutrError) as caught:
        load_source(name)
    assert said in str(caught.value)


def test_every_kind_of_the_table_exists() -> None:
    for kind in SOURCES:
        if kind in {"mini", "mteb"}:
            assert load_source(kind).name == kind
        else:
            with pytest.raises(SqutrError):
                load_source(f"{kind}:./does-not-exist")


def test_a_path_is_a_collection_folder(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "odd:name?x=1")
    assert load_source(str(root)).version == load_source(f"collection:{str(root).replace('?', '%3F')}").version


def test_a_path_to_another_layout_says_how_to_write_it(tmp_path: Path) -> None:
    beir, release = make_beir(tmp_path / "b"), make_release(tmp_path / "r")
    with pytest.raises(DataError, match=r"Write beir:.*/b\?language=en"):
        load_source(str(beir))
    with pytest.raises(DataError, match=r"Write release:.*/r\."):
        load_source(str(release))


def test_where_hub_data_lies(tmp_path: Path) -> None:
    known = {"org/pinned": COMMIT}
    assert hub_place(parse_source_name(f"mteb:{tmp_path}"), known) == (tmp_path, None)
    assert hub_place(parse_source_name("mteb:org/pinned"), known) == ("org/pinned", COMMIT)
    other = COMMIT[::-1]
    assert hub_place(parse_source_name(f"mteb:org/pinned@{other}"), known) == ("org/pinned", other)


@pytest.mark.parametrize("place", ["org/name", "org/name@main", f"org/name@{COMMIT[:7]}", "./org", "one-word", "/a/b"])
def test_a_place_that_identifies_nothing(place: str) -> None:
    with pytest.raises(UsageError, match=r"org/name@<commit>"):
        hub_place(parse_source_name(f"mteb:{place}"), {})


@pytest.mark.parametrize("language", ["english", "e", "zh_CN", "EN", ""])
def test_wrong_languages(language: str) -> None:
    with pytest.raises(UsageError, match="no language code"):
        check_language(language)


@given(st.text())
def test_a_subset_name_fits_into_config_names(text: str) -> None:
    try:
        name = subset_name(text)
    except DataError:
        return
    assert name and not set(name) & set("_/ ")


def test_unknown_kind_is_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        load_source("relaese:x")
