"""Files of ids that match nothing, and of texts that are none: told, refused or counted, in every kind of file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from squtr.errors import DataError, SqutrWarning, UnknownNameError
from squtr.harness.cli import main
from squtr.harness.components.answerers.files import RepliesFile
from squtr.harness.components.retrievers.trec_run import TrecRun
from squtr.harness.components.transcribers.files import TranscriptsFile
from squtr.harness.results.envelope import read_runs
from squtr.loaders.jsonl import read_jsonl
from squtr.loaders.text import valid_text

from .evaluation_for_tests import built

HALF = r"smile \ud83d"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("precomputed")
    built(folder, "clean", queries=5, documents=12)
    return folder / "data"


def run_of(folder: Path, *, queries: int = 5, document: str = "d1") -> Path:
    path = folder / "my.trec"
    path.write_text("".join(f"q{i} Q0 {document} 1 2.0 t\n" for i in range(queries)), encoding="utf-8")
    return path


def transcripts_of(folder: Path, *, queries: int = 5, prefix: str = "q") -> Path:
    path = folder / "my.jsonl"
    lines = (json.dumps({"id": f"{prefix}{i}", "text": "river", "condition": "clean"}) for i in range(queries))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def evaluate(data: Path, folder: Path, system: str, *options: str) -> int:
    where = [
        "--data",
        str(data),
        "--configs",
        "en_clean",
        "--out",
        str(folder / "run"),
        "--cache",
        str(folder / "cache"),
    ]
    return main(["evaluate", system, *where, "--no-self-check", "--resamples", "20", *options])


def test_a_byte_order_mark_is_no_part_of_an_id(data: Path, tmp_path: Path) -> None:
    path = run_of(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(TrecRun(path).hits("tiny-en", "clean", ["q0", "q4"], k=5)) == 2
    replies = tmp_path / "replies.jsonl"
    replies.write_bytes(b'\xef\xbb\xbf{"id": "q1", "reply": "A"}\n')
    assert RepliesFile(replies).ids == {"q1"}


def test_what_matches_nothing_at_all_is_never_counted(data: Path, tmp_path: Path) -> None:
    path = run_of(tmp_path)
    with pytest.raises(DataError, match="2 of 2 items have no ranking of tiny-en under clean"):
        TrecRun(path, missing="count").hits("tiny-en", "clean", ["Q8", "Q9"], k=5)
    with pytest.warns(SqutrWarning, match="1 of 2 items have no ranking .* they score 0"):
        TrecRun(path, missing="count").hits("tiny-en", "clean", ["q0", "q9"], k=5)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"queries": 3}, "2 of 5 items have no ranking of tiny-en under clean in"),
        (
            {"document": "D1"},
            "gave the document 'D1' for query 'q0' of tiny-en under clean, which the corpus does not have",
        ),
    ],
)
def test_a_run_that_does_not_match_the_data(
    made: dict[str, object], said: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run_of(tmp_path, **made)  # type: ignore[arg-type]
    assert evaluate(data, tmp_path, f"trec:{path}") == 1
    assert said in capsys.readouterr().err
    status = evaluate(data, tmp_path, f"trec:{path}", "--option", "missing=count")
    shown = capsys.readouterr().err
    if "document" in made:
        # None of them is there: no score of 0 is meant.
        assert (status, said in shown) == (1, True)
        return
    assert (status, "squtr: 2 of 5 items have no ranking" in shown) == (0, True)
    (record,) = read_runs(tmp_path / "run")
    assert record.result.failures["missing"] == 2


def test_transcripts_that_lack_ids(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = transcripts_of(tmp_path, prefix="Q")
    assert evaluate(data, tmp_path, f"transcripts:{path} + bm25") == 1
    said = capsys.readouterr().err
    assert "5 of 5 items have no transcript of tiny-en under clean" in said
    assert "it has 'Q0', for example" in said
    path = transcripts_of(tmp_path, queries=3)
    counted = ("--option", "missing=count")
    assert evaluate(data, tmp_path, f"transcripts:{path} + bm25", *counted) == 1
    assert "2 of 5 items of en_clean failed" in capsys.readouterr().err
    assert evaluate(data, tmp_path, f"transcripts:{path} + bm25", *counted, "--max-failed", "0.4") == 0
    said = capsys.readouterr().out
    assert "failed" in said
    record = next(r for r in read_runs(tmp_path / "run") if r.result.data.condition == "clean")
    assert record.result.failures["failed"] == 2
    assert record.result.scores["wer"].n == 3


@pytest.mark.parametrize("kind", [TrecRun, TranscriptsFile, RepliesFile])
def test_a_value_of_missing_that_is_none(kind: type, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="value of missing 'ignore'"):
        kind(tmp_path / "x", missing="ignore")


def test_score_refuses_what_does_not_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": "a", "text": "one two"}\n{"id": "b", "text": "three four"}\n')
    (tmp_path / "h.jsonl").write_text('{"id": "a", "text": "one too"}\n')
    wer = ["score", "wer", str(tmp_path / "r.jsonl"), str(tmp_path / "h.jsonl"), "--language", "en"]
    assert main(wer) == 1
    assert "no hypothesis for id 'b'" in capsys.readouterr().err
    assert main([*wer, "--missing", "count", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["wer"], scores["missing"], scores["unknown"]) == (0.5, 1, 0)
    # One error of four words, and three if those that are missing are errors too.
    assert scores["bounds_with_missing"] == [0.25, 0.75]
    assert main([*wer, "--missing", "count"]) == 0
    assert "bounds_with_missing" in capsys.readouterr().out

    (tmp_path / "qrels").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    for content, said in (
        ("q1 Q0 d1 1 2.0 t\n", "1 of 2 queries have no ranking in"),
        ("q1 Q0 D1 1 2.0 t\nq2 Q0 D2 1 2.0 t\n", "none of the documents in"),
    ):
        (tmp_path / "run").write_text(content)
        ranking = ["score", "ranking", str(tmp_path / "qrels"), str(tmp_path / "run")]
        assert main(ranking) == 1
        assert said in capsys.readouterr().err
        assert main([*ranking, "--missing", "count"]) == 0


def test_score_of_replies_refuses_what_does_not_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items, replies = tmp_path / "items.jsonl", tmp_path / "replies.jsonl"
    rows = [{"id": f"q{i}", "options": ["Uno", "Dos"], "answer": "A"} for i in range(2)]
    items.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    command = ["score", "mcqa", str(items), str(replies)]
    replies.write_text('{"id": "q0", "reply": "A"}\n', encoding="utf-8")
    assert main(command) == 1
    assert "1 of 2 questions have no reply" in capsys.readouterr().err
    assert main([*command, "--missing", "count", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing_replies"] == 1
    replies.write_text('{"id": "q0", "reply": "A"}\n{"id": "q1", "reply": null}\n', encoding="utf-8")
    assert main(command) == 0


def test_half_a_character_in_a_file_is_replaced_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(f'{{"id": "a", "text": "{HALF}"}}\n{{"id": "b", "text": "{HALF}"}}\n', encoding="ascii")
    with pytest.warns(SqutrWarning, match=r"half a character .* in 2 texts; the first: .*, line 1") as told:
        rows = [row for _, row in read_jsonl(path)]
    assert len(told) == 1
    assert [row["text"] for row in rows] == ["smile \ufffd"] * 2
    path.write_text(rf'{{"id": "a\ud83d", "text": "b"}}{chr(10)}', encoding="ascii")
    with pytest.raises(DataError, match=r"line 1: 'id' holds half a character"):
        list(read_jsonl(path))
    # Both halves are a character.
    path.write_text(r'{"id": "a", "text": "\ud83d\ude00"}', encoding="ascii")
    assert [row["text"] for _, row in read_jsonl(path)] == ["\U0001f600"]


@pytest.mark.parametrize("kind", ["transcripts", "replies"])
def test_half_a_character_in_a_precomputed_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    field = "text" if kind == "transcripts" else "reply"
    path.write_text(f'{{"id": "q1", "{field}": "{HALF}"}}\n', encoding="ascii")
    with pytest.warns(SqutrWarning, match="half a character .* in 1 texts"):
        if kind == "transcripts":
            (found,) = TranscriptsFile(path).transcripts("s", "clean", ["q1"])
            text = found.text
        else:
            reply = RepliesFile(path).reply_of("q1", spoken=False, order=None)
            assert reply is not None
            text = reply.text
    assert text == "smile \ufffd" == valid_text("smile \ud83d")


def test_every_half_is_replaced_and_what_is_text_stays() -> None:
    assert valid_text("a\ud83db\udc00c") == "a\ufffdb\ufffdc"
    assert valid_text("\ud83d\ude00 ok \U0001f600 é") == "\U0001f600 ok \U0001f600 é"
