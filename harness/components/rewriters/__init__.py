"""Rewriters: transcripts to the text that is searched with."""

from __future__ import annotations

from collections.abc import Mapping

from ..answerers import ANSWERERS
from ..table import BackendSpec, table_of

_HERE = "harness.components.rewriters"
_SERVER = "harness.components.server_component:ServerComponent"
REWRITERS: Mapping[str, BackendSpec] = table_of(
    BackendSpec("rewrite", f"{_HERE}.llm:LLMRewriter", "torch", True, ANSWERERS["llm"].path),
    BackendSpec("rewrite-server", f"{_HERE}.server:ServerRewriter", "openai", True, _SERVER),
)
