"""Several draws of noise for each utterance."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from squtr.errors import UsageError
from squtr.loaders.blocks import render_rows, render_take
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.doctor import examine
from squtr.loaders.recipe import OpenedRecipe, open_recipe
from squtr.loaders.records import SpokenQuery

from .rirs_for_tests import make_rooms, make_speech

RATE = 16_000


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"recorded:{make_speech(tmp_path_factory.mktemp('draws') / 'own', 4, rate=RATE)}?language=en&subset=own"


def opened(speech: str, *, draws: int = 3, **options: object) -> OpenedRecipe:
    conditions = ["clean", "snr_5", "high_noise", "reverb_snr_5"]
    return open_recipe(speech, conditions=conditions, draws=draws, sample_rate=RATE, **options)  # type: ignore[arg-type]


def rendered(recipe: OpenedRecipe, condition: str) -> list[SpokenQuery]:
    return list(render_rows(recipe, recipe.condition(condition), recipe.rows("own", condition)))


def test_the_first_draw_is_the_only_one_of_a_set_with_one(speech: str) -> None:
    once, often = opened(speech, draws=1), opened(speech)
    for condition in ("snr_5", "reverb_snr_5"):
        rows = rendered(often, condition)
        assert [row.audio for row in rows[::3]] == [row.audio for row in rendered(once, condition)]
        assert [row.id for row in rows[:4]] == ["u00", "u00#2", "u00#3", "u01"]
        assert [row.utterance_id for row in rows[:3]] == ["u00"] * 3
    assert [row.id for row in rendered(often, "clean")] == ["u00", "u01", "u02", "u03"]


def test_draws_differ_in_the_noise_and_agree_in_the_room_and_over_levels(speech: str) -> None:
    recipe = opened(speech)
    quiet, loud, wet = (rendered(recipe, name) for name in ("snr_5", "high_noise", "reverb_snr_5"))
    drawn = [(row.noise_id, row.noise_offset_s) for row in quiet]
    assert len(set(drawn)) == len(drawn)
    assert drawn == [(row.noise_id, row.noise_offset_s) for row in loud]
    assert drawn == [(row.noise_id, row.noise_offset_s) for row in wet]
    for number in range(0, len(wet), 3):
        assert len({row.rir_id for row in wet[number : number + 3]}) == 1


def test_rows_alone_are_those_of_the_whole_utterance(speech: str) -> None:
    recipe = opened(speech)
    conditions = list(recipe.conditions.values())
    for take in recipe.takes("own"):
        for condition, together in zip(conditions, render_take(recipe, conditions, take), strict=True):
            rows = [row for row in recipe.rows("own", condition.name) if row.query.utterance == take.query.id]
            alone = [next(render_rows(recipe, condition, [row])) for row in rows]
            assert [row.audio for row in alone] == [row.audio for row in together]


def test_the_folder_is_whole(speech: str, tmp_path: Path) -> None:
    build(opened(speech), tmp_path / "data")
    assert examine(tmp_path / "data").findings == ()
    data = BuiltData(tmp_path / "data")
    assert [len(data.rows("own", name)) for name in ("clean", "snr_5")] == [4, 12]
    assert [query.id for query in data.queries("own")] == ["u00", "u01", "u02", "u03"]
    shard = next((tmp_path / "data/queries/en/own/snr_5").glob("*.parquet"))
    rows = pq.read_table(shard, partitioning=None).select(["id", "utterance_id"]).to_pylist()
    assert rows[1] == {"id": "u00#2", "utterance_id": "u00"}


def test_draws_go_with_dealt_rirs(tmp_path: Path) -> None:
    speech = make_speech(tmp_path / "speech", 3, rate=RATE)
    recipe = open_recipe(
        f"recorded:{speech}?language=en&subset=own",
        conditions=["reverb", "reverb_snr_5"],
        rirs=str(make_rooms(tmp_path / "rooms")),
        rirs_per_utterance=2,
        draws=2,
        sample_rate=RATE,
    )
    build(recipe, tmp_path / "data")
    assert examine(tmp_path / "data").findings == ()
    ids = [row.query.id for row in recipe.rows("own", "reverb_snr_5")]
    assert len(ids) == 12 and ids[1] == f"{ids[0]}#2"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"draws": 0}, "0 times"), ({"draws": 2, "conditions": ["clean", "reverb"]}, "no condition has noise")],
)
def test_wrong_numbers_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_recipe("mini", **{"conditions": ["snr_5"], **options})  # type: ignore[arg-type]
