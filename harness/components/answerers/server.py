"""Answers by a server with OpenAI's chat protocol; audio goes as `input_audio` parts."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from ....errors import ModelError, UsageError
from ...protocols import AnswerRequest, ComponentSpec, Reply, Setting
from ..chat_server import ChatServerComponent
from ..server_component import MP3_BITS_PER_S, AudioFormat, audio_file
from ..server_limits import service_of
from ..transcribers.common import SAMPLE_RATE, primary_code
from .common import AudioLimit, LongAudio, Piece, in_pieces, request_fault

_FORMATS = ("auto", "flac", "mp3", "wav")
_WAV_HEADER = 44
_FIELDS = 4096
"""Bytes of a request beside its audio and its texts, generously."""


class ServerAnswerer(ChatServerComponent):
    """A model behind a URL.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). A request is one user message: each clip,
    with its name before it, then the prompt; without clips the message is a plain text. `system_prompt` goes before it
    ("" for none). `temperature` None sends none; `max_new_tokens` is sent under the name `length_field`; `extra` are
    further fields of the body, such as `modalities`. `languages` are the codes that the model knows, () for any.

    A clip is a mono file at 16 kHz in base64; one that would clip is scaled, as a whole, to fit. `audio_format` is
    "wav" or "flac" (16 bit, lossless), "mp3" (64 kbit/s), or "auto": WAV where the request has then at most
    `max_request_mb` million bytes, else MP3. That follows from the clips' lengths alone, so one question has one format
    in all conditions. `max_request_mb` None is what the service is known to take (20 for OpenAI, Azure and Gemini,
    any size for others). A request that is larger even so is not sent, and counts as failed.

    `max_seconds`, `total_seconds` and `long_audio` are those of `chat`; without `max_seconds` clips are sent whole. The
    other options are those of `ServerComponent`.
    """

    sample_rate = SAMPLE_RATE

    def __init__(
        self,
        model: str,
        *,
        languages: Sequence[str] = (),
        long_audio: LongAudio = "truncate",
        max_seconds: float | None = None,
        total_seconds: float | None = None,
        audio_format: AudioFormat | Literal["auto"] = "auto",
        max_request_mb: float | None = None,
        timeout_s: float = 300.0,
        **server: Any,
    ) -> None:
        if audio_format not in _FORMATS:
            raise UsageError(f"unknown audio_format {audio_format!r}.", hint=f"Known: {', '.join(_FORMATS)}.")
        if max_request_mb is not None and not max_request_mb > 0:
            raise UsageError(f"max_request_mb is {max_request_mb}.", hint="Give a number above 0, or leave it out.")
        super().__init__(model, timeout_s=timeout_s, **server)
        self._limit = AudioLimit(max_seconds, total_seconds, long_audio)
        service = service_of(self._server.url)
        if service is not None and audio_format not in ("auto", *service.chat_formats):
            raise UsageError(
                f"{self._server.url} takes no {audio_format} in a chat.",
                hint=f"Known: {', '.join(('auto', *service.chat_formats))}.",
            )
        self._audio_format = audio_format
        known = None if service is None else service.chat_bytes
        self._most_bytes = known if max_request_mb is None else round(max_request_mb * 1e6)
        self._languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            "audio_format": self._audio_format,
            "max_request_bytes": self._most_bytes,
            "sample_rate": SAMPLE_RATE,
            **self._limit.settings(),
            **self._chat_settings,
        }
        if self._audio_format == "mp3" or (self._audio_format == "auto" and self._most_bytes is not None):
            settings["mp3_bits_per_s"] = MP3_BITS_PER_S
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
        form = self._format(request, pieces)
        files = [base64.b64encode(audio_file(piece.samples, form, SAMPLE_RATE)).decode("ascii") for piece in pieces]
        size = self._size(request, [len(file) for file in files])
        if self._most_bytes is not None and size > self._most_bytes:
            advice = "total_seconds" if form == "mp3" else "audio_format mp3 or total_seconds"
            most = f"{self._server.url} takes {self._most_bytes / 1e6:g} MB (max_request_mb)"
            return Reply("", error=f"the request has {size / 1e6:.1f} MB, and {most}: give {advice}")
        started = time.perf_counter()
        reply = self._server.chat(self._body(_content(request, [piece.name for piece in pieces], files, form)))
        seconds = time.perf_counter() - started
        return Reply(reply.text.strip(), truncated=reply.truncated, audio_truncated=cut, seconds=seconds)

    def _format(self, request: AnswerRequest, pieces: Sequence[Piece]) -> AudioFormat:
        if self._audio_format != "auto":
            return self._audio_format
        wav = self._size(request, [4 * -(-(_WAV_HEADER + 2 * piece.samples.size) // 3) for piece in pieces])
        return "wav" if self._most_bytes is None or wav <= self._most_bytes else "mp3"

    def _size(self, request: AnswerRequest, files: Sequence[int]) -> int:
        """At least the bytes of the request with files of so many characters; JSON writes a letter in up to six."""
        texts = (self._system_prompt, request.prompt, *request.audio_names)
        return sum(files) + 6 * sum(map(len, texts)) + _FIELDS


def _content(request: AnswerRequest, names: Sequence[str], files: Sequence[str], form: AudioFormat) -> Any:
    """Of the user's message: a text, or each file with its name before it, then the prompt."""
    if not files:
        return request.prompt
    content: list[dict[str, Any]] = []
    for name, data in zip(names, files, strict=True):
        if name:
            content.append({"type": "text", "text": name})
        content.append({"type": "input_audio", "input_audio": {"data": data, "format": form}})
    return [*content, {"type": "text", "text": request.prompt}]
