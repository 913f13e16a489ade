"""The table of speech synthesizers."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Literal, cast

from ...errors import UsageError, unknown_name
from .protocol import Synthesizer


@dataclass(frozen=True, slots=True)
class SynthesizerBackend:
    """One engine: `path` is `module:class` within this package, `install` says how to get it.

    `candidates` takes of a query are compared by default; `vary` is what makes them differ.
    """

    name: str
    path: str
    install: str
    languages: tuple[str, ...]
    description: str
    candidates: int = 1
    vary: Literal["seed", "voice"] = "voice"


SYNTHESIZERS = {
    backend.name: backend
    for backend in (
        SynthesizerBackend(
            "espeak",
            ".espeak:EspeakSynthesizer",
            "pip install 'squtr[espeak]'",
            ("en", "es"),
            "espeak-ng: small, fast, formant speech; no weights to fetch",
        ),
        SynthesizerBackend(
            "kokoro",
            ".kokoro:KokoroSynthesizer",
            "pip install 'squtr[kokoro]'",
            ("en", "es", "zh"),
            "Kokoro-82M: neural speech, 39 voices in three languages, with onnxruntime",
            candidates=3,
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
    others = [name for name, backend in SYNTHESIZERS.items() if language in backend.languages]
    if not others:
        known = {language for backend in SYNTHESIZERS.values() for language in backend.languages}
        raise unknown_name("language", language, known)
    use = others[0]
    raise UsageError(
        f"the synthesizer {engine!r} does not speak {language!r} intelligibly.",
        hint=f"Use the synthesizer {use!r} ({SYNTHESIZERS[use].install}).",
    )
