"""Speech for a user's own text: engines behind one protocol, chosen by name."""

from __future__ import annotations

from .backends import SYNTHESIZERS, SynthesizerBackend, load_synthesizer
from .protocol import Synthesizer, SynthesizerSpec
from .speaking import choose_voice, finish_speech, speak_query

__all__ = [
    "SYNTHESIZERS", "Synthesizer", "SynthesizerBackend", "SynthesizerSpec", "choose_voice", "finish_speech",
    "load_synthesizer", "speak_query",
]  # fmt: skip
