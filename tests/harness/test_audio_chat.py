"""Chat models of sound and text as encoders: messages, pooling, padding, attention, specs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components.encoders import audio_models
from squtr.harness.components.encoders.chat_template import ChatTemplateEncoder
from squtr.harness.protocols import AudioTextEncoder

from .audio_models_for_tests import RATE, save_omni, save_omni_thinker, save_qwen2_audio, sound

pytest.importorskip("transformers")
SECONDS = (0.5, 2.0, 1.2, 3.9)
TEXTS = ["abc", "你好 世界", "a longer text than all the others, with words in it", ""]
# What Qwen2.5-Omni's own template makes of messages with text and audio.
QWEN_OMNI_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}{% if message.content is string %}"
    "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'audio' %}"
    "{{ '<|audio_bos|><|AUDIO|><|audio_eos|>' }}{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SAVERS = {"qwen2-audio": save_qwen2_audio, "omni-thinker": save_omni_thinker}


@pytest.fixture(scope="module", params=list(SAVERS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SAVERS[request.param](tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_omni_thinker(tmp_path_factory.mktemp("models") / "thinker")


def encoder_of(folder: Path, **options: Any) -> ChatTemplateEncoder:
    return ChatTemplateEncoder(folder, device="cpu", **options)


def states(folder: Path, text: str, clip: np.ndarray | None = None) -> np.ndarray:
    """The last hidden states (tokens, D), made by hand: a written dialogue, one item, no padding."""
    import torch
    from transformers import AutoModel, AutoProcessor

    model, processor = AutoModel.from_pretrained(folder).eval(), AutoProcessor.from_pretrained(folder)
    inputs = processor(text=[text], audio=None if clip is None else [clip], sampling_rate=RATE, return_tensors="pt")
    with torch.inference_mode():
        return model(**inputs).last_hidden_state[0].double().numpy()


def dialogue(content: str, *, system: str = "You are a helpful assistant.", answer: bool = True) -> str:
    written = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{content}<|im_end|>\n"
    return written + ("<|im_start|>assistant\n" if answer else "")


HEARD = "Audio 1: <|audio_bos|><|AUDIO|><|audio_eos|>\n"


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_the_message_is_the_one_that_was_asked_for(folder: Path) -> None:
    clip = sound(0.9, 1)
    encoder: AudioTextEncoder = encoder_of(folder, pooling="mean", document_prefix="passage: ", query_prefix="query: ")
    mean = states(folder, dialogue(HEARD), clip).mean(axis=0)
    np.testing.assert_allclose(encoder.encode_audio([clip], language="en")[0], unit(mean), atol=1e-4)
    for role, prefix in (("document", "passage: "), ("query", "query: ")):
        mean = states(folder, dialogue(prefix + "abc")).mean(axis=0)
        np.testing.assert_allclose(encoder.encode(["abc"], role=role)[0], unit(mean), atol=1e-4)  # type: ignore[arg-type]


def test_the_last_token_is_the_last_that_is_no_padding(folder: Path) -> None:
    clip = sound(0.9, 1)
    encoder = encoder_of(
        folder, audio_prefix="hear: ", audio_suffix="\nIn one word:", text_suffix="\nIn a word:", system_prompt="Embed."
    )
    last = states(folder, dialogue(f"hear: {HEARD}\nIn one word:", system="Embed."), clip)[-1]
    batch = encoder.encode_audio([clip, sound(2.5, 2)], language="en")
    np.testing.assert_allclose(batch[0], unit(last), atol=1e-4)
    last = states(folder, dialogue("abc\nIn a word:", system="Embed."))[-1]
    np.testing.assert_allclose(encoder.encode(["abc", "much longer"], role="query")[0], unit(last), atol=1e-4)
    silent = encoder_of(folder, add_generation_prompt=False)
    last = states(folder, dialogue("abc", answer=False))[-1]
    np.testing.assert_allclose(silent.encode(["abc"], role="query")[0], unit(last), atol=1e-4)


@pytest.mark.parametrize(
    "options", [{"pooling": "mean"}, {"pooling": "last"}, {"pooling": "mean", "bidirectional": True}]
)
def test_a_vector_alone_and_in_a_batch_differ_by_rounding_only(folder: Path, options: dict[str, Any]) -> None:
    clips = [sound(seconds, seed) for seed, seconds in enumerate(SECONDS)]
    together, alone = encoder_of(folder, batch_size=8, **options), encoder_of(folder, batch_size=1, **options)
    heard = together.encode_audio(clips, language="en")
    np.testing.assert_allclose(heard, alone.encode_audio(clips, language="en"), atol=1e-4)
    assert np.abs(heard[0] - heard[1]).max() > 1e-3
    read = together.encode(TEXTS, role="document")
    np.testing.assert_allclose(read, alone.encode(TEXTS, role="document"), atol=1e-4)


def test_what_is_behind_a_clip_is_not_heard(thinker: Path) -> None:
    # Padded to the whole window, to the longest of the batch, or hardly: the same vector.
    encoder = encoder_of(thinker, pooling="mean")
    clip = sound(0.803, 3)
    assert encoder._audio_options([clip])["max_length"] < RATE
    tight = encoder.encode_audio([clip], language="en")[0]
    encoder._audio_options = lambda clips: {}  # type: ignore[method-assign]
    np.testing.assert_allclose(encoder.encode_audio([clip], language="en")[0], tight, atol=1e-5)


def test_only_the_beginning_of_a_long_clip_is_followed(folder: Path) -> None:
    long = sound(6.0, 5)
    encoder = encoder_of(folder)
    assert encoder.spec.settings["window_s"] == 4.0
    a, b = (encoder.encode_audio([clip], language="en") for clip in (long, long[: 4 * RATE]))
    np.testing.assert_allclose(a, b, atol=1e-5)
    short = encoder_of(folder, max_seconds=1.5)
    a, b = short.encode_audio([long], language="en"), encoder.encode_audio([long[: RATE * 3 // 2]], language="en")
    np.testing.assert_allclose(a, b, atol=1e-4)


def test_attention_both_ways_lets_the_first_token_see_the_last(folder: Path) -> None:
    causal, both = encoder_of(folder, pooling="mean"), encoder_of(folder, pooling="mean", bidirectional=True)
    assert np.abs(causal.encode(["abc"], role="query") - both.encode(["abc"], role="query")).max() > 1e-3
    texts = ["abc", "abd"]
    import torch

    def first_states(encoder: ChatTemplateEncoder) -> list[np.ndarray]:
        found = []
        for text in texts:
            inputs = encoder._processor.tokenizer(text, return_tensors="pt")
            with torch.inference_mode():
                found.append(encoder._states(inputs)[0, 0].numpy())
        return found

    a, b = first_states(causal)
    np.testing.assert_array_equal(a, b)
    a, b = first_states(both)
    assert np.abs(a - b).max() > 1e-3
    assert both.spec.fingerprint != causal.spec.fingerprint


def test_marks_of_the_dialogue_in_a_text_are_text(folder: Path) -> None:
    encoder = encoder_of(folder)
    texts = ["see <|im_end|> and <|AUDIO|>", "see ! and ?", "<|im_start|>user"]
    together = encoder.encode(texts, role="document")
    alone = np.concatenate([encoder.encode([text], role="document") for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    spaced = ["see < |im_end|> and < |AUDIO|>", "see ! and ?", "< |im_start|>user"]
    np.testing.assert_allclose(together, encoder.encode(spaced, role="document"), atol=1e-4)
    # A mark in what the model's facts put around a text is meant.
    ending = encoder_of(folder, text_suffix="<|endoftext|>")
    last = states(folder, dialogue("abc<|endoftext|>"))[-1]
    np.testing.assert_allclose(ending.encode(["abc"], role="query")[0], unit(last), atol=1e-4)


def test_long_texts_are_cut_before_anything_is_put_around_them(folder: Path) -> None:
    cut = encoder_of(folder, max_tokens=3, text_suffix=" End.", document_prefix="A: ")
    whole = encoder_of(folder, text_suffix=" End.", document_prefix="A: ")
    a, b = cut.encode(["abcdefgh", ""], role="document"), whole.encode(["abc", ""], role="document")
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_a_whole_omni_model_and_its_hearing_half_are_one(thinker: Path, tmp_path: Path) -> None:
    whole = save_omni(tmp_path / "omni")
    encoder = encoder_of(whole)
    assert encoder.spec.settings["model_class"] == "Qwen2_5OmniThinkerForConditionalGeneration"
    clip = sound(0.5, 1)
    a, b = (e.encode_audio([clip], language="en") for e in (encoder, encoder_of(thinker)))
    np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.fixture(scope="module")
def nemotron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thinker under the names that omni-embed-nemotron-3b's own code has, with the feature extractor's 300 s."""
    from transformers import AutoTokenizer, Qwen2AudioProcessor, WhisperFeatureExtractor

    folder = save_omni_thinker(tmp_path_factory.mktemp("models") / "omni-embed-nemotron-3b")
    settings = json.loads((folder / "config.json").read_text())
    code = "modeling_nvomniembed.NVOmniEmbed"
    settings |= {"model_type": "nvomniembed", "architectures": ["NVOmniEmbedModel"]}
    settings["auto_map"] = {"AutoConfig": f"{code}Config", "AutoModel": f"{code}Model"}
    (folder / "config.json").write_text(json.dumps(settings))
    extractor = WhisperFeatureExtractor(feature_size=16, chunk_length=300)
    Qwen2AudioProcessor(extractor, AutoTokenizer.from_pretrained(folder, trust_remote_code=False)).save_pretrained(
        folder
    )
    return folder


def frames_and_vectors(encoder: ChatTemplateEncoder, clips: list[np.ndarray]) -> tuple[int, np.ndarray]:
    """How many frames the model was given for a batch, and the vectors."""
    given: list[int] = []
    states = encoder._states
    encoder._states = lambda inputs: (given.append(inputs["input_features"].shape[-1]), states(inputs))[1]  # type: ignore[method-assign]
    vectors = encoder.encode_audio(clips, language="en")
    (frames,) = given
    return frames, vectors


def test_omni_embed_nemotron_hears_and_is_given_the_clip_alone(nemotron: Path, thinker: Path) -> None:
    clips = [sound(seconds, seed) for seed, seconds in enumerate((1.0, 1.6, 1.3))]
    encoder = encoder_of(nemotron, batch_size=3)
    settings = encoder.spec.settings
    assert (settings["model_class"], settings["window_s"]) == ("Qwen2_5OmniThinkerForConditionalGeneration", 128.0)
    frames, vectors = frames_and_vectors(encoder, clips)
    assert 160 <= frames < 170
    similar = vectors @ vectors.T
    assert similar[np.triu_indices(3, 1)].max() < 1 - 1e-4
    # It is the thinker, with the published prompts, and the model gets its audio tower from the checkpoint.
    same = encoder_of(thinker, pooling="mean", bidirectional=True, add_generation_prompt=False)
    np.testing.assert_allclose(vectors, same.encode_audio(clips, language="en"), atol=1e-5)
    tower = "audio_tower.layers.0.self_attn.q_proj.weight"
    assert dict(encoder._model.named_parameters())[tower].equal(dict(same._model.named_parameters())[tower])


def test_the_published_padding_gives_the_same_vectors(nemotron: Path) -> None:
    # 2,048,000 samples, as the model card has it; here less, for the time it takes.
    clips = [sound(0.7, 1), sound(0.4, 2)]
    encoder = encoder_of(nemotron, batch_size=2)
    _, tight = frames_and_vectors(encoder, clips)
    padded = encoder_of(nemotron, batch_size=2)
    padded._audio_options = lambda clips: {"max_length": 20 * RATE}  # type: ignore[method-assign]
    frames, published = frames_and_vectors(padded, clips)
    assert frames == 2000
    np.testing.assert_allclose(tight, published, atol=1e-5)


def test_a_class_without_the_audio_tower_is_refused(nemotron: Path, thinker: Path) -> None:
    with pytest.raises(ModelError, match=r"holds .* that Qwen2_5OmniThinkerTextModel does not take \(audio_tower"):
        encoder_of(thinker, model_class="Qwen2_5OmniThinkerTextModel").encode(["a"], role="query")


def test_the_processor_of_qwen_omni_gives_the_clip_alone(nemotron: Path, tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    from transformers import AutoTokenizer, Qwen2_5OmniProcessor, WhisperFeatureExtractor
    from transformers.models.qwen2_vl import Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    folder = tmp_path / nemotron.name
    shutil.copytree(nemotron, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    extractor = WhisperFeatureExtractor(feature_size=16, chunk_length=300, return_attention_mask=True)
    parts = (Qwen2VLImageProcessor(), Qwen2VLVideoProcessor(), extractor, tokenizer)
    Qwen2_5OmniProcessor(*parts, chat_template=QWEN_OMNI_TEMPLATE).save_pretrained(folder)
    clips = [sound(seconds, seed) for seed, seconds in enumerate((1.0, 1.6, 1.3))]
    encoder = encoder_of(folder, batch_size=3)
    assert type(encoder._processor) is Qwen2_5OmniProcessor
    frames, vectors = frames_and_vectors(encoder, clips)
    assert 160 <= frames < 170
    assert (vectors @ vectors.T)[np.triu_indices(3, 1)].max() < 1 - 1e-4
    alone = np.concatenate([encoder_of(folder).encode_audio([clip], language="en") for clip in clips])
    np.testing.assert_allclose(vectors, alone, atol=1e-4)
    assert encoder_of(folder).encode(["abc"], role="document").shape == (1, 16)


def test_a_class_with_a_head_over_the_vocabulary_is_used_without_it(folder: Path) -> None:
    plain, headed = (
        encoder_of(folder, model_class="AutoModel"),
        encoder_of(folder, model_class="AutoModelForMultimodalLM"),
    )
    a, b = (encoder.encode(["abc"], role="query") for encoder in (plain, headed))
    np.testing.assert_allclose(a, b, atol=1e-6)
    assert plain.spec.fingerprint != headed.spec.fingerprint
    with pytest.raises(UsageError, match="no model class 'Qwen9'"):
        encoder_of(folder, model_class="Qwen9").encode(["a"], role="query")


def test_a_model_that_only_gives_hidden_states_will_do(folder: Path) -> None:
    encoder = encoder_of(folder)
    expected = encoder.encode(["abc"], role="query")
    body = encoder._model

    class Answer:
        def __init__(self, states: Any) -> None:
            self.hidden_states = states

    class OnlyStates:
        device, dtype = body.device, body.dtype

        def __call__(self, *, output_hidden_states: bool = False, **inputs: Any) -> Answer:
            return Answer(body(**inputs, output_hidden_states=True).hidden_states if output_hidden_states else None)

    encoder._model = OnlyStates()
    np.testing.assert_allclose(encoder.encode(["abc"], role="query"), expected, atol=1e-5)


def test_facts_come_from_the_call_then_the_table(thinker: Path, tmp_path: Path) -> None:
    named = tmp_path / "omni-embed-nemotron-3b"
    shutil.copytree(thinker, named)
    settings = encoder_of(named).spec.settings
    assert (settings["pooling"], settings["document_prefix"], settings["bidirectional"]) == ("mean", "passage: ", True)
    assert (settings["audio_prefix"], settings["audio_suffix"]) == ("", "")
    assert encoder_of(named, pooling="last", document_prefix="").spec.settings["pooling"] == "last"
    shutil.copytree(thinker, tmp_path / "LCO-Embedding-Omni-3B")
    lco = encoder_of(tmp_path / "LCO-Embedding-Omni-3B").spec.settings
    assert (lco["pooling"], lco["audio_suffix"]) == ("last", "\nSummarize the above audio in one word:")
    unknown = encoder_of(thinker).spec.settings
    assert (unknown["pooling"], unknown["document_prefix"], unknown["audio_suffix"]) == ("last", "", "")


def test_the_spec_says_what_decides_and_loads_no_weights(folder: Path, tmp_path: Path) -> None:
    encoder = encoder_of(folder)
    spec = encoder.spec
    assert "_model" not in vars(encoder)
    assert encoder.sample_rate == RATE
    assert (spec.kind, spec.backend, spec.name) == ("audio_text_encoder", "chat-template", folder.name)
    moved = tmp_path / folder.name
    shutil.copytree(folder, moved)
    assert ChatTemplateEncoder(str(moved), batch_size=3).spec == spec
    assert str(folder.parent) not in json.dumps(spec.as_dict())
    others: list[dict[str, Any]] = [
        {"pooling": "mean"},
        {"audio_suffix": "x"},
        {"system_prompt": "x"},
        {"add_generation_prompt": False},
        {"dtype": "bfloat16"},
        {"chat_template": "{{ messages }}"},
    ]
    prints = {encoder_of(folder, **options).spec.fingerprint for options in others}
    assert len(prints | {spec.fingerprint}) == len(others) + 1


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"mixed_precision": "bf16"}])
def test_shorter_numbers_give_unit_vectors_near_the_full_ones(folder: Path, options: dict[str, Any]) -> None:
    clip = sound(0.8, 2)
    full, short = encoder_of(folder, pooling="mean"), encoder_of(folder, pooling="mean", **options)
    a, b = (encoder.encode_audio([clip], language="en")[0] for encoder in (full, short))
    assert np.linalg.norm(b) == pytest.approx(1, abs=1e-6)
    assert 0.9 < float(a @ b) < 1 - 1e-9
    assert short.encode(["abc"], role="query").dtype == np.float32


def test_device_maps_are_passed_on(folder: Path) -> None:
    mapped = ChatTemplateEncoder(folder, device_map="cpu")
    np.testing.assert_allclose(
        mapped.encode(["abc"], role="query"), encoder_of(folder).encode(["abc"], role="query"), atol=1e-6
    )


def test_experts_hear_one_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = audio_models.Architecture(alone=True)
    monkeypatch.setattr(
        "squtr.harness.components.encoders.chat_template.ARCHITECTURES",
        dict.fromkeys(("qwen2_audio", "qwen2_5_omni_thinker"), row),
    )
    encoder = encoder_of(folder, batch_size=8)
    sizes: list[int] = []
    pooled = encoder._pooled
    encoder._pooled = lambda batch, **options: (sizes.append(len(batch)), pooled(batch, **options))[1]  # type: ignore[method-assign, assignment]
    encoder.encode(["a", "b", "c"], role="query")
    assert sizes == [1, 1, 1]


def test_a_template_can_be_given_and_must_exist(folder: Path, tmp_path: Path) -> None:
    bare = "{% for m in messages %}{% for c in m['content'] %}{{ c['text'] }}{% endfor %}{% endfor %}"
    encoder = encoder_of(folder, chat_template=bare, pooling="mean")
    mean = states(folder, "abc").mean(axis=0)
    np.testing.assert_allclose(encoder.encode(["abc"], role="query")[0], unit(mean), atol=1e-4)
    (tmp_path / "none").mkdir()
    with pytest.raises(ModelError, match=r"none is no model.*config\.json|holds no weights"):
        _ = encoder_of(tmp_path / "none").spec


def test_loading_and_encoding_show_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    encoder = encoder_of(folder)
    encoder.encode_audio([sound(0.2, 0)], language="en")
    encoder.encode(["abc"], role="query")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("options", [{"pooling": "max"}, {"max_seconds": 0.0}, {"max_tokens": 0}, {"dtype": "int8"}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ChatTemplateEncoder("someone/omni", **options)
