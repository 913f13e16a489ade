"""Answerers: audio and a question to a reply."""

from __future__ import annotations

from collections.abc import Mapping

from ..table import BackendSpec, table_of

_HERE = "harness.components.answerers"
ANSWERERS: Mapping[str, BackendSpec] = table_of(
    BackendSpec("chat", f"{_HERE}.chat:ChatAnswerer", "torch", True),
    BackendSpec("chat-server", f"{_HERE}.server:ServerAnswerer", "openai", True),
    BackendSpec("llm", f"{_HERE}.llm:TextAnswerer", "torch", True),
    BackendSpec("embedder", f"{_HERE}.embedder:EmbedderAnswerer", "torch", True),
    BackendSpec("replies", f"{_HERE}.files:RepliesFile", "", True),
)
