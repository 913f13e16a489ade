"""`squtr score mcqa` and `squtr score aif`: output, files, and errors that name file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squtr.harness.cli import main

ITEMS: list[dict[str, Any]] = [
    {"id": 1, "options": ["Madrid", "Barcelona", "Sevilla", "Vigo"], "answer": "Barcelona", "perception": ["léxico"]},
    {"id": 2, "options": ["Sí", "No"], "answer": "B", "perception": "prosody|lexical", "reasoning": ["intent"]},
    {"id": 3, "options": ["uno", "dos", "tres"], "answer": "c", "comparative": True, "dialect": "canario"},
    {"id": 4, "options": ["uno", "dos", "tres"], "answer": "dos", "missing_audio": True, "duration_s": 90.5},
]
REPLIES: list[dict[str, Any]] = [
    {"id": 1, "reply": "La respuesta es la B."},
    {"id": 2, "reply": "Sí o no"},
    {"id": 3, "reply": None},
]


def put(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [put(tmp_path / "items.jsonl", ITEMS), put(tmp_path / "replies.jsonl", REPLIES)]


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_mcqa(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "mcqa", *files, "--json", "--per-item", str(tmp_path / "o.jsonl")]) == 0
    found = told(capsys)
    assert {name: found[name] for name in ("accuracy", "accuracy_parsed", "unparsed", "n")} == {
        "accuracy": pytest.approx(1 / 3),
        "accuracy_parsed": 1.0,
        "unparsed": pytest.approx(2 / 3),
        "n": 3,
    }
    chance = (1 / 4 + 1 / 2 + 1 / 3) / 3
    assert found["chance"] == pytest.approx(chance)
    assert found["accuracy_corrected"] == pytest.approx((1 / 3 - chance) / (1 - chance))
    assert set(found["intervals"]["accuracy"]) == {"low", "high"}
    assert (found["missing_replies"], found["missing_audio"], found["coverage"]) == (1, 1, 0.75)
    assert {name: each["n"] for name, each in found["breakdowns"]["perception"].items()} == {"lexical": 2, "prosody": 1}
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["parsed"], row["correct"], row["status"]) for row in rows] == [
        ("1", "B", 1, "parsed"),
        ("2", None, 0, "absent"),
        ("3", None, 0, "missing_reply"),
        ("4", None, None, "missing_audio"),
    ]


def test_mcqa_as_a_table(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "mcqa", *files, "--by", "dialect", "--duration-edges", "60", "120"]) == 0
    shown = capsys.readouterr().out
    for part in (
        "3 questions, parser 1",
        "accuracy_corrected",
        "perception|reasoning",
        "canario",
        "60-120 s",
        "recall",
    ):
        assert part in shown


def test_two_systems_can_be_compared(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = put(
        tmp_path / "other.jsonl", [{"id": 1, "reply": "A"}, {"id": 2, "reply": "No."}, {"id": 3, "reply": "tres"}]
    )
    for replies, name in ((files[1], "a.jsonl"), (other, "b.jsonl")):
        assert main(["score", "mcqa", files[0], replies, "--per-item", str(tmp_path / name)]) == 0
    capsys.readouterr()
    paths = [str(tmp_path / name) for name in ("b.jsonl", "a.jsonl")]
    assert main(["compare", *paths, "--metrics", "correct"]) == 0
    assert "correct" in capsys.readouterr().out


def test_orders_and_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(
        pa.table({"id": ["q"], "options": [["uno", "dos", "tres"]], "answer": ["uno"]}), tmp_path / "i.parquet"
    )
    replies = put(
        tmp_path / "r.jsonl",
        [
            {"id": "q", "reply": "A"},
            {"id": "q", "reply": "C", "order": [1, 2, 0]},
            {"id": "q", "reply": "uno", "order": ["C", "A", "B"]},
            {"id": "q", "reply": "A", "order": "BAC"},
        ],
    )
    assert main(["score", "mcqa", str(tmp_path / "i.parquet"), replies, "--json"]) == 0
    found = told(capsys)
    assert (found["accuracy"], found["n"], found["n_orders"], found["consistency"]) == (0.75, 1, 1, 0.5)


@pytest.mark.parametrize(
    ("items", "replies", "said"),
    [
        ([], REPLIES, "items.jsonl holds no items"),
        ([ITEMS[0], ITEMS[0]], [], "items.jsonl, line 2: id '1' stands in {0}/items.jsonl, line 1 too"),
        ([{"id": 1, "options": ["a", "b"]}], [], "items.jsonl, line 1: the answer of '1' is None"),
        ([{"id": 1, "options": ["a", "b"], "answer": 1}], [], "items.jsonl, line 1: the answer of '1' is 1"),
        ([{"id": 1, "options": ["a", "x"], "answer": "c"}], [], "line 1: item '1': the answer 'c' is none of the 2"),
        ([{"id": 1, "options": ["b", "a"], "answer": "a"}], [], "is the text of option B and the letter of option A"),
        ([{"id": 1, "options": ["b", "b"], "answer": "b"}], [], "line 1: item '1': options A and B are both 'b'"),
        (
            [{"id": 1, "options": "a|b", "answer": "a"}],
            [],
            "line 1: the field 'options' is 'a|b'. Give a list of texts",
        ),
        ([{"id": 1, "options": [1, 2], "answer": "1"}], [], "line 1: the field 'options' is [1, 2]"),
        ([{"options": ["a", "b"], "answer": "a"}], [], "line 1: there is no field 'id'"),
        ([{**ITEMS[0], "perception": {"a": 1}}], [], "line 1: the field 'perception' is {'a': 1}"),
        ([{**ITEMS[0], "comparative": "maybe"}], [], "line 1: the field 'comparative' is 'maybe'"),
        ([{**ITEMS[0], "duration_s": "long"}], [], "line 1: the duration is 'long'"),
        ([{**ITEMS[0], "spoken_of": 1}], [], "line 1: item '1' is `spoken_of` itself"),
        (ITEMS, [{"id": 9, "reply": "A"}], "replies.jsonl, line 1: there is no item '9'"),
        (ITEMS, [REPLIES[0], REPLIES[0]], "replies.jsonl, line 2: id '1' stands in {0}/replies.jsonl, line 1 too"),
        (ITEMS, [REPLIES[0], {**REPLIES[0], "order": [0, 1, 2, 3]}], "replies.jsonl, line 2: id '1' stands in"),
        (ITEMS, [{"id": 1, "answer": "A"}], "replies.jsonl, line 1: there is no field 'reply', only id, answer"),
        (ITEMS, [{"id": 1, "reply": 3}], "replies.jsonl, line 1: the reply to '1' is 3"),
        (ITEMS, [{"id": 1, "reply": "A", "order": [0, 1]}], "replies.jsonl, line 1: the order [0, 1] is not one of 4"),
        (ITEMS, [{"id": 1, "reply": "A", "order": "ABCZ"}], "replies.jsonl, line 1: the order 'ABCZ' is not one of 4"),
        (ITEMS, [{"id": 4, "reply": "A"}], "replies.jsonl, line 1: a reply to '4', whose audio is missing"),
        (ITEMS, [{"id": 1, "reply": "A", "missing_audio": True}], "replies.jsonl, line 1: a reply to '1', whose audio"),
    ],
)
def test_wrong_lines_are_named(
    items: list[dict[str, Any]],
    replies: list[dict[str, Any]],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = [put(tmp_path / "items.jsonl", items), put(tmp_path / "replies.jsonl", replies)]
    assert main(["score", "mcqa", *paths]) == 1
    error = capsys.readouterr().err
    assert said.replace("{0}", str(tmp_path)) in error
    assert len(error.splitlines()) == 1


def test_wrong_calls(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "mcqa", *files, "--duration-edges", "60", "30"]) == 2
    assert "the duration edges are [60.0, 30.0]" in capsys.readouterr().err
    assert main(["score", "mcqa", *files, "--method", "normal"]) == 2
    assert "unknown method 'normal'" in capsys.readouterr().err
    assert main(["score", "mcqa", *files, "--per-item", "x.csv"]) == 2
    assert "Name it .jsonl, .tsv or .parquet" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["mcqa", "aif"])
def test_help_has_an_example(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["score", kind, "--help"])
    assert left.value.code == 0
    assert f"squtr score {kind}" in capsys.readouterr().out.partition("example:")[2]


AIF: list[dict[str, Any]] = [
    {"id": "a", "verifiers": [{"id": "words", "count": 3, "relation": "at most"}, {"id": "no_commas"}], "sex": "F"},
    {"id": "b", "verifiers": [{"id": "change_case:english_capital"}]},
    {"id": "c", "verifiers": [{"id": "title"}], "missing_audio": True},
    {"id": "d", "verifiers": [{"id": "no_commas"}]},
]


def test_aif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = [{"id": "a", "reply": "Hola, qué tal"}, {"id": "b", "reply": "Va:\n¡HOLA!"}]
    paths = [put(tmp_path / "items.jsonl", AIF), put(tmp_path / "replies.jsonl", replies)]
    assert main(["score", "aif", *paths, "--missing", "count", "--json", "--per-item", str(tmp_path / "o.tsv")]) == 0
    found = told(capsys)
    assert (found["accuracy"], found["prompt_loose"]) == (0, pytest.approx(1 / 3))
    assert (found["instruction_strict"], found["instruction_loose"]) == (1 / 4, 1 / 2)
    assert (found["n"], found["n_instructions"], found["missing_replies"], found["coverage"]) == (3, 4, 1, 0.75)
    assert list(found["verifiers"]) == ["words", "uppercase", "no_commas"]
    lines = (tmp_path / "o.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[1].split("\t") == ["a", "0", "0", "2", "1", "1", "no_commas", "no_commas", "scored"]
    assert main(["score", "aif", *paths, "--missing", "count"]) == 0
    shown = capsys.readouterr().out
    assert "3 questions with 4 instructions, verifiers 1" in shown
    assert "uppercase" in shown


@pytest.mark.parametrize(
    ("verifiers", "said"),
    [
        (None, "line 1: the verifiers of 'a' are None"),
        ([], "line 1: the verifiers of 'a' are []"),
        (["uppercase"], "line 1: the verifiers of 'a' are ['uppercase']"),
        ([{"count": 3}], "line 1: a verifier of 'a' has the id None"),
        ([{"id": "upercase"}], "line 1: item 'a': unknown verifier 'upercase'. Did you mean 'uppercase'?"),
        ([{"id": "words", "count": 3}], "line 1: item 'a': verifier 'words': relation: Field required"),
        ([{"id": "title"}, {"id": "title", "x": 1}], "line 1: item 'a': verifier 'title': x: Extra inputs"),
    ],
)
def test_wrong_verifiers_are_named(
    verifiers: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [put(tmp_path / "items.jsonl", [{"id": "a", "verifiers": verifiers}]), put(tmp_path / "r.jsonl", [])]
    assert main(["score", "aif", *paths]) == 1
    error = capsys.readouterr().err
    assert f"{tmp_path}/items.jsonl, {said}" in error
    assert len(error.splitlines()) == 1
