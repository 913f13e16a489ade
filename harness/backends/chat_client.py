"""Chat by a server with OpenAI's `/chat/completions`: OpenAI, vLLM, llama.cpp, SGLang, …

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ModelError
from .server_client import NoAnswerError, ServerClient

PATH = "chat/completions"
GONE_AFTER = 5
"""So many requests in a row without an answer mean that the server is gone."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The text of the first choice, and whether the length cap cut it."""

    text: str
    truncated: bool


def chat(client: ServerClient, body: Mapping[str, Any]) -> ChatReply:
    """What the server answers to `body`. Raises as `ServerClient.post_json`, `NoAnswerError` for no text."""
    answer = client.post_json(PATH, body)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        # Some servers answer in parts, as they are asked.
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if content is None and isinstance(message, dict) and message.get("refusal"):
        content = str(message["refusal"])
    if content is None and first.get("finish_reason") == "length":
        # The cap was reached within a reasoning that the server keeps to itself.
        content = ""
    if not isinstance(content, str):
        raise NoAnswerError(
            f"{client.url}/{PATH} answered with status 200, but without a text.",
            hint="Check that the URL is that of a server with OpenAI's protocol.",
        )
    return ChatReply(content, first.get("finish_reason") == "length")


class Health:
    """Whether it is worth to go on, told by all threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._silent = self._refused = 0
        self._ever = False

    def answered(self) -> None:
        """There was a reply."""
        with self._lock:
            self._silent, self._ever = 0, True

    def refused(self, error: ModelError) -> None:
        """A request was refused for its content. Raises `ModelError` if the server refused the first ones all."""
        with self._lock:
            self._silent = 0
            self._refused += 1
            if not self._ever and self._refused >= GONE_AFTER:
                self._refused = 0
                raise ModelError(
                    f"the server refuses every request, the first {GONE_AFTER} of them: {error.message}",
                    hint="Check the model's name, and whether it takes sound.",
                ) from error

    def silent(self, error: ModelError) -> None:
        """There was no answer. Raises `ModelError` after `GONE_AFTER` in a row."""
        with self._lock:
            self._silent += 1
            if self._silent >= GONE_AFTER:
                self._silent = 0
                raise ModelError(
                    f"{GONE_AFTER} requests in a row had no answer from {self._url}, the last because {error.message}",
                    hint="Start the server again and run again: what was done is kept.",
                ) from error
