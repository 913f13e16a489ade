"""Decode settings with a name, published ones among them, as constructor options of a transcriber."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ....errors import UsageError, unknown_name
from ...protocols import Setting
from .funasr_models import short_name
from .whisper import TEMPERATURES


@dataclass(frozen=True, slots=True)
class Preset:
    """How a paper decoded, or a setting that many use.

    `languages` are those it was published for (empty: any), `options` those by backend or, where they differ between a
    backend's models, by `<backend>:<short name of the model>`.
    """

    name: str
    source: str
    languages: tuple[str, ...]
    options: Mapping[str, Mapping[str, Setting]] = field(hash=False)


_GREEDY: Mapping[str, Setting] = {
    "beam_size": 1,
    "best_of": 1,
    "compression_ratio_threshold": None,
    "condition_on_previous_text": False,
    "no_speech_threshold": None,
    "temperature": 0.0,
    "timestamps": False,
}

_ROWS = (
    Preset(
        "fast",
        "Greedy, one window without timestamps per clip of up to 30 s, many clips in a batch. A window ends at its "
        "first end token, so what follows a pause may be lost, and nothing marks it: for clips of one sentence. Equals "
        "faster-whisper's transcribe with without_timestamps=True, beam_size=1, temperature=0 and "
        "no_speech_threshold=None, and transformers' pipeline with num_beams=1.",
        (),
        {
            "faster-whisper": {**_GREEDY, "log_prob_threshold": None},
            "transformers": {"beam_size": 1, "timestamps": False},
        },
    ),
    Preset(
        "fallback",
        "Whisper (arXiv 2212.04356, section 4.5) as OpenAI's command line has it: beam 5, timestamps, and a window "
        "that repeats itself or is improbable is decoded again at rising temperatures. In transformers, whose "
        "compression ratio is one of token ids, the thresholds that the model cards of openai/whisper-large-v3 give.",
        (),
        {
            "openai-whisper": {"beam_size": 5, "best_of": 5},
            "faster-whisper": {},
            "transformers": {
                "beam_size": 5,
                "compression_ratio_threshold": 1.35,
                "condition_on_previous_text": True,
                "logprob_threshold": -1.0,
                "no_speech_threshold": 0.6,
                "temperature": list(TEMPERATURES),
                "timestamps": True,
            },
        },
    ),
    Preset(
        "whisper-rir-mega",
        "Whisper-RIR-Mega: openai-whisper's transcribe with beam 5, best_of 5, temperature 0, language en, fp16 off. "
        "Its other settings are the package's defaults; one temperature means that no window is decoded again.",
        ("en",),
        {
            "openai-whisper": {
                "beam_size": 5,
                "best_of": 5,
                "condition_on_previous_text": True,
                "dtype": "float32",
                "temperature": 0.0,
            },
            "faster-whisper": {
                "beam_size": 5,
                "best_of": 5,
                "compute_type": "float32",
                "condition_on_previous_text": True,
                "temperature": 0.0,
            },
            # At temperature 0 best_of has no effect, and transformers no such option. Beside the text before a window
            # there is room for 221 tokens, as in the package, which cuts at its context.
            "transformers": {
                "beam_size": 5,
                "condition_on_previous_text": True,
                "dtype": "float32",
                "logprob_threshold": -1.0,
                "max_new_tokens": 221,
                "no_speech_threshold": 0.6,
                "temperature": 0.0,
                "timestamps": True,
            },
        },
    ),
    Preset(
        "squtr",
        "SQuTR: greedy, language forced, at most 256 tokens, one window without timestamps, fp16. Where a CPU has no "
        "float16, float32 is used; the result says which. Models of FunASR as the released code asks them: float32, "
        "no language forced on SenseVoice.",
        (),
        {
            # 256 tokens where the engine writes so many: CTranslate2 ends at 224.
            "openai-whisper": {**_GREEDY, "dtype": "auto", "logprob_threshold": None, "max_tokens": 256},
            "faster-whisper": {**_GREEDY, "compute_type": "gpu_float16", "log_prob_threshold": None, "max_tokens": 224},
            "transformers": {"beam_size": 1, "dtype": "float16", "max_new_tokens": 256, "timestamps": False},
            "funasr:sensevoice-small": {"batch_size": 1, "dtype": "float32", "itn": False, "language": "auto"},
            "funasr:paraformer-large": {"batch_size": 1, "dtype": "float32"},
            "funasr:paraformer-zh": {"batch_size": 1, "dtype": "float32", "hub": "ms"},
            "funasr:fun-asr-nano": {"dtype": "float32", "itn": True, "max_length": 512},
            "glm-asr": {"dtype": "float16", "max_new_tokens": 500},
            "qwen-asr": {"dtype": "bfloat16", "max_new_tokens": 256},
        },
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({row.name: row for row in _ROWS})


def preset(name: str, backend: str, model: str = "") -> Mapping[str, Setting]:
    """Constructor options of `backend` (for `model`, where its models differ) that decode as `name` says.

    Raises `UnknownNameError` that lists the presets, `UsageError` for a backend or model that cannot decode so.

    >>> preset("squtr", "transformers")["max_new_tokens"]
    256
    >>> preset("squtr", "funasr", "iic/SenseVoiceSmall")["itn"]
    False
    >>> preset("squtr", "ctc")
    Traceback (most recent call last):
    ...
    squtr.errors.UsageError: 'ctc' cannot decode as 'squtr' does. ...
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    options = PRESETS[name].options
    exact = f"{backend}:{short_name(model)}"
    found = options.get(exact, options.get(backend))
    if found is None:
        raise UsageError(
            f"{f'{backend}:{model}' if model else backend!r} cannot decode as {name!r} does.",
            hint=f"Take one of {', '.join(sorted(options))}, or leave the preset out.",
        )
    return MappingProxyType(dict(found))
