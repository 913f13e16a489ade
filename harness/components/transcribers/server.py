"""Recognition by a server with OpenAI's `/audio/transcriptions`: OpenAI, vLLM, speaches, faster-whisper-server, …"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...metrics.flags import repeats_itself
from ...protocols import ComponentSpec, Transcript
from ..server_component import LosslessFormat, ServerComponent, audio_file
from .common import LOOP_SETTINGS, SAMPLE_RATE, clip_fault, primary_code, require_language

ResponseFormat = Literal["json", "text", "verbose_json"]


class ServerTranscriber(ServerComponent):
    """A transcriber behind a URL.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). `prompt` and `temperature` (None sends
    none) are the protocol's, `extra` further form fields. The language is always sent. `languages` are the codes that
    the model knows, () for any. The other options are those of `ServerComponent`.

    A clip is uploaded as 16-bit mono audio at 16 kHz (`audio_format`); one that would clip is scaled, as a whole, to
    fit.
    """

    sample_rate = SAMPLE_RATE
    own_fields = frozenset({"file", "language", "model", "prompt", "response_format", "temperature"})

    def __init__(
        self,
        model: str,
        *,
        prompt: str = "",
        temperature: float | None = 0.0,
        response_format: ResponseFormat = "json",
        audio_format: LosslessFormat = "flac",
        languages: Sequence[str] = (),
        **server: Any,
    ) -> None:
        if response_format not in ("json", "text", "verbose_json"):
            raise UsageError(f"unknown response_format {response_format!r}.", hint="Known: json, text, verbose_json.")
        if audio_format not in ("flac", "wav"):
            raise UsageError(f"unknown audio_format {audio_format!r}.", hint="Known: flac, wav.")
        super().__init__(model, **server)
        self._temperature = temperature
        self._prompt = prompt
        self._response_format = response_format
        self._audio_format: LosslessFormat = audio_format
        self._languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "audio": f"{self._audio_format}, 16 bit",
            "prompt": self._prompt,
            "response_format": self._response_format,
            "sample_rate": SAMPLE_RATE,
            "temperature": self._temperature,
            **self._server_settings,
            **LOOP_SETTINGS,
        }
        return ComponentSpec("transcriber", "server", self._name, self._model, self._revision, settings)

    def supports(self, language: str) -> bool:
        return not self._languages or primary_code(language) in self._languages

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, self._model) if self._languages else primary_code(language)
        results = [Transcript("", error=clip_fault(clip)) for clip in clips]
        usable = [i for i, result in enumerate(results) if not result.error]
        if not usable:
            return results
        started = time.perf_counter()
        found = self._server.each_or_error(
            [clips[i] for i in usable],
            lambda clip: self._text(clip, code),
            what="clip",
            check="Check the model's name and the options (response_format, extra, language).",
        )
        seconds = (time.perf_counter() - started) / len(usable)
        for i, text in zip(usable, found, strict=True):
            if isinstance(text, ModelError):
                results[i] = Transcript("", error=text.message, seconds=seconds)
            else:
                results[i] = Transcript(text, loop=repeats_itself(text), seconds=seconds)
        return results

    def _text(self, clip: Samples, code: str) -> str:
        fields: dict[str, Any] = {"model": self._model, "language": code, "response_format": self._response_format}
        if self._prompt:
            fields["prompt"] = self._prompt
        if self._temperature is not None:
            fields["temperature"] = self._temperature
        as_text = self._response_format == "text"
        content = audio_file(clip, self._audio_format, SAMPLE_RATE)
        upload = (f"clip.{self._audio_format}", content, f"audio/{self._audio_format}")
        answer = self._server.post("audio/transcriptions", fields | self._extra, file=upload, as_text=as_text)
        text = answer if as_text else answer.get("text") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise self._server.without("a text", "audio/transcriptions")
        return text.strip()
