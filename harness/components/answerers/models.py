"""What differs between transformers' models that take audio and text and write text, by `model_type`, as data.

Windows are those of the feature extractors: Whisper's 30 s, 300 s for Qwen2.5-Omni. Options override every fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...protocols import Setting

_QWEN_OMNI = (
    "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of perceiving auditory and "
    "visual inputs, as well as generating text and speech."
)


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """Facts about the models of one `model_type`.

    `model_class` is the class of transformers that writes text and has no half that speaks. `window_s` is the longest
    clip that it takes whole, None where the processor cuts long audio into pieces itself. `audio_as` is how a message
    holds audio: as an array, or as a WAV file in base64. `system_prompt` is what the authors write before every
    dialogue. `adapter` is the folder, beside the weights, of an adapter that must be switched on for audio. `alone`:
    what is beside a request in a batch changes its reply, so that batches hold one. `generate` are further arguments of
    `generate`.
    """

    model_class: str = "AutoModelForMultimodalLM"
    window_s: float | None = None
    audio_as: Literal["array", "base64"] = "array"
    system_prompt: str = ""
    adapter: str = ""
    alone: bool = False
    generate: Mapping[str, Setting] = field(default_factory=dict)


UNKNOWN = AnswerModel()

_OMNI_25 = AnswerModel("Qwen2_5OmniThinkerForConditionalGeneration", window_s=300.0, system_prompt=_QWEN_OMNI)
# Experts share their capacity within a batch.
_OMNI_3 = AnswerModel("Qwen3OmniMoeThinkerForConditionalGeneration", alone=True)

ANSWER_MODELS: Mapping[str, AnswerModel] = {
    "qwen2_audio": AnswerModel("Qwen2AudioForConditionalGeneration", window_s=30.0),
    "qwen2_5_omni": _OMNI_25,
    "qwen2_5_omni_thinker": _OMNI_25,
    "qwen3_omni_moe": _OMNI_3,
    "qwen3_omni_moe_thinker": _OMNI_3,
    "voxtral": AnswerModel("VoxtralForConditionalGeneration", audio_as="base64"),
    "gemma3n": AnswerModel("Gemma3nForConditionalGeneration", window_s=30.0),
    "phi4_multimodal": AnswerModel("Phi4MultimodalForCausalLM", adapter="speech-lora"),
    "audioflamingo3": AnswerModel("AudioFlamingo3ForConditionalGeneration"),
    "granite_speech": AnswerModel("GraniteSpeechForConditionalGeneration"),
}


def answer_model(model_type: str) -> AnswerModel:
    """The facts about a `model_type`, `UNKNOWN` for one that is not listed.

    >>> answer_model("qwen2_audio").window_s, answer_model("other").model_class
    (30.0, 'AutoModelForMultimodalLM')
    """
    return ANSWER_MODELS.get(model_type, UNKNOWN)
