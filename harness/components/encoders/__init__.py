"""Encoders: text, or audio and text, to vectors in one space."""

from __future__ import annotations

from collections.abc import Mapping

from ..table import BackendSpec, table_of

_HERE = "harness.components.encoders"
ENCODERS: Mapping[str, BackendSpec] = table_of(
    BackendSpec("sentence-transformers", f"{_HERE}.sentence_transformers:SentenceTransformerEncoder", "torch", True),
    BackendSpec("server", f"{_HERE}.server:ServerEncoder", "openai", True),
    BackendSpec("mteb", "harness.mteb.reverse:MtebTextEncoder", "mteb", True),
)
AUDIO_TEXT_ENCODERS: Mapping[str, BackendSpec] = table_of(
    BackendSpec("clap", f"{_HERE}.clap:ClapEncoder", "torch", True),
    BackendSpec("chat-template", f"{_HERE}.chat_template:ChatTemplateEncoder", "torch", True),
    BackendSpec("sentence-transformers-audio", f"{_HERE}.audio_sentence_transformers:MultimodalEncoder", "torch", True),
    BackendSpec("mteb", "harness.mteb.reverse:MtebAudioTextEncoder", "mteb", True),
)
