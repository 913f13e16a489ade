"""Rows of tables, in whatever spelling, to questions and back."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.loaders.questions import labels
from squtr.loaders.questions.fields import fields_of, question_of, row_of
from squtr.loaders.questions.labels import PERCEPTION, REASONING
from squtr.loaders.questions.question import INTELLIGIBILITY, SEXES, Question, check_question
from squtr.loaders.questions.reading import read_questions
from squtr.loaders.questions.spellings import OPTION_FIELDS, SPELLINGS

from .questions_for_tests import ALL, CHOICE, PUBLISHED, TASK, write_rows

texts = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12).map(
    lambda text: f"x{text}"
)
names = st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    kind = draw(st.sampled_from(("mcqa", "aif")))
    audios = tuple(draw(st.lists(names.map("s".__add__), min_size=1, max_size=2, unique=True)))
    options = tuple(draw(st.lists(texts, min_size=2, max_size=5, unique_by=lambda t: t.casefold())))
    verifiers = ({"id": draw(names), "count": draw(st.integers(0, 9))},)
    aetiology = draw(st.sampled_from(("", "als", "stroke", "simulated_slurred")))
    lengths = tuple(draw(st.floats(0.1, 6000)) for _ in audios) if draw(st.booleans()) else ()
    return Question(
        id=draw(names.map("q".__add__)),
        kind=kind,
        audios=audios,
        question=draw(texts),
        options=options if kind == "mcqa" else (),
        answer=draw(st.sampled_from(options)) if kind == "mcqa" else "",
        verifiers=verifiers if kind == "aif" else (),
        perception=tuple(draw(st.lists(st.sampled_from(sorted(PERCEPTION)), min_size=1, unique=True))),
        reasoning=tuple(draw(st.lists(st.sampled_from(sorted(REASONING)), min_size=1, unique=True))),
        question_audio=draw(st.sampled_from(("", "pregunta"))),
        aetiology=aetiology,
        intelligibility=draw(st.sampled_from(("", *INTELLIGIBILITY))),
        sex=draw(st.sampled_from(("", *SEXES))),
        duration_s=math.fsum(lengths) if lengths else draw(st.sampled_from((math.nan, 6.7, 5100.0))),
        audio_durations_s=lengths,
        source_urls=tuple(f"https://example.org/{audio}" for audio in audios) if draw(st.booleans()) else (),
        open_ended=draw(st.booleans()),
    )


@given(questions())
def test_what_is_written_is_read_back(question: Question) -> None:
    row = row_of(check_question(question))
    back = question_of(json.loads(json.dumps(row)), "row")
    if len(question.audios) == 1 and not question.audio_durations_s and not math.isnan(question.duration_s):
        assert back.audio_durations_s == (question.duration_s,)
        row["audio_durations_s"] = [question.duration_s]
    assert row_of(back) == row


def test_a_published_row_in_its_likely_spelling() -> None:
    question = question_of(PUBLISHED, "row")
    assert question == Question(
        id="esc_0001",
        kind="mcqa",
        audios=("esc_0001",),
        question="¿Quién habla más?",
        options=("La mujer", "El hombre", "Los dos", "Nadie"),
        answer="El hombre",
        perception=("speaker", "speech_activity"),
        reasoning=("quantitative",),
        aetiology="als",
        intelligibility="medium-low",
        sex="male",
        duration_s=86.2,
        source_urls=("https://example.org/watch?v=1",),
        audio_durations_s=(86.2,),
    )
    assert question.non_normative and not question.comparative and question.answer_index == 1


def varied(**changes: Any) -> dict[str, Any]:
    row = {**PUBLISHED, **changes}
    return {key: value for key, value in row.items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"answer": "B"}, {"answer": "El hombre"}),
        ({"answer": "(b)"}, {"answer": "El hombre"}),
        ({"answer": "el  hombre "}, {"answer": "El hombre"}),
        ({"answer": ..., "answer_index": 1}, {"answer": "El hombre"}),
        ({"choices": "['La mujer', 'El hombre']"}, {"options": ("La mujer", "El hombre")}),
        ({"choices": '["La mujer", "El hombre"]'}, {"options": ("La mujer", "El hombre")}),
        ({"choices": "La mujer|El hombre"}, {"options": ("La mujer", "El hombre")}),
        ({"choices": {"A": "La mujer", "B": "El hombre"}}, {"options": ("La mujer", "El hombre")}),
        (
            {"choices": ..., "option_a": "La mujer", "option_b": "El hombre", "option_c": ""},
            {"options": ("La mujer", "El hombre")},
        ),
        ({"perception": ..., "reasoning": ..., "categories": "léxico;abstracción"}, {"perception": ("lexical",)}),
        ({"audio_path": ...}, {"audios": ("esc_0001",)}),
        (
            {"audio_path": ..., "url": ["https://a", "https://b"], "is_comparative": True},
            {"audios": ("esc_0001_1", "esc_0001_2")},
        ),
        ({"audio_path": ["a/x.wav", "b/y.mp3"], "is_comparative": "true"}, {"audios": ("x", "y")}),
        ({"audio_2": "z.flac", "is_comparative": 1}, {"audios": ("esc_0001", "z")}),
        ({"audio_path": ["x.wav", "p.wav"], "question_audio": "p.wav"}, {"audios": ("x",), "question_audio": "p"}),
        (
            {"audio_path": ["x.wav", "p.wav"], "spoken": True, "is_comparative": ..., "duration": 9.0},
            {"audios": ("x",), "question_audio": "p", "duration_s": 9.0},
        ),
        ({"duration": "nan"}, {"audio_durations_s": ()}),
        ({"duration": [4.0, 6.5], "audio_path": ["x", "y"], "is_comparative": True}, {"duration_s": 10.5}),
        ({"intelligibility": "missing"}, {"intelligibility": ""}),
        ({"etiology": "none", "gender": None}, {"aetiology": "", "sex": ""}),
        ({"etiology": ..., "is_pathological": True}, {"aetiology": "unknown"}),
        ({"id": 7}, {"id": "7"}),
        ({"choices": ["None", "El hombre"]}, {"options": ("None", "El hombre")}),
        ({"choices": ["None", "El hombre"], "answer": "None"}, {"answer": "None"}),
    ],
)  # fmt: skip
def test_other_ways_to_write_it(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    question = question_of(varied(**changes), "row")
    for field, value in expected.items():
        assert getattr(question, field) == value


def test_distractors_have_an_order_of_their_own_that_depends_on_the_id_alone() -> None:
    def options(id_: str, distractors: list[str]) -> tuple[str, ...]:
        row = varied(id=id_, choices=..., distractors=distractors)
        return question_of(row, "row").options

    orders = {options(f"q{number}", ["La mujer", "Nadie", "Los dos"]) for number in range(40)}
    assert all(sorted(order) == ["El hombre", "La mujer", "Los dos", "Nadie"] for order in orders)
    assert len({order.index("El hombre") for order in orders}) == 4
    assert options("q1", ["La mujer", "Nadie", "Los dos"]) == options("q1", ["Los dos", "La mujer", "Nadie"])


@pytest.mark.parametrize(
    ("verifiers", "expected"),
    [
        ({"verifier_id": "no_commas"}, [{"id": "no_commas"}]),
        ({"verifiers": '[{"id": "words", "count": 3}]'}, [{"id": "words", "count": 3}]),
        ({"verifiers": {"id": "title"}}, [{"id": "title"}]),
        (
            {"instruction_id_list": ["words", "title"], "kwargs": [{"count": 3, "relation": None}, {}]},
            [{"id": "words", "count": 3}, {"id": "title"}],
        ),
    ],
)
def test_verifiers_in_several_forms(verifiers: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    row = {"id": "a1", "audio": "x.wav", "instruction": "Hazlo.", "labels": ["lexical", "intent"], **verifiers}
    question = question_of(row, "row")
    assert question.kind == "aif"
    assert [dict(verifier) for verifier in question.verifiers] == expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"notes": "x"}, r"item 'esc_0001': the field 'notes' is not known"),
        ({"anser": "x"}, "Is it 'answer'"),
        ({"id": ...}, "line 3: the field id is missing"),
        ({"answer": ...}, "item 'esc_0001': the field answer is missing"),
        ({"choices": ...}, "item 'esc_0001': the field options is missing"),
        ({"audio_path": ..., "url": ...}, "item 'esc_0001': the field audios is missing"),
        ({"question": ""}, "item 'esc_0001': question is empty"),
        ({"answer": "Otra cosa"}, "item 'esc_0001': answer is 'Otra cosa', which is not among"),
        ({"answer": "F"}, "answer is 'F'"),
        ({"choices": ["El hombre", "el HOMBRE"]}, "the same"),
        ({"choices": ["El hombre"]}, "options has 1 members"),
        ({"perception": ["humor"]}, "item 'esc_0001': perception has the unknown label 'humor'"),
        ({"reasoning": ["quantitatve"]}, "Did you mean 'quantitative'"),
        ({"gender": "x"}, "item 'esc_0001': sex is 'x'"),
        ({"intelligibility": "so so"}, "item 'esc_0001': intelligibility is"),
        ({"duration": "long"}, "item 'esc_0001': duration_s is 'long'"),
        ({"duration": -1}, "a duration is -1 s"),
        ({"is_comparative": True}, "item 'esc_0001': comparative is true, but it has 1 audios"),
        ({"spoken": True}, "spoken is true, but question_audio is missing"),
        ({"type": "essay"}, "kind is 'essay'"),
        ({"type": "aif"}, "verifiers is empty"),
        ({"verifier": "words"}, "a multiple-choice item has verifiers"),
        ({"audio_path": ["a", "b", "c"]}, "audios is"),
        ({"id": "a/b"}, "cannot be used"),
        ({"id": ".."}, "cannot be used"),
        ({"url": ["https://a", "https://b"]}, "source_urls has 2 members for 1 audios"),
        ({"answer_index": 0}, "answer is 'El hombre' and answer_index names 'La mujer'"),
        ({"answer": ..., "answer_index": 9}, "answer_index is 9"),
        ({"pregunta": "¿Otra?"}, "both give question"),
        ({"is_pathological": False}, "aetiology is 'ela' and non_normative is false"),
        ({"open_ended": "perhaps"}, "open_ended is 'perhaps'"),
    ],
)
def test_errors_name_item_and_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        question_of(varied(**changes), "ESCUCHA.json, line 3")


def test_unknown_fields_can_be_taught_or_left_out() -> None:
    row = varied(notes="x", enunciado="¿Y?", question=...)
    question = question_of(row, "row", extra=fields_of(["notes=-", "Enunciado=question"]))
    assert question.question == "¿Y?"
    with pytest.raises(UnknownNameError, match="Did you mean 'question'"):
        fields_of(["enunciado=questoin"])
    with pytest.raises(UsageError):
        fields_of(["enunciado"])


def test_no_spelling_has_two_meanings() -> None:
    spellings = [spelling for known in SPELLINGS.values() for spelling in known]
    spellings += [spelling for known in OPTION_FIELDS for spelling in known]
    assert len(set(spellings)) == len(spellings)
    assert all(labels.plain_name(spelling) == spelling for spelling in spellings)
    assert not set(labels.PERCEPTION_SPELLINGS) & set(labels.REASONING_SPELLINGS)


def test_labels_are_those_that_scores_are_broken_down_by() -> None:
    from squtr.harness.tasks.understanding.answers import labels as scored

    assert tuple(PERCEPTION) == tuple(scored.PERCEPTION)
    assert tuple(REASONING) == tuple(scored.REASONING)
    assert tuple(scored.INTELLIGIBILITY) == INTELLIGIBILITY
    assert set(SEXES) == set(scored.SEX)
    assert (len(PERCEPTION), len(REASONING)) == (9, 10)


def test_every_kind_of_table(tmp_path: Path) -> None:
    rows = [row_of(question) for question in ALL]
    lines = write_rows(tmp_path / "t.jsonl", rows)
    wanted = read_questions(lines)
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(rows), encoding="utf-8")
    wrapped = tmp_path / "wrapped.json"
    wrapped.write_text(json.dumps({"version": 1, "questions": rows}), encoding="utf-8")
    by_id = tmp_path / "by_id.json"
    by_id.write_text(json.dumps({row["id"]: {k: v for k, v in row.items() if k != "id"} for row in rows}))
    for path in (listed, wrapped, by_id):
        assert list(map(row_of, read_questions(path))) == list(map(row_of, wanted))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for ending, delimiter in (("tsv", "\t"), ("csv", ",")):
        path = tmp_path / f"t.{ending}"
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, columns, delimiter=delimiter)
            writer.writeheader()
            writer.writerows(
                {k: json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for k, v in row.items()}
                for row in rows
            )
        assert list(map(row_of, read_questions(path))) == list(map(row_of, wanted))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.json", "{", "not JSON"),
        ("t.json", '{"a": 1}', "holds no list of items"),
        ("t.json", "[1]", "item 1: an object"),
        ("t.jsonl", "", "holds no questions"),
        ("t.tsv", "id\tquestion\n1\t2\t3\n", "line 2: more cells"),
        ("t.xlsx", "", "no table that can be read"),
        ("t.json", "\xff", "UTF-8"),
    ],
)
def test_broken_tables(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=said):
        read_questions(path)


def test_two_items_with_one_id(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", [row_of(CHOICE), row_of(TASK), row_of(CHOICE)])
    with pytest.raises(DataError, match=r"line 3: the id 'm1' was used at t\.jsonl, line 1"):
        read_questions(path)
