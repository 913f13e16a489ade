"""The page on which people answer: what it holds, and what its notes do."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import DataError
from squtr.harness.cli import main
from squtr.loaders.questions.data import QuestionData
from squtr.loaders.questions.reading import read_questions
from squtr.loaders.questions.review import SCHEMA, corrected_questions, human_replies, read_review, write_review

from .questions_for_tests import ALL, CHOICE, SECONDS, write_set


class Page(HTMLParser):
    """Articles with their sounds and choices."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.items: dict[str, dict[str, list[str]]] = {}
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.tags.append(tag)
        if tag == "article":
            self.items[given["data-id"]] = {"audio": [], "radio": [], "textarea": []}
            self.now = given["data-id"]
        elif tag == "audio":
            self.items[self.now]["audio"].append(given["src"])
        elif tag == "textarea":
            self.items[self.now]["textarea"].append("")
        elif tag == "input" and given["type"] == "radio":
            self.items[self.now]["radio"].append(given["value"])


@pytest.fixture
def data(tmp_path: Path) -> QuestionData:
    return QuestionData(write_set(tmp_path / "set"))


def notes(path: Path, data: QuestionData, items: list[dict[str, Any]], **changes: Any) -> Path:
    content = {"schema": SCHEMA, "set": data.manifest_sha256, "items": items, **changes}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_the_page_holds_all_sound_and_choices_and_hides_the_key(data: QuestionData, tmp_path: Path) -> None:
    made = write_review(data, tmp_path / "page.html")
    assert (made.items, made.left_out, made.missing) == (5, 0, 0)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert list(page.items) == [question.id for question in ALL]
    for question in ALL:
        item = page.items[question.id]
        sounds = [base64.b64decode(src.partition(",")[2]) for src in item["audio"]]
        assert sounds == [(data.folder / "audio" / f"{audio}.flac").read_bytes() for audio in question.all_audios]
        assert item["radio"] == list(question.options)
        assert len(item["textarea"]) == (question.kind == "aif")
    assert len(re.findall(r'<div class="key" hidden>', text)) == 5
    assert "http://" not in text and "https://" not in text


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'<img src=x onerror=alert(1)>"
    folder = write_set(tmp_path / "set", [replace(CHOICE, question=evil, options=(evil, "No"), answer=evil)])
    write_review(QuestionData(folder), tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.items["m1"]["radio"] == [evil, "No"]
    assert page.tags.count("script") == 2 and "img" not in page.tags


def test_a_page_has_its_limits(data: QuestionData, tmp_path: Path) -> None:
    assert write_review(data, tmp_path / "p.html", limit=2).left_out == 3
    size = sum((data.folder / "audio" / f"{id_}.flac").stat().st_size for id_ in SECONDS)
    small = write_review(data, tmp_path / "p.html", max_bytes=size // 2)
    assert 0 < small.items < 5 and small.items + small.left_out == 5
    assert write_review(data, tmp_path / "p.html", config="comparative").items == 1
    (data.folder / "audio" / "clip-3.flac").unlink()
    fresh = QuestionData(data.folder)
    assert write_review(fresh, tmp_path / "p.html").missing == 1
    assert "1 preguntas no tienen su audio" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_notes_become_replies_and_corrections(data: QuestionData, tmp_path: Path) -> None:
    path = notes(
        tmp_path / "notes.json",
        data,
        [
            {"id": "m1", "reply": "Té", "revealed": True, "answer": "Agua", "comment": "se oye agua"},
            {"id": "m2", "reply": "", "mark": "reject"},
            {"id": "a1", "reply": "Habla de algo."},
        ],
    )
    review = read_review(path, data)
    assert human_replies(review) == [{"id": "m1", "reply": "Té"}, {"id": "a1", "reply": "Habla de algo."}]
    kept = corrected_questions(data.questions(), review)
    assert [question.id for question in kept] == ["m1", "m3", "m4", "a1"]
    assert kept[0].answer == "Agua" and kept[1:] == [data.questions()[place] for place in (2, 3, 4)]


@pytest.mark.parametrize(
    ("items", "changes", "said"),
    [
        ([], {"schema": "other"}, "is no file of marks"),
        ([], {"set": "0" * 64}, "about another set"),
        ([{"id": "zz"}], {}, "no item 'zz'"),
        ([{"id": "m1", "mark": "perhaps"}], {}, "is no file of marks"),
    ],
)
def test_notes_that_do_not_fit(
    data: QuestionData, tmp_path: Path, items: list[dict[str, Any]], changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        read_review(notes(tmp_path / "n.json", data, items, **changes), data)


def test_a_key_that_is_no_option_is_refused(data: QuestionData, tmp_path: Path) -> None:
    review = read_review(notes(tmp_path / "n.json", data, [{"id": "m1", "answer": "Zumo"}]), data)
    with pytest.raises(DataError, match="'m1': answer is 'Zumo'"):
        corrected_questions(data.questions(), review)


def test_the_command_and_the_scorer_take_peoples_replies(
    data: QuestionData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", str(data.folder), "--out", str(tmp_path / "p.html")]) == 0
    assert "5 questions" in capsys.readouterr().out
    right = [{"id": question.id, "reply": question.answer} for question in data.questions("mcqa")]
    path = notes(tmp_path / "n.json", data, right)
    replies, table = tmp_path / "people.jsonl", tmp_path / "mended.jsonl"
    words = ["review", str(data.folder), "--marks", str(path)]
    assert main([*words, "--replies", str(replies), "--corrected", str(table), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["replies"] == 4
    assert [question.id for question in read_questions(table)] == [question.id for question in ALL]
    items = tmp_path / "items.jsonl"
    items.write_text(
        "".join(
            json.dumps({"id": q.id, "options": list(q.options), "answer": q.answer}) + "\n"
            for q in data.questions("mcqa")
        ),
        encoding="utf-8",
    )
    assert main(["score", "mcqa", str(items), str(replies), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
