"""Chat by a server with OpenAI's `/chat/completions`: OpenAI, vLLM, llama.cpp, SGLang, …

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .server_client import NoAnswerError, ServerClient

PATH = "chat/completions"


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
