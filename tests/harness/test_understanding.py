"""From questions to results: prompts, orders, kept replies, baselines, failures, judges, many processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.benchmarks import benchmark
from squtr.harness.cli import main
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.run import Evaluation, run_evaluation
from squtr.harness.protocols import AnswerRequest, Reply
from squtr.harness.results.envelope import Result, read_runs
from squtr.harness.systems import Overrides, System, load_systems
from squtr.harness.tasks.understanding.audio import SHARD_AUDIO_S, shards_of
from squtr.harness.tasks.understanding.details import UnderstandingDetails
from squtr.harness.tasks.understanding.items import is_right
from squtr.harness.tasks.understanding.judging import judge_prompt, read_mark
from squtr.harness.tasks.understanding.prompting import Prompt, orders_of, prompts_of
from squtr.harness.tasks.understanding.prompts import TEMPLATES, prompt_of, with_transcripts, without_audio
from squtr.harness.tasks.understanding.task import UnderstandingTask
from squtr.loaders.questions.data import QuestionData
from squtr.loaders.questions.question import Question

from .audio_models_for_tests import save_qwen2_audio
from .questions_for_tests import Broken, Knows, Marks, Reads, Types, reset, write_questions
from .server_for_tests import Fault, model_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reset()
    return write_questions(tmp_path / "data")


def knows(**options: object) -> System:
    return System(answerer=Knows(**options))  # type: ignore[arg-type]


def evaluate(folder: Path, *systems: System, **options: object) -> Evaluation:
    places = {name: options.pop(name) for name in ("out", "cache", "configs", "judges") if name in options}
    chosen = Options(**{"resamples": 50, "self_check": False, "max_failed": 1.0, **options})  # type: ignore[arg-type]
    return run_evaluation(
        UnderstandingTask(),
        benchmark("understanding"),
        systems,
        QuestionData(folder),
        options=chosen,
        **places,  # type: ignore[arg-type]
    )


def only(evaluation: Evaluation, name: str = "knows") -> Result:
    return next(record.result for record in evaluation.records if record.result.system.name == name)


def details(result: Result) -> UnderstandingDetails:
    return UnderstandingDetails.model_validate(result.details)


def value(result: Result, metric: str) -> float | None:
    return result.scores[metric].value


def test_a_whole_evaluation(folder: Path, tmp_path: Path) -> None:
    evaluation = evaluate(folder, knows(), out=tmp_path / "runs", cache=tmp_path / "cache")
    assert not evaluation.failures
    result = only(evaluation)
    found = details(result)
    assert found.mcqa is not None and found.aif is not None
    # q4 has no audio: it is coverage, and in no score.
    assert found.mcqa.n == 4 and found.mcqa.missing_audio == 1
    assert result.data.missing_audio == {"missing": 1}
    assert value(result, "mcqa_accuracy") == 1.0
    assert value(result, "mcqa_chance") == pytest.approx((1 / 3 + 1 / 2 + 1 / 4 + 1 / 2) / 4)
    assert value(result, "aif_prompt_strict") == 1.0
    assert result.main.value == 1.0 and result.main.n == 6
    assert found.mcqa.spoken is not None and found.mcqa.spoken.n == 1
    assert found.aif.spoken is not None and found.aif.spoken.n == 1
    two = result.group("comparative", "yes")
    assert two is not None and two.n == 1
    (record,) = read_runs(tmp_path / "runs")
    assert record.result == result
    rows = {(row["id"], row["spoken"]): row for row in record.items.to_pylist()}
    assert len(rows) == 9
    assert rows["q4", False]["audio_status"] == "missing" and rows["q4", False]["status"] == "missing_audio"
    assert rows["q1", False]["parsed"] == "B" and rows["q1", False]["correct"] == 1.0
    assert len(rows["q3", False]["audios_sha256"]) == 2


def test_a_cascade_transcribes_each_clip_once_however_many_llms_follow(folder: Path, tmp_path: Path) -> None:
    types = Types()
    systems = [System(transcriber=types, answerer=Reads(letter=letter)) for letter in "ABC"]
    evaluation = evaluate(folder, *systems, cache=tmp_path / "cache")
    assert not evaluation.failures
    assert Types.clips == 3
    first = only(evaluation, "types + reads A")
    assert first.timing.stages == {"transcribe": 1.5, "answer": pytest.approx(0.125 * 8)}
    prompts = [request.prompt for request in Reads.asked if request.options and not request.spoken_question]
    assert any("Audio 1 (transcripción automática): «texto de 4000»" in prompt for prompt in prompts)
    assert all(not request.audios for request in Reads.asked)
    rows = {row["id"]: row for row in evaluation.records[0].items.to_pylist() if not row["spoken"]}
    assert rows["q3"]["transcripts"] == ["texto de 4000", "texto de 8000"]
    evaluate(folder, System(transcriber=types, answerer=Reads(letter="D")), cache=tmp_path / "cache")
    assert Types.clips == 3


def test_templates_replace_what_stands_in_place_of_the_audio(folder: Path) -> None:
    system = System(transcriber=Types(), answerer=Reads(), templates={"transcript": "ASR: {text}"})
    evaluate(folder, system, System(answerer=Reads(letter="B"), text_only=True, templates={"text_only_note": "Nada."}))
    assert any(request.prompt.startswith("ASR: texto de 4000") for request in Reads.asked)
    assert any(request.prompt.startswith("Nada.") for request in Reads.asked)
    with pytest.raises(UnknownNameError, match="template"):
        System(answerer=Reads(), templates={"transcripts": ""})
    with pytest.raises(UsageError, match=r"named_transcript lacks \{text\}"):
        System(transcriber=Types(), answerer=Reads(), templates={"named_transcript": "{name}: nothing"})


def test_transcripts_stand_before_the_prompt_in_quotes_of_their_own() -> None:
    request = with_transcripts(AnswerRequest("¿?"), ["uno «dos»\n", ""], ["Audio 1:", "Audio 2:"])
    assert request.prompt.splitlines() == [
        "Audio 1 (transcripción automática): «uno ‹dos›»",
        f"Audio 2 (transcripción automática): «{TEMPLATES['no_transcript']}»",
        "",
        "¿?",
    ]
    assert request.transcripts == ("uno «dos»\n", "") and not request.audios


def test_the_text_only_baseline_is_given_no_transcripts() -> None:
    request = without_audio(AnswerRequest("¿?", (np.zeros(8, np.float32),), ("Audio:",), transcripts=("secret",)))
    assert request.prompt == f"{TEMPLATES['text_only_note']}\n\n¿?"
    assert not (request.audios or request.audio_names or request.transcripts)


def test_a_clip_that_cannot_be_transcribed_fails_its_questions(folder: Path) -> None:
    evaluation = evaluate(folder, System(transcriber=Types(fails=4000), answerer=Reads(letter="B")))
    result = only(evaluation, "types + reads B")
    rows = {row["id"]: row for row in evaluation.records[0].items.to_pylist() if not row["spoken"]}
    assert {name for name, row in rows.items() if "no words" in row["error"]} == {"q1", "q2", "q3", "i2"}
    assert result.failures["failed"] == 4 + 2  # The spoken versions of q2 and i2.
    assert details(result).mcqa is not None and value(result, "mcqa_accuracy") == 0.25
    assert len(Reads.asked) == 2


def test_systems_that_answer_nothing_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="gives no answers"):
        evaluate(folder, System(transcriber=Types()))
    with pytest.raises(UsageError, match="reads A answers text alone"):
        evaluate(folder, System(answerer=Reads()))
    with pytest.raises(UsageError, match=r"the judge types \+ reads A has a transcriber"):
        evaluate(folder, knows(), judges=[System(transcriber=Types(), answerer=Reads())])
    with pytest.raises(UsageError, match="Leave --latency out"):
        evaluate(folder, knows(), latency=3)
    with pytest.raises(UnknownNameError, match="baseline"):
        evaluate(folder, knows(), baselines=("deaf",))


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
    assert only(first).scores == only(second).scores
    assert only(first).timing.stages == only(second).timing.stages and only(first).timing.stages["answer"] > 0


def test_an_interrupted_run_continues(folder: Path, tmp_path: Path) -> None:
    Knows.calls_left = 0
    with pytest.raises(KeyboardInterrupt):
        evaluate(folder, knows(), cache=tmp_path / "cache")
    reset()
    assert only(evaluate(folder, knows(), cache=tmp_path / "cache")).failures["failed"] == 0


def test_baselines(folder: Path) -> None:
    evaluation = evaluate(folder, knows(), baselines=("text-only", "shuffled"))
    result = only(evaluation)
    baseline = only(evaluation, "text-only + knows")
    assert baseline.system.reference and not result.system.reference
    own = details(baseline).mcqa
    assert own is not None and own.spoken is None and own.n == 4
    found = details(result)
    text_only = found.baselines["text-only"]
    assert text_only.mcqa is not None and text_only.mcqa.first == 1.0
    assert text_only.mcqa.second == value(baseline, "mcqa_accuracy") == 0.25
    assert text_only.aif is not None and text_only.aif.difference.value == 1.0
    # As a loss, what is better than the baseline is negative.
    assert result.losses["text-only"]["mcqa_accuracy"].absolute.value == -0.75
    assert result.losses["text-only"]["mcqa_accuracy"].relative.value == -3.0
    shuffled = found.baselines["shuffled"].mcqa
    assert shuffled is not None and shuffled.difference.value == 0.0 and shuffled.n == 4
    # The other order is not in the main scores.
    assert found.mcqa is not None and found.mcqa.n_orders == 0
    assert not any(request.audios for request in Knows.asked if "no está disponible" in request.prompt)


def test_orders_give_consistency(folder: Path) -> None:
    result = only(evaluate(folder, knows(), option_orders=3))
    found = details(result).mcqa
    assert found is not None and value(result, "mcqa_consistency") == 1.0 and found.n_orders == 4
    always_a = knows().text_only_baseline()
    first = only(evaluate(folder, always_a, option_orders=3), always_a.name)
    assert value(first, "mcqa_consistent") == 0.0


def test_failed_replies_are_counted_and_wrong(folder: Path) -> None:
    result = only(evaluate(folder, knows(errors=True)))
    found = details(result)
    assert result.failures["failed"] == 1 and found.errors == {"too much audio": 1}
    assert found.mcqa is not None and value(result, "mcqa_accuracy") == 0.75
    assert found.mcqa.counts["missing"] == 1
    strict = evaluate(folder, knows(errors=True), strict=True)
    assert not strict.records and "1 of 8 items of all failed for knows" in strict.failures[0].error.message


class Cut(Knows):
    """Its replies end in half of an emoji; one was whole."""

    def _one(self, request: AnswerRequest) -> Reply:
        return Reply("BIEN \N{GRINNING FACE}" if not request.options else "A \ud83d")


def test_lost_characters_of_replies_are_counted(folder: Path) -> None:
    failures = only(evaluate(folder, System(answerer=Cut()))).failures
    # Four multiple-choice questions, one of them spoken as well.
    assert failures["invalid_text"] == 5


def test_a_system_that_answers_nothing_of_a_config_has_no_score(folder: Path, tmp_path: Path) -> None:
    given = tmp_path / "others.jsonl"
    given.write_text('{"id": "elsewhere", "reply": "A"}\n{"id": "q3", "reply": "D"}\n', encoding="utf-8")
    evaluation = evaluate(folder, *load_systems([f"replies:{given}"]), configs=["aif", "comparative"])
    assert [record.result.data.config for record in evaluation.records] == ["comparative"]
    message = evaluation.failures[0].error.message
    assert (
        f"3 of 3 items have no reply in {given}: 'i1', 'i2', 'i2#spoken'; it has 'elsewhere', for example." in message
    )


def test_a_system_that_breaks_does_not_lose_the_others(folder: Path) -> None:
    evaluation = evaluate(folder, System(answerer=Broken()), knows())
    assert [failure.system for failure in evaluation.failures] == ["broken"]
    assert "no answers today" in evaluation.failures[0].error.message
    assert only(evaluation).failures["failed"] == 0


def test_parts_and_configs(folder: Path, tmp_path: Path) -> None:
    evaluation = evaluate(folder, knows(), limit=2, configs=["mcqa", "aif"], out=tmp_path)
    assert evaluation.out == tmp_path / "partial-first-2"
    assert [record.result.data.partial for record in evaluation.records] == [True, False]
    with pytest.raises(UnknownNameError, match="mcqa"):
        evaluate(folder, knows(), configs=["mcq"])
    with pytest.raises(DataError, match="no questions in the config 'non_normative'"):
        evaluate(folder, knows(), configs=["non_normative"])


def test_precomputed_replies_are_scored_by_the_same_code(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    rows = [{"id": "q1", "reply": "La B"}, {"id": "q2", "reply": "no lo sé"}, {"id": "i1", "reply": "HOLA"}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(DataError, match=r"5 of 8 items have no reply in .*people.jsonl: 'q2#spoken', 'q3', 'q5'"):
        evaluate(folder, *load_systems([f"replies:{path}"])).raise_failures()
    counted = load_systems([f"replies:{path}"], options=Overrides(options={"missing": "count"}))
    result = only(evaluate(folder, *counted, baselines=("text-only",)), "people")
    found = details(result).mcqa
    assert found is not None and value(result, "mcqa_accuracy") == 0.25
    assert found.counts == {"ambiguous": 0, "absent": 1, "empty": 0, "missing": 2}


def test_judges_mark_open_ended_replies_only(folder: Path) -> None:
    judges = [
        System(answerer=Marks(name="one")),
        System(answerer=Marks(name="two", reply='```json\n{"puntuacion": 2, "motivo": "Mal."}\n```')),
        System(answerer=Marks(name="bad", reply="Un 4")),
        System(answerer=Broken()),
    ]
    evaluation = evaluate(folder, knows(), judges=judges)
    found = details(only(evaluation)).open_ended
    assert found is not None and found.n == 1
    assert [(judge.name, judge.mark.value, judge.failed) for judge in found.judges] == [
        ("one", 4.0, 0),
        ("two", 2.0, 0),
    ]
    pair = next(a for a in found.agreement if (a.first, a.second) == ("one", "two"))
    assert pair.equal == 0.0 and pair.n == 1
    assert [failure.system for failure in evaluation.failures] == ["judge bad", "judge broken"]
    assert "all 1 replies have no mark by bad" in str(evaluation.failures[0].error)


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
def test_shards_hold_every_item_once_and_not_too_much_audio(seconds: list[float]) -> None:
    lengths = {f"q{i}": s for i, s in enumerate(seconds)}
    shards = shards_of(list(lengths), lengths)
    assert sorted(i for shard in shards for i in shard) == list(range(len(seconds)))
    assert all(len(shard) == 1 or sum(seconds[i] for i in shard) <= SHARD_AUDIO_S for shard in shards)


def test_shown_letters_are_read_as_the_items_own() -> None:
    question = Question("q", "mcqa", ("a",), "¿?", ("Uno", "Dos", "Tres"), "Dos")
    prompt = Prompt(question, "es", order=(2, 0, 1))
    assert prompt.shown == ("Tres", "Uno", "Dos") and prompt.letters == "CAB"
    for reply, expected in ((Reply("C"), 1.0), (Reply("B"), 0.0), (Reply("", error="x"), 0.0)):
        assert is_right(prompt, {prompt.key: reply}) == expected
    assert len(prompts_of([question], "es", orders=50)) == 6


def test_a_question_is_never_read_as_a_template() -> None:
    assert "{options}" in prompt_of("mcqa", "¿Qué es {options}?", ["{letters}", "b"])


def test_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "class:tests.harness.questions_for_tests:Knows"
    given = ["evaluate", name, "--data", str(folder), "--out", str(tmp_path), "--resamples", "50"]
    given += ["--no-self-check"]
    assert main([*given, "--baselines", "text-only", "--cache", str(tmp_path / "cache")]) == 0
    shown = capsys.readouterr().out
    assert "text-only + knows" in shown
    assert max(map(len, shown.splitlines())) <= 130
    assert main([*given, "--no-cache", "--json", "--limit", "2"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["data"]["partial"]
    assert main([*given, "--baselines", "deaf"]) == 2
    assert main([*given, "--depth", "10"]) == 2


@pytest.mark.slow
def test_two_processes_give_what_one_gives(folder: Path, tmp_path: Path) -> None:
    name = "class:tests.harness.questions_for_tests:Knows"
    results = {}
    for number in (1, 2):
        out = tmp_path / str(number)
        command = ["evaluate", name, "--data", str(folder), "--out", str(out), "--resamples", "50"]
        more = [
            "--cache",
            str(out / "cache"),
            "--num-processes",
            str(number),
            "--option-orders",
            "4",
            "--no-self-check",
        ]
        subprocess.run([sys.executable, "-m", "squtr.harness", *command, *more], check=True, capture_output=True)
        (record,) = read_runs(out)
        results[number] = record
    assert results[1].result.inputs_sha256 == results[2].result.inputs_sha256
    # As text, because NaN equals nothing.
    assert str(results[1].items.to_pylist()) == str(results[2].items.to_pylist())
    assert results[2].result.timing.processes == 2


def test_a_judge_behind_a_url(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mark = json.dumps({"puntuacion": 5, "motivo": "Bien."})
    body = json.dumps({"choices": [{"message": {"content": mark}, "finish_reason": "stop"}]}).encode()
    name = "class:tests.harness.questions_for_tests:Knows"
    with model_server() as server:
        server.fault = Fault(status=200, body=body, path="chat/completions")
        given = [
            "--data",
            str(folder),
            "--out",
            str(tmp_path),
            "--resamples",
            "50",
            "--no-cache",
            "--json",
            "--no-self-check",
        ]
        options = [f"url={server.url}", "key_variable=SQUTR_NO_SUCH_KEY"]
        assert main(["evaluate", name, *given, "--judge", "chat-server:tiny", "--option", *options]) == 0
        asked = [call.fields for call in server.calls if call.path.endswith("completions")]
    found = json.loads(capsys.readouterr().out)[0]["details"]["open_ended"]
    assert found["judges"][0]["mark"]["value"] == 5.0 and found["judges"][0]["marks"]["5"] == 1
    assert len(asked) == 1 and "Respuesta de referencia" in asked[0]["messages"][0]["content"]
    assert isinstance(asked[0]["messages"][0]["content"], str)


def test_a_model_of_transformers_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    model = save_qwen2_audio(tmp_path / "model")
    given = ["evaluate", f"chat:{model}", "--data", str(folder), "--out", str(tmp_path / "runs"), "--resamples", "50"]
    options = ["--option", "max_new_tokens=3", "long_audio=chunks", "--device", "cpu", "--no-cache", "--no-self-check"]
    assert main([*given, *options, "--baselines", "text-only"]) == 0
    results = {record.result.system.reference: record.result for record in read_runs(tmp_path / "runs")}
    assert results[False].failures["failed"] == 0 and results[False].failures["truncated"] > 0
    assert results[False].system.components["answerer"]["settings"]["long_audio"] == "chunks"
    assert results[True].system.components["answerer"] == results[False].system.components["answerer"]
