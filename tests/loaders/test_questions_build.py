"""Building a set of one's own: every problem is named, the balance is told, a stopped build continues."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile

from squtr.errors import RecipeMismatchError, UsageError
from squtr.harness.cli import main
from squtr.harness.cli.build_questions import check_verifiers
from squtr.loaders.questions import build as build_module
from squtr.loaders.questions import rows as rows_module
from squtr.loaders.questions.audio_folder import AudioFolder
from squtr.loaders.questions.balance import balance_of
from squtr.loaders.questions.build import QuestionRecipe, build_set
from squtr.loaders.questions.checks import examine_set
from squtr.loaders.questions.data import MINI_FOLDER, QuestionData
from squtr.loaders.questions.fields import row_of
from squtr.loaders.questions.question import Question
from squtr.loaders.questions.shortcuts import RULES, score_rule
from squtr.loaders.questions.validate import validate
from squtr.loaders.questions.windows import RATE

from .questions_for_tests import (
    ALL,
    CHOICE,
    PAIR,
    SECONDS,
    SLOW,
    SPOKEN,
    TASK,
    tone,
    write_rows,
    write_set,
    write_sounds,
)


def recipe(folder: Path, **changes: Any) -> QuestionRecipe:
    given = {
        "name": "tiny",
        "license": "CC0-1.0",
        "questions": ALL,
        "language": "es",
        "clips": dict(AudioFolder(folder / "audio").files),
        "statuses": {},
        "spoken": {},
    }
    return QuestionRecipe(**{**given, **changes})


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_all_problems_are_found_at_once(tmp_path: Path) -> None:
    sounds = write_sounds(tmp_path / "audio")
    (sounds / "broken.flac").write_bytes(b"no sound")
    soundfile.write(sounds / "silent.flac", np.zeros(RATE, dtype=np.float32), RATE)
    soundfile.write(sounds / "nan.wav", np.array([0.1, np.nan], dtype=np.float32), RATE, subtype="FLOAT")
    good = row_of(CHOICE)
    rows: list[dict[str, Any]] = [
        good,
        {**good, "id": "same-options", "options": ["Té", "té", "Café"]},
        {**good, "id": "no-answer", "answer": "Zumo"},
        {**good, "id": "label", "perception": ["lexicl"]},
        {**good, "id": "no-label", "reasoning": []},
        {**good, "id": "gone", "audios": ["gone"]},
        {**good, "id": "broken", "audios": ["broken"]},
        {**good, "id": "silent", "audios": ["silent"]},
        {**good, "id": "nan", "audios": ["nan"]},
        {**good, "id": "length", "duration_s": 7.0},
        good,
        {**row_of(TASK), "id": "verifier", "verifiers": [{"id": "wrds", "count": 1}]},
        {**row_of(TASK), "id": "argument", "verifiers": [{"id": "words", "cuont": 1}]},
    ]
    table = write_rows(tmp_path / "questions.jsonl", rows)
    found = validate(table, AudioFolder(sounds), check_verifiers=check_verifiers)
    assert [question.id for question in found.questions] == ["m1"]
    said = {problem.item: problem.sentence for problem in found.problems}
    assert set(said) == {row["id"] for row in rows}
    assert "'té' are the same" in said["same-options"]
    assert "not among the options" in said["no-answer"]
    assert "Did you mean 'lexical'" in said["label"]
    assert "reasoning is empty" in said["no-label"]
    assert "'gone' is not in" in said["gone"]
    assert "cannot be read" in said["broken"]
    assert "is silent" in said["silent"]
    assert "NaN" in said["nan"]
    assert "lasts 1 s, the table says 7 s" in said["length"]
    assert "was used at questions.jsonl, line 1" in said["m1"]
    assert "item 'verifier': unknown verifier 'wrds'" in said["verifier"]
    assert "item 'argument': verifier 'words'" in said["argument"]


def test_missing_sound_may_be_allowed_but_not_that_of_a_question(tmp_path: Path) -> None:
    folder = write_set(tmp_path)
    (folder / "audio" / "clip-2.flac").unlink()
    strict = validate(folder / "questions.jsonl", AudioFolder(folder / "audio"))
    assert {problem.item for problem in strict.problems} == {"m2"}
    assert [question.id for question in strict.questions] == ["m1", "m3", "m4"]
    lenient = validate(folder / "questions.jsonl", AudioFolder(folder / "audio"), allow_missing=True)
    assert lenient.problems == () and len(lenient.questions) == 5
    (folder / "audio" / "pregunta-m3.flac").unlink()
    lenient = validate(folder / "questions.jsonl", AudioFolder(folder / "audio"), allow_missing=True)
    assert [problem.item for problem in lenient.problems] == ["m3"]
    assert "m3" not in {question.id for question in lenient.questions}


def test_a_build_is_the_same_every_time_and_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_set(tmp_path / "set")
    whole = build_set(recipe(folder), tmp_path / "whole")
    assert whole.items == 5 and whole.complete and len(whole.shards) == 5
    made: list[str] = []
    write = build_module.write_shards

    def stopping(out: Path, plans: Any, rows: Any, **options: Any) -> Any:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(plans[0].path)
        return write(out, plans, rows, **options)

    monkeypatch.setattr(build_module, "write_shards", stopping)
    with pytest.raises(KeyboardInterrupt):
        build_set(recipe(folder), tmp_path / "stopped")
    made.clear()
    made.append("")  # one less than before: the third shard goes through now

    def noting(*call: Any, **options: Any) -> Any:
        made.append(call[1][0].path)
        return write(*call, **options)

    monkeypatch.setattr(build_module, "write_shards", noting)
    build_set(recipe(folder), tmp_path / "stopped")
    assert len(made) == 4
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")
    build_set(recipe(folder), tmp_path / "whole")
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_another_set_is_never_overwritten(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    build_set(recipe(folder), tmp_path / "out")
    with pytest.raises(RecipeMismatchError, match="questions_sha256"):
        build_set(recipe(folder, questions=ALL[:2]), tmp_path / "out")
    write_sounds(folder / "audio", {"clip-1": 1.2})
    with pytest.raises(RecipeMismatchError, match="audio_sha256"):
        build_set(recipe(folder), tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    with pytest.raises(RecipeMismatchError, match="is not empty"):
        build_set(recipe(folder), tmp_path / "mine")


def test_row_groups_and_shards_hold_a_bounded_amount_of_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sounds = tmp_path / "audio"
    sounds.mkdir()
    for number in range(8):
        soundfile.write(sounds / f"s{number}.flac", rng.uniform(-0.5, 0.5, RATE), RATE)
    size = (sounds / "s0.flac").stat().st_size
    questions = [replace(CHOICE, id=f"q{number}", audios=(f"s{number}",)) for number in range(8)]
    monkeypatch.setattr(rows_module, "GROUP_BYTES", 2.5 * size)
    monkeypatch.setattr(build_module, "SHARD_BYTES", 5.5 * size)
    given = recipe(tmp_path, questions=questions, clips=dict(AudioFolder(sounds).files))
    manifest = build_set(given, tmp_path / "out")
    assert [shard.rows for shard in manifest.shards] == [5, 3]
    groups = [pq.ParquetFile(tmp_path / "out" / shard.path).metadata for shard in manifest.shards]
    assert [[m.row_group(g).num_rows for g in range(m.num_row_groups)] for m in groups] == [[2, 2, 1], [2, 1]]
    assert [question.id for question in QuestionData(tmp_path / "out").questions()] == [q.id for q in questions]


def test_the_doctor_finds_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "set")
    manifest = build_set(recipe(folder), tmp_path / "out")
    healthy = examine_set(tmp_path / "out", sample=3)
    assert (healthy.healthy, healthy.items, healthy.decoded) == (True, 5, 3)
    assert main(["doctor", str(tmp_path / "out")]) == 0
    assert "5 questions, 4 clips decoded" in capsys.readouterr().out
    shard = tmp_path / "out" / manifest.shards[0].path
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(bytes(content))
    assert [finding.kind for finding in examine_set(tmp_path / "out").findings] == ["changed"]
    assert main(["doctor", str(tmp_path / "out")]) == 1
    shard.unlink()
    assert [finding.kind for finding in examine_set(tmp_path / "out").findings] == ["missing"]
    with pytest.raises(UsageError):
        examine_set(tmp_path / "out", sample=-1)


def test_balance_tells_what_gives_answers_away() -> None:
    fine = balance_of(QuestionData("mini").questions())
    assert fine["warnings"] == [] and fine["chance"] == pytest.approx(0.2782, abs=1e-4)
    always_first = [
        replace(CHOICE, id=f"q{n}", options=("La respuesta más larga", "No", "Sí"), answer="La respuesta más larga")
        for n in range(20)
    ]
    warned = " ".join(balance_of(always_first)["warnings"])
    assert "A 20, B 0, C 0" in warned
    assert "'longest' gets 100.0% where chance gives 33.3%" in warned
    assert "no item has the label syntax" in warned
    empty = balance_of([TASK])
    assert empty["chance"] is None and empty["rules"] == {}


@pytest.mark.parametrize(
    ("rule", "question", "options", "answer", "expected"),
    [
        ("first", "¿Qué?", ("a", "b"), "a", 1.0),
        ("last", "¿Qué?", ("a", "b"), "a", 0.0),
        ("longest", "¿Qué?", ("uno", "dos", "cuatro"), "cuatro", 1.0),
        ("longest", "¿Qué?", ("uno", "dos", "y"), "dos", 0.5),
        ("shortest", "¿Qué?", ("uno", "dos", "y"), "y", 1.0),
        ("overlap", "¿Dónde está el perro?", ("El perro ladra", "El gato", "La casa"), "El perro ladra", 1.0),
        ("overlap", "¿Dónde está?", ("Aquí", "Allí"), "Aquí", 0.5),
        ("like_the_others", "¿Qué?", ("dos kilos", "dos metros", "tres kilos"), "dos kilos", 1.0),
        ("most_precise", "¿Qué?", ("el 3 de mayo", "en mayo"), "el 3 de mayo", 1.0),
    ],
)
def test_rules_that_hear_nothing(
    rule: str, question: str, options: tuple[str, ...], answer: str, expected: float
) -> None:
    item = Question("q", "mcqa", ("a",), question, options, answer)
    assert score_rule(RULES[rule], [item]).accuracy == expected


def test_the_command_checks_builds_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "set")
    words = ["build", "--source", str(folder / "questions.jsonl"), "--audio", str(folder / "audio")]
    assert main([*words, "--check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["items"] == 5 and told["problems"] == []
    out = tmp_path / "out"
    assert main([*words, "--out", str(out), "--name", "Mi prueba", "--license", "CC-BY-4.0"]) == 0
    said = capsys.readouterr()
    assert "Built 5 questions" in said.out and "no item has the label syntax" in said.err
    data = QuestionData(out)
    assert (data.name, data.license) == ("Mi prueba", "CC-BY-4.0")
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "license: cc-by-4.0" in card and "- config_name: comparative" in card
    (folder / "audio" / "clip-3.flac").unlink()
    assert main([*words, "--out", str(tmp_path / "other")]) == 1
    assert "item 'm4': the audio 'clip-3' is not in" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    assert main([*words, "--out", str(tmp_path / "other"), "--allow-missing"]) == 0
    assert QuestionData(tmp_path / "other").coverage().by_status == {"missing": 1}


def test_configs_without_questions_are_left_out_of_the_card(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    build_set(recipe(folder, questions=[CHOICE, SLOW]), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "- config_name: mcqa" in card and "- config_name: non_normative" in card
    assert not any(f"- config_name: {config}" in card for config in ("aif", "comparative", "spoken"))


def test_the_command_speaks_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("espeakng_loader")
    rows = [row_of(replace(CHOICE, id=f"q{number}")) for number in range(6)]
    table = write_rows(tmp_path / "questions.jsonl", [*rows, row_of(PAIR), row_of(TASK)])
    sounds = write_sounds(tmp_path / "audio", {key: SECONDS[key] for key in ("clip-1", "clip-2")})
    words = ["build", "--source", str(table), "--audio", str(sounds), "--speak", "3", "--json"]
    assert main([*words, "--out", str(tmp_path / "out"), "--voices", "es+f1", "es-419+m1"]) == 0
    data = QuestionData(tmp_path / "out")
    spoken = data.questions("spoken")
    assert len(spoken) == 3 and data.coverage("spoken").covered == 3
    assert {question.question_voice for question in spoken} <= {"espeak/es+f1", "espeak/es-419+m1"}
    info = data.audio_facts(spoken[0].question_audio)
    assert info.rate == RATE and info.duration_s > 0.5
    assert main([*words, "--out", str(tmp_path / "again"), "--voices", "es+f1", "es-419+m1"]) == 0
    assert contents(tmp_path / "again") == contents(tmp_path / "out")
    capsys.readouterr()
    assert main(["build", "--source", str(table), "--audio", str(sounds), "--speak", "7"]) == 2
    assert "7 questions are to be spoken, of 6 that can be" in capsys.readouterr().err


def test_a_table_of_the_embedded_set_can_be_built(tmp_path: Path) -> None:
    checked = validate(
        MINI_FOLDER / "questions.jsonl", AudioFolder(MINI_FOLDER / "audio"), check_verifiers=check_verifiers
    )
    assert checked.problems == ()
    assert checked.questions == QuestionData("mini").questions()


def test_examples_have_their_sound() -> None:
    assert {audio for question in (*ALL, SPOKEN) for audio in question.all_audios} == set(SECONDS)
    assert tone(1.0).size == RATE
