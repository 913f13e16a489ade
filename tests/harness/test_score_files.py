"""Files to score: every format gives the same, and what is wrong is named with file and line."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.score_files import read_items, read_qrels, read_run, read_texts, write_items

TEXTS = {"1": "你好 world", "u-2": "", "u3": "a (b) c"}


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "t.jsonl",
            '{"id": 1, "text": "你好 world"}\n\n{"text": "", "id": "u-2", "more": 3}\n{"_id": "u3", "text": "a (b) c"}',
        ),
        ("plain", '{"id": 1, "text": "你好 world"}\n{"id": "u-2", "text": ""}\n{"id": "u3", "text": "a (b) c"}\n'),
        ("t.tsv", "1\t你好 world\nu-2\t\nu3\ta (b) c\n"),
        ("t.tsv", "id\ttext\n1\t你好 world\nu-2\t\nu3\ta (b) c\n"),
        ("t.txt", "1\t你好 world\nu-2\t\nu3\ta (b) c\n"),
        ("text", "1 你好 world\nu-2\nu3   a (b) c \n"),
        ("t.trn", "你好 world (1)\n(u-2)\na (b) c (u3)\n"),
        ("hyp", "你好 world (1)\n(u-2)\na (b) c (u3)"),
    ],
)
def test_every_format_gives_the_same_texts(tmp_path: Path, name: str, content: str) -> None:
    assert read_texts(put(tmp_path, name, content)) == TEXTS


def test_parquet_texts(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(TEXTS), "text": list(TEXTS.values())}), tmp_path / "t.parquet")
    assert read_texts(tmp_path / "t.parquet") == TEXTS


def test_marks_and_line_ends_are_read_over_and_remarked_on(tmp_path: Path) -> None:
    said: list[str] = []
    path = put(tmp_path, "t.tsv", b"\xef\xbb\xbf1\ta b\r\n2\tc\r\n")
    assert read_texts(path, remark=said.append) == {"1": "a b", "2": "c"}
    assert ["byte order mark" in said[0], "CRLF" in said[1], len(said)] == [True, True, 2]
    said.clear()
    assert read_texts(put(tmp_path, "t", b'\xef\xbb\xbf{"id": "1", "text": "a"}\r\n'), remark=said.append) == {"1": "a"}
    assert len(said) == 2


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    assert read_texts(put(tmp_path, "t.tsv", "1\ta\u2028b\x85c\x0bd\n2\te\n"))["1"] == "a\u2028b\x85c\x0bd"
    assert read_texts(put(tmp_path, "old.tsv", "1\ta\r2\tb\r")) == {"1": "a", "2": "b"}


def test_the_words_of_a_ctm_file_are_joined(tmp_path: Path) -> None:
    content = "q1 1 0.9 0.2 bond\nq1 1 0.1 0.2 a\nq2 1 0 0 x\n"
    assert read_texts(put(tmp_path, "t.ctm", content)) == {"q1": "a bond", "q2": "x"}


def test_kaldi_takes_tabs_for_blanks(tmp_path: Path) -> None:
    assert read_texts(put(tmp_path, "t", "1\ta\tb\n"), "kaldi") == {"1": "a\tb"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.jsonl", '{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}', "line 2: id '1' stands in"),
        ("t.jsonl", '{"id": 1, "text": "a"}\n{"id"', "line 2: not JSON"),
        ("t.jsonl", "[1]", "line 1: a JSON object is expected"),
        ("t.jsonl", '{"id": 1}', "line 1: the field 'text' is None"),
        ("t.jsonl", '{"id": 1, "text": 3}', "line 1: the field 'text' is 3"),
        ("t.jsonl", '{"id": true, "text": "a"}', "line 1: the id 'id' is True"),
        ("t.jsonl", '{"id": " ", "text": "a"}', "line 1: the id 'id' is ' '"),
        ("t.jsonl", '{"key": 1, "text": "a"}', "no field 'id', only key, text"),
        ("t.tsv", "1\ta\n2 b\n", "line 2: no tab"),
        ("t.tsv", "1\ta\tb\n", "line 1: 3 fields with tabs between"),
        ("t.tsv", "\ta\n", "line 1: the id is empty"),
        ("t.trn", "a (1)\nb\n", "line 2: no id in parentheses"),
        ("t.tsv", "", "holds no texts"),
        ("t.tsv", "id\ttext\n", "holds no texts"),
        ("t.tsv", b"1\ta\n2\t\xe9t\xe9\n", "line 2: byte 0xe9 is not UTF-8"),
        ("t.tsv", "1\ta\n".encode("utf-16"), "is UTF-16"),
        ("t.tsv", "1\ta\n".encode("utf-32"), "is UTF-32"),
        ("t.tsv", "1\ta\n".encode("utf-16-le"), "line 1: a NUL character"),
        ("t.parquet", "no", "not a Parquet file"),
    ],
)
def test_bad_texts_are_named(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    with pytest.raises(DataError) as error:
        read_texts(put(tmp_path, name, content))
    assert said in str(error.value)
    assert name in error.value.message
    assert error.value.hint


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_texts(tmp_path / "none.tsv")
    with pytest.raises(DataError, match="cannot be read"):
        read_run(tmp_path)
    with pytest.raises(UnknownNameError, match=r"unknown format 'tvs'\. Did you mean 'tsv'"):
        read_texts(tmp_path / "none.tsv", "tvs")


QRELS = {"q1": {"a": 1, "7": 0}, "0": {"b": 2}}
RUN = {"q1": [("a", 1.5), ("7", -2.0)], "0": [("b", 3.0), ("b", 9.0)]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q", "q1 0 a 1\nq1 0 7 0\n0 0 b 2\n"),
        ("q.trec", "q1\t0\ta\t1\r\nq1\t0\t7\t0\r\n\r\n0\t0\tb\t2"),
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\t7\t0\n0\tb\t2\n"),
        ("test.txt", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\t7\t0\n0\tb\t2\n"),
        (
            "q.jsonl",
            '{"query-id": "q1", "corpus-id": "a", "score": "1"}\n{"query_id": "q1", "doc_id": 7, "grade": 0}\n'
            '{"qid": 0, "docid": "b", "relevance": 2.0}',
        ),
    ],
)
def test_every_format_gives_the_same_judgements(tmp_path: Path, name: str, content: str) -> None:
    assert read_qrels(put(tmp_path, name, content)) == QRELS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r", "q1 Q0 a 2 1.5 t\nq1 Q0 7 1 -2 t\n0 Q0 b 1 3.0 t\n0 Q0 b 2 9 t\n"),
        ("r.run", "q1\tQ0\ta\t2\t1.5\tt\nq1\tQ0\t7\t1\t-2\tt\n0\tQ0\tb\t1\t3.0\tt\n0\tQ0\tb\t2\t9\tt"),
        ("r.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1.5\nq1\t7\t-2\n0\tb\t3\n0\tb\t9\n"),
    ],
)
def test_every_format_gives_the_same_run(tmp_path: Path, name: str, content: str) -> None:
    assert read_run(put(tmp_path, name, content)) == RUN


def test_parquet_rankings(tmp_path: Path) -> None:
    table = pa.table({"query-id": ["q1", "q1", "0"], "corpus-id": ["a", "7", "b"], "score": [1, 0, 2]})
    pq.write_table(table, tmp_path / "q.parquet")
    assert read_qrels(tmp_path / "q.parquet") == QRELS


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("run", "q Q0 a 1 2.0 t\nq Q0 a 1 2.0\n", "line 2: 5 fields, but a run in TREC's format has 6"),
        ("qrels", "q 0 a 1\nq 0 b\n", "line 2: 3 fields, but judgments in TREC's format has 4"),
        ("run", "q\ta\t1\n", "line 1: 3 fields"),
        ("run", "q Q0 a 1 nan t\n", "line 1: the score is 'nan'"),
        ("run", "q Q0 a 1 inf t\n", "line 1: the score is 'inf'"),
        ("run", "q Q0 a 1 high t\n", "line 1: the score is 'high'"),
        ("qrels", "q 0 a 1.5\n", "line 1: the grade of document 'a' for query 'q' is '1.5'"),
        ("qrels", "q 0 a -1\n", "line 1: the grade of document 'a' for query 'q' is '-1', a grade below 0"),
        ("qrels", "q 0 a 1\nq 0 a 1\n", "line 2: document 'a' is judged twice for query 'q'"),
        ("qrels", "\n", "is empty"),
        ("run", '{"query-id": "q", "corpus-id": "a"}', "line 1: there is no field 'score'"),
        ("run", '{"query-id": "q", "corpus-id": null, "score": 1}', "line 1: the id 'corpus-id' is None"),
        ("run", '{"query-id": "q", "corpus-id": "a", "score": true}', "line 1: the score is True"),
        ("run", "query-id\tcorpus-id\tscore\nq a 1\n", "line 2: 1 fields, but the first line names 3"),
        ("run", "query-id\tcorpus-id\tcorpus-id\n", "a field is named twice"),
    ],
)
def test_bad_rankings_are_named(tmp_path: Path, kind: str, content: str, said: str) -> None:
    path = put(tmp_path, "file", content)
    with pytest.raises(DataError) as error:
        (read_run if kind == "run" else read_qrels)(path)
    assert said in str(error.value)
    assert str(path) in error.value.message


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=5)


@pytest.mark.parametrize("suffix", ["jsonl", "tsv", "parquet"])
@given(rows=st.dictionaries(NAMES, st.tuples(st.floats(-9, 9), st.one_of(st.none(), st.integers(0, 9))), min_size=1))
def test_items_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: dict[str, tuple[float, int | None]]
) -> None:
    path = tmp_path_factory.mktemp("items") / f"items.{suffix}"
    write_items(path, [{"id": i, "x": x, "y": y, "flag": True, "words": "a b"} for i, (x, y) in rows.items()])
    found = read_items(path)
    assert list(found) == list(rows)
    for id_, (x, y) in rows.items():
        assert found[id_]["x"] == x
        if y is not None:
            assert found[id_]["y"] == y
        else:
            assert math.isnan(found[id_].get("y", math.nan))
        assert set(found[id_]) <= {"x", "y"}


def test_items_of_subsets_stay_apart(tmp_path: Path) -> None:
    path = put(tmp_path, "i.jsonl", '{"id": 1, "subset": "a", "x": 1}\n{"id": 1, "subset": "b", "x": null}')
    found = read_items(path)
    assert found["a/1"] == {"x": 1.0}
    assert math.isnan(found["b/1"]["x"])


def test_bad_items(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2: id 'a' stands twice"):
        read_items(put(tmp_path, "i.jsonl", '{"id": "a", "x": 1}\n{"id": "a", "x": 1}'))
    with pytest.raises(DataError, match="holds no items"):
        read_items(put(tmp_path, "e.jsonl", ""))
    with pytest.raises(UsageError, match="no per-item file"):
        read_items(tmp_path / "i.csv")
