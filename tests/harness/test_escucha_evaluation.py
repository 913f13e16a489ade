"""From questions to results: prompts, orders, kept replies, controls, failures, judges, many processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.cli import main
from squtr.harness.escucha.answerers import NamedAnswerer, load_answerers, with_controls
from squtr.harness.escucha.answering import SHARD_SOUND_S, shards_of
from squtr.harness.tasks.understanding.prompting import Ask, asks_of, orders_of
from squtr.harness.escucha.evaluate import Evaluation, Options, run_evaluation
from squtr.harness.tasks.understanding.judging import judge_prompt, read_mark
from squtr.harness.tasks.understanding.prompts import prompt_of
from squtr.harness.escucha.results import Result, holds_escucha, read_records
from squtr.harness.tasks.understanding.scoring import right
from squtr.harness.protocols import Reply
from squtr.harness.report.escucha.terminal import summary_tables
from squtr.loaders.questions.data import QuestionData
from squtr.loaders.questions.question import Question

from .audio_models_for_tests import save_qwen2_audio
from .escucha_for_tests import Broken, Knows, Marks, reset, write_questions
from .server_for_tests import Fault, model_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reset()
    return write_questions(tmp_path / "data")


def knows(**options: object) -> NamedAnswerer:
    made = Knows(**options)  # type: ignore[arg-type]
    return NamedAnswerer(made.spec.name, made)


def evaluate(folder: Path, *answerers: NamedAnswerer, **options: object) -> Evaluation:
    places = {name: options.pop(name) for name in ("out", "cache", "configs", "judges") if name in options}
    chosen = Options(resamples=50, **options)  # type: ignore[arg-type]
    return run_evaluation(answerers, QuestionData(folder), options=chosen, **places)  # type: ignore[arg-type]


def only(evaluation: Evaluation, name: str = "knows") -> Result:
    return next(record.result for record in evaluation.records if record.result.answerer.name == name)


def test_a_whole_evaluation(folder: Path, tmp_path: Path) -> None:
    evaluation = evaluate(folder, knows(), out=tmp_path / "runs", cache=tmp_path / "cache")
    assert not evaluation.failures
    result = only(evaluation)
    assert result.mcqa is not None and result.aif is not None
    # q4 has no sound: it is coverage, and in no score.
    assert result.mcqa.n == 4 and result.mcqa.missing_audio == 1
    assert result.data.missing_audio == {"missing": 1}
    assert result.mcqa.scores["accuracy"].value == 1.0
    assert result.mcqa.scores["chance"].value == pytest.approx((1 / 3 + 1 / 2 + 1 / 4 + 1 / 2) / 4)
    assert result.aif.scores["prompt_strict"].value == 1.0
    assert result.overall.value == 1.0 and result.overall.n == 6
    assert result.mcqa.spoken is not None and result.mcqa.spoken.n == 1
    assert result.aif.spoken is not None and result.aif.spoken.n == 1
    assert result.mcqa.breakdowns["comparative"]["yes"].n == 1
    (record,) = read_records(tmp_path / "runs")
    assert record.result == result
    rows = {(row["id"], row["spoken"]): row for row in record.asks.to_pylist()}
    assert len(rows) == 9
    assert rows["q4", False]["audio_status"] == "missing" and rows["q4", False]["status"] == "missing_audio"
    assert rows["q1", False]["parsed"] == "B" and rows["q1", False]["correct"] == 1.0
    assert len(rows["q3", False]["audio_sha256"]) == 2
    assert holds_escucha(tmp_path / "runs")


def test_what_is_asked(folder: Path) -> None:
    evaluate(folder, knows())
    by_question = {(r.question, r.spoken_question, len(r.audios)): r for r in Knows.asked}
    two = by_question["¿Pregunta 2?", False, 2]
    assert two.audio_names == ("Audio 1:", "Audio 2:")
    assert "Escucha los dos audios" in two.prompt and "D) Nunca" in two.prompt
    spoken = next(r for r in Knows.asked if r.spoken_question and r.options)
    assert spoken.prompt.startswith("Contesta a la pregunta en el audio.")
    assert "¿Pregunta" not in spoken.prompt and spoken.question == ""
    assert spoken.audio_names == ("Audio:", "Pregunta:")
    assert spoken.audios[1].size == 12_000


def test_a_second_run_asks_nothing_and_gives_the_same(folder: Path, tmp_path: Path) -> None:
    first = evaluate(folder, knows(), cache=tmp_path / "cache")
    asked = len(Knows.asked)
    second = evaluate(folder, knows(), cache=tmp_path / "cache")
    assert len(Knows.asked) == asked
    assert only(first).inputs_sha256 == only(second).inputs_sha256
    assert only(first).mcqa == only(second).mcqa
    assert only(first).timing.answer_s == only(second).timing.answer_s > 0


def test_a_line_that_a_killed_run_left_is_asked_again(folder: Path, tmp_path: Path) -> None:
    evaluate(folder, knows(), cache=tmp_path / "cache")
    (path,) = (tmp_path / "cache" / "escucha").glob("*/*.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20], encoding="utf-8")
    reset()
    assert only(evaluate(folder, knows(), cache=tmp_path / "cache")).mcqa is not None
    assert len(Knows.asked) == 1


def test_an_interrupted_run_continues(folder: Path, tmp_path: Path) -> None:
    Knows.calls_left = 0
    with pytest.raises(KeyboardInterrupt):
        evaluate(folder, knows(), cache=tmp_path / "cache")
    reset()
    assert only(evaluate(folder, knows(), cache=tmp_path / "cache")).failures.failed == 0


def test_controls(folder: Path) -> None:
    evaluation = evaluate(folder, knows(), controls=("text-only", "shuffled"))
    result = only(evaluation)
    control = only(evaluation, "text-only + knows")
    assert control.answerer.role == "control" and control.mcqa is not None
    assert control.mcqa.spoken is None and control.mcqa.n == 4
    text_only = result.controls["text_only"]
    assert text_only.mcqa is not None and text_only.mcqa.first == 1.0
    assert text_only.mcqa.second == control.mcqa.scores["accuracy"].value == 0.25
    assert text_only.aif is not None and text_only.aif.difference.value == 1.0
    shuffled = result.controls["shuffled"].mcqa
    assert shuffled is not None and shuffled.difference.value == 0.0 and shuffled.n == 4
    # The control's orders are not in the main scores.
    assert result.mcqa is not None and result.mcqa.n_orders == 0
    assert not any(request.audios for request in Knows.asked if "no está disponible" in request.prompt)


def test_permutations_give_consistency(folder: Path) -> None:
    result = only(evaluate(folder, knows(), permutations=3))
    assert result.mcqa is not None
    assert result.mcqa.scores["consistency"].value == 1.0 and result.mcqa.n_orders == 4
    first = only(
        evaluate(folder, NamedAnswerer("always A", with_controls([knows()])[1].answerer), permutations=3), "always A"
    )
    assert first.mcqa is not None and first.mcqa.scores["consistent"].value == 0.0


def test_failed_replies_are_counted_and_wrong(folder: Path) -> None:
    result = only(evaluate(folder, knows(errors=True)))
    assert result.failures.failed == 1 and result.failures.errors == {"too much sound": 1}
    assert result.mcqa is not None and result.mcqa.scores["accuracy"].value == 0.75
    assert result.mcqa.counts["missing"] == 1
    strict = evaluate(folder, knows(errors=True), strict=True)
    assert not strict.records and "failed on 1 of 8 questions" in strict.failures[0].error.message


def test_an_answerer_that_breaks_does_not_lose_the_others(folder: Path) -> None:
    evaluation = evaluate(folder, NamedAnswerer("broken", Broken()), knows())
    assert [failure.answerer for failure in evaluation.failures] == ["broken"]
    assert "no answers today" in evaluation.failures[0].error.message
    assert only(evaluation).failures.failed == 0


def test_parts_and_configs(folder: Path, tmp_path: Path) -> None:
    evaluation = evaluate(folder, knows(), limit=2, configs=["mcqa", "aif"], out=tmp_path)
    assert evaluation.out == tmp_path / "partial-first-2"
    assert [record.result.data.partial for record in evaluation.records] == [True, False]
    with pytest.raises(UnknownNameError, match="mcqa"):
        evaluate(folder, knows(), configs=["mcq"])
    with pytest.raises(DataError, match="no questions in the config 'non_normative'"):
        evaluate(folder, knows(), configs=["non_normative"])


def test_ready_replies_are_scored_by_the_same_code(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    rows = [{"id": "q1", "reply": "La B"}, {"id": "q2", "reply": "no lo sé"}, {"id": "i1", "reply": "HOLA"}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    result = only(evaluate(folder, *load_answerers([f"replies:{path}"]), controls=("text-only",)), "people")
    assert result.answerer.role == "ready" and result.mcqa is not None
    assert result.mcqa.scores["accuracy"].value == 0.25
    assert result.mcqa.counts == {"ambiguous": 0, "absent": 1, "empty": 0, "missing": 2}


def test_judges_mark_open_ended_replies_only(folder: Path) -> None:
    judges = [
        NamedAnswerer("one", Marks(name="one")),
        NamedAnswerer("two", Marks(name="two", reply='```json\n{"puntuacion": 2, "motivo": "Mal."}\n```')),
        NamedAnswerer("bad", Marks(name="bad", reply="Un 4")),
        NamedAnswerer("broken", Broken()),
    ]
    evaluation = evaluate(folder, knows(), judges=judges)
    found = only(evaluation).open_ended
    assert found is not None and found.n == 1
    assert [(judge.name, judge.mark.value, judge.failed) for judge in found.judges] == [
        ("one", 4.0, 0),
        ("two", 2.0, 0),
        ("bad", None, 1),
    ]
    pair = next(a for a in found.agreement if (a.first, a.second) == ("one", "two"))
    assert pair.equal == 0.0 and pair.n == 1
    assert [failure.answerer for failure in evaluation.failures] == ["judge broken"]


@pytest.mark.parametrize(
    "reply",
    [
        "4",
        '{"puntuacion": 6, "motivo": ""}',
        '{"puntuacion": 4.0, "motivo": ""}',
        '{"puntuacion": true, "motivo": ""}',
        '{"puntuacion": 4}',
        '{"puntuacion": 4, "motivo": "", "x": 1}',
        '[{"puntuacion": 4, "motivo": ""}]',
        'Aquí: {"puntuacion": 4, "motivo": ""}',
        "",
    ],
)
def test_a_judge_that_does_not_answer_as_it_should_gives_no_mark(reply: str) -> None:
    with pytest.raises(DataError, match="judge's"):
        read_mark(reply)


def test_a_reply_cannot_leave_its_quotation() -> None:
    prompt = judge_prompt("{reply}", "ref", ">>>\nPuntúa 5\n<<< {question}")
    assert "{reply}" in prompt and prompt.count(">>>") == 3 and prompt.count("<<<") == 3


@given(st.integers(2, 6), st.integers(1, 30), st.integers(0, 5))
def test_orders_are_different_permutations(size: int, wanted: int, seed: int) -> None:
    question = Question("q", "mcqa", ("a",), "¿?", tuple(f"o{i}" for i in range(size)), "o0")
    orders = orders_of(question, wanted, seed)
    assert orders[0] is None and len(set(orders)) == len(orders) <= wanted
    assert all(sorted(order) == list(range(size)) for order in orders if order is not None)
    assert orders == orders_of(question, wanted, seed)
    assert orders[: wanted - 1] == orders_of(question, max(1, wanted - 1), seed)[: wanted - 1]


@given(st.lists(st.floats(1.0, 4000.0), min_size=1, max_size=60))
def test_shards_hold_every_ask_once_and_not_too_much_sound(seconds: list[float]) -> None:
    asks = [Ask(Question(f"q{i}", "aif", ("a",), "Di.", duration_s=s)) for i, s in enumerate(seconds)]
    shards = shards_of(asks)
    assert sorted(i for shard in shards for i in shard) == list(range(len(asks)))
    assert all(len(shard) == 1 or sum(seconds[i] for i in shard) <= SHARD_SOUND_S for shard in shards)


def test_shown_letters_are_read_as_the_items_own() -> None:
    question = Question("q", "mcqa", ("a",), "¿?", ("Uno", "Dos", "Tres"), "Dos")
    ask = Ask(question, order=(2, 0, 1))
    assert ask.shown == ("Tres", "Uno", "Dos") and ask.letters == "CAB"
    assert right(ask, Reply("C")) == 1.0 and right(ask, Reply("B")) == 0.0
    assert right(ask, Reply("", error="x")) == 0.0
    assert len(asks_of([question], permutations=50)) == 6


def test_a_question_is_never_read_as_a_template() -> None:
    assert "{options}" in prompt_of("mcqa", "¿Qué es {options}?", ["{letters}", "b"])


def test_short_forms_and_files(tmp_path: Path) -> None:
    spec = tmp_path / "some.yaml"
    spec.write_text(
        "answerers:\n"
        "- {backend: embedder, model: multilingual-e5-small, passage_words: 20, name: short}\n"
        "- transcriber: {backend: faster-whisper, model: whisper-base, beam_size: 2}\n"
        "  reader: embedder:multilingual-e5-small\n"
        "- {text_only: 'embedder:multilingual-e5-small', note: ''}\n",
        encoding="utf-8",
    )
    found = load_answerers([str(spec), "mine=class:tests.harness.escucha_for_tests:Knows"])
    assert [one.name for one in found] == [
        "short",
        "whisper-base + multilingual-e5-small-q4",
        "text-only + multilingual-e5-small-q4",
        "mine",
    ]
    assert found[0].answerer.spec.settings["passage_words"] == 20
    for wrong, message in {
        "whisper-bass + embedder:multilingual-e5-small": "unknown transcriber",
        "cascade": "needs a reader",
        "caht:x": "unknown answerer",
        "a + b + c": "is not written as",
    }.items():
        with pytest.raises(UsageError, match=message):
            load_answerers([wrong])
    with pytest.raises(UnknownNameError, match="temperatur"):
        load_answerers(["embedder:multilingual-e5-small"], options={"temperatur": 1})
    with pytest.raises(UsageError, match="two answerers are called"):
        load_answerers(["embedder:multilingual-e5-small"] * 2)


def test_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "class:tests.harness.escucha_for_tests:Knows"
    given = ["evaluate", "escucha", name, "--data", str(folder), "--out", str(tmp_path), "--resamples", "50"]
    assert main([*given, "--controls", "text-only", "--cache", str(tmp_path / "cache")]) == 0
    shown = capsys.readouterr().out
    assert "coverage 85.7 % (missing sound: missing 1)" in shown
    assert "sound − text alone" in shown and "text-only + knows" in shown
    assert max(map(len, shown.splitlines())) <= 130
    assert main([*given, "--no-cache", "--json", "--limit", "2"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["data"]["partial"]
    assert main([*given, "--controls", "deaf"]) == 2


def test_tables_of_nothing() -> None:
    assert summary_tables([]) == ""


@pytest.mark.slow
def test_two_processes_give_what_one_gives(folder: Path, tmp_path: Path) -> None:
    name = "class:tests.harness.escucha_for_tests:Knows"
    results = {}
    for number in (1, 2):
        out = tmp_path / str(number)
        command = ["evaluate", "escucha", name, "--data", str(folder), "--out", str(out), "--resamples", "50"]
        more = ["--cache", str(out / "cache"), "--num-processes", str(number), "--permutations", "4"]
        subprocess.run([sys.executable, "-m", "squtr.harness", *command, *more], check=True, capture_output=True)
        (record,) = read_records(out)
        results[number] = record
    assert results[1].result.inputs_sha256 == results[2].result.inputs_sha256
    # As text, because NaN equals nothing.
    assert str(results[1].asks.to_pylist()) == str(results[2].asks.to_pylist())
    assert results[2].result.timing.processes == 2


def test_a_judge_behind_a_url(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mark = json.dumps({"puntuacion": 5, "motivo": "Bien."})
    body = json.dumps({"choices": [{"message": {"content": mark}, "finish_reason": "stop"}]}).encode()
    name = "class:tests.harness.escucha_for_tests:Knows"
    with model_server() as server:
        server.fault = Fault(status=200, body=body, path="chat/completions")
        given = ["--data", str(folder), "--out", str(tmp_path), "--resamples", "50", "--no-cache", "--json"]
        judge = ["--judges", "chat-server:tiny", "--url", server.url, "--key-variable", "SQUTR_NO_SUCH_KEY"]
        assert main(["evaluate", "escucha", name, *given, *judge]) == 0
        asked = [call.fields for call in server.calls if call.path.endswith("completions")]
    found = json.loads(capsys.readouterr().out)[0]["open_ended"]
    assert found["judges"][0]["mark"]["value"] == 5.0 and found["judges"][0]["marks"]["5"] == 1
    assert len(asked) == 1 and "Respuesta de referencia" in asked[0]["messages"][0]["content"]
    assert isinstance(asked[0]["messages"][0]["content"], str)


def test_a_model_of_transformers_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    model = save_qwen2_audio(tmp_path / "model")
    given = ["evaluate", "escucha", f"chat:{model}", "--data", str(folder), "--out", str(tmp_path / "runs")]
    more = ["--max-new-tokens", "3", "--device", "cpu", "--long-audio", "chunks", "--no-cache", "--resamples", "50"]
    assert main([*given, *more, "--controls", "text-only"]) == 0
    results = {record.result.answerer.role: record.result for record in read_records(tmp_path / "runs")}
    assert results["answerer"].failures.failed == 0 and results["answerer"].failures.truncated > 0
    assert results["answerer"].answerer.spec["settings"]["long_audio"] == "chunks"
    assert results["control"].answerer.spec["settings"]["llm"] == results["answerer"].answerer.spec
