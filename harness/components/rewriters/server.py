"""An LLM behind a server with OpenAI's chat protocol as a rewriter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ....errors import ModelError
from ...protocols import ComponentSpec, Rewritten
from ...text.languages import KNOWN_LANGUAGES
from ..answerers.common import MAX_NEW_TOKENS
from ..batches import require_positive
from ..server_component import ServerComponent
from ..transcribers.common import primary_code
from .common import prompt_settings, read_output
from .prompts import rewrite_prompt


class ServerRewriter(ServerComponent):
    """A model behind a URL that corrects transcripts.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). `prompt` and `n_best` are those of
    `rewrite`; the prompt is the one user message, `system_prompt` goes before it ("" for none). `temperature` None
    sends none; `max_new_tokens` is sent under the name `length_field`. The other options are those of
    `ServerComponent`.
    """

    def __init__(
        self,
        model: str,
        *,
        prompt: str = "",
        n_best: int = 1,
        system_prompt: str = "",
        temperature: float | None = 0.0,
        max_new_tokens: int = MAX_NEW_TOKENS,
        length_field: str = "max_tokens",
        **server: Any,
    ) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        self._prompt, self.n_best = rewrite_prompt(prompt, n_best), n_best
        self.own_fields = frozenset({"messages", "model", "temperature", length_field})
        super().__init__(model, **server)
        self._system_prompt, self._temperature = system_prompt, temperature
        self._max_new_tokens, self._length_field = max_new_tokens, length_field

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "length_field": self._length_field,
            "max_new_tokens": self._max_new_tokens,
            "system_prompt": self._system_prompt,
            "temperature": self._temperature,
            **prompt_settings(self._prompt, self.n_best),
            **self._server_settings,
        }
        return ComponentSpec("rewriter", "rewrite-server", self._name, self._model, self._revision, settings)

    def supports(self, language: str) -> bool:
        return primary_code(language) in KNOWN_LANGUAGES

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        def one(own: Sequence[str]) -> Rewritten:
            started = time.perf_counter()
            reply = self._server.chat(self._body(self._prompt.filled(own, language)))
            seconds = time.perf_counter() - started
            return read_output(reply.text, own, truncated=reply.truncated, seconds=seconds)

        found = self._server.each_or_error(transcripts, one, what="query", check="Check the model's name.")
        return [Rewritten("", made.message) if isinstance(made, ModelError) else made for made in found]

    def _body(self, prompt: str) -> dict[str, Any]:
        messages = [{"role": "system", "content": self._system_prompt}] if self._system_prompt else []
        messages.append({"role": "user", "content": prompt})
        body: dict[str, Any] = {"model": self._model, "messages": messages, self._length_field: self._max_new_tokens}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        return body | self._extra
