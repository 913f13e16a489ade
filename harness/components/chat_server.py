"""What the components behind a server with OpenAI's chat protocol share: the body of a request, and its settings."""

from __future__ import annotations

from typing import Any

from ..protocols import Setting
from .batches import require_positive
from .generation import MAX_NEW_TOKENS
from .server_component import ServerComponent


class ChatServerComponent(ServerComponent):
    """`system_prompt` goes before the one user message ("" for none). `temperature` None sends none; `max_new_tokens`
    is sent under the name `length_field`.
    """

    def __init__(
        self,
        model: str,
        *,
        system_prompt: str = "",
        temperature: float | None = 0.0,
        max_new_tokens: int = MAX_NEW_TOKENS,
        length_field: str = "max_tokens",
        **server: Any,
    ) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        self.own_fields = frozenset({"messages", "model", "temperature", length_field})
        super().__init__(model, **server)
        self._system_prompt, self._temperature = system_prompt, temperature
        self._max_new_tokens, self._length_field = max_new_tokens, length_field

    @property
    def _chat_settings(self) -> dict[str, Setting]:
        return {
            "length_field": self._length_field,
            "max_new_tokens": self._max_new_tokens,
            "system_prompt": self._system_prompt,
            "temperature": self._temperature,
            **self._server_settings,
        }

    def _body(self, content: Any) -> dict[str, Any]:
        """The request with this content (a text, or parts) as the user's message."""
        messages = [{"role": "system", "content": self._system_prompt}] if self._system_prompt else []
        messages.append({"role": "user", "content": content})
        body: dict[str, Any] = {"model": self._model, "messages": messages, self._length_field: self._max_new_tokens}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        return body | self._extra
