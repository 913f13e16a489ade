"""One rule for each kind of bad row; all errors of a source in one; rows left out, counted and named."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest

from squtr.errors import DataError, UnknownNameError
from squtr.harness.cli import main
from squtr.loaders.doctor import examine
from squtr.loaders.left_out import LeftOut
from squtr.loaders.manifest import read_manifest
from squtr.loaders.sources import load_source
from squtr.loaders.sources.beir import BeirSource
from squtr.loaders.sources.rules import RULES

from .collections_for_tests import make_collection
from .sources_for_tests import make_beir, make_recordings

HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """q1 and q2 have a good judgment; every rule is broken once."""
    root = make_beir(tmp_path / "bad")
    with (root / "corpus.jsonl").open("a") as file:
        file.write(
            '{"_id": "d1", "text": "again"}\n{"_id": "\\ud83d", "text": "half"}\n{"_id": "", "text": "x"}\n{bad\n'
        )
    with (root / "queries.jsonl").open("a") as file:
        file.write('{"_id": "q1", "text": "again"}\n{"_id": "q5", "text": " "}\n')
    rows = ["q1\td1\t1", "q2\td2\t2", "q1\td2\t-1", "q1\td3\t0.5", "q1\td1\t2", "q9\td1\t1", "q1\td9\t1", "q5\td1\t1",
            "q3\td9\t1"]  # fmt: skip
    (root / "qrels/test.tsv").write_text(HEADER + "\n".join(rows) + "\n")
    return root


def test_all_errors_are_told_in_one(bad: Path) -> None:
    source = load_source(f"beir:{bad}?language=en")
    for read in (source.queries, source.qrels, lambda subset: list(source.documents(subset))):
        with pytest.raises(DataError) as caught:
            read("bad")
        error = str(caught.value)
        assert error.startswith("12 faults in beir:bad:")
        for said in (
            "the document id 'd1' occurs twice", "holds half a character", "the id '_id' is empty", "not JSON",
            "the query id 'q1' occurs twice", "query 'q5' has no text", "'-1', a grade below 0",
            "'0.5' where an integer",
            "'q1' and document 'd1' are judged twice", "the query 'q9' is not in queries",
            "line 8: the document 'd9' is not in the corpus", "line 10: the document 'd9' is not in the corpus",
        ):  # fmt: skip
            assert error.count(said) == 1, said
        assert "the query 'q5' is not in queries" not in error, "told already"
        assert "--on-bad skip" in error


def test_the_first_twenty_and_a_count(tmp_path: Path) -> None:
    root = make_beir(tmp_path / "m")
    (root / "qrels/test.tsv").write_text(HEADER + "".join(f"q1\td1\t{-i}\n" for i in range(30)))
    with pytest.raises(DataError, match=r"(?s)^29 faults in beir:m:.*and 9 more\.") as caught:
        BeirSource(root, language="en").queries("m")
    assert len(str(caught.value).splitlines()) == 23


def test_bad_rows_of_all_subsets_are_told(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny")
    for language in ("en", "zh"):
        with (root / f"qrels.{language}.jsonl").open("a") as file:
            file.write('{"query-id": "q0", "corpus-id": "d99", "score": 1}\n')
    source = load_source(str(root))
    with pytest.raises(DataError, match=r"(?s)2 faults in tiny.*qrels\.en.*qrels\.zh"):
        source.qrels(next(iter(source.subsets)))


def test_bad_rows_are_left_out_and_counted(bad: Path) -> None:
    source = load_source(f"beir:{bad}?language=en", on_bad="skip")
    assert [query.id for query in source.queries("bad")] == ["q2", "q1"]
    assert [(q.query_id, q.document_id, q.score) for q in source.qrels("bad")] == [("q1", "d1", 1), ("q2", "d2", 2)]
    assert [(d.id, d.text) for d in source.documents("bad")][1] == ("d1", "text 1")
    assert [d.id for d in source.documents("bad")] == ["d0", "d1", "d2", "d3"]
    left_out = {entry.reason: entry for entry in source.left_out}  # type: ignore[attr-defined]
    reasons = {rule.reason for rule in RULES}
    assert sum(entry.count for reason, entry in left_out.items() if reason in reasons) == 13
    assert left_out["judgments with a negative grade"] == LeftOut("judgments with a negative grade", 1, ("q1 d2",))
    assert left_out["queries of which all judgments were left out"].examples == ("q3",)
    assert left_out["queries without a judgment in qrels/test.tsv"].examples == ("q4",)
    again = pickle.loads(pickle.dumps(source))
    assert again.queries("bad") == source.queries("bad")


def test_skipping_makes_another_version(bad: Path) -> None:
    name = f"beir:{bad}?language=en"
    assert load_source(name, on_bad="skip").version == f"{load_source(name).version}-skip"
    with pytest.raises(UnknownNameError, match="unknown value of on_bad"):
        load_source(name, on_bad="ignore")


def test_one_error_says_how_to_skip_it(tmp_path: Path) -> None:
    root = make_beir(tmp_path / "m")
    (root / "qrels/test.tsv").write_text(f"{HEADER}q1\td1\t-2\nq1\td2\t1\n")
    with pytest.raises(DataError, match=r"line 2: field 'score' is '-2', a grade below 0\..*--on-bad skip"):
        BeirSource(root, language="en").qrels("m")


def test_a_source_says_its_split_and_the_queries_of_others(tmp_path: Path) -> None:
    source = load_source(f"beir:{make_beir(tmp_path / 'm')}?language=en&split=dev")
    assert source.split == "dev"  # type: ignore[attr-defined]
    assert [str(entry) for entry in source.left_out] == [  # type: ignore[attr-defined]
        "3 queries without a judgment in qrels/dev.tsv (q2, q1, q4)"
    ]


def test_every_rule_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs/data.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert re.search(rf"\| {re.escape(rule.sentence)} \| {re.escape(rule.skip)} \|", page), rule.name


def test_bad_recordings_are_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": id_, "file": f"{id_}.wav", "text": f"what is {id_[1]}", "language": "en"} for id_ in ("q1", "q2", "q7")
    ]
    voices = make_recordings(tmp_path / "voices", rows)
    with (voices / "manifest.jsonl").open("a") as file:
        file.write('{"id": "q1", "file": "q7.wav", "text": "what is 1", "language": "en"}\n{"file": "q7.wav"}\n')
    (voices / "q2.wav").write_bytes(b"RIFF and nothing")
    name = f"beir:{make_beir(tmp_path / 'm')}?language=en&speech={voices}"
    with pytest.raises(DataError, match="has neither id nor text"):
        load_source(name)
    source = load_source(name, on_bad="skip")
    assert [query.id for query in source.queries("m")] == ["q1"]
    assert [qrel.document_id for qrel in source.qrels("m")] == ["d1", "d0"]
    assert source.version.endswith("-skip")
    assert {entry.reason: entry.examples for entry in source.left_out} == {  # type: ignore[attr-defined]
        "queries without a judgment in qrels/test.tsv": ("q3", "q4"),
        "rows of a wrong form": ("manifest.jsonl, line 5",),
        "recordings with an id that occurs twice": ("q1",),
        "recordings without a query": ("q7.wav",),
        "queries with a recording that cannot be used": ("q2",),
    }
    assert pickle.loads(pickle.dumps(source)).queries("m") == source.queries("m")
    alone = load_source(f"recorded:{voices}", on_bad="skip")
    assert [query.id for query in alone.queries("voices")] == ["q1", "q7"]


def test_queries_without_a_recording_are_counted(tmp_path: Path) -> None:
    voices = make_recordings(tmp_path / "voices", [{"_id": "q1", "file": "1.wav"}])
    source = load_source(f"beir:{make_beir(tmp_path / 'm')}?language=en&speech={voices}&missing=skip")
    reasons = {entry.reason: entry.examples for entry in source.left_out}  # type: ignore[attr-defined]
    assert reasons["queries without a recording"] == ("q2",)
    assert source.split == "test"  # type: ignore[attr-defined]


def test_a_build_without_the_bad_rows_says_so(bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    voices = make_recordings(tmp_path / "v", [{"_id": f"q{i}", "file": f"{i}.wav"} for i in (1, 2)])
    command = ["build", "--source", f"beir:{bad}?language=en&speech={voices}", "--conditions", "clean"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 1
    assert "--on-bad skip" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "out"), "--on-bad", "skip", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"reason": "judgments with a negative grade", "count": 1, "examples": ["q1 d2"]} in told["left_out"]
    manifest = read_manifest(tmp_path / "out")
    assert manifest.recipe["sources"][0]["version"].endswith("-skip")
    assert examine(tmp_path / "out").healthy
