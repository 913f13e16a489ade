"""`squtr evaluate`: what it prints and writes, what it says of what is wrong, and how it exits."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from squtr.harness.cli import main
from squtr.harness.evaluation import forecast, shards
from squtr.harness.results.envelope import read_runs

from . import evaluate_for_tests as counted
from .evaluation_for_tests import built

HERE = "class:tests.harness.evaluate_for_tests"
SYSTEM = f"{HERE}:Hears + {HERE}:Finds"
QUERIES, DOCUMENTS = 7, 12


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate")
    built(folder, "clean", "high_noise", queries=QUERIES, documents=DOCUMENTS)
    return folder / "data"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    counted.reset()
    monkeypatch.setattr(shards, "SHARD_CLIPS", 3)


class Place:
    """A folder for results and cache, and the command line on it."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.data, self.out, self.cache = data, folder / "run", folder / "cache"

    def evaluate(self, *options: str, system: str = SYSTEM) -> int:
        where = ["--data", str(self.data), "--cache", str(self.cache), "--resamples", "20"]
        out = [] if "--dry-run" in options else ["--out", str(self.out)]
        return main(["evaluate", *([system] if system else []), *where, *out, "--no-self-check", *options])

    def configs(self, below: str = "") -> dict[str, set[str]]:
        """The configs that results are written of, by system."""
        found: dict[str, set[str]] = {}
        for path in (self.out / below / "results").glob("*/*.json"):
            found.setdefault(path.parent.name, set()).add(path.stem)
        return found


@pytest.fixture
def place(data: Path, tmp_path: Path) -> Place:
    return Place(data, tmp_path)


ALL = {f"{language}_{c}" for language in ("en", "zh") for c in ("text", "clean", "high_noise")}


def test_results_are_written_and_shown(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.evaluate() == 0
    said = capsys.readouterr()
    assert "hears + finds" in said.out
    assert f"Results: {place.out / 'results'}" in said.out
    assert f"squtr report {place.out}" in said.out
    assert "PARTIAL" not in said.out
    assert said.err == ""
    assert place.configs() == {"hears+finds": ALL}
    assert sum(counted.Hears.heard.values()) == 2 * 2 * QUERIES
    # Again: nothing is heard, nothing is searched, and the same is printed.
    counted.reset()
    assert place.evaluate() == 0
    assert capsys.readouterr().out == said.out
    assert not counted.Hears.heard
    assert not counted.Finds.searched


def test_json_is_what_is_written(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.evaluate("--json", "--configs", "en_clean") == 0
    printed = json.loads(capsys.readouterr().out)
    written = [json.loads(p.read_text()) for p in sorted((place.out / "results").rglob("*.json"))]
    assert sorted(printed, key=lambda r: r["data"]["config"]) == written
    assert [r["data"]["config"] for r in printed] == ["en_text", "en_clean"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["en_*"], {"en_text", "en_clean", "en_high_noise"}),
        (["*_clean"], {"en_text", "en_clean", "zh_text", "zh_clean"}),
        (["tiny-zh_*"], {"tiny-zh_text", "tiny-zh_clean", "tiny-zh_high_noise"}),
        (["en_h*", "zh_text"], {"en_text", "en_high_noise", "zh_text"}),
    ],
)
def test_configs_may_be_patterns(place: Place, patterns: list[str], expected: set[str]) -> None:
    assert place.evaluate("--configs", *patterns) == 0
    assert place.configs() == {"hears+finds": expected}


@pytest.mark.parametrize(
    ("options", "folder", "n"),
    [
        (["--limit", "2"], "partial-first-2", 2),
        (["--fraction", "0.4"], "partial-share-0.4", 3),
        (["--fraction", "0.4", "--limit", "1", "--seed", "3"], "partial-first-1-share-0.4-seed-3", 1),
    ],
)
def test_a_part_is_evaluated_beside_no_full_run(
    place: Place, capsys: pytest.CaptureFixture[str], options: list[str], folder: str, n: int
) -> None:
    assert place.evaluate("--configs", "en_clean") == 0
    full = {p: p.read_bytes() for p in (place.out / "results").rglob("*") if p.is_file()}
    capsys.readouterr()
    counted.reset()
    assert place.evaluate("--configs", "en_clean", *options) == 0
    assert not counted.Hears.heard, "a part of what was heard is heard"
    said = capsys.readouterr().out
    assert f"{n} of {QUERIES}" in next(line for line in said.splitlines() if line.startswith("PARTIAL"))
    assert f"squtr report {place.out / folder}" in said
    assert place.configs(folder) == {"hears+finds": {"en_text", "en_clean"}}
    assert {p: p.read_bytes() for p in (place.out / "results").rglob("*") if p.is_file()} == full
    whole = {r.result.data.config: r for r in read_runs(place.out)}
    for record in read_runs(place.out / folder):
        result = record.result
        assert (result.data.partial, result.data.n, result.data.n_total) == (True, n, QUERIES)
        every = {row["id"]: row for row in whole[result.data.config].items.to_pylist()}
        assert all(row["documents"] == every[row["id"]]["documents"] for row in record.items.to_pylist())
        assert len(every) == QUERIES


def test_the_same_part_is_taken_everywhere(place: Place) -> None:
    assert place.evaluate("--limit", "3") == 0
    by_config = {r.result.data.config: r for r in read_runs(place.out / "partial-first-3")}
    assert set(by_config) == ALL
    for language in ("en", "zh"):
        ids = {tuple(by_config[f"{language}_{c}"].items["id"].to_pylist()) for c in ("text", "clean", "high_noise")}
        assert len(ids) == 1
    assert sum(counted.Hears.heard.values()) == 2 * 2 * 3


def test_strict_fails_configs_in_which_a_query_failed(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    faulty = f"{HERE}:Faulty + {HERE}:Finds"
    assert place.evaluate("--strict", "--configs", "en_clean", system=faulty) == 1
    said = capsys.readouterr()
    assert "faulty + finds on en_clean failed: 3 of 7 items of en_clean failed for" in said.err
    assert "too loud" in said.err
    assert "1 run failed, 1 did not" in said.err
    assert "Traceback" not in said.err
    assert place.configs() == {"faulty+finds": {"en_text"}}
    # So many are no few that are counted, unless that is wanted.
    assert place.evaluate("--configs", "en_clean", system=faulty) == 1
    said = capsys.readouterr()
    assert "3 of 7 items of en_clean failed for faulty + finds, more than 5 %; the first is 'q0'" in said.err
    assert "add --max-failed 0.43." in said.err
    assert place.configs() == {"faulty+finds": {"en_text"}}
    assert place.evaluate("--configs", "en_clean", "--max-failed", "0.43", system=faulty) == 0
    record = next(r for r in read_runs(place.out) if r.result.data.config == "en_clean")
    assert record.result.failures["failed"] == 3
    assert record.result.scores["wer"].n == QUERIES - 3


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (f"{HERE}:DeafToChinese + {HERE}:Finds", "failed: ValueError: no zh today (evaluate_for_tests.py, line "),
        (
            f"{HERE}:Hears + {HERE}:Chinese",
            "failed: OSError: [Errno 28] No space left on the index (evaluate_for_tests.py, line ",
        ),
    ],
)
def test_a_config_that_fails_does_not_lose_the_others(
    place: Place, capsys: pytest.CaptureFixture[str], system: str, reason: str
) -> None:
    assert place.evaluate("--system", SYSTEM, system=system) == 1
    said = capsys.readouterr()
    name = "deaf-to-chinese + finds" if "Deaf" in system else "hears + english-only"
    for condition in ("clean", "high_noise"):
        assert f"squtr: {name} on zh_{condition} failed: " in said.err
    assert reason in said.err
    assert "Run the same command again to continue" in said.err
    assert "Traceback" not in said.err
    assert "hears + finds" in said.out
    done = place.configs()
    assert done["hears+finds"] == ALL
    assert {c for c in done[name.replace(" + ", "+")] if c.startswith("en")} == {c for c in ALL if c.startswith("en")}
    assert "zh_clean" not in done[name.replace(" + ", "+")]


def lines(capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(line["stage"], line["scope"]): line for line in json.loads(capsys.readouterr().out)}


def numbers(found: dict[tuple[str, str], dict[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    return {key: (line["items"], line["cached"]) for key, line in found.items()}


def test_a_dry_run_tells_what_is_left_before_and_after(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "TIMED_CLIPS", 2)
    cells = [f"tiny-{language}_{c}" for language in ("en", "zh") for c in ("clean", "high_noise")]
    assert place.evaluate("--dry-run", "--json") == 0
    before = lines(capsys)
    assert numbers(before) == {
        **{("transcribe", cell): (QUERIES, 0) for cell in cells},
        **{("index", f"tiny-{language}"): (DOCUMENTS, 0) for language in ("en", "zh")},
    }
    assert all(line["seconds"] > 0 and line["measured"] == "now" for line in before.values())
    assert {line["component"] for line in before.values()} == {"hears", "finds"}
    # Four clips were heard to know how fast that is; nothing was evaluated, nothing is kept.
    assert sum(counted.Hears.heard.values()) == 4
    assert not counted.Finds.searched
    assert not place.out.exists()
    assert not place.cache.exists()

    assert place.evaluate("--configs", "en_*") == 0
    capsys.readouterr()
    counted.reset()
    assert place.evaluate("--dry-run", "--json") == 0
    half = lines(capsys)
    assert numbers(half) == {
        **{("transcribe", cell): (QUERIES, QUERIES if "-en_" in cell else 0) for cell in cells},
        ("index", "tiny-en"): (DOCUMENTS, DOCUMENTS),
        ("index", "tiny-zh"): (DOCUMENTS, 0),
    }
    # What was heard took 0.5 s a clip; the rate is that.
    kept = {p.stem: json.loads(p.read_text()) for p in (place.out / "results").rglob("*.json")}
    audio_s = sum(kept[c]["timing"]["audio_s"] for c in ("en_clean", "en_high_noise"))
    zh = half["transcribe", "tiny-zh_clean"]
    assert zh["measured"] == "before"
    assert half["transcribe", "tiny-en_clean"]["seconds"] == 0
    assert half["transcribe", "tiny-en_clean"]["measured"] == ""
    assert not counted.Hears.heard

    assert place.evaluate() == 0
    kept = {p.stem: json.loads(p.read_text()) for p in (place.out / "results").rglob("*.json")}
    expected = 2 * QUERIES * 0.5 / audio_s * kept["zh_clean"]["timing"]["audio_s"]
    assert zh["seconds"] == pytest.approx(expected)
    capsys.readouterr()
    counted.reset()
    assert place.evaluate("--dry-run", "--json") == 0
    after = lines(capsys)
    assert all(cached == items for items, cached in numbers(after).values())
    assert all(line["seconds"] == 0 for line in after.values())
    assert not counted.Hears.heard
    assert not counted.Finds.indexed
    assert place.evaluate("--dry-run") == 0
    table = capsys.readouterr().out
    assert "Nothing was evaluated" in table
    assert [row.split()[-2:] for row in table.splitlines()[1:-1]] == [["none", "-"]] * 6


def test_a_dry_run_without_a_cache_and_of_a_part(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        place.evaluate("--dry-run", "--no-cache", "--limit", "2", "--configs", "en_clean", "--num-processes", "3") == 0
    )
    said = capsys.readouterr().out
    header, transcribe, index, total = said.splitlines()
    assert header.split() == ["stage", "component", "of", "items", "cached", "left", "rate", "measured"]
    assert transcribe.split() == ["transcribe", "hears", "tiny-en_clean", "2", "0", "1", "s", "now"]
    assert index.split()[:5] == ["index", "finds", "tiny-en", str(DOCUMENTS), "0"]
    assert total.startswith("About ")


def test_a_dry_run_says_what_would_fail(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.evaluate("--dry-run", "--configs", "fr_clean") == 2
    assert "unknown config 'fr_clean'" in capsys.readouterr().err


def test_latency_is_measured_one_query_at_a_time(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.evaluate("--configs", "en_*") == 0
    tables = {p: p.read_bytes() for p in (place.out / "results").rglob("*.parquet")}
    counted.reset()
    assert place.evaluate("--configs", "en_*", "--latency", "4") == 0
    for record in read_runs(place.out):
        latency = record.result.timing.latency
        if record.result.data.condition == "text":
            assert latency is None
            continue
        assert latency is not None
        assert latency.n == 4
        assert 0 < latency.p50_s <= latency.p90_s <= latency.p95_s <= latency.p99_s
    # The first is heard twice, to warm up; the others once per condition, although all of them are known.
    assert sum(counted.Hears.heard.values()) == 2 * 5
    assert counted.Finds.indexed == Counter({"en": DOCUMENTS})
    assert {p: p.read_bytes() for p in (place.out / "results").rglob("*.parquet")} == tables
    # It stays when it is not asked for.
    counted.reset()
    assert place.evaluate("--configs", "en_*") == 0
    assert all(r.result.timing.latency is not None for r in read_runs(place.out) if r.result.data.condition != "text")
    assert not counted.Hears.heard
    capsys.readouterr()
    assert place.evaluate("--configs", "en_*", "--latency", "100", "--json") == 0
    timings = [r["timing"]["latency"] for r in json.loads(capsys.readouterr().out)]
    assert [t and t["n"] for t in timings] == [None, QUERIES, QUERIES]


def test_a_latency_that_cannot_be_measured_keeps_the_results(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.evaluate("--configs", "en_clean", "zh_clean") == 0
    monkeypatch.setattr(counted.Hears, "transcribe", lambda *_, **__: 1 / 0)
    counted.reset()
    assert place.evaluate("--configs", "en_clean", "zh_clean", "--latency", "2") == 1
    said = capsys.readouterr()
    assert "Hears.transcribe (hears) on 1 clips in 'en' failed: ZeroDivisionError" in said.err
    assert "2 runs failed, 2 did not" in said.err
    assert place.configs() == {"hears+finds": {"en_text", "en_clean", "zh_text", "zh_clean"}}


def test_a_log_for_machines(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "progress.jsonl"
    assert place.evaluate("--json-log", str(log), "--configs", "en_*") == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    ends = {e["stage"]: e for e in events if e["event"] == "stage_end"}
    searching = {"searching with finds: documents", "searching with finds"}
    assert set(ends) == {"opening systems and data", "transcribing with hears", *searching, "scoring"}
    transcribing = ends["transcribing with hears"]
    assert transcribing["done"] == transcribing["total"] == 2 * QUERIES
    assert transcribing["rtfx"] > 0
    assert ends["searching with finds"]["done"] == ends["searching with finds"]["total"]
    assert {e["stage"] for e in events if e["event"] == "stage_start"} == set(ends)
    # A second evaluation appends; all that is known counts as done at once.
    assert place.evaluate("--json-log", str(log), "--configs", "en_*") == 0
    assert len(log.read_text().splitlines()) > len(events)


def test_a_log_that_cannot_be_written_is_a_sentence(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.evaluate("--json-log", str(place.data)) == 1
    assert f"the log {place.data} cannot be written" in capsys.readouterr().err


def test_one_process_is_this_one(place: Place) -> None:
    assert place.evaluate("--num-processes", "1", "--configs", "en_clean") == 0
    assert sum(counted.Hears.heard.values()) == QUERIES


@pytest.mark.parametrize(
    ("options", "system", "message"),
    [
        ([], "", "no system is given"),
        (["--configs", "fr_*"], SYSTEM, "unknown pattern of configs 'fr_*'"),
        (["--configs", "en_claen"], SYSTEM, "Did you mean 'en_clean'?"),
        (["--fraction", "0"], SYSTEM, "fraction 0.0"),
        (["--fraction", "1.5"], SYSTEM, "fraction 1.5"),
        (["--fraction", "nan"], SYSTEM, "fraction nan"),
        (["--limit", "-1"], SYSTEM, "limit -1"),
        (["--depth", "9"], SYSTEM, "the depth is 9"),
        (["--latency", "-1"], SYSTEM, "latency is -1"),
        (["--depth", "20", "--metrics", "recall_at_50"], SYSTEM, "the depth is 20, and recall_at_50 looks at 50"),
        (["--metrics", "wer"], SYSTEM, "none of these metrics is of a ranking"),
        (["--metrics", "accuracy"], SYSTEM, "accuracy does not apply to retrieval"),
        (["--metrics", "ndgc_at_10"], SYSTEM, "Did you mean 'ndcg_at_10'?"),
        (["--option-orders", "2"], SYSTEM, "--option-orders does not apply to retrieval"),
        (["--baselines", "text-only"], SYSTEM, "--baselines does not apply to retrieval"),
        (["--no-spoken"], SYSTEM, "does not apply to retrieval"),
        ([], f"{HERE}:Hears", "retrieves nothing"),
        (["--judge", "text-only + llm:x"], SYSTEM, "judges mark replies"),
        (["--option", "beam_size"], SYSTEM, "is not written as NAME=VALUE"),
        (["--option", "volume=3"], SYSTEM, "volume"),
        (["--num-processes", "0"], SYSTEM, "0 processes cannot evaluate anything"),
        (["--system", SYSTEM], SYSTEM, "two systems are called 'hears + finds'"),
        (["--batch-size", "3"], SYSTEM, "batch_size"),
        ([], "hears + finds", "unknown transcriber 'hears'"),
        ([], "class:tests.harness.evaluate_for_tests:Hers + bm25", "Hers"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_what_is_wrong_with_a_call(
    place: Place, capsys: pytest.CaptureFixture[str], options: list[str], system: str, message: str, *, dry: bool
) -> None:
    if dry and "--num-processes" in options:
        pytest.skip("a dry run is one process")
    assert place.evaluate(*options, *(["--dry-run"] if dry else []), system=system) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not counted.Hears.heard
    assert not place.out.exists()


def test_results_need_a_folder(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", SYSTEM, "--data", str(data)]) == 2
    assert "Add --out DIR" in capsys.readouterr().err


def test_data_that_is_not_there(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.data = place.data / "nowhere"
    assert place.evaluate() in {1, 2}
    said = capsys.readouterr().err
    assert "nowhere" in said
    assert "Traceback" not in said


def test_ctrl_c_keeps_what_is_done(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    counted.Hears.calls_left = 2
    assert place.evaluate() == 130
    said = capsys.readouterr().err
    assert "interrupted. What was finished is kept" in said
    assert "Traceback" not in said
    assert not (place.out / "results").exists()
    heard = Counter(counted.Hears.heard)
    assert sum(heard.values()) == 2 * 3
    counted.reset()
    assert place.evaluate() == 0
    assert set((heard + counted.Hears.heard).values()) == {1}
    assert place.configs() == {"hears+finds": ALL}


def test_a_damaged_store_is_a_sentence(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.cache.mkdir()
    (place.cache / "evaluations.sqlite").write_bytes(b"This was never a database, but a letter. " * 100)
    for options in ([], ["--dry-run"]):
        assert place.evaluate(*options) == 1
        said = capsys.readouterr().err
        assert "evaluations.sqlite cannot be used: file is not a database. " in said
        assert "remove it: it is made again" in said
        assert said.count("\n") == 1


def test_results_that_cannot_be_written_are_a_sentence(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.out.mkdir()
    (place.out / "results").write_text("a file where the folder should be")
    assert place.evaluate("--configs", "en_clean", "--samples", "0") == 1
    said = capsys.readouterr().err
    assert "cannot write" in said
    assert "Traceback" not in said
    # What was heard and found is kept.
    (place.out / "results").unlink()
    counted.reset()
    assert place.evaluate("--configs", "en_clean", "--samples", "0") == 0
    assert not counted.Hears.heard
    assert not counted.Finds.searched


def test_metrics_decide_columns_depth_and_the_main_score(place: Place) -> None:
    assert place.evaluate("--configs", "en_clean", "--metrics", "recall_at_150", "nDCG@3", "cer") == 0
    for record in read_runs(place.out):
        result = record.result
        assert result.main_metric == "recall_at_150"
        assert set(result.scores) - {"cer"} == {"recall_at_150", "ndcg_at_3"}
        assert ("cer" in result.scores) == (result.data.condition != "text")
        assert result.system.settings["depth"] == 150
        names = record.items.schema.names
        assert names[-2:] == ["recall_at_150", "ndcg_at_3"]
        assert max(map(len, record.items["documents"].to_pylist())) <= DOCUMENTS


def test_the_normalizer_is_the_one_named(place: Place) -> None:
    assert place.evaluate("--configs", "en_clean", "--normalizer", "raw") == 0
    assert {r.result.system.normalizer for r in read_runs(place.out)} == {"raw"}


def test_options_of_components_are_given_by_name(place: Place) -> None:
    assert place.evaluate("--configs", "en_clean", "--option", "errors=2", "--max-failed", "1") == 0
    record = next(r for r in read_runs(place.out) if r.result.data.config == "en_clean")
    assert record.result.system.components["transcriber"]["settings"] == {"errors": 2}
    assert record.result.failures["failed"] > 0
