"""The embedded set: whole, covering, balanced, and not to be answered without hearing it."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import soundfile

from squtr.harness.tasks.understanding.answers.option_text import Options
from squtr.harness.tasks.understanding.answers.parsing import parse_reply
from squtr.harness.tasks.understanding.answers.verifiers.registry import VERIFIERS, load_verifier
from squtr.loaders.audio import pcm_sha256
from squtr.loaders.jsonl import read_jsonl
from squtr.loaders.licenses import OTHER, merge_licenses
from squtr.loaders.questions.balance import balance_of
from squtr.loaders.questions.data import MINI_FOLDER, QuestionData
from squtr.loaders.questions.labels import PERCEPTION, REASONING
from squtr.loaders.questions.question import CONFIGS, Question
from squtr.loaders.questions.shortcuts import score_rules
from squtr.loaders.questions.spoken import choose_spoken
from squtr.loaders.questions.windows import RATE
from squtr.loaders.records import Query
from squtr.loaders.synthesis import choose_voice

MOST_BYTES = 6_000_000
FOLLOWED = {
    "semana-aif": "Hace yoga el lunes, nada el miércoles y sube a la sierra el sábado.",
    "picada-aif": "1. Tostar las almendras.\n2. Machacarlas con el ajo.\n3. Añadir el caldo.",
    "compra-aif": "- Tomates\n- Cebollas\n- Una lechuga",
    "anden-aif": "9:20",
    "rio-aif": "Si llovió a cántaros, el río no podía bajar seco.",
    "pleno-aif": "<<Más aceras>>\nEl ayuntamiento plantará cien árboles.",
    "viernes-aif": "Está harta. Feliz fin de semana",
    "alquiler-aif": '{"calefaccion": true, "luz": false}',
    "examen-aif": "GUARDAD LOS MÓVILES Y SACAD UNA HOJA.",
    "musica-aif": "que bajen la música.",
    "teide-aif": "Según la grabación, se veía el Teide desde la playa.",
    "martes-aif": "La cita es el miércoles.\n\nPorque el martes es fiesta.",
    "biblioteca-aif": "El libro que reservaste ha llegado.\n\nP. D.: Llamaron de la biblioteca.",
    "mesa-aif": "Mesa para cuatro lejos de la puerta, a nombre de [nombre], teléfono [teléfono].",
    "turnos-aif": "Largo y pesado.\n******\nHubo que dormir en la estación.",
    "carta-aif": "¿Quién leyó la carta? La abuela de Marta.",
    "consulta-aif": "¿Desde cuándo tose? ¿Tiene fiebre?",
    "campanadas-aif": "¡Feliz año nuevo!",
    "cartel-aif": "The driver parked the car in a place where parking is never allowed at any time of the day.",
    "codigo-aif": "4\n7\n9\n1",
    "visita-aif": "«Les ruego que hablen en voz baja durante la visita.»",
    "lucia-aif": "Lucía va a un *hotel* y el perro, a *casa de la mujer*.",
    "bici-aif": "Sección 1: ciento veinte euros con casco.\nSección 2: cien euros más treinta del casco.",
    "cena-aif": "De DOCE pasaron a nueve y al final quedaron ONCE.",
    "hora-aif": "Esta Noche Cambian la Hora",
    "farmacia-aif": "Estoy en la farmacia. Si la farmacia cierra, vuelvo antes.",
    "hija-aif": "La hija se llama Rosa y su ciudad es Bilbao, por cierto muy lluviosa y rica.",
    "risa-aif": "Se cayó al agua con el traje puesto y según él aún gotea.",
}


@pytest.fixture(scope="module")
def mini() -> QuestionData:
    return QuestionData("mini")


@pytest.fixture(scope="module")
def choices(mini: QuestionData) -> tuple[Question, ...]:
    return mini.questions("mcqa")


def test_it_has_every_kind_of_item(mini: QuestionData) -> None:
    assert len(mini.questions()) >= 60
    counts = {config: len(mini.questions(config)) for config in CONFIGS}
    assert min(counts.values()) >= 10
    assert {len(question.options) for question in mini.questions("mcqa")} == {2, 3, 4}
    assert {question.sex for question in mini.questions("non_normative")} == {"female", "male"}
    known = {question.intelligibility for question in mini.questions("non_normative")}
    assert {"", "low", "medium-low", "medium", "high-medium"} <= known


def test_every_label_is_covered(mini: QuestionData) -> None:
    balance = balance_of(mini.questions())
    assert min(balance["perception"].values()) >= 5 and set(balance["perception"]) == set(PERCEPTION)
    assert min(balance["reasoning"].values()) >= 4 and set(balance["reasoning"]) == set(REASONING)
    assert balance["warnings"] == []


def test_right_options_stand_evenly(choices: tuple[Question, ...]) -> None:
    for size in (2, 3, 4):
        places = Counter(question.answer_index for question in choices if len(question.options) == size)
        assert max(places.values()) - min(places[place] for place in range(size)) <= 1


def test_no_rule_that_hears_nothing_beats_chance(choices: tuple[Question, ...]) -> None:
    for name, score in score_rules(choices).items():
        assert score.n == len(choices)
        assert score.accuracy <= score.chance + 1e-9, name


def test_where_the_options_are_places_none_is_preferred(choices: tuple[Question, ...]) -> None:
    first = sum(question.answer in {"La primera", "En la primera", "El primero"} for question in choices)
    second = sum(question.answer in {"La segunda", "En la segunda", "El segundo"} for question in choices)
    assert abs(first - second) <= 1
    said = Counter(question.answer for question in choices if set(question.options) == {"Sí", "No"})
    assert abs(said["Sí"] - said["No"]) <= 1


def test_options_can_be_told_apart_by_the_parser(choices: tuple[Question, ...]) -> None:
    for question in choices:
        assert len(Options(question.options)) == len(question.options)
        for place, option in enumerate(question.options):
            assert parse_reply(option, question.options).index == place, (question.id, option)
            assert parse_reply("ABCD"[place], question.options).index == place


def test_every_verifier_is_used_with_arguments_that_it_takes(mini: QuestionData) -> None:
    used = set()
    for question in mini.questions("aif"):
        for verifier in question.verifiers:
            arguments = {key: value for key, value in verifier.items() if key != "id"}
            used.add(load_verifier(verifier["id"], arguments).id)
    assert used == set(VERIFIERS)


def test_every_instruction_can_be_followed_and_is_not_by_chance(mini: QuestionData) -> None:
    tasks = mini.questions("aif")
    assert set(FOLLOWED) == {question.id for question in tasks}
    for question in tasks:
        loaded = [
            load_verifier(v["id"], {key: value for key, value in v.items() if key != "id"}) for v in question.verifiers
        ]
        assert all(verifier.follows(FOLLOWED[question.id]) for verifier in loaded), question.id
        for wrong in ("", "No lo sé. Habla Una persona, y no, Entiendo nada de lo que dice\nni quién es", "???"):
            assert not all(verifier.follows(wrong) for verifier in loaded), (question.id, wrong)


def test_all_sound_is_there_and_whole(mini: QuestionData) -> None:
    coverage = mini.coverage()
    assert (coverage.covered, coverage.missing) == (coverage.items, {})
    index = {row["id"]: row for _, row in read_jsonl(MINI_FOLDER / "audio.jsonl")}
    used = {audio for question in mini.questions() for audio in question.all_audios}
    assert used == set(index) == {path.stem for path in (MINI_FOLDER / "audio").iterdir()}
    for id_, row in index.items():
        path = MINI_FOLDER / row["file"]
        assert pcm_sha256(path.read_bytes(), id_) == row["sha256"]
        samples, rate = soundfile.read(path, dtype="float32")
        assert rate == RATE and samples.ndim == 1
        assert samples.size / rate == pytest.approx(row["duration_s"], abs=1e-3)
        assert 1.0 < row["duration_s"] < 15.0
        assert np.abs(samples).max() == pytest.approx(0.7, abs=5e-3)
    assert sum(path.stat().st_size for path in (MINI_FOLDER / "audio").iterdir()) < MOST_BYTES


def test_passages_and_questions_are_spoken_as_they_are_written_now(mini: QuestionData) -> None:
    import hashlib

    index = {row["id"]: row for _, row in read_jsonl(MINI_FOLDER / "audio.jsonl")}
    recipes = {row["id"]: row for _, row in read_jsonl(MINI_FOLDER / "passages.jsonl")}
    for question in mini.questions("spoken"):
        turn = {"voice": question.question_voice, "text": question.question}
        recipes[question.question_audio] = {"id": question.question_audio, "turns": [turn]}
    assert set(recipes) == set(index)
    for id_, recipe in recipes.items():
        digest = hashlib.sha256(json.dumps(recipe, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
        assert index[id_]["made_from"] == digest, f"{id_} was edited: run scripts/make_questions_mini.py"


def test_several_voices_noises_rooms_and_deliveries() -> None:
    passages = [row for _, row in read_jsonl(MINI_FOLDER / "passages.jsonl")]
    turns = [turn for passage in passages for turn in passage["turns"]]
    voices = {turn["voice"] for turn in turns}
    assert {"kokoro/ef_dora", "kokoro/em_alex", "kokoro/em_santa"} <= voices
    assert any(voice.startswith("espeak/") for voice in voices)
    assert len({passage["noise"]["id"].split("_")[1] for passage in passages if "noise" in passage}) >= 4
    for effect in ("room", "telephone", "hole"):
        assert any(effect in passage for passage in passages)
    for delivery in ("slur", "stretch", "semitones", "speed"):
        assert any(delivery in turn for turn in turns)


def test_what_is_slurred_or_slowed_is_called_so_and_nothing_else_is(mini: QuestionData) -> None:
    turns = {row["id"]: row["turns"] for _, row in read_jsonl(MINI_FOLDER / "passages.jsonl")}
    for question in mini.questions():
        spoken = [turn for audio in question.audios for turn in turns[audio]]
        expected = (
            "simulated_slurred"
            if any("slur" in turn for turn in spoken)
            else "simulated_slowed"
            if any(turn.get("stretch", 1) > 1 for turn in spoken)
            else ""
        )
        assert question.aetiology == expected, question.id


def test_the_spoken_questions_are_those_that_the_rule_draws(
    mini: QuestionData, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    # The set was spoken when the draws had these names.
    monkeypatch.setattr("squtr.loaders.questions.spoken.PURPOSE", "escucha spoken")

    spoken = [question.id for question in mini.questions("spoken")]
    unspoken = [replace(question, question_audio="", question_voice="") for question in mini.questions()]
    assert choose_spoken(unspoken, len(spoken)) == spoken
    for question in mini.questions("spoken"):
        voice = choose_voice(Query(question.id, "escucha", "es", ""), ("ef_dora", "em_alex", "em_santa"))
        assert question.question_voice == f"kokoro/{voice}"


def test_most_of_it_is_followed_as_it_was_written() -> None:
    rows = [row for _, row in read_jsonl(MINI_FOLDER / "audio.jsonl")]
    kokoro = [row for row in rows if all(speaker.startswith("kokoro/e") for speaker in row["speakers"])]
    assert sum(row["error_rate"] for row in kokoro) / len(kokoro) < 0.2
    assert all(row["error_rate"] < 0.6 for row in kokoro)


def test_licenses_are_stated(mini: QuestionData) -> None:
    assert "CC0-1.0" in mini.license and "Apache-2.0" in mini.license
    assert merge_licenses([mini.license]) != OTHER
