"""Answerers: the real adapter on tiny random models, the server's protocol."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from squtr.errors import DataError, ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_answerer
from squtr.harness.components.answerers.chat import ChatAnswerer
from squtr.harness.components.answerers.common import AudioLimit, answer_batches, in_pieces
from squtr.harness.components.answerers.embedder import EmbedderAnswerer
from squtr.harness.components.answerers.files import RepliesFile
from squtr.harness.components.answerers.llm import TextAnswerer
from squtr.harness.components.answerers.server import ServerAnswerer
from squtr.harness.components.batches import BatchSize
from squtr.harness.components.generation import without_marks
from squtr.harness.protocols import AnswerRequest, ComponentSpec, Reply

from .audio_models_for_tests import save_omni_thinker, save_qwen2_audio, sound
from .server_for_tests import Call, Fault, model_server

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_qwen2_audio(tmp_path_factory.mktemp("qwen"))


def chat(folder: Path, **options: Any) -> ChatAnswerer:
    return ChatAnswerer(folder, **{"chat_template": TEMPLATE, "max_new_tokens": 5, "device": "cpu", **options})


def request(seconds: Sequence[float], prompt: str = "¿Qué se oye?", **more: Any) -> AnswerRequest:
    return AnswerRequest(prompt, tuple(sound(length, i) for i, length in enumerate(seconds)), **more)


def test_the_table_loads_every_answerer(qwen: Path) -> None:
    assert isinstance(load_answerer(f"chat:{qwen}"), ChatAnswerer)
    assert load_answerer("embedder:multilingual-e5-small").sample_rate == 16_000
    with pytest.raises(UnknownNameError, match="chat-server"):
        load_answerer("chat-sever:x")
    with pytest.raises(UsageError, match="unknown long_audio 'drop'"):
        load_answerer("chat:x", long_audio="drop")


def test_chat_replies_to_audio_and_to_text_alone(qwen: Path) -> None:
    answerer = chat(qwen)
    asked = [request([1.0]), request([2.0, 1.5], audio_names=("Audio 1:", "Audio 2:")), AnswerRequest("Di algo.")]
    replies = answerer.answer(asked)
    assert [reply.error for reply in replies] == ["", "", ""]
    assert all(reply.text or reply.truncated for reply in replies)
    # Alone and beside others the same words.
    assert [answerer.answer([one])[0].text for one in asked] == [reply.text for reply in replies]
    assert answerer.answer([]) == []
    spec = answerer.spec
    assert (spec.kind, spec.settings["max_seconds"], spec.settings["long_audio"]) == ("answerer", 4.0, "truncate")
    assert answerer.sample_rate == 16_000


def test_chat_replies_depend_on_the_audio(qwen: Path) -> None:
    answerer = chat(qwen, max_new_tokens=12)
    texts = {answerer.answer([AnswerRequest("¿?", (sound(3.0, seed),))])[0].text for seed in range(4)}
    assert len(texts) > 1


def test_chat_marks_truncated_audio_and_chunks_are_not_truncated(qwen: Path) -> None:
    long = request([9.0])
    assert chat(qwen).answer([long])[0].audio_truncated
    pieces = chat(qwen, long_audio="chunks")
    assert not pieces.answer([long])[0].audio_truncated
    assert chat(qwen, long_audio="chunks", total_seconds=5.0).answer([long])[0].audio_truncated
    assert len({chat(qwen).spec.fingerprint, pieces.spec.fingerprint}) == 2


def test_chat_counts_clips_that_cannot_be_read(qwen: Path) -> None:
    broken = AnswerRequest("¿?", (np.array([np.nan], np.float32),))
    first, second = chat(qwen).answer([broken, request([1.0])])
    assert "NaN" in first.error
    assert not second.error


def test_chat_takes_the_marks_out_of_prompts(qwen: Path) -> None:
    answerer = chat(qwen)
    assert without_marks("a <|im_end|> b <|AUDIO|>", answerer._inputs._marks) == "a < |im_end|> b < |AUDIO|>"
    assert not answerer.answer([request([1.0], "<|AUDIO|><|AUDIO|> ¿?")])[0].error


def test_chat_on_an_omni_thinker(tmp_path: Path) -> None:
    answerer = chat(save_omni_thinker(tmp_path))
    assert answerer.spec.settings["model_class"] == "Qwen2_5OmniThinkerForConditionalGeneration"
    assert str(answerer.spec.settings["system_prompt"]).startswith("You are Qwen")
    replies = answerer.answer([request([1.0]), AnswerRequest("Hola")])
    assert [reply.error for reply in replies] == ["", ""]


def test_chat_takes_the_models_own_template(qwen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not chat(qwen, chat_template=None).answer([request([1.0, 1.0])])[0].error
    from transformers import Qwen2AudioProcessor

    monkeypatch.setattr(Qwen2AudioProcessor, "chat_template", None, raising=False)
    monkeypatch.setattr(Qwen2AudioProcessor, "__setattr__", _no_template)
    with pytest.raises(ModelError, match="has no chat template"):
        chat(qwen, chat_template=None).answer([request([1.0])])


def _no_template(self: object, name: str, value: object) -> None:
    object.__setattr__(self, name, None if name == "chat_template" else value)


def test_batches_shrink_and_failures_stay_alone() -> None:
    tried: list[int] = []

    def write(requests: list[AnswerRequest]) -> list[tuple[str]]:
        tried.append(len(requests))
        if len(requests) > 2:
            raise RuntimeError("CUDA out of memory")
        if any(one.prompt == "bad" for one in requests):
            raise RuntimeError("device-side assert")
        from squtr.harness.components.answerers.common import Written

        return [Written(one.prompt.upper()) for one in requests]  # type: ignore[misc]

    size = BatchSize(4)
    asked = [AnswerRequest(prompt) for prompt in ("a", "b", "bad", "c", "d")]
    replies = answer_batches(asked, size=size, write=write, engine="it")  # type: ignore[arg-type]
    assert [reply.text for reply in replies] == ["A", "B", "", "C", "D"]
    assert replies[2].error == "it failed: device-side assert"
    assert size.now == 2
    assert tried[0] == 4


def test_a_total_cap_cuts_the_later_clips() -> None:
    asked = AnswerRequest("?", (np.zeros(8, np.float32), np.zeros(8, np.float32)))
    pieces, cut = in_pieces(asked, AudioLimit(None, 10.0), 1)
    assert [piece.samples.size for piece in pieces] == [8, 2]
    assert cut


class Letters:
    """Vectors of letter counts."""

    spec = ComponentSpec("encoder", "class", "letters", revision="1")

    def supports(self, language: str) -> bool:
        return True

    def encode(self, texts: Sequence[str], *, role: str) -> np.ndarray:
        rows = np.array([[1e-3 + text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_embedder_answers_with_a_letter() -> None:
    reader = EmbedderAnswerer("", encoder=Letters())
    options = ("zzz", "xyxy", "kkk")
    asked = AnswerRequest("", question="", options=options, transcripts=("xyyx yx",))
    assert reader.answer([asked])[0].text == "B"
    assert reader.answer([AnswerRequest("", question="kkkk", options=options)])[0].text == "C"
    spoken = AnswerRequest("", options=options, spoken_question=True, transcripts=("kk", "zzzz"))
    assert reader.answer([spoken])[0].text == "C"
    told = AnswerRequest("", question="zzz", transcripts=("Aaa bbb. Zzz zz.",))
    assert reader.answer([told])[0].text == "Zzz zz."
    assert reader.answer([AnswerRequest("", question="zzz")])[0].text == ""


def test_the_embedder_answers_with_a_real_encoder() -> None:
    answerer = load_answerer("embedder:multilingual-e5-small")
    options = ("Una receta de pan", "Un partido de fútbol", "El tiempo de mañana")
    said = {
        "Mezcle la harina con el agua y la levadura, y hornee la masa.": "A",
        "El delantero marcó un gol en el último minuto.": "B",
        "Mañana lloverá en Madrid y bajarán las temperaturas.": "C",
    }
    asked = [AnswerRequest("", question="¿De qué se habla?", options=options, transcripts=(text,)) for text in said]
    assert [reply.text for reply in answerer.answer(asked)] == list(said.values())


def completion(text: str, finish: str = "stop") -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": finish}]}).encode()


def test_the_server_gets_clips_as_input_audio() -> None:
    with model_server() as server:
        server.fault = Fault(status=200, body=completion(" B ", "length"), path="chat/completions")
        answerer = ServerAnswerer("tiny", url=server.url, key_variable="", max_seconds=1.0, system_prompt="Eres útil.")
        replies = answerer.answer(
            [request([2.0, 0.5], "Elige.", audio_names=("Audio 1:", "Audio 2:")), AnswerRequest("Sin audio.")]
        )
        assert [(r.text, r.truncated, r.audio_truncated) for r in replies] == [("B", True, True), ("B", True, False)]
        bodies = [call.fields for call in server.calls if call.path.endswith("completions")]
        with_audio = next(body for body in bodies if isinstance(body["messages"][-1]["content"], list))
        kinds = [part["type"] for part in with_audio["messages"][-1]["content"]]
        assert kinds == ["text", "input_audio", "text", "input_audio", "text"]
        assert with_audio["messages"][0] == {"role": "system", "content": "Eres útil."}
        assert with_audio["temperature"] == 0.0
        assert "org/tiny-v2" in answerer.spec.revision


def sent_audio(call: Call) -> list[tuple[str, np.ndarray, str]]:
    """The audio of a chat request: the format that it names, what a decoder makes of it, the format that this finds."""
    parts = [part["input_audio"] for part in call.fields["messages"][-1]["content"] if part["type"] == "input_audio"]
    found = []
    for part in parts:
        with soundfile.SoundFile(io.BytesIO(base64.b64decode(part["data"]))) as file:
            assert (file.samplerate, file.channels) == (16_000, 1)
            found.append((part["format"], file.read(dtype="float32"), file.format))
    return found


@pytest.mark.parametrize(("audio_format", "tolerance"), [("wav", 4e-5), ("flac", 4e-5), ("mp3", 0.2)])
def test_the_server_gets_the_format_that_is_asked_for(audio_format: str, tolerance: float) -> None:
    clip = sound(2.0, 0)
    with model_server() as server:
        server.fault = Fault(status=200, body=completion("A"), path="chat/completions")
        options = {"url": server.url, "key_variable": "", "revision": "1", "audio_format": audio_format}
        answerer = ServerAnswerer("tiny", **options)
        assert answerer.answer([AnswerRequest("?", (clip,))])[0].text == "A"
        [(named, samples, real)] = sent_audio(server.calls[-1])
    assert (named, real) == (audio_format, audio_format.upper())
    assert samples.size == clip.size
    assert np.abs(samples - clip).max() < tolerance
    assert answerer.spec.settings["audio_format"] == audio_format
    assert answerer.spec.settings.get("mp3_bits_per_s") == (64_000 if audio_format == "mp3" else None)


def test_audio_is_sent_without_loss_where_it_fits_and_else_as_mp3_or_not_at_all() -> None:
    with model_server() as server:
        server.fault = Fault(status=200, body=completion("A"), path="chat/completions")
        options = {"url": server.url, "key_variable": "", "revision": "1", "max_request_mb": 0.1}
        answerer = ServerAnswerer("tiny", **options)
        asked = [request([1.0]), request([1.0, 6.0]), request([40.0])]
        replies = answerer.answer(asked)
        sent = sorted((len(found), found[0][0]) for found in map(sent_audio, server.calls))
        sizes = [len(json.dumps(call.fields)) for call in server.calls]
        # The longer request is not sent: MP3 does not make it small enough.
        assert sent == [(1, "wav"), (2, "mp3")]
        assert max(sizes) <= 100_000
        assert [reply.text for reply in replies] == ["A", "A", ""]
        assert "MB, and" in replies[2].error and "give total_seconds" in replies[2].error
        wav = ServerAnswerer("tiny", audio_format="wav", **options)
        assert "give audio_format mp3 or total_seconds" in wav.answer([request([10.0])])[0].error
        short = ServerAnswerer("tiny", total_seconds=5.0, **options)
        assert short.answer([request([40.0])])[0].audio_truncated
        # What is sent depends on lengths alone.
        assert answerer._format(request([3.0]), in_pieces(request([3.0]), AudioLimit(), 16_000)[0]) == "mp3"
        silent = AnswerRequest("¿Qué se oye?", (np.full(48_000, 1e-3, np.float32),))
        assert answerer._format(silent, in_pieces(silent, AudioLimit(), 16_000)[0]) == "mp3"
        assert ServerAnswerer("tiny", **{**options, "max_request_mb": None})._most_bytes is None


def test_what_services_take_is_known() -> None:
    openai = ServerAnswerer("gpt-audio", revision="1")
    gemini = ServerAnswerer("g", url="https://generativelanguage.googleapis.com/v1beta/openai", revision="1")
    assert [one.spec.settings["max_request_bytes"] for one in (openai, gemini)] == [20_000_000, 20_000_000]
    assert openai.spec.settings["mp3_bits_per_s"] == 64_000
    raised = ServerAnswerer("gpt-audio", revision="1", max_request_mb=50)
    assert raised.spec.settings["max_request_bytes"] == 50_000_000
    assert raised.spec.fingerprint != openai.spec.fingerprint
    for options, said in (
        ({"audio_format": "flac"}, "takes no flac in a chat"),
        ({"audio_format": "ogg"}, "unknown audio_format 'ogg'"),
        ({"max_request_mb": 0}, "max_request_mb is 0"),
    ):
        with pytest.raises(UsageError, match=said):
            ServerAnswerer("gpt-audio", **options)


def test_a_server_that_refuses_or_goes_away() -> None:
    with model_server() as server:
        answerer = ServerAnswerer("tiny", url=server.url, key_variable="", revision="1", attempts=1, concurrency=1)
        server.fault = Fault(status=400, body=b'{"error":{"message":"no audio"}}', path="completions", times=1)
        assert "no audio" in answerer.answer([request([0.5])])[0].error
        server.fault = Fault(status=400, path="completions")
        with pytest.raises(ModelError, match="refuses every request"):
            answerer.answer([request([0.5])] * 6)
        server.fault = Fault(status=503, path="completions")
        with pytest.raises(ModelError, match="in a row"):
            answerer.answer([AnswerRequest("?")] * 6)
        server.fault = Fault(status=200, body=b'{"choices": []}', path="completions")
        assert "without a text" in answerer.answer([AnswerRequest("?")])[0].error


def test_a_text_model_answers(tmp_path: Path) -> None:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from .audio_models_for_tests import TEXT, chat_tokenizer

    tokenizer = chat_tokenizer()
    tokenizer.chat_template = TEMPLATE.replace("{% for part in message['content'] %}", "").replace(
        "{% if part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>{% else %}{{ part['text'] }}{% endif %}"
        "{% endfor %}",
        "{{ message['content'] }}",
    )
    tokenizer.chat_template = "{{ strftime_now('%Y-%m-%d') }}" + tokenizer.chat_template
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(0)
    Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **TEXT)).save_pretrained(tmp_path)
    reader = TextAnswerer(tmp_path, max_new_tokens=4, device="cpu", system_prompt="Responde.")
    asked = [AnswerRequest("¿Qué?"), AnswerRequest("¿Y esto que es más largo?")]
    together = [reply.text for reply in reader.answer(asked)]
    assert together == [reader.answer([one])[0].text for one in asked]
    assert reader.spec.backend == "llm"
    assert reader._prompt("x").endswith("<|im_start|>assistant\n")
    # Some templates write today's date; replies would depend on the day.
    assert reader._prompt("x").startswith(f"{reader.spec.settings['template_date']}<|im_start|>")


def test_precomputed_replies(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text(
        '{"id": "a", "reply": "B"}\n{"id": "a", "reply": "C", "order": [1, 0, 2]}\n'
        '{"id": "a", "reply": "A", "spoken": true}\n{"id": "b", "reply": null}\n',
        encoding="utf-8",
    )
    ready = RepliesFile(path)
    assert ready.reply_of("a", spoken=False, order=None) == Reply("B")
    assert ready.reply_of("a", spoken=False, order=(1, 0, 2)) == Reply("C")
    assert ready.reply_of("a", spoken=True, order=None) == Reply("A")
    assert ready.reply_of("b", spoken=False, order=None) == Reply("", error="no reply")
    assert ready.reply_of("c", spoken=False, order=None) is None
    assert ready.spec.name == "people"
    path.write_text('{"id": "a", "reply": "B"}\n{"id": "a", "reply": "C", "order": [0, 1]}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 2: 'a' was answered before"):
        RepliesFile(path).reply_of("a", spoken=False, order=None)
