"""What may enter the leaderboard, and what strangers send: refused with a sentence, or kept harmless."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.cli import main
from squtr.harness.metrics.ranking import score_ranking
from squtr.harness.metrics.registry import parse_metric
from squtr.harness.results.columns import Columns
from squtr.harness.results.envelope import read_record
from squtr.harness.tasks.retrieval.columns import items_schema
from squtr.harness.tasks.retrieval.verify import best_ndcg, mrr_bound
from squtr.harness.tasks.verification import load_verifier
from squtr.leaderboard.changes import compare_folders, validate_change
from squtr.leaderboard.entry import content_sha256
from squtr.leaderboard.findings import Findings
from squtr.leaderboard.markdown import plain
from squtr.leaderboard.published import PUBLISHED_SUBSETS
from squtr.leaderboard.records import Limits, read_items
from squtr.leaderboard.rescore import compare_with_records
from squtr.leaderboard.store import add_files, read_store
from squtr.leaderboard.stored import folder_name, make_stored, parse_path, parse_stored
from squtr.leaderboard.strict_json import parse_object, wrong_name
from squtr.leaderboard.submit import prepare, send
from squtr.leaderboard.validate import Validation, validate_file, validate_files

SCHEMA = items_schema(map(parse_metric, ("ndcg_at_10", "mrr_at_10", "recall_at_10")))
NOISY = "results/garbler+words/en_medium_noise.json"


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run / "results", tmp_path / "run" / "results")).parent


@pytest.fixture
def changed(copy: Path) -> Callable[[Callable[[dict[str, Any]], object]], Validation]:
    """Changes the JSON of a noisy result, then validates it."""

    def change(edit: Callable[[dict[str, Any]], object]) -> Validation:
        document = json.loads((copy / NOISY).read_text())
        edit(document)
        (copy / NOISY).write_text(json.dumps(document))
        return validate_file(copy / NOISY)

    return change


def messages(validation: Validation) -> str:
    return " | ".join(f"{finding.where}: {finding.message}" for finding in validation.errors)


def test_what_the_pipeline_writes_holds(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = validate_files(sorted((run / "results").glob("*/*.json")))
    assert len(found) == 12
    assert all(validation.ok and validation.who == "re-scored" for validation in found)
    assert main(["validate", str(run)]) == 0
    assert "12 checked, none refused." in capsys.readouterr().out
    assert main(["validate", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_the_published_queries_are_all_there() -> None:
    assert sum(subset.queries for subset in PUBLISHED_SUBSETS["squtr"].values()) == 37_317


def put(*keys: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        inner: Any = document
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (put("scores", "ndcg_at_10", "value", value=0.9), "the result says 0.9, its records give"),
        (put("scores", "ndcg_at_10", "value", value=1.5), "1.5 is outside [0, 1]"),
        (put("scores", "wer", "value", value=0.01), "scores.wer: the result says 0.01, its records give"),
        (put("scores", "wer", "n", value=11), "the result says n = 11"),
        (put("scores", "wer", "low", value=2.0), "does not hold the value"),
        (put("scores", "charm", value={"value": 0.5, "low": None, "high": None, "n": 12}), "is no metric"),
        (put("by_group", "subset", 0, "scores", "mrr_at_10", "value", value=0.77), "by_group.subset.tiny-en.mrr_at_10"),
        (put("losses", "text", "ndcg_at_10", "absolute", "value", value=0.5), "losses.text.ndcg_at_10"),
        (put("failures", "loop", value=3), "failures.loop: the result says 3, its records give 0"),
        (put("failures", "empty", value=-1), "failures.empty: -1 of 12 items"),
        (put("benchmark_version", value="2"), "squtr '2' is not taken here, only 1"),
        (
            put("benchmark", value="mine"),
            "'mine' is no benchmark of the task 'retrieval', whose benchmarks are squtr, retrieval",
        ),
        (put("task", value=["retrieval"]), "is not one of retrieval, recognition, understanding"),
        (put("task", value="recognition"), "'squtr' is no benchmark of the task 'recognition'"),
        (put("metrics_version", value="0"), "metrics_version: '0' is not"),
        (put("schema_version", value="1"), "schema_version"),
        (put("squtr_version", value="<b>"), "is no version"),
        (put("inputs_sha256", value="abc"), "is no sha256"),
        (put("data", "n", value=11), "has 12 rows, the result covers 11"),
        (put("data", "n", value="12"), "data.n: Input should be a valid integer"),
        (put("data", "n", value=12.5), "data.n"),
        (put("data", "n", value=True), "data.n"),
        (put("data", "partial", value=True), "partial is true"),
        (put("data", "n_total", value=24), "partial is false"),
        (put("data", "config", value="en_clean"), "it is called en_medium_noise or tiny-en_medium_noise"),
        (put("data", "config", value="en"), "'en' is not its config"),
        (put("data", "config", value="zh_medium_noise"), "'zh_medium_noise' is not its config"),
        (put("data", "config", value="../../x"), "'../../x' is no config"),
        (put("data", "condition", value="loud"), "it is called en_loud or tiny-en_loud"),
        (put("data", "language", value="en/../x"), "is no language tag"),
        (put("data", "subsets", value=["fiqa"]), "by_group.subset"),
        (put("unknown", value=1), "unknown: Extra inputs are not permitted"),
        (put("system", "name", value="<script>alert(1)</script>"), "holds '<'"),
        (put("system", "name", value="a\u202eb"), "U+202E, which cannot be seen"),
        (put("system", "name", value="a\nb"), "U+000A"),
        (put("system", "name", value="x" * 5000), "has 5000 characters"),
        (put("system", "name", value=7), "7 is no text"),
        (put("system", "components", "transcriber", "name", value="<img src=x>"), "system.transcriber.name"),
        (put("timing", "rtfx", value=1e9), "not to be believed"),
        (put("timing", "rtfx", value=-1.0), "timing.rtfx"),
        (put("scores", value={}), "'ndcg_at_10' is not among the scores"),
        (put("scores", value=[]), "scores: Input should be"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be(changed: Callable[..., Validation], edit: Callable[[dict[str, Any]], None], said: str) -> None:
    validation = changed(edit)
    assert not validation.ok
    assert said in messages(validation)
    assert validation.who == "self-reported"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": NaN}', "holds NaN, which JSON does not have"),
        (b'{"a": -Infinity}', "holds -Infinity"),
        (b'{"a": 1e999}', "is not finite"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number of 5000 digits"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' twice"),
        (b"[" * 100_000 + b"]" * 100_000, "nested more than"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "nested more than"),
        (b"[1]", "holds no JSON object"),
        (b'{"a": 1', "is no JSON"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b'{"a": "\\ud800"}', "half a surrogate pair"),
        (b"!!python/object/apply:os.system ['true']", "is no JSON"),
        (b"--- &a [*a]", "is no JSON"),
        (b"", "is no JSON"),
        (b'{"a": "' + b"x" * 5_000_000 + b'"}', "the limit is 4 MB"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_files_that_are_no_json(tmp_path: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    validation = validate_file(path)
    assert said in messages(validation)
    assert main(["validate", str(path)]) == 1
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
PLAIN = (
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
)


@given(
    st.recursive(PLAIN, lambda own: st.dictionaries(TEXTS, own, max_size=3) | st.lists(own, max_size=3), max_leaves=8)
)
def test_any_object_is_read_as_json_reads_it(value: Any) -> None:
    document = {"v": value}
    assert parse_object(json.dumps(document).encode(), "x") == document


@given(st.dictionaries(st.sampled_from(["benchmark", "system", "data", "scores", "store_version", "result", "items"]),
                       st.none() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)
                       | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), max_size=5))  # fmt: skip
def test_no_object_is_a_trace_back(tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(json.dumps(document))
    assert not validate_file(path).ok


def edit_table(path: Path, edit: Callable[[list[dict[str, Any]]], object]) -> None:
    table = pq.read_table(path)
    rows = table.to_pylist()
    edit(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def first(**values: object) -> Callable[[list[dict[str, Any]]], None]:
    return lambda rows: rows[0].update(values)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            first(ndcg_at_10=1.0, mrr_at_10=0.5, recall_at_10=1.0, first_relevant_rank=2),
            "nDCG is higher than that rank",
        ),
        (first(ndcg_at_10=0.5, mrr_at_10=0.0), "one metric found something only"),
        (first(mrr_at_10=0.7, ndcg_at_10=0.5, recall_at_10=1.0), "MRR is no 1/rank up to 10"),
        (first(recall_at_10=1.7), "a score is outside [0, 1]"),
        (first(recall_at_10=1.0, ndcg_at_10=1.0, mrr_at_10=1.0, documents=[], scores=[]), "among no documents"),
        (first(ndcg_at_10=float("nan")), "a record has some ranking metrics and lacks others"),
        (first(documents=["d"] * 101, scores=[1.0] * 101), "more than 100 documents"),
        (first(documents=["d"], scores=[1.0], first_relevant_rank=2), "is at rank 2 of 1"),
        (first(documents=["d"], scores=[]), "not one score for each"),
        (first(word_deletions=-1.0), "a count is negative or no whole number"),
        (first(word_deletions=1.5), "a count is negative or no whole number"),
        (first(word_deletions=float("inf")), "a record has some counts and lacks others"),
        (first(condition="clean"), "items.condition: some records are of another condition"),
        (first(language="zh"), "items.language"),
        (first(subset="other"), "items.subset"),
        (lambda rows: rows[0].update(id=rows[1]["id"]), "an item has two records"),
        (lambda rows: rows.pop(), "has 11 rows, the result covers 12"),
        (first(word_insertions=7.0), "the result says"),
        (first(id=None), "nulls in the column 'id'"),
        (first(text="x" * 200_000), "a text of 200000 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_records_that_do_not_fit(copy: Path, edit: Callable[[list[dict[str, Any]]], object], said: str) -> None:
    edit_table((copy / NOISY).with_suffix(".items.parquet"), edit)
    validation = validate_file(copy / NOISY)
    assert said in messages(validation)
    assert validation.who == "self-reported"


def test_tables_of_another_form(tmp_path: Path, run: Path) -> None:
    table = pq.read_table((run / NOISY).with_suffix(".items.parquet"))
    path = tmp_path / "t.parquet"
    for wrong, said in (
        (table.drop_columns(["ndcg_at_10"]), "lacks the column 'ndcg_at_10'"),
        (table.append_column("x", pa.nulls(12)), "has the column 'x'"),
        (table.set_column(0, "id", pc.cast(pa.array(range(12)), pa.int64())), "as int64, not as string"),
    ):
        pq.write_table(wrong, path)
        with pytest.raises(DataError, match=said):
            read_items(path, SCHEMA)
    pq.write_table(table, path)
    for limits, said in (
        (Limits(rows=11), "has 12 rows, the limit is 11"),
        (Limits(file_bytes=10), "the limit is"),
        (Limits(unpacked_bytes=10), "unpacked, the limit"),
        (Limits(listed=0), "a list of more than 0"),
    ):
        with pytest.raises(DataError, match=said):
            read_items(path, SCHEMA, limits=limits)
    path.write_bytes(b"PAR1 no table PAR1")
    with pytest.raises(DataError, match="cannot be read"):
        read_items(path, SCHEMA)
    with pytest.raises(DataError, match="does not exist"):
        read_items(tmp_path / "none", SCHEMA)


def test_one_long_text_a_thousand_times_stays_small(tmp_path: Path) -> None:
    """A file of a few kB in which a million characters lie a thousand times over."""
    text, n = "x" * 90_000, 1000
    made: dict[pa.DataType, pa.Array] = {
        pa.string(): pa.array([text] * n),
        pa.list_(pa.string()): pa.array([[text] * 10] * n),
        pa.list_(pa.float64()): pa.array([[1.0] * 10] * n),
    }
    ones = pa.array([1] * n)
    columns = {f.name: made[f.type] if f.type in made else ones.cast(f.type) for f in SCHEMA}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", compression="zstd")
    del made, columns, ones
    assert (tmp_path / "t.parquet").stat().st_size < 100_000
    assert read_items(tmp_path / "t.parquet", SCHEMA).nbytes < 10_000_000


def test_losses_are_the_difference_of_both_scores(copy: Path) -> None:
    """A loss that fits its own score, but not the result of the baseline that lies beside it."""
    document = json.loads((copy / NOISY).read_text())
    value = document["scores"]["ndcg_at_10"]["value"]
    loss = document["losses"]["text"]["ndcg_at_10"]
    loss["absolute"] = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 12}
    loss["relative"] = {"value": 0.5 / (value + 0.5), "low": 0.1, "high": 1.0, "n": 12}
    (copy / NOISY).write_text(json.dumps(document))
    assert validate_file(copy / NOISY).ok
    found = {v.path.name: v for v in validate_files(sorted((copy / NOISY).parent.glob("*.json")))}
    assert "the scores of both conditions differ by" in messages(found["en_medium_noise.json"])
    assert found["en_clean.json"].ok


@given(st.lists(st.integers(0, 3), min_size=1, max_size=14), st.permutations(range(14)))
def test_the_bounds_hold_for_every_ranking(grades: list[int], order: list[int]) -> None:
    if not any(grades):
        return
    qrels = {"q": {f"d{i}": grade for i, grade in enumerate(grades)}}
    run = {"q": [(f"d{i}", -float(place)) for place, i in enumerate(order)]}
    mean = score_ranking(qrels, run).mean
    assert mean["ndcg_at_10"] <= mrr_bound(mean["mrr_at_10"]) + 1e-9
    assert mean["recall_at_10"] <= 10 * mean["mrr_at_10"] + 1e-9
    if mean["mrr_at_10"]:
        assert mean["ndcg_at_10"] <= best_ndcg(round(1 / mean["mrr_at_10"])) + 1e-9


def test_an_interval_that_is_too_narrow(copy: Path) -> None:
    """With enough queries, the width must be what the spread of the records makes it."""
    record = read_record(copy / NOISY)
    rows = record.items.to_pylist()
    many = [{**rows[i % 12], "id": f"q{i}", "ndcg_at_10": float(i % 3 == 0)} for i in range(300)]
    verifier = load_verifier("retrieval")
    found = verifier.recompute(record.result, Columns(pa.Table.from_pylist(many, schema=record.items.schema)))
    for half, ok in ((0.053, True), (0.005, False), (0.3, False)):
        score = record.result.scores["ndcg_at_10"].model_copy(
            update={"value": 1 / 3, "low": 1 / 3 - half, "high": 1 / 3 + half, "n": 300}
        )
        findings = Findings()
        scores = {**record.result.scores, "ndcg_at_10": score}
        compare_with_records(record.result.model_copy(update={"scores": scores}), found, findings)
        told = [f for f in findings.errors if f.where == "scores.ndcg_at_10"]
        assert (not told) == ok, told


def stored_in(folder: Path, run: Path) -> list[Path]:
    send(prepare([run / "results" / "garbler+words"])[0], str(folder))
    return sorted(folder.rglob("*.json"))


def test_a_store_is_read_and_written_once(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    paths = stored_in(folder, run)
    assert len(paths) == 6
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found, _ = prepare([run], now=datetime(2030, 1, 1, tzinfo=UTC))
    sent = send(found, str(folder))
    assert len(sent.there) == 6
    assert len(sent.added) == 12
    assert all(path.read_bytes() == content for path, content in before.items())
    store = read_store(folder)
    assert [entry.who for entry in store.entries] == ["re-scored", "re-scored"]
    assert read_store(folder, rescore=False).entries[0].who == "self-reported"
    table = store.numbers(store.entries[0], "zh_clean")
    assert table is not None
    assert table.num_rows == 12
    assert {"id", "subset", "cluster", "ndcg_at_10", "char_deletions"} <= set(table.column_names)
    assert not {"transcript", "documents", "flags"} & set(table.column_names)
    assert store.numbers(store.entries[0], "xx_clean") is None
    # A bad file hides no other.
    paths[0].write_text("{}")
    (folder / "results/squtr/x.json").write_text("{}")
    again = read_store(folder)
    assert len(again.problems) == 1
    assert len(again.entries) == 2
    with pytest.raises(DataError, match="does not exist"):
        read_store(tmp_path / "nothing")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = "results/squtr/a/20260101T000000Z-0123456789abcdef.json"
    assert add_files(tmp_path, {path: b"1"}) == (path,)
    assert add_files(tmp_path, {path: b"1"}) == ()
    with pytest.raises(DataError, match="never overwritten"):
        add_files(tmp_path, {path: b"2"})
    assert (tmp_path / path).read_bytes() == b"1"
    assert [p.name for p in (tmp_path / path).parent.iterdir()] == [Path(path).name]


@pytest.mark.parametrize(
    "path",
    [
        "results/../x/y/20260101T000000Z-0123456789abcdef.json",
        "../results/squtr/a/20260101T000000Z-0123456789abcdef.json",
        "/results/squtr/a/20260101T000000Z-0123456789abcdef.json",
        "results/squtr/../20260101T000000Z-0123456789abcdef.json",
        "results/squtr/a/../20260101T000000Z-0123456789abcdef.json",
        "results/squtr/a\\b/20260101T000000Z-0123456789abcdef.json",
        "results/squtr/.git/20260101T000000Z-0123456789abcdef.json",
        "results/squtr/a/x.json",
        "results/squtr/a/20260101T000000Z-0123456789abcdef.json\n",
        "results/squtr/a/20260101T000000Z-0123456789abcdef.html",
        "README.md",
    ],
)
def test_places_outside_of_the_store(tmp_path: Path, path: str) -> None:
    assert parse_path(path) is None
    with pytest.raises(DataError, match="is no place for a result"):
        add_files(tmp_path, {path: b"x"})
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=200))
def test_any_name_has_a_place(name: str) -> None:
    folder = folder_name(name)
    assert parse_path(f"results/squtr/{folder}/20260101T000000Z-0123456789abcdef.json")
    assert len(folder) < 100
    assert folder_name(name) == folder


def test_names_that_look_alike_have_places_of_their_own() -> None:
    names = ["a/b", "a b", "a-b", "a\\b", "..", ".", "", "ä", "ö", "A B"]
    assert len({folder_name(name) for name in names}) == len(names)


@given(st.text())
def test_markdown_of_strangers_is_text(text: str) -> None:
    shown = plain(text)
    assert "\n" not in shown
    assert "<" not in shown.replace("\\<", "")
    assert "|" not in shown.replace("\\|", "").replace("\\\\", "")
    assert all(not wrong_name(f"x{char}x") for char in shown if char not in "<>")


def test_stored_results_are_checked_against_their_hashes(run: Path, tmp_path: Path) -> None:
    paths = stored_in(tmp_path / "store", run)
    assert all(validate_file(path).ok for path in paths)
    content = json.loads(paths[0].read_text())

    def check(said: str, **fields: object) -> None:
        paths[0].write_text(json.dumps({**content, **fields}))
        assert said in messages(validate_file(paths[0]))

    check("its sha256 differs", result={**content["result"], "seed": 1})
    check("is not the one that was submitted", items={**content["items"], "sha256": "0" * 64})
    check("the result says 5", items={**content["items"], "bytes": 5})
    check("lies beside a result that says it has no records", items=None)
    check("its content belongs at", submitted="2020-01-01T00:00:00Z")
    check("is no date", submitted="2020-99-01T00:00:00Z")
    check("submitted", submitted="yesterday")
    check("about.0.link", about=[{"role": "encoder", "link": "javascript:alert(1)"}])
    check("about.0.link", about=[{"role": "encoder", "link": 'https://x.org/"onclick="x'}])
    check("about.0.parameters", about=[{"role": "encoder", "parameters": "many"}])
    check("about.0.extra", about=[{"role": "encoder", "extra": 1}])
    check("cannot be seen", note="a\u202eb")
    check("note", note="x" * 3000)
    check("Extra inputs", extra=1)
    check("store_version", store_version="2")
    paths[0].with_suffix(".parquet").unlink()
    check("is missing, and the result says it has 12 records")
    moved = tmp_path / "store/results/squtr/other" / paths[1].name
    moved.parent.mkdir()
    shutil.copy(paths[1], moved)
    shutil.copy(paths[1].with_suffix(".parquet"), moved.with_suffix(".parquet"))
    assert "its content belongs at results/squtr/garbler+words/" in messages(validate_file(moved))
    with pytest.raises(DataError, match="is not a stored result: submitted"):
        parse_stored({"store_version": "1"}, "x.json")


def test_a_change_may_only_add(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    stored_in(before, run)
    shutil.copytree(before, after)
    send(prepare([run / "results" / "garbler+other"])[0], str(after))
    good = validate_change(compare_folders(before, after))
    assert len(good) == 6
    assert all(validation.ok for validation in good)
    assert main(["validate", str(after), "--base", str(before)]) == 0
    victim = sorted(before.rglob("*.json"))[0].relative_to(before)
    (after / victim).write_text("{}")
    (after / "results/squtr/garbler+words").joinpath("link.json").symlink_to("/etc/passwd")
    table = "results/squtr/x/20260101T000000Z-0123456789abcdef.parquet"
    (after / table).parent.mkdir()
    (after / table).write_bytes(b"x")
    assert main(["validate", str(after), "--base", str(before)]) == 1
    said = capsys.readouterr().out
    assert f"'{victim.as_posix()}': the file was changed" in said
    assert "link.json': only results are added" in said
    assert "it is a link, not a file" in said
    assert f"{table}: there is no result beside this table" in said
    (after / victim).unlink()
    assert "the file was removed" in messages(validate_change(compare_folders(before, after))[0])
    assert "no result is added" in messages(validate_change(compare_folders(before, before))[0])


def test_other_queries_than_those_of_the_store(run: Path, copy: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    stored_in(before, run)
    shutil.copytree(before, after)
    own = copy / "results/garbler+other/en_clean.json"
    edit_table(own.with_suffix(".items.parquet"), first(id="q99"))
    send(prepare([own])[0], str(after))
    (found,) = validate_change(compare_folders(before, after))
    assert "its 12 items are not the 12 of" in messages(found)


def test_the_same_system_again_is_pointed_out(run: Path, copy: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    stored_in(before, run)
    shutil.copytree(before, after)
    own = copy / "results/garbler+words/en_text.json"
    document = json.loads(own.read_text())
    document["timing"]["stages"]["search"] = 1.0
    own.write_text(json.dumps(document))
    send(prepare([own])[0], str(after))
    (found,) = validate_change(compare_folders(before, after))
    assert found.ok
    assert any("the newer counts" in finding.message for finding in found.findings)
    stored = make_stored(document, None, 0, now=datetime(2031, 1, 1, tzinfo=UTC))
    add_files(after, {stored.path: stored.as_bytes()})
    numbers_only = [v for v in validate_change(compare_folders(before, after)) if v.who == "self-reported"]
    assert len(numbers_only) == 1
    assert numbers_only[0].ok


def test_content_hashes_ignore_the_layout(run: Path) -> None:
    document = json.loads((run / NOISY).read_text())
    again = json.loads(json.dumps(document, indent=7, sort_keys=True))
    assert content_sha256(document) == content_sha256(again)


def test_the_whole_release_is_asked_for(changed: Callable[..., Validation]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["data"] |= {"source": "release", "subsets": ["fiqa"], "n": 12, "n_total": 12}
        document["by_group"]["subset"][0]["label"] = "fiqa"

    assert "fiqa has 648 queries, the result says 12" in messages(changed(edit))


def test_a_part_of_the_queries_is_pointed_out(changed: Callable[..., Validation]) -> None:
    validation = changed(put("data", "recipe", "limit", value=12))
    assert validation.ok
    assert any("listed separately" in finding.message for finding in validation.findings)
