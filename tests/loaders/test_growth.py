"""Sets that grow: what is there stays, and the folder equals one that was built at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import DataError, IntegrityError, RecipeMismatchError, SqutrWarning
from squtr.harness.cli import main
from squtr.loaders.adding import options_to_add
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.doctor import examine
from squtr.loaders.growth import grows, uncovered, united
from squtr.loaders.left_out import LeftOut
from squtr.loaders.manifest import MANIFEST_NAME, file_sha256, joint_left_out, read_manifest
from squtr.loaders.recipe import OpenedRecipe, open_recipe

from .collections_for_tests import make_collection
from .rirs_for_tests import make_rooms, make_speech

Open = Callable[..., OpenedRecipe]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("growing")
    return {
        "tiny": str(make_collection(root / "tiny", queries=3)),
        "own": f"recorded:{make_speech(root / 'own', 3)}",
        "noise": str(make_rooms(root / "noise", 2)),
        "other": str(make_rooms(root / "other", 3)),
        "rirs": str(make_rooms(root / "rirs", 4)),
    }


@pytest.fixture
def opened(places: dict[str, str]) -> Open:
    def run(source: Any = "tiny", **options: Any) -> OpenedRecipe:
        names = [source] if isinstance(source, str) else source
        banks = {"noise": places["noise"], "rirs": places["rirs"]}
        return open_recipe([places[name] for name in names], **banks | options)

    return run


def digests(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): file_sha256(p) for p in sorted(folder.rglob("*")) if p.is_file()}


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


class Stop(Exception):
    pass


def stopping_after(clips: int) -> Callable[[int], None]:
    left = [clips]

    def told(count: int) -> None:
        left[0] -= count
        if left[0] < 0:
            raise Stop

    return told


def test_conditions_and_subsets_are_added(opened: Open, tmp_path: Path) -> None:
    out = tmp_path / "data"
    build(opened(conditions=["clean"], languages=["en"]), out)
    held = times(out)
    build(opened(conditions=["clean", "snr_5"], languages=["en"]), out)
    build(opened(["tiny", "own"], conditions=["clean", "snr_5", "reverb"]), out)
    build(opened(["tiny", "own"], conditions=["clean", "snr_5", "reverb"]), tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")
    assert {path: times(out)[path] for path in held} == held
    assert examine(out, sample=1).healthy


def test_a_killed_growth_leaves_what_was_there(opened: Open, tmp_path: Path) -> None:
    out, grown = tmp_path / "data", opened(conditions=["clean", "snr_5"])
    before = build(opened(conditions=["clean"], languages=["en"]), out)
    was = digests(out)
    with pytest.raises(Stop):
        # The condition that en lacks is built, and of zh nothing.
        build(grown, out, progress=stopping_after(7))
    assert read_manifest(out) == before
    assert [row.id for row in BuiltData(out).spoken("tiny-en", "clean")] == ["q0", "q1", "q2"]
    (finding,) = examine(out, sample=1).findings
    assert finding.kind == "unfinished"
    assert "queries/en/tiny-en/snr_5" in finding.message or "tiny-zh" in finding.message
    kept = times(out)
    build(grown, out)
    build(grown, tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")
    assert {path: times(out)[path] for path in kept} == kept
    assert was.keys() < digests(out).keys()


def test_a_growth_may_be_given_up(opened: Open, tmp_path: Path) -> None:
    out, first = tmp_path / "data", opened(conditions=["clean"], languages=["en"])
    build(first, out)
    before = digests(out)
    with pytest.raises(Stop):
        build(opened(conditions=["clean", "snr_5"]), out, progress=stopping_after(7))
    build(first, out)
    assert digests(out) == before


def test_another_growth_takes_nothing_of_one_that_was_given_up(
    opened: Open, places: dict[str, str], tmp_path: Path
) -> None:
    """The first recipe has no noise, so each growth may choose its own."""
    out = tmp_path / "data"
    build(opened(conditions=["clean"], languages=["en"]), out)
    with pytest.raises(Stop):
        build(opened(conditions=["clean", "snr_5"], noise=places["other"]), out, progress=stopping_after(7))
    assert list(out.rglob("snr_5/*.parquet"))
    build(opened(conditions=["clean", "snr_5"]), out)
    build(opened(conditions=["clean", "snr_5"]), tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")


def test_an_unfinished_folder_grows_too(opened: Open, tmp_path: Path) -> None:
    out, grown = tmp_path / "data", opened(conditions=["clean", "snr_5"])
    with pytest.raises(Stop):
        build(opened(conditions=["clean"]), out, progress=stopping_after(3))
    kept = {path: time for path, time in times(out).items() if "queries" in path.parts}
    assert kept
    build(grown, out)
    build(grown, tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")
    assert {path: times(out)[path] for path in kept} == kept


def test_what_is_lacking_is_named(opened: Open, tmp_path: Path) -> None:
    out = tmp_path / "data"
    build(opened(conditions=["clean", "snr_5"]), out)
    before = digests(out)
    with pytest.raises(RecipeMismatchError) as refused:
        build(opened(conditions=["clean", "snr_0"], languages=["zh"]), out)
    assert "also holds the condition snr_5 and the subset tiny-en" in refused.value.message
    assert "(--conditions snr_5, --subsets tiny-en) or use --add" in refused.value.hint
    assert digests(out) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 3}, "seed 0 there, 3 here"),
        ({"level": "active"}, "level 'whole' there, 'active' here"),
        ({"limit": 2}, "limit 0 there, 2 here"),
        ({"sample_rate": 16_000}, "sample_rate 24000 there, 16000 here"),
        ({"noise": "other"}, "noise: the noise of tiny-en has the name 'noise' there, 'other' here"),
    ],
)
def test_what_disagrees_is_named(
    opened: Open, places: dict[str, str], tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    out = tmp_path / "data"
    build(opened(conditions=["snr_5"], languages=["en"]), out)
    if "noise" in options:
        options = {"noise": places["other"]}
    for add in (False, True):
        with pytest.raises(RecipeMismatchError) as refused:
            build(opened(conditions=["snr_5", "clean"], languages=["en"], **options), out, add=add)
        assert words in refused.value.message


def test_noise_of_its_own_for_a_new_subset(opened: Open, places: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "data"
    build(opened(conditions=["snr_5"], languages=["en"]), out)
    noise = {"zh": places["other"], "": places["noise"]}
    build(opened(conditions=["snr_5"], noise=noise), out)
    build(opened(conditions=["snr_5"], noise=noise), tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")


def test_only_what_is_new_is_named(opened: Open, places: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "data"
    banks = {"noise": places["noise"], "rirs": places["rirs"]}
    build(opened(conditions=["clean"], seed=4, limit=2), out)
    build(open_recipe(**options_to_add(out, places["tiny"], {"conditions": ["snr_5"], **banks})), out, add=True)
    build(open_recipe(**options_to_add(out, places["own"], banks)), out, add=True)
    everything = opened(["tiny", "own"], conditions=["clean", "snr_5"], seed=4, limit=2)
    build(everything, tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")
    # The command that names all is the same set.
    before = times(out)
    build(everything, out)
    assert times(out) == before


def test_of_a_source_that_is_there_what_is_there_is_taken(opened: Open, places: dict[str, str], tmp_path: Path) -> None:
    out, banks = tmp_path / "data", {"noise": places["noise"], "rirs": places["rirs"]}
    build(opened(conditions=["clean"], languages=["en"]), out)
    both = [places["tiny"], places["own"]]
    found = open_recipe(**options_to_add(out, both, {"conditions": ["snr_5"], **banks})).recipe
    assert dict(found.subsets) == {"tiny-en": "en", "own": "en"}
    assert found.conditions == ("clean", "snr_5")
    found = open_recipe(**options_to_add(out, places["tiny"], {"conditions": ["snr_5"], **banks})).recipe
    assert (dict(found.subsets), found.conditions) == ({"tiny-en": "en"}, ("snr_5",))
    found = open_recipe(**options_to_add(out, places["tiny"], {"languages": ["zh"], **banks})).recipe
    assert (dict(found.subsets), found.conditions) == ({"tiny-zh": "zh"}, ("clean",))


def test_a_condition_for_some_subsets_only_is_refused(opened: Open, places: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "data"
    build(opened(["tiny", "own"], conditions=["clean"]), out)
    before = digests(out)
    with pytest.raises(RecipeMismatchError) as refused:
        build(opened("own", conditions=["snr_5"]), out, add=True)
    assert "snr_5 would be added" in refused.value.message
    assert "not for its subset tiny-en" in refused.value.message
    assert "Name the source of tiny-en as well (--source, tiny there)" in refused.value.hint
    assert digests(out) == before


def test_nothing_is_added_to_what_is_not_whole(opened: Open, places: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "data"
    with pytest.raises(DataError, match="is missing"):
        options_to_add(out, places["own"], {})
    with pytest.raises(Stop):
        build(opened(conditions=["clean"]), out, progress=stopping_after(3))
    with pytest.raises(RecipeMismatchError, match="is not finished"):
        build(opened("own", conditions=["clean"]), out, add=True)
    build(opened(conditions=["clean"]), out)
    shard = next(out.glob("queries/en/**/*.parquet"))
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(IntegrityError, match="is not part of this recipe") as refused:
        build(opened("own", conditions=["clean"]), out, add=True)
    assert "--subsets tiny-en --conditions clean" in refused.value.hint
    with pytest.warns(SqutrWarning, match="damaged and made again"):
        build(opened(conditions=["clean"], languages=["en"]), out, add=True)
    build(opened("own", conditions=["clean"]), out, add=True)


def test_a_plan_grows_by_conditions_only(places: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "data"
    own, plan = places["own"], {"noise": places["noise"], "rirs": places["rirs"], "stratify": "rt60", "rt60_bins": 1}
    build(open_recipe(own, conditions=["clean", "reverb"], **plan), out)
    grown = open_recipe(own, conditions=["clean", "reverb", "reverb_snr_5"], **plan)
    build(grown, out)
    build(grown, tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")
    with pytest.raises(RecipeMismatchError, match="only conditions can be added"):
        build(open_recipe([own, places["tiny"]], conditions=["clean", "reverb", "reverb_snr_5"], **plan), out)


def test_recipes_as_values(opened: Open) -> None:
    one = opened(conditions=["clean", "snr_5"], languages=["en"]).recipe.as_dict()
    two = opened(["own", "tiny"], conditions=["snr_0", "clean", "snr_5"]).recipe.as_dict()
    assert not grows(one, one)
    assert not grows(one, two)
    assert grows(two, one).lacking_conditions == ("snr_0",)
    assert grows(two, one).lacking_subsets == ("own", "tiny-zh")
    assert not grows(two, one).disagreeing
    assert uncovered(one, two) == []
    clean = opened("own", conditions=["clean"]).recipe.as_dict()
    assert uncovered(one, clean) == [("own", "snr_5")]
    assert united(one, clean)["conditions"] == ["clean", "snr_5"]
    joined = united(one, two)
    assert list(joined["subsets"]) == ["tiny-en", "tiny-zh", "own"]
    assert [(row["name"], row["subsets"]) for row in joined["sources"]] == [
        ("tiny", ["tiny-en", "tiny-zh"]), ("recorded:own", ["own"]),
    ]  # fmt: skip
    assert [row["subsets"] for row in joined["noise"]] == [["tiny-en", "own", "tiny-zh"]]
    assert not grows(joined, two) and not grows(two, joined)
    assert not grows(
        {**one, "divided": True}, {**opened(conditions=one["conditions"]).recipe.as_dict(), "divided": True}
    )
    assert "divided over all" in grows({**one, "divided": True}, {**two, "divided": True}).disagreeing[0]
    old = {key: value for key, value in one.items() if key != "sources"}
    assert grows(old, one).disagreeing == ("it was written by an earlier version of squtr",)
    assert grows({**one, "columns": {"rate": "float64"}}, one).disagreeing
    assert grows({**one, "steps": {**one["steps"], "clean": [{"step": "x"}]}}, one).disagreeing == (
        "other steps of the condition clean",
    )


def test_what_was_left_out_of_both_is_named_once() -> None:
    one, two = (LeftOut("queries without a judgment", n, ("q1",)) for n in (2, 3))
    assert joint_left_out([one], [one, two]) == [one, two]
    assert joint_left_out([one, two], [two]) == [one, two]


def test_the_command(places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "data")
    banks = ["--noise", places["noise"], "--rirs", places["rirs"], "--out", out]
    assert main(["build", "--source", places["tiny"], "--languages", "en", "--conditions", "clean", *banks]) == 0
    assert main(["build", "--source", places["tiny"], "--conditions", "snr_5", *banks]) == 1
    assert "use --add" in capsys.readouterr().err
    tiny = ["build", "--add", "--source", places["tiny"], "--languages", "en", "--conditions", "snr_5"]
    assert main([*tiny, *banks]) == 0
    assert main(["build", "--add", "--source", places["own"], *banks, "--json"]) == 0
    shown = capsys.readouterr().out
    assert json.loads(shown[shown.index("\n{") :])["clips"] == 12
    manifest = read_manifest(Path(out))
    assert manifest.conditions == ["clean", "snr_5"]
    assert manifest.subsets == {"tiny-en": "en", "own": "en"}
    assert "own_snr_5" in (Path(out) / "README.md").read_text(encoding="utf-8")
    assert (Path(out) / MANIFEST_NAME).is_file()
