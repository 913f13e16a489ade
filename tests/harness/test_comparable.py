"""What may share a table and what may not: in pages, and in `squtr compare`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import DataError
from squtr.harness.cli import main
from squtr.harness.results.comparable import coverage_words, difference, refuse_mixture
from squtr.harness.results.envelope import Result, RunRecord, write_run

from .report_runs_for_tests import EVERY_KIND, Example, edit_json, example_records, imported_records, write_example

SMALL = Example(languages=("en",), systems=EVERY_KIND[:2], conditions=("text", "clean"), n=6)


def results(example: Example = SMALL) -> list[Result]:
    return [r.result for r in example_records(example) if r.result.data.condition == "clean"]


def changed(result: Result, group: str, **fields: Any) -> Result:
    return result.model_copy(update={group: getattr(result, group).model_copy(update=fields)})


def fingerprint(recipe: dict[str, Any]) -> str:
    canonical = json.dumps(recipe, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def test_equal_circumstances_differ_in_nothing() -> None:
    one, other = results()
    assert difference(one, other) == ""


def test_the_first_difference_is_named() -> None:
    one, other = results()
    assert difference(one, changed(other, "data", source_version="9")) == (
        "the source version is '1' on one side and '9' on the other"
    )
    assert "the normalizer is 'default'" in difference(one, changed(other, "system", normalizer="raw"))
    assert "benchmark version" in difference(one, other.model_copy(update={"benchmark_version": "2"}))
    assert "origin" in difference(one, other.model_copy(update={"origin": "imported"}))
    recipe = {**other.data.recipe, "noise": [{"name": "field recordings", "version": "2", "subsets": ["mini-en"]}]}
    assert "the data's noise is 'embedded 1' on one side and 'field recordings 2'" in difference(
        one, changed(other, "data", recipe=recipe, subsets=["mini-en"])
    )


def test_a_bank_is_the_same_whatever_else_it_serves() -> None:
    one, other = (
        changed(result, "data", recipe={"noise": [{"name": "demand", "version": "1", "subsets": ["fiqa", *more]}]})
        for result, more in zip(results(), ([], ["nq"]), strict=True)
    )
    for result in (one, other):
        result.data.subsets[:] = ["fiqa"]
    assert difference(one, other) == ""


def test_normalizers_do_not_matter_without_words() -> None:
    one, _ = results()
    (ready,) = results(Example(languages=("en",), systems=EVERY_KIND[6:], conditions=("text", "clean"), n=6))
    assert difference(changed(one, "system", normalizer="raw"), ready) == ""


def test_more_conditions_do_not_make_other_data_but_another_commit_does() -> None:
    one, other = results()
    few, more = ({**one.data.recipe, "conditions": names} for names in (["clean"], ["clean", "reverb"]))
    left = changed(one, "data", recipe=few, revision=fingerprint(few))
    assert difference(left, changed(other, "data", recipe=more, revision=fingerprint(more))) == ""
    assert "the data's revision is" in difference(left, changed(other, "data", recipe=more, revision="a" * 40))


def test_mixtures_are_refused_by_name() -> None:
    full, partial = results()[0], changed(results()[1], "data", partial=True, n_total=60)
    refuse_mixture([full, full])
    refuse_mixture([partial, partial])
    for mixture in ([full, partial], [partial, full]):
        with pytest.raises(DataError) as error:
            refuse_mixture(mixture)
        assert full.system.name in str(error.value)
        assert f"{partial.system.name!r} on 'en_clean' is partial (10 % of the items: 6 of 60)" in str(error.value)


@pytest.mark.parametrize(
    ("n", "total", "share"),
    [(34, 680, "5 %"), (1, 3, "33.3 %"), (3, 70_000, "0.004 %"), (5, 5, "100 %"), (0, 0, "0 %")],
)
def test_shares_are_readable(n: int, total: int, share: str) -> None:
    assert coverage_words(n, total) == f"{share} of the items: {n} of {total}"


# squtr compare


def two(tmp_path: Path) -> list[Path]:
    write_example(tmp_path, SMALL, clips=0)
    return [path / "en_clean.json" for path in sorted((tmp_path / "results").iterdir())]


def test_a_part_is_not_compared_with_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = two(tmp_path)
    content = json.loads(one.read_text())
    content["data"] |= {"partial": True, "n_total": 60}
    one.write_text(json.dumps(content))
    for order in ((one, other), (other, one)):
        for more in ([], ["--on", "intersection"]):
            assert main(["compare", *map(str, order), *more]) == 1
            side = "first" if order[0] == one else "second"
            said = f"en_clean: the {side} side is partial (10 % of the items: 6 of 60), the other is not."
            assert said in capsys.readouterr().err


def test_parts_of_one_size_are_compared(tmp_path: Path) -> None:
    part = Example(languages=("en",), systems=EVERY_KIND[:2], conditions=("text", "clean"), n=6, part=0.5)
    for name, system in zip("ab", EVERY_KIND[:2], strict=True):
        write_example(tmp_path / name / "partial-first-6", Example(**{**part.__dict__, "systems": (system,)}), clips=0)
    # The folders that `squtr evaluate --out` was given.
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0


def test_other_numbers_of_queries_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for n, system in zip((6, 8), EVERY_KIND[:2], strict=True):
        example = Example(languages=("en",), systems=(system,), conditions=("text", "clean"), n=n)
        paths.append(write_run(tmp_path, example_records(example)[1]))
    assert main(["compare", *map(str, paths)]) == 1
    assert "en_clean: one side has 6 items, the other 8." in capsys.readouterr().err
    assert main(["compare", *map(str, paths), "--on", "intersection"]) == 0


def test_other_data_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = two(tmp_path)
    edit_json(tmp_path, f"{other.parent.name}/en_clean.json", {"data": {"recipe": {"level": "active"}}})
    assert main(["compare", str(one), str(other)]) == 1
    assert "the data's level is 'whole' on one side and 'active' on the other" in capsys.readouterr().err


def test_other_texts_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (r for r in example_records(SMALL) if r.result.data.condition == "clean")
    rows = second.items.to_pylist()
    rows[2]["text"] = "something else"
    items = second.items.from_pylist(rows, schema=second.items.schema)
    paths = [write_run(tmp_path, first), write_run(tmp_path, RunRecord(second.result, items))]
    assert main(["compare", *map(str, paths)]) == 1
    error = capsys.readouterr().err
    assert "'mini-en/en-q02' is" in error
    assert "'something else' on the other" in error


def test_imported_results_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path, imported_records(SMALL)[1])
    assert main(["compare", str(path), str(path)]) == 1
    assert "'org/model' on 'mini-en_clean' is imported: aggregates only" in capsys.readouterr().err


def test_words_are_not_compared_where_one_side_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = Example(languages=("en",), systems=(EVERY_KIND[0], EVERY_KIND[5]), conditions=("text", "clean"), n=6)
    write_example(tmp_path, example, clips=0)
    one, other = sorted((tmp_path / "results").iterdir())
    assert main(["compare", str(one), str(other), "--json"]) == 0
    metrics = {row["metric"] for row in json.loads(capsys.readouterr().out)["comparisons"]}
    assert metrics == {"ndcg_at_10", "mrr_at_10", "recall_at_10"}
