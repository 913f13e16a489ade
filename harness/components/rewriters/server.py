"""An LLM behind a server with OpenAI's chat protocol as a rewriter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ....errors import ModelError
from ...protocols import ComponentSpec, Rewritten
from ...text.languages import KNOWN_LANGUAGES
from ..chat_server import ChatServerComponent
from ..transcribers.common import primary_code
from .common import prompt_settings, read_output
from .prompts import rewrite_prompt


class ServerRewriter(ChatServerComponent):
    """A model behind a URL that corrects transcripts.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). `prompt` and `n_best` are those of
    `rewrite`; the prompt is the one user message, `system_prompt` goes before it ("" for none). `temperature` None
    sends none; `max_new_tokens` is sent under the name `length_field`. The other options are those of
    `ServerComponent`.
    """

    def __init__(self, model: str, *, prompt: str = "", n_best: int = 1, **server: Any) -> None:
        self._prompt, self.n_best = rewrite_prompt(prompt, n_best), n_best
        super().__init__(model, **server)

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {**self._chat_settings, **prompt_settings(self._prompt, self.n_best)}
        return ComponentSpec("rewriter", "rewrite-server", self._name, self._model, self._revision, settings)

    def supports(self, language: str) -> bool:
        return primary_code(language) in KNOWN_LANGUAGES

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        def one(own: Sequence[str]) -> Rewritten:
            started = time.perf_counter()
            reply = self._server.chat(self._body(self._prompt.filled(own, language)))
            seconds = time.perf_counter() - started
            return read_output(reply.text, own, truncated=reply.truncated, seconds=seconds)

        found = self._server.each_or_error(transcripts, one, what="transcript", check="Check the model's name.")
        return [Rewritten("", made.message) if isinstance(made, ModelError) else made for made in found]
