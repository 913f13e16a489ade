"""Every model of `chat` with its real classes and random weights: what reaches the model's forward pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components.answerers.adapters import SpeechAdapter
from squtr.harness.components.answerers.chat import ChatAnswerer
from squtr.harness.components.answerers.models import ANSWER_MODELS, REFUSED, answer_model
from squtr.harness.components.generation import TEMPLATE_DATE
from squtr.harness.protocols import AnswerRequest

from .answer_models_for_tests import CASES, TEXT_TEMPLATE, lacking, save_adapter, save_flamingo, template
from .audio_models_for_tests import save_omni_thinker, save_qwen2_audio, sound

QUESTION = "¿Qué se oye?"
RUN = [name for name in CASES if not lacking(name)]


def request(seconds: Sequence[float], prompt: str = QUESTION, *, seed: int = 0, **more: Any) -> AnswerRequest:
    return AnswerRequest(prompt, tuple(sound(length, seed + i) for i, length in enumerate(seconds)), **more)


class Watched(ChatAnswerer):
    """Keeps what goes into the model's `generate`, and the logits after it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **{"max_new_tokens": 4, "device": "cpu", **options})
        self.inputs: list[dict[str, Any]] = []

    def _generated(self, inputs: Any, **more: Any) -> list[tuple[str, bool]]:
        self.inputs.append(dict(inputs))
        return super()._generated(inputs, **more)

    def asked(self, one: AnswerRequest) -> dict[str, Any]:
        self.inputs.clear()
        reply = self.answer([one])[0]
        assert not reply.error, reply.error
        assert len(self.inputs) == 1
        return self.inputs[0]

    def logits(self, one: AnswerRequest) -> np.ndarray:
        import torch

        inputs = self.asked(one)
        with torch.inference_mode():
            return np.asarray(self._model(**inputs).logits[0, -1].float())

    def audio_tokens(self, inputs: dict[str, Any]) -> int:
        token = self._inputs.tokenizer.convert_tokens_to_ids(self._inputs.processor.audio_token)
        return int((inputs["input_ids"] == token).sum())

    def text(self, inputs: dict[str, Any]) -> str:
        return str(self._tokenizer.decode(inputs["input_ids"][0].tolist()))


def rows_of_audio(inputs: dict[str, Any]) -> int:
    return sum(len(value) for name, value in inputs.items() if name in ("input_features", "audio_input_features"))


@pytest.fixture(scope="module")
def answerers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Watched]:
    class Lazy(dict[str, Watched]):
        def __missing__(self, name: str) -> Watched:
            self[name] = Watched(CASES[name][0](tmp_path_factory.mktemp(name)))
            return self[name]

    return Lazy()


def test_every_row_has_a_case() -> None:
    # The thinker of Qwen2.5-Omni alone has a test in test_answerers.py.
    assert set(CASES) == set(ANSWER_MODELS) - {"qwen2_5_omni_thinker"}


def test_models_that_need_further_packages_are_here() -> None:
    left = [f"{name} {lacking(name)}" for name in CASES if lacking(name)]
    if left:
        pytest.skip(f"not driven here: {'; '.join(left)}")


@pytest.mark.parametrize("name", RUN)
def test_clips_and_prompt_reach_the_model(name: str, answerers: dict[str, Watched]) -> None:
    answerer = answerers[name]
    one = answerer.asked(request([2.0]))
    assert rows_of_audio(one) == 1
    assert answerer.audio_tokens(one) > 10
    assert QUESTION in answerer.text(one)
    none = answerer.asked(AnswerRequest(QUESTION))
    assert (rows_of_audio(none), answerer.audio_tokens(none)) == (0, 0)
    assert QUESTION in answerer.text(none)
    spoken = answerer.asked(request([2.0], ""))
    assert answerer.audio_tokens(spoken) == answerer.audio_tokens(one)


@pytest.mark.parametrize("name", RUN)
def test_two_clips_reach_the_model_in_their_order(name: str, answerers: dict[str, Watched]) -> None:
    answerer = answerers[name]
    names = ("Audio 1:", "Audio 2:")
    both = AnswerRequest(QUESTION, (sound(2.0, 0), sound(3.0, 1)), names)
    if ANSWER_MODELS[name].max_clips == 1:
        assert "takes 1 clip in a message" in answerer.answer([both])[0].error
        return
    inputs = answerer.asked(both)
    single = [answerer.audio_tokens(answerer.asked(AnswerRequest(QUESTION, (clip,)))) for clip in both.audios]
    assert rows_of_audio(inputs) == 2
    assert answerer.audio_tokens(inputs) == sum(single)
    text = answerer.text(inputs)
    assert 0 <= text.index(names[0]) < text.index(names[1]) < text.index(QUESTION)
    swapped = AnswerRequest(QUESTION, both.audios[::-1], names)
    assert np.abs(answerer.logits(both) - answerer.logits(swapped)).max() > 1e-4


@pytest.mark.parametrize("name", RUN)
def test_other_audio_gives_other_logits_and_batches_the_same_replies(name: str, answerers: dict[str, Watched]) -> None:
    answerer = answerers[name]
    first, again, other = (answerer.logits(request([2.0], seed=seed)) for seed in (0, 0, 5))
    assert np.isfinite(first).all()
    assert np.abs(first - again).max() == 0
    assert np.abs(first - other).max() > 1e-3
    requests = [request([2.0]), AnswerRequest("Di algo."), request([1.0], seed=3)]
    assert [reply.text for reply in answerer.answer(requests)] == [answerer.answer([one])[0].text for one in requests]


@pytest.mark.parametrize("name", RUN)
def test_no_audio_is_dropped_without_a_mark(name: str, answerers: dict[str, Watched]) -> None:
    answerer = answerers[name]
    window = answerer.spec.settings["max_seconds"]
    if window is None:
        shorter, longer = (answerer.asked(request([seconds])) for seconds in (31.0, 62.0))
        assert not answerer.answer([request([62.0])])[0].audio_truncated
        # 31 s are padded to 60 s by Voxtral.
        assert answerer.audio_tokens(longer) >= 1.49 * answerer.audio_tokens(shorter)
        return
    assert isinstance(window, float)
    assert not answerer.answer([request([window])])[0].audio_truncated
    over = request([window + 1.0])
    whole, cut = answerer.asked(request([window])), answerer.asked(over)
    assert answerer.answer([over])[0].audio_truncated
    assert answerer.audio_tokens(cut) == answerer.audio_tokens(whole)
    pieces = Watched(answerer.weights, long_audio="chunks")
    if ANSWER_MODELS[name].max_clips == 1:
        assert "takes 1 clip in a message" in pieces.answer([over])[0].error
        return
    assert rows_of_audio(pieces.asked(over)) == 2
    assert not pieces.answer([over])[0].audio_truncated


@pytest.mark.parametrize("name", RUN)
def test_an_adapter_is_on_for_audio_alone(name: str, answerers: dict[str, Watched]) -> None:
    answerer = answerers[name]
    answerer.asked(request([2.0]))
    adapter = answerer._adapter
    assert (adapter is not None) == (name in ("phi4_multimodal", "granite_speech"))
    assert adapter is None or adapter.on
    answerer.asked(AnswerRequest(QUESTION))
    assert adapter is None or not adapter.on


@pytest.mark.skipif(bool(lacking("voxtral")), reason=lacking("voxtral") or "runs")
def test_a_system_prompt_that_the_tokenizer_refuses_is_named(answerers: dict[str, Watched]) -> None:
    answerer = Watched(answerers["voxtral"].weights, system_prompt="Eres útil.")
    assert "system messages" in answerer.answer([request([1.0])])[0].error


def test_an_adapter_adds_the_product_of_its_matrices(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForMultimodalLM

    model = AutoModelForMultimodalLM.from_pretrained(save_qwen2_audio(tmp_path / "model"))
    layers = r".*language_model.*\.(q|v)_proj"
    # The file names the layers as a version did that nested the classes otherwise.
    save_adapter(tmp_path / "adapter", model, layers, ("model.language_model.", "language_model.model."))
    merged = AutoModelForMultimodalLM.from_pretrained(tmp_path / "model")
    weights = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    for key in {key.rsplit(".lora_", maxsplit=1)[0] for key in weights}:
        path = key.removeprefix("base_model.model.").replace("language_model.model.", "model.language_model.")
        product = weights[f"{key}.lora_B.weight"] @ weights[f"{key}.lora_A.weight"]
        merged.get_submodule(path).weight.data += 6 / 2 * product
    adapter = SpeechAdapter(model, tmp_path / "adapter", name="it")
    ids = torch.arange(40)[None]
    with torch.inference_mode():
        off = model(input_ids=ids).logits
        adapter.on = True
        on, wanted = model(input_ids=ids).logits, merged(input_ids=ids).logits
    assert float((on - off).abs().max()) > 0.1
    torch.testing.assert_close(on, wanted, rtol=1e-3, atol=1e-3)
    config = tmp_path / "adapter" / "adapter_config.json"
    for change, message in (({"use_dora": True}, "LORA use_dora"), ({"peft_type": "IA3"}, "IA3")):
        config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
        with pytest.raises(ModelError, match=message):
            SpeechAdapter(model, tmp_path / "adapter", name="it")
    with pytest.raises(ModelError, match=r"adapter_config\.json cannot be read"):
        SpeechAdapter(model, tmp_path, name="it")


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    from transformers import AutoModelForMultimodalLM

    model = AutoModelForMultimodalLM.from_pretrained(save_qwen2_audio(tmp_path / "model"))
    save_adapter(tmp_path / "adapter", model, r".*language_model.*\.q_proj", ("q_proj", "qkv_proj"))
    with pytest.raises(ModelError, match=r"layer .*qkv_proj, which the model lacks"):
        SpeechAdapter(model, tmp_path / "adapter", name="it")


def test_a_template_of_texts_gets_the_marks_in_the_text(tmp_path: Path) -> None:
    folder = save_qwen2_audio(tmp_path)
    answerer = Watched(folder, chat_template=TEXT_TEMPLATE, system_prompt="Escucha.")
    inputs = answerer.asked(request([1.0, 2.0], audio_names=("Audio 1:", "Audio 2:")))
    assert rows_of_audio(inputs) == 2
    text = answerer.text(inputs)
    assert text.startswith("<|im_start|>system\nEscucha.<|im_end|>\n<|im_start|>user\nAudio 1:<|AUDIO|>")
    assert text.endswith(f"<|AUDIO|>{QUESTION}<|im_end|>\n<|im_start|>assistant\n")
    assert "<|AUDIO|>" not in answerer.text(answerer.asked(AnswerRequest("<|AUDIO|> ?")))
    deaf = Watched(folder, chat_template="{% for message in messages %}{{ message['role'] }}{% endfor %}")
    with pytest.raises(ModelError, match="has no place for audio"):
        deaf.answer([request([1.0])])


def test_an_omni_is_not_given_a_window_of_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_omni_thinker(tmp_path)
    quick = Watched(folder, chat_template=template("<|AUDIO|>"))
    asked = request([1.0, 2.5])
    inputs, logits = quick.asked(asked), quick.logits(asked)
    frames = inputs["input_features"].shape[-1]
    assert frames < 260
    monkeypatch.setattr("squtr.harness.components.answerers.chat_inputs.window_for", lambda extractor, clips: {})
    whole = Watched(folder, chat_template=template("<|AUDIO|>"))
    padded = whole.asked(asked)
    assert padded["input_features"].shape[-1] == 400
    mask = padded["feature_attention_mask"].bool()
    assert bool((inputs["feature_attention_mask"].bool().sum(dim=1) == mask.sum(dim=1)).all())
    for row, kept in zip(range(2), mask, strict=True):
        n = int(kept.sum())
        assert (
            np.abs(np.asarray(inputs["input_features"][row, :, :n] - padded["input_features"][row, :, :n])).max() < 1e-6
        )
    assert np.abs(logits - whole.logits(asked)).max() < 1e-5


def test_a_template_writes_the_same_date_every_day(tmp_path: Path) -> None:
    answerer = Watched(
        save_qwen2_audio(tmp_path), chat_template="{{ strftime_now('%Y-%m-%d') }}" + template("<|AUDIO|>")
    )
    assert answerer.text(answerer.asked(request([1.0]))).startswith(f"{TEMPLATE_DATE}<|im_start|>user")
    assert answerer.spec.settings["template_date"] == TEMPLATE_DATE


def test_a_processor_that_makes_no_audio_is_an_error(tmp_path: Path) -> None:
    answerer = Watched(save_flamingo(tmp_path))
    reply = answerer.answer([request([0.001])])[0]
    assert reply.error or answerer.audio_tokens(answerer.inputs[0]) > 0


def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    for model_type in REFUSED:
        with pytest.raises(UsageError, match="cannot be asked"):
            answer_model(model_type)
    with pytest.raises(UsageError, match="how a model of the type 'other' is asked is not known"):
        answer_model("other")
    folder = save_qwen2_audio(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "glmasr"}))
    with pytest.raises(UsageError, match="'glmasr' cannot be asked") as caught:
        ChatAnswerer(folder).answer([request([1.0])])
    assert "transcriber" in caught.value.hint
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "gemma4", "audio_config": None}))
    with pytest.raises(UsageError, match="takes no audio"):
        ChatAnswerer(folder).answer([request([1.0])])
