"""Published decode settings, by name, as constructor options of a transcriber."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ....errors import UsageError, unknown_name
from ...protocols import Setting


@dataclass(frozen=True, slots=True)
class Preset:
    """How a paper decoded: the `languages` it was published for (empty: any), the `options` by backend."""

    name: str
    source: str
    languages: tuple[str, ...]
    options: Mapping[str, Mapping[str, Setting]] = field(hash=False)


_ROWS = (
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
            # Like the published decoding but for timestamps and the threshold for silence, which the package has and
            # these two do not use in a window of 30 s.
            "faster-whisper": {
                "beam_size": 5,
                "best_of": 5,
                "compute_type": "float32",
                "condition_on_previous_text": True,
                "temperature": 0.0,
            },
            # At temperature 0 best_of has no effect, and transformers no such option.
            "transformers": {"beam_size": 5, "condition_on_previous_text": True, "dtype": "float32"},
        },
    ),
    Preset(
        "squtr",
        "SQuTR: greedy, language forced, at most 256 tokens. The number format is left to the machine: the paper has "
        "fp16, the released code an fp8 cache.",
        (),
        {
            # 256 tokens where the engine writes so many: CTranslate2 ends at 224.
            "openai-whisper": {
                "beam_size": 1,
                "condition_on_previous_text": False,
                "max_tokens": 256,
                "no_speech_threshold": None,
                "temperature": 0.0,
                "timestamps": False,
            },
            "faster-whisper": {"beam_size": 1, "max_tokens": 224, "temperature": 0.0},
            "transformers": {"beam_size": 1, "max_new_tokens": 256},
        },
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({row.name: row for row in _ROWS})


def preset(name: str, backend: str) -> Mapping[str, Setting]:
    """Constructor options of `backend` that decode as `name` was published.

    Raises `UnknownNameError` that lists the presets, `UsageError` for a backend that cannot decode so.

    >>> preset("squtr", "transformers")["max_new_tokens"]
    256
    >>> preset("squtr", "ctc")
    Traceback (most recent call last):
    ...
    squtr.errors.UsageError: the backend 'ctc' cannot decode as 'squtr' was published. ...
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    options = PRESETS[name].options
    if backend not in options:
        raise UsageError(
            f"the backend {backend!r} cannot decode as {name!r} was published.",
            hint=f"Take one of {', '.join(sorted(options))}, or leave the preset out.",
        )
    return MappingProxyType(dict(options[backend]))
