"""The speech-to-text architectures of transformers: how each is told what to write, and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ....errors import ModelError

Asked = Literal[
    "audio alone",  # the model knows one language, or finds out which it is
    "request",  # the processor's `apply_transcription_request`
    "processor",  # the processor's call makes the decoder's first tokens
    "generate",  # an argument of it
    "first token",  # the tokenizer's token of the language is forced as the first
]


@dataclass(frozen=True, slots=True)
class Architecture:
    """How a model type is asked for a transcript.

    `argument` takes the language. `languages` are the model's names of languages by code: empty, those that the user
    tells. `model_class` is transformers'. `unused`: patterns of weights that the class leaves by design.
    """

    asked: Asked
    argument: str = ""
    languages: Mapping[str, str] = field(default_factory=dict, hash=False)
    model_class: str = "AutoModelForSpeechSeq2Seq"
    unused: tuple[str, ...] = ()


def _same(codes: str) -> Mapping[str, str]:
    return {code: code for code in codes.split()}


# NLLB's and SeamlessM4T's names, where they are not ISO 639-3's macrolanguages.
_SEAMLESS = {
    **{"ar": "arb", "bg": "bul", "bn": "ben", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell"},
    **{"en": "eng", "es": "spa", "et": "est", "fa": "pes", "fi": "fin", "fr": "fra", "he": "heb", "hi": "hin"},
    **{"hr": "hrv", "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "ko": "kor", "lt": "lit", "ms": "zsm"},
    **{"nl": "nld", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk", "sl": "slv", "sv": "swe"},
    **{"sw": "swh", "ta": "tam", "te": "tel", "th": "tha", "tr": "tur", "uk": "ukr", "ur": "urd", "vi": "vie"},
    **{"yue": "yue", "zh": "cmn"},
}
_CANARY = _same("bg cs da de el en es et fi fr hr hu it lt lv mt nl pl pt ro ru sk sl sv uk")
# Checkpoints of all tasks hold what writes speech, and reads text, beside what these classes take.
_OTHER_TASKS = (r"text_encoder\.", r"t2u_model\.", r"vocoder\.")
ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "canary": Architecture("request", "source_language", _CANARY),
        "cohere_asr": Architecture("processor", "language", _same("ar de el en es fr it ja ko nl pl pt vi zh")),
        "moonshine": Architecture("audio alone"),
        "moonshine_streaming": Architecture("audio alone"),
        "omniasr": Architecture("request", "language"),
        "seamless_m4t": Architecture("generate", "tgt_lang", _SEAMLESS, "SeamlessM4TForSpeechToText", _OTHER_TASKS),
        "seamless_m4t_v2": Architecture(
            "generate", "tgt_lang", _SEAMLESS, "SeamlessM4Tv2ForSpeechToText", _OTHER_TASKS
        ),
        "speech-encoder-decoder": Architecture("first token"),
        "speech_to_text": Architecture("first token"),
        "speecht5": Architecture("audio alone", model_class="SpeechT5ForSpeechToText"),
    }
)

_NO_TEXT = "it writes no text"
_STREAMING = "it writes while audio comes in, a few tokens behind"
_SPEAKERS = "it writes who spoke when, in a format of its own"
_TORCHAUDIO = "its features need torchaudio, with which it was never seen here: serve it, and take the backend 'server'"
_OTHER = "the backend {!r} runs it"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "audioflamingo3": "it answers questions: give it as an answerer",
        "dia": _NO_TEXT,
        "fun_asr_nano": _OTHER.format("funasr"),
        "granite_speech": _TORCHAUDIO,
        "granite_speech_plus": _TORCHAUDIO,
        "glmasr": _OTHER.format("glm-asr"),
        "kyutai_speech_to_text": _STREAMING,
        "moss_transcribe_diarize": _SPEAKERS,
        "phi4_multimodal": "it answers questions: give it as an answerer",
        "pop2piano": _NO_TEXT,
        "qwen2_audio": "it answers questions: give it as an answerer",
        "qwen3_asr": _OTHER.format("qwen-asr"),
        "vibevoice": _NO_TEXT,
        "vibevoice_asr": _SPEAKERS,
        "voxtral": "its request is made by the package mistral-common: serve it, and take the backend 'server'",
        "voxtral_realtime": _STREAMING,
    }
)


def architecture(model_type: str, name: str, *, unlisted: bool = False) -> Architecture:
    """How models of a type are asked. Raises `ModelError` for one that is not run here.

    With `unlisted` a model that is in no table is given the audio alone.
    """
    known = ARCHITECTURES.get(model_type)
    if known is not None:
        return known
    why = REFUSED.get(model_type, "how it is told the language is not known here")
    if unlisted and model_type not in REFUSED:
        return Architecture("audio alone")
    raise ModelError(
        f"the model {name} is a {model_type!r} of transformers, which this backend does not run: {why}.",
        hint=f"Known: {', '.join(sorted((*ARCHITECTURES, 'whisper')))}. Write a transcriber of your own for another "
        "(class:<module>:<class>)"
        + ("." if model_type in REFUSED else ", or give it the audio alone, at your own risk: unlisted=True."),
    )
