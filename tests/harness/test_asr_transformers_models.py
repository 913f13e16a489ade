"""Speech-to-text models of transformers other than Whisper: real classes with small random weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components.transcribers.transformers import TransformersTranscriber
from squtr.harness.components.transcribers.transformers_models import ARCHITECTURES, REFUSED

from .moonshine_for_tests import save_tiny_moonshine
from .speech_to_text_for_tests import KINDS, save_tiny
from .whisper_for_tests import speechlike

CLIPS = [speechlike(seconds, seed) for seed, seconds in enumerate((1.5, 1.5, 0.9))]
CAP = 8
LANGUAGES = {"speech_to_text": ("de", "es")}
TOLD = ["en", "es", "de"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root, made = tmp_path_factory.mktemp("models"), dict[str, Path]()

    def folder(kind: str) -> Path:
        if kind not in made:
            path = root / kind
            made[kind] = save_tiny_moonshine(path) if kind == "moonshine" else save_tiny(path, kind)
        return made[kind]

    return folder


def transcriber(folder: Path, **options: Any) -> TransformersTranscriber:
    options = {"device": "cpu", "threads": 1, "max_new_tokens": CAP, "languages": TOLD, **options}
    return TransformersTranscriber(folder, **options)


def test_the_table_has_every_architecture_of_the_library() -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES as known

    assert {*known} - {*ARCHITECTURES, *REFUSED} == {"whisper"}
    assert not {*ARCHITECTURES} & {*REFUSED}
    assert {*ARCHITECTURES} == {*KINDS, "moonshine"}


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_transcribes(saved: Callable[[str], Path], kind: str) -> None:
    code = LANGUAGES.get(kind, ("en",))[0]
    together = transcriber(saved(kind), batch_size=4)
    found = together.transcribe(CLIPS, language=code)
    assert [t.error for t in found] == [""] * len(CLIPS)
    alone = transcriber(saved(kind), batch_size=1).transcribe(CLIPS, language=code)
    assert [t.text for t in alone] == [t.text for t in found]
    # The likeliest tokens of random weights may be the same; how likely they are depends on the clip.
    assert len({t.confidence for t in found}) == len(CLIPS)
    np.testing.assert_allclose([t.confidence for t in alone], [t.confidence for t in found], rtol=1e-3)
    assert all(0 < t.confidence <= 1 for t in found if t.text)
    assert any(t.truncated for t in found)
    # The beam's best of several is that of one.
    several = transcriber(saved(kind), beam_size=3, n_best=2).transcribe(CLIPS[:1], language=code)[0]
    assert several.hypotheses[0].text == several.text
    assert several.text == transcriber(saved(kind), beam_size=3).transcribe(CLIPS[:1], language=code)[0].text


def prompts(model: TransformersTranscriber, code: str) -> list[str]:
    """The tokens that each of `CLIPS[:2]` is decoded from."""
    decoder = getattr(model._model, "get_decoder", lambda: model._model)()
    seen: list[list[int]] = []

    def look(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        ids = named.get("input_ids", arguments[0] if arguments else None)
        if not seen and ids is not None:
            seen.extend(ids.tolist())

    asked: dict[str, Any] = {}
    generate = model._model.generate
    hook = decoder.register_forward_pre_hook(look, with_kwargs=True)
    model._model.generate = lambda **named: (asked.update(named), generate(**named))[1]
    try:
        model.transcribe(CLIPS[:2], language=code)
    finally:
        hook.remove()
        del model._model.generate
    if "forced_bos_token_id" in asked:
        seen = [[*row, asked["forced_bos_token_id"]] for row in seen]
    if "input_ids" in asked:  # a language model is given embeddings, not these
        seen = asked["input_ids"].tolist()
    return ["".join(model._processor.tokenizer.convert_ids_to_tokens(row)) for row in seen]


@pytest.mark.parametrize(
    ("kind", "code", "other", "token"),
    [
        ("canary", "en", "es", "<|startofcontext|><|startoftranscript|><|en|><|en|><|pnc|>"),
        ("cohere_asr", "en", "es", "<|emo:undefined|><|en|><|en|><|pnc|>"),
        ("omniasr", "en", "es", "<|lang:eng_latn|>"),
        ("seamless_m4t", "en", "es", "</s>__eng__"),
        ("seamless_m4t_v2", "zh", "en", "</s>__cmn__"),
        ("speech_to_text", "de", "es", "</s><lang:de>"),
    ],
)
def test_the_language_reaches_the_decoder(
    saved: Callable[[str], Path], kind: str, code: str, other: str, token: str
) -> None:
    model = transcriber(saved(kind), languages=[])
    if not ARCHITECTURES[kind].languages:
        model = transcriber(saved(kind), languages=[code, other])
    in_code, in_other = prompts(model, code), prompts(model, other)
    assert len(in_code) == 2
    assert all(token in row for row in in_code)
    assert not any(token in row for row in in_other)
    assert "language" not in model.spec.settings


@pytest.mark.parametrize("kind", ["moonshine", "moonshine_streaming", "speecht5"])
def test_what_is_told_no_language_says_so(saved: Callable[[str], Path], kind: str) -> None:
    model = transcriber(saved(kind))
    assert model.spec.settings["language"] == "not forced"
    assert prompts(model, "en") == prompts(model, "es")
    with pytest.raises(UsageError, match="does not say which languages"):
        transcriber(saved(kind), languages=[]).supports("en")


def test_languages_are_the_architectures_or_the_checkpoints(saved: Callable[[str], Path], tmp_path: Path) -> None:
    assert transcriber(saved("canary"), languages=[]).supports("es")
    assert not transcriber(saved("canary"), languages=[]).supports("zh")
    with pytest.raises(ModelError, match=r"no token for the language 'en'\..*de, es, fr"):
        transcriber(saved("speech_to_text")).transcribe(CLIPS[:1], language="en")
    with pytest.raises(ModelError, match=r"no token for the language 'fra' \(fr\)"):
        transcriber(saved("seamless_m4t"), languages=[]).transcribe(CLIPS[:1], language="fr")
    # transformers drops the table of languages of a file that says that it was made from the model's configuration.
    folder = tmp_path / "marked"
    shutil.copytree(saved("seamless_m4t"), folder)
    file = folder / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "_from_model_config": True}))
    assert prompts(transcriber(folder), "es") == prompts(transcriber(saved("seamless_m4t")), "es")


def test_a_long_clip_is_joined_from_the_processors_pieces(saved: Callable[[str], Path]) -> None:
    model = transcriber(saved("cohere_asr"), max_new_tokens=4)  # its extractor cuts at 3 s
    long = [speechlike(6.5, 3), speechlike(6.5, 4)]
    found = model.transcribe(long, language="en")
    assert [t.error for t in found] == ["", ""]
    assert [t.text for clip in long for t in model.transcribe([clip], language="en")] == [t.text for t in found]
    short = model.transcribe([long[0][: 16_000 * 2]], language="en")[0]
    assert len(found[0].text) > len(short.text)


def test_what_is_not_listed_is_refused(saved: Callable[[str], Path], tmp_path: Path) -> None:
    def retyped(model_type: str) -> Path:
        folder = tmp_path / model_type
        shutil.copytree(saved("speecht5"), folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "model_type": model_type}))
        return folder

    for model_type, why in (("granite_speech", "torchaudio"), ("dia", "writes no text"), ("qwen3_asr", "'qwen-asr'")):
        folder = retyped(model_type)
        for options in ({}, {"unlisted": True}):
            with pytest.raises(
                ModelError, match=rf"is a '{model_type}' of transformers.*{why}.*Known: canary.*whisper"
            ):
                _ = transcriber(folder, **options).spec
    with pytest.raises(ModelError, match=r"'mine'.*not known here.*unlisted=True"):
        _ = transcriber(retyped("mine")).spec
    told = transcriber(tmp_path / "mine", unlisted=True).spec
    assert (told.settings["unlisted"], told.settings["asked"]) == (True, "audio alone")


def test_weights_for_other_tasks_are_left(saved: Callable[[str], Path], tmp_path: Path) -> None:
    """A checkpoint of SeamlessM4T holds what writes speech too, which is not needed; anything else is an error."""
    import torch
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "whole"
    shutil.copytree(saved("seamless_m4t_v2"), folder)
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "t2u_model.x": torch.zeros(1), "vocoder.x": torch.zeros(1)}, folder / "model.safetensors")
    assert transcriber(folder).transcribe(CLIPS[:1], language="en")[0].error == ""
    save_file({**weights, "speech_encoder.x": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"does not take .speech_encoder\.x"):
        transcriber(folder).transcribe(CLIPS[:1], language="en")
