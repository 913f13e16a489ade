"""Answers by a server with OpenAI's chat protocol; audio goes as `input_audio` parts."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ....errors import ModelError
from ....loaders.records import Samples
from ...protocols import AnswerRequest, ComponentSpec, Reply
from ..batches import require_positive
from ..server_component import ServerComponent, audio_file
from ..transcribers.common import SAMPLE_RATE, primary_code
from .common import MAX_NEW_TOKENS, AudioLimit, LongAudio, in_pieces, request_fault


class ServerAnswerer(ServerComponent):
    """A model behind a URL.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). A request is one user message: each clip,
    with its name before it, then the prompt; without clips the message is a plain text. A clip is 16-bit mono WAV at
    16 kHz in base64; one that would clip is scaled, as a whole, to fit. `system_prompt` goes before it ("" for none).
    `temperature` None sends none; `max_new_tokens` is sent under the name `length_field`; `extra` are further fields of
    the body, such as `modalities`. `languages` are the codes that the model knows, () for any.

    `max_seconds`, `total_seconds` and `long_audio` are those of `chat`; without `max_seconds` clips are sent whole. The
    other options are those of `ServerComponent`.
    """

    sample_rate = SAMPLE_RATE

    def __init__(
        self,
        model: str,
        *,
        system_prompt: str = "",
        temperature: float | None = 0.0,
        max_new_tokens: int = MAX_NEW_TOKENS,
        length_field: str = "max_tokens",
        languages: Sequence[str] = (),
        long_audio: LongAudio = "truncate",
        max_seconds: float | None = None,
        total_seconds: float | None = None,
        timeout_s: float = 300.0,
        **server: Any,
    ) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        self.own_fields = frozenset({"messages", "model", "temperature", length_field})
        super().__init__(model, timeout_s=timeout_s, **server)
        self._limit = AudioLimit(max_seconds, total_seconds, long_audio)
        self._system_prompt, self._temperature = system_prompt, temperature
        self._max_new_tokens, self._length_field = max_new_tokens, length_field
        self._languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "audio": "wav, 16 bit",
            "length_field": self._length_field,
            "max_new_tokens": self._max_new_tokens,
            "sample_rate": SAMPLE_RATE,
            "system_prompt": self._system_prompt,
            "temperature": self._temperature,
            **self._limit.settings(),
            **self._server_settings,
        }
        return ComponentSpec("answerer", "chat-server", self._name, self._model, self._revision, settings)

    def supports(self, language: str) -> bool:
        return not self._languages or primary_code(language) in self._languages

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        replies = [Reply("", error=request_fault(request)) for request in requests]
        usable = [i for i, reply in enumerate(replies) if not reply.error]
        found = self._server.each_or_error(
            [requests[i] for i in usable],
            self._reply,
            what="request",
            check="Check the model's name, and whether it takes audio.",
        )
        for i, reply in zip(usable, found, strict=True):
            replies[i] = Reply("", error=reply.message) if isinstance(reply, ModelError) else reply
        return replies

    def _reply(self, request: AnswerRequest) -> Reply:
        pieces, cut = in_pieces(request, self._limit, SAMPLE_RATE)
        started = time.perf_counter()
        reply = self._server.chat(self._body(request, [(piece.name, piece.samples) for piece in pieces]))
        seconds = time.perf_counter() - started
        return Reply(reply.text.strip(), truncated=reply.truncated, audio_truncated=cut, seconds=seconds)

    def _body(self, request: AnswerRequest, pieces: Sequence[tuple[str, Samples]]) -> dict[str, Any]:
        content: Any = request.prompt
        if pieces:
            content = []
            for name, samples in pieces:
                if name:
                    content.append({"type": "text", "text": name})
                data = base64.b64encode(audio_file(samples, "wav", SAMPLE_RATE)).decode("ascii")
                content.append({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})
            content.append({"type": "text", "text": request.prompt})
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if self._system_prompt:
            messages.insert(0, {"role": "system", "content": self._system_prompt})
        body: dict[str, Any] = {"model": self._model, "messages": messages, self._length_field: self._max_new_tokens}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        return body | self._extra
