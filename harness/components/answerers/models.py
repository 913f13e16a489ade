"""What differs between transformers' models that take audio and text and write text, by `model_type`, as data.

Windows are those of the feature extractors and processors: Whisper's 30 s, 300 s for Qwen2.5-Omni. Options override
every fact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ....errors import UsageError

_QWEN_OMNI = (
    "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of perceiving auditory and "
    "visual inputs, as well as generating text and speech."
)


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """Facts about the models of one `model_type`.

    `model_class` is the class of transformers that writes text and has no half that speaks. `window_s` is the longest
    clip that it takes whole, None where the processor cuts long audio into pieces itself, without a limit; a smaller
    limit of the folder's own processor holds. `max_clips` is how many clips a message may hold, None for any.
    `audio_as` is how a message holds audio: as an array, or as a WAV file in base64. `system_prompt` is what the
    authors write before every dialogue. `adapter` is the folder, beside the weights, of an adapter that is on for
    requests with audio; `needs` are packages that audio needs beside the extra `torch`. `alone`: what is beside a
    request in a batch changes its reply, so that batches hold one. `masks_padding`: silence behind a clip does not
    reach the model, so that it need not be padded to the whole window.
    """

    model_class: str
    window_s: float | None = None
    max_clips: int | None = None
    audio_as: Literal["array", "base64"] = "array"
    system_prompt: str = ""
    adapter: str = ""
    needs: tuple[str, ...] = ()
    alone: bool = False
    masks_padding: bool = False


_OMNI_25 = AnswerModel(
    "Qwen2_5OmniThinkerForConditionalGeneration", window_s=300.0, system_prompt=_QWEN_OMNI, masks_padding=True
)
# Experts share their capacity within a batch.
_OMNI_3 = AnswerModel("Qwen3OmniMoeThinkerForConditionalGeneration", alone=True)

ANSWER_MODELS: Mapping[str, AnswerModel] = {
    "qwen2_audio": AnswerModel("Qwen2AudioForConditionalGeneration", window_s=30.0),
    "qwen2_5_omni": _OMNI_25,
    "qwen2_5_omni_thinker": _OMNI_25,
    "qwen3_omni_moe": _OMNI_3,
    "qwen3_omni_moe_thinker": _OMNI_3,
    "voxtral": AnswerModel("VoxtralForConditionalGeneration", audio_as="base64", needs=("mistral_common",)),
    "gemma3n": AnswerModel("Gemma3nForConditionalGeneration", window_s=30.0, needs=("timm",)),
    "gemma4": AnswerModel("Gemma4ForConditionalGeneration", window_s=30.0),
    "gemma4_unified": AnswerModel("Gemma4UnifiedForConditionalGeneration", window_s=30.0),
    "nemotron_h_omni": AnswerModel("NemotronH_Omni_Reasoning_V3"),
    "audioflamingo3": AnswerModel("AudioFlamingo3ForConditionalGeneration", window_s=600.0, max_clips=1),
    "musicflamingo": AnswerModel("MusicFlamingoForConditionalGeneration", window_s=1200.0, max_clips=1),
    # Silence behind a shorter clip of a batch reaches the encoder.
    "phi4_multimodal": AnswerModel("Phi4MultimodalForCausalLM", adapter="speech-lora", alone=True),
    "granite_speech": AnswerModel("GraniteSpeechForConditionalGeneration", needs=("torchaudio",), alone=True),
    "granite_speech_plus": AnswerModel("GraniteSpeechPlusForConditionalGeneration", needs=("torchaudio",), alone=True),
}

_TRANSCRIBES = "It transcribes and answers no questions: use it as a transcriber, and ask an LLM (… + llm:MODEL)."
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("canary", "cohere_asr", "fun_asr_nano", "glmasr", "granite_speech5", "kyutai_speech_to_text"),
            *("moss_transcribe_diarize", "nemo_speechlm", "omniasr", "qwen3_asr", "vibevoice_asr"),
            *("voxtral_realtime", "whisper"),
        ),
        _TRANSCRIBES,
    ),
    "phi4mm": "This is Phi-4 Multimodal in the form that comes with code of its own: give its form for transformers, "
    "revision refs/pr/70 of microsoft/Phi-4-multimodal-instruct.",
}
"""What cannot be asked, by `model_type`, and what to do instead."""


def answer_model(model_type: str, model_class: str | None = None) -> AnswerModel:
    """The facts about a `model_type`; `model_class` is the class that the user gives for one that is not listed.

    Raises `UsageError` for a `model_type` that cannot be asked, and without `model_class` for one that is not listed.

    >>> answer_model("qwen2_audio").window_s, answer_model("other", "OtherModel").model_class
    (30.0, 'OtherModel')
    """
    if model_type in ANSWER_MODELS:
        return ANSWER_MODELS[model_type]
    if model_type in REFUSED and model_class is None:
        raise UsageError(f"a model of the type {model_type!r} cannot be asked.", hint=REFUSED[model_type])
    if model_class is None:
        raise UsageError(
            f"how a model of the type {model_type!r} is asked is not known.",
            hint=f"Known: {', '.join(ANSWER_MODELS)}. Or give model_class, the class of transformers that takes audio "
            "and writes text: the self-check then says whether it answers.",
        )
    # The window is that of its feature extractor, if that has one.
    return AnswerModel(model_class, window_s=math.inf)
