"""Answers by a server with OpenAI's chat protocol; sound goes as `input_audio` parts.

https://platform.openai.com/docs/guides/audio
"""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import soundfile

from ....errors import UsageError
from ....loaders.audio import to_pcm16
from ....loaders.records import Samples
from ...protocols import AnswerRequest, ComponentSpec, Reply, Setting
from ..chat_client import chat
from ..server_client import (
    DEFAULT_KEY_VARIABLE,
    DEFAULT_URL,
    ContentRefusedError,
    NoAnswerError,
    Patience,
    ServerClient,
)
from ..server_health import Health
from ..transcribers.common import SAMPLE_RATE, primary_code, require_positive
from .common import MAX_NEW_TOKENS, LongAudio, AudioLimit, in_pieces, request_fault

_FULL_SCALE = 32767 / 32768
_OWN_FIELDS = frozenset({"messages", "model", "temperature"})


class ServerAnswerer:
    """A model behind a URL.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). A request is one user message: each clip,
    with its name before it, then the prompt; without clips the message is a plain text. A clip is 16-bit mono WAV at
    16 kHz in base64; one that would clip is scaled, as a whole, to fit. `system_prompt` goes before it ("" for none).
    `temperature` None sends none; `max_new_tokens` is sent under the name `length_field`; `extra` are further fields of
    the body, such as `modalities`. `languages` are the codes that the model knows, () for any.

    `max_seconds`, `total_seconds` and `long_audio` are those of `chat`; without `max_seconds` clips are sent whole.
    `revision` and `key_variable` are those of the transcriber `server`. `concurrency` requests are under way at once;
    `timeout_s` and `attempts` are the patience with each.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = DEFAULT_URL,
        revision: str = "",
        system_prompt: str = "",
        temperature: float | None = 0.0,
        max_new_tokens: int = MAX_NEW_TOKENS,
        length_field: str = "max_tokens",
        extra: Mapping[str, Any] | None = None,
        languages: Sequence[str] = (),
        long_audio: LongAudio = "truncate",
        max_seconds: float | None = None,
        total_seconds: float | None = None,
        key_variable: str = DEFAULT_KEY_VARIABLE,
        concurrency: int = 4,
        timeout_s: float = 300.0,
        attempts: int = 5,
        client: ServerClient | None = None,
    ) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        taken = sorted((_OWN_FIELDS | {length_field}) & set(extra or {}))
        if taken:
            raise UsageError(f"extra holds {', '.join(taken)}.", hint="Give these by their own options.")
        self._limit = AudioLimit(max_seconds, total_seconds, long_audio)
        self._model, self._revision = model, revision
        self._system_prompt, self._temperature = system_prompt, temperature
        self._max_new_tokens, self._length_field = max_new_tokens, length_field
        self._extra = dict(extra or {})
        self._languages = tuple(primary_code(language) for language in languages)
        self._client = client or ServerClient(
            url, key_variable=key_variable, patience=Patience(timeout_s, attempts), concurrency=concurrency
        )
        self._health = Health(
            self._client.url, what="request", check="Check the model's name, and whether it takes sound."
        )

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the replies. Without a given revision the server is asked for it, once.

        Raises `NoAnswerError` if there is no server, `ModelError` if it refuses the key.
        """
        extra: dict[str, Setting] = dict(self._extra)
        return ComponentSpec(
            "answerer",
            "chat-server",
            self._model.rsplit("/", maxsplit=1)[-1],
            self._model,
            self._revision or self._client.model_revision(self._model),
            {
                "audio": "wav, 16 bit",
                "extra": extra,
                "length_field": self._length_field,
                "max_new_tokens": self._max_new_tokens,
                "sample_rate": SAMPLE_RATE,
                "system_prompt": self._system_prompt,
                "temperature": self._temperature,
                **self._limit.settings(),
                **({} if self._revision else {"url": self._client.url}),
            },
        )

    @property
    def sample_rate(self) -> int:
        """16 000 Hz."""
        return SAMPLE_RATE

    def supports(self, language: str) -> bool:
        """Whether it is one of the languages that were given; any, if none were."""
        return not self._languages or primary_code(language) in self._languages

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        """One reply per request, in order; [] for no requests.

        A request with a clip that cannot be heard, that the server refuses (400, 413, 415, 422), or that has no answer
        after all attempts has `error`. Raises `ModelError` where no request can succeed: a refused key, an unknown
        model, several requests in a row without an answer, or a server that refuses the first ones all.
        """
        replies = [Reply("", error=request_fault(request)) for request in requests]
        usable = [i for i, reply in enumerate(replies) if not reply.error]
        if usable:
            for i, reply in zip(usable, self._client.each([requests[i] for i in usable], self._asked), strict=True):
                replies[i] = reply
        return replies

    def _asked(self, request: AnswerRequest) -> Reply:
        pieces, cut = in_pieces(request, self._limit, SAMPLE_RATE)
        started = time.perf_counter()
        try:
            reply = chat(self._client, self._body(request, [(piece.name, piece.samples) for piece in pieces]))
        except ContentRefusedError as error:
            self._health.refused(error)
            return Reply("", error=error.message)
        except NoAnswerError as error:
            self._health.silent(error)
            return Reply("", error=error.message)
        self._health.answered()
        seconds = time.perf_counter() - started
        return Reply(reply.text.strip(), truncated=reply.truncated, audio_truncated=cut, seconds=seconds)

    def _body(self, request: AnswerRequest, pieces: Sequence[tuple[str, Samples]]) -> dict[str, Any]:
        content: Any = request.prompt
        if pieces:
            content = []
            for name, samples in pieces:
                if name:
                    content.append({"type": "text", "text": name})
                data = base64.b64encode(_wav(samples)).decode("ascii")
                content.append({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})
            content.append({"type": "text", "text": request.prompt})
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if self._system_prompt:
            messages.insert(0, {"role": "system", "content": self._system_prompt})
        body: dict[str, Any] = {"model": self._model, "messages": messages, self._length_field: self._max_new_tokens}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        return body | self._extra


def _wav(samples: Samples) -> bytes:
    sound = samples.astype(np.float32, copy=False)
    peak = float(np.abs(sound).max())
    if peak > _FULL_SCALE:
        sound = sound * np.float32(_FULL_SCALE / peak)
    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(sound, "the clip"), SAMPLE_RATE, format="WAV", subtype="PCM_16")
    return buffer.getvalue()
