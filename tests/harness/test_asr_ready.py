"""Transcripts from a user's own system."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, SqutrError, UnknownNameError, UsageError
from squtr.harness.components.transcribers.files import TranscriptsFile
from squtr.harness.protocols import Hypothesis, Transcript


def write(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def texts(ready: TranscriptsFile, subset: str, condition: str, ids: list[str]) -> list[str]:
    return [t.error or t.text for t in ready.transcripts(subset, condition, ids)]


def test_one_file_of_ids_and_texts(tmp_path: Path) -> None:
    file = write(
        tmp_path / "mine.jsonl",
        {"id": "q1", "text": " what is a bond "},
        "",
        {"id": 2, "text": ""},
        {"id": "q3", "error": "time-out"},
        {"id": "q4", "text": "no no no no no no"},
    )
    ready = TranscriptsFile(file, missing="count")
    assert isinstance(ready, TranscriptsFile)
    found = ready.transcripts("fiqa", "clean", ["q3", "q1", "2", "absent", "q4"])
    assert [(t.text, t.error, t.loop) for t in found] == [
        ("", "time-out", False),
        ("what is a bond", "", False),
        ("", "", False),
        ("", "no transcript in mine.jsonl", False),
        ("no no no no no no", "", True),
    ]
    assert ready.supports("sw")
    assert ready.transcripts("fiqa", "clean", []) == []


def test_a_file_without_conditions_is_that_of_one(tmp_path: Path) -> None:
    ready = TranscriptsFile(write(tmp_path / "mine.jsonl", {"id": "q1", "text": "a"}), missing="count")
    assert texts(ready, "fiqa", "clean", ["q1"]) == ["a"]
    assert texts(ready, "nq", "clean", ["q1"]) == ["a"]
    with pytest.raises(DataError, match=r"mine\.jsonl names no condition: it was taken for clean and cannot be reverb"):
        ready.transcripts("fiqa", "reverb", ["q1"])


def test_one_file_with_subsets_and_conditions(tmp_path: Path) -> None:
    file = write(
        tmp_path / "all.jsonl",
        {"id": "q1", "subset": "fiqa", "condition": "clean", "text": "fiqa clean"},
        {"id": "q1", "subset": "fiqa", "condition": "reverb", "text": "fiqa reverb"},
        {"id": "q1", "condition": "clean", "text": "any clean"},
        {"id": "q1", "subset": "nq", "text": "nq any"},
    )
    ready = TranscriptsFile(file, missing="count")
    assert texts(ready, "fiqa", "reverb", ["q1"]) == ["fiqa reverb"]
    assert texts(ready, "fiqa", "clean", ["q1"]) == ["fiqa clean"]
    assert texts(ready, "hotpotqa", "clean", ["q1"]) == ["any clean"]
    assert texts(ready, "nq", "clean", ["q1"]) == ["nq any"]
    assert texts(ready, "fiqa", "low_noise", ["q1"]) == ["no transcript in all.jsonl"]


@pytest.mark.parametrize(
    ("pattern", "file"),
    [
        ("{subset}/{condition}.jsonl", "fiqa/reverb.jsonl"),
        ("x-{config}.jsonl", "x-fiqa_reverb.jsonl"),
        ("x-{config}.jsonl", "x-en_reverb.jsonl"),
        ("{language}/{subset}/{condition}.jsonl", "en/fiqa/reverb.jsonl"),
        ("[odd]*?/{condition}.jsonl", "[odd]*?/reverb.jsonl"),
    ],
)
def test_files_by_placeholder(tmp_path: Path, pattern: str, file: str) -> None:
    write(tmp_path / file, {"id": "q1", "text": "a"})
    ready = TranscriptsFile(tmp_path / pattern, missing="count")
    shown = file.removeprefix("[odd]*?/")  # a folder without a placeholder is not shown
    assert texts(ready, "fiqa", "reverb", ["q1", "q2"]) == ["a", f"no transcript in {shown}"]
    assert ready.spec.model == pattern.removeprefix("[odd]*?/")
    with pytest.raises(DataError, match=r"no transcripts of fiqa under clean: .*exist"):
        ready.transcripts("fiqa", "clean", ["q1"])
    write(tmp_path / file.replace("reverb", "clean"), {"id": "q1", "text": "b"})
    assert texts(ready, "fiqa", "clean", ["q1"]) == ["b"]
    assert texts(ready, "fiqa", "reverb", ["q1"]) == ["a"]


def test_the_language_of_an_own_subset_must_be_told(tmp_path: Path) -> None:
    write(tmp_path / "es_clean.jsonl", {"id": "q1", "text": "hola"})
    with pytest.raises(SqutrError, match=r"mine_clean\.jsonl does not exist, and the language of the subset 'mine'"):
        TranscriptsFile(tmp_path / "{config}.jsonl").transcripts("mine", "clean", ["q1"])
    with pytest.raises(UsageError, match=r"languages={'mine': 'en'}"):
        TranscriptsFile(tmp_path / "{language}_{condition}.jsonl").transcripts("mine", "clean", ["q1"])
    for pattern in ("{config}.jsonl", "{language}_{condition}.jsonl"):
        ready = TranscriptsFile(tmp_path / pattern, languages={"mine": "es"})
        assert texts(ready, "mine", "clean", ["q1"]) == ["hola"]
    write(tmp_path / "mine_clean.jsonl", {"id": "q1", "text": "nearer"})
    assert texts(TranscriptsFile(tmp_path / "{config}.jsonl"), "mine", "clean", ["q1"]) == ["nearer"]


def test_the_confidence_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "n.jsonl", {"id": "q1", "text": "a", "confidence": 0.25})
    (found,) = TranscriptsFile(file).transcripts("fiqa", "clean", ["q1"])
    assert found == Transcript("a", confidence=0.25)


def test_hypotheses(tmp_path: Path) -> None:
    best = [{"text": "a b ", "score": -0.5}, {"text": "a c", "score": -1}, {"text": "d", "score": -1}]
    file = write(
        tmp_path / "n.jsonl", {"id": "q1", "hypotheses": best}, {"id": "q2", "text": "a b", "hypotheses": best}
    )
    expected = (Hypothesis("a b", -0.5), Hypothesis("a c", -1.0))
    for transcript in TranscriptsFile(file, n_best=2).transcripts("fiqa", "clean", ["q1", "q2"]):
        assert transcript.text == "a b"
        assert transcript.hypotheses == expected
    assert TranscriptsFile(file, n_best=2).spec.settings["n_best"] == 2
    (alone,) = TranscriptsFile(file).transcripts("fiqa", "clean", ["q1"])
    assert (alone.text, alone.hypotheses) == ("a b", ())
    assert math.isnan(alone.confidence)
    with pytest.raises(UsageError, match="n_best"):
        TranscriptsFile(file, n_best=0)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "a JSON object is expected"),
        ({"id": "q2"}, "'text' is None"),
        ({"text": "a"}, "'id' is None"),
        ({"id": None, "text": "a"}, "'id' is None"),
        ({"id": "q2", "text": ["a"]}, r"'text' is \['a'\]"),
        ({"id": "q1", "text": "b"}, "the id 'q1' occurs twice, first in line 1"),
        ({"id": "q2", "txt": "b"}, "unknown field 'txt'.*Did you mean 'text'"),
        ({"id": "q2", "text": "b", "error": "c"}, "both an error and a text"),
        ({"id": "q2", "error": "c", "hypotheses": [{"text": "a", "score": 0}]}, "both an error and a text"),
        ({"id": "q2", "text": "b", "hypotheses": [{"text": "a", "score": 0}]}, "not the first of the hypotheses"),
        ({"id": "q2", "text": "b", "confidence": 1.5}, "confidence 1.5"),
        ({"id": "q2", "text": "b", "confidence": True}, "confidence True"),
        ({"id": "q2", "hypotheses": "a"}, "is no list"),
        ({"id": "q2", "hypotheses": ["a"]}, "'text' and 'score'"),
        ({"id": "q2", "hypotheses": [{"text": "a", "score": True}]}, "score True"),
        ({"id": "q2", "hypotheses": [{"text": "a", "score": float("nan")}]}, "score nan"),
        ({"id": "q2", "hypotheses": [{"text": "a", "score": -2}, {"text": "b", "score": -1}]}, "not sorted"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: dict[str, Any] | str, said: str) -> None:
    ready = TranscriptsFile(write(tmp_path / "mine.jsonl", {"id": "q1", "text": "a"}, row))
    with pytest.raises(DataError, match=rf"mine\.jsonl, line 2: .*{said}"):
        ready.transcripts("fiqa", "clean", ["q1"])


def test_the_spec_is_the_content(tmp_path: Path) -> None:
    write(tmp_path / "a" / "sys" / "fiqa" / "clean.jsonl", {"id": "q1", "text": "a"})
    write(tmp_path / "b" / "sys" / "fiqa" / "clean.jsonl", {"id": "q1", "text": "a"})
    first, second = (TranscriptsFile(tmp_path / f / "sys" / "{subset}" / "{condition}.jsonl").spec for f in "ab")
    assert first == second
    assert (first.kind, first.backend, first.name, first.model) == (
        "transcriber",
        "transcripts",
        "sys",
        "{subset}/{condition}.jsonl",
    )
    assert first.revision.startswith("sha256:")
    assert str(tmp_path) not in str(first)
    write(tmp_path / "a" / "sys" / "fiqa" / "reverb.jsonl", {"id": "q1", "text": "a"})
    write(tmp_path / "b" / "sys" / "nq" / "clean.jsonl", {"id": "q1", "text": "a"})
    again = [TranscriptsFile(tmp_path / f / "sys" / "{subset}" / "{condition}.jsonl").spec.revision for f in "ab"]
    assert len({first.revision, *again}) == 3
    named = TranscriptsFile(tmp_path / "a" / "sys" / "fiqa" / "clean.jsonl", name="ours").spec
    assert (named.name, named.model) == ("ours", "clean.jsonl")
    assert TranscriptsFile(tmp_path / "a" / "sys" / "fiqa" / "clean.jsonl").spec.name == "clean"


def test_no_file_and_a_wrong_placeholder(tmp_path: Path) -> None:
    ready = TranscriptsFile(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match=r"there are no transcripts at .*none\.jsonl"):
        _ = ready.spec
    with pytest.raises(DataError, match=r"none\.jsonl does not exist"):
        ready.transcripts("fiqa", "clean", ["q1"])
    with pytest.raises(UnknownNameError, match="Did you mean 'subset'"):
        TranscriptsFile("{subsett}.jsonl")


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=8))
def test_every_text_comes_back(tmp_path_factory: pytest.TempPathFactory, rows: dict[str, str]) -> None:
    file = write(tmp_path_factory.mktemp("rows") / "r.jsonl", *({"id": i, "text": t} for i, t in rows.items()))
    found = TranscriptsFile(file).transcripts("fiqa", "clean", list(rows))
    assert [t.text for t in found] == [text.strip() for text in rows.values()]


def test_the_files_of_sclite(tmp_path: Path) -> None:
    (tmp_path / "mine.trn").write_text(";; a comment\nwhat is (or was) a bond (q1)\n(q2)\n", encoding="utf-8")
    (tmp_path / "mine.ctm").write_text(
        ";; a comment\nq1 1 0.90 0.20 bond 0.7\nq1 1 0.10 0.30 a 0.9\nq2 A 0.1 0.2 什么\nq2 A 0.3 0.2 是\n",
        encoding="utf-8",
    )
    trn = TranscriptsFile(tmp_path / "mine.trn", missing="count").transcripts("fiqa", "clean", ["q1", "q2", "q3"])
    assert [(t.text, t.error) for t in trn] == [
        ("what is (or was) a bond", ""), ("", ""), ("", "no transcript in mine.trn"),
    ]  # fmt: skip
    assert texts(TranscriptsFile(tmp_path / "mine.ctm"), "fiqa", "clean", ["q1", "q2"]) == ["a bond", "什么是"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.trn", "a (q1)\nno id\n", "line 2: no id in parentheses"),
        ("x.trn", "a (q1)\nb (q1)\n", "line 2: the id 'q1' occurs twice, first in line 1"),
        ("x.ctm", "q1 1 0.1 word\n", "line 1: 4 fields"),
        ("x.ctm", "q1 1 * * <ALT_BEGIN>\n", "line 1: <ALT_BEGIN> begins or ends alternatives"),
        ("x.ctm", "q1 1 nan 0.1 a\n", "line 1: the start 'nan' is no time"),
        ("x.ctm", "q1 A 0.1 0.1 a\nq1 B 0.1 0.1 b\n", "line 2: 'q1' has the channels 'A' and 'B'"),
    ],
)
def test_a_wrong_line_of_sclite_is_named(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=said):
        TranscriptsFile(tmp_path / name).transcripts("fiqa", "clean", ["q1"])


def test_what_the_length_cap_cut_is_told(tmp_path: Path) -> None:
    file = write(tmp_path / "n.jsonl", {"id": "q1", "text": "a", "truncated": True}, {"id": "q2", "text": "a"})
    assert [t.truncated for t in TranscriptsFile(file).transcripts("fiqa", "clean", ["q1", "q2"])] == [True, False]
    file = write(tmp_path / "m.jsonl", {"id": "q1", "text": "a", "truncated": "yes"})
    with pytest.raises(DataError, match="line 1: 'truncated' is 'yes'"):
        TranscriptsFile(file).transcripts("fiqa", "clean", ["q1"])
