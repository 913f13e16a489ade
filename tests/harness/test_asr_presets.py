"""Published decode settings are constructor options."""

from __future__ import annotations

import pytest

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.presets import PRESETS, preset

BACKENDS = ("faster-whisper", "transformers", "openai-whisper")


@pytest.mark.parametrize(("name", "written"), [(name, key) for name in PRESETS for key in PRESETS[name].options])
def test_every_preset_constructs_its_backend(name: str, written: str) -> None:
    # A constructor refuses options that it does not know or that contradict each other.
    backend, _, model = written.partition(":")
    model = model or "whisper-base"
    assert load_transcriber(f"{backend}:{model}", **preset(name, backend, model)) is not None


def test_models_of_one_backend_may_differ() -> None:
    assert preset("squtr", "funasr", "sensevoice-small")["language"] == "auto"
    nano = preset("squtr", "funasr", "FunAudioLLM/Fun-ASR-Nano-2512")
    assert (nano["itn"], "language" in nano) == (True, False)
    with pytest.raises(UsageError, match=r"funasr:paraformer-en' cannot decode as 'squtr'.*funasr:fun-asr-nano"):
        preset("squtr", "funasr", "paraformer-en")


def test_the_published_numbers() -> None:
    reverb = preset("whisper-rir-mega", "openai-whisper")
    published = {"beam_size": 5, "best_of": 5, "temperature": 0.0, "dtype": "float32"}
    assert reverb.items() >= published.items()
    assert preset("whisper-rir-mega", "faster-whisper")["best_of"] == 5
    tokens = [preset("squtr", backend) for backend in BACKENDS]
    assert [t.get("max_tokens", t.get("max_new_tokens")) for t in tokens] == [224, 256, 256]
    assert all(options["beam_size"] == 1 for options in tokens)
    assert PRESETS["whisper-rir-mega"].languages == ("en",)


def test_a_preset_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        preset("squtr", "transformers")["beam_size"] = 2  # type: ignore[index]
    dict(preset("squtr", "transformers")).clear()
    assert preset("squtr", "transformers")


def test_unknown_names_and_other_backends() -> None:
    with pytest.raises(UnknownNameError, match="Known: fallback, fast, squtr, whisper-rir-mega"):
        preset("squtrr", "transformers")
    with pytest.raises(
        UsageError, match=r"'ctc' cannot decode as 'squtr'.*faster-whisper, .*openai-whisper, .*transformers"
    ):
        preset("squtr", "ctc")
