"""Recognition by a server with OpenAI's `/audio/transcriptions`: OpenAI, vLLM, speaches, faster-whisper-server, …

https://platform.openai.com/docs/api-reference/audio/createTranscription
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import soundfile

from ....errors import UsageError
from ....loaders.audio import encode_flac, to_pcm16
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting, Transcript
from ..server_client import (
    DEFAULT_KEY_VARIABLE,
    DEFAULT_URL,
    ContentRefusedError,
    Field,
    NoAnswerError,
    Patience,
    ServerClient,
    Upload,
)
from ..server_health import Health
from .common import LOOP_SETTINGS, SAMPLE_RATE, clip_fault, is_loop, primary_code, require_language

AudioFormat = Literal["flac", "wav"]
ResponseFormat = Literal["json", "text", "verbose_json"]

_FULL_SCALE = 32767 / 32768
_OWN_FIELDS = frozenset({"file", "language", "model", "prompt", "response_format", "temperature"})


class ServerTranscriber:
    """A recognizer behind a URL.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`). `prompt` and `temperature` (None sends
    none) are the protocol's, `extra` further form fields. The language is always sent. `languages` are the codes that
    the model knows, () for any. `key_variable` names the environment variable with the key, which is sent as
    `ServerClient` says and kept nowhere.

    A clip is uploaded as 16-bit mono sound at 16 kHz (`audio_format`); one that would clip is scaled, as a whole, to
    fit. `concurrency` clips are under way at once; `timeout_s` and `attempts` are the patience with each.

    `revision` is what to call the model's version. "" asks the server's `/models`, and then the URL is a part of the
    spec, as another server may serve something else by the same name. With a `revision` it is not: a run can continue
    on another host.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = DEFAULT_URL,
        revision: str = "",
        prompt: str = "",
        temperature: float | None = 0.0,
        response_format: ResponseFormat = "json",
        audio_format: AudioFormat = "flac",
        extra: Mapping[str, Field] | None = None,
        languages: Sequence[str] = (),
        key_variable: str = DEFAULT_KEY_VARIABLE,
        concurrency: int = 4,
        timeout_s: float = 120.0,
        attempts: int = 5,
        client: ServerClient | None = None,
    ) -> None:
        if response_format not in ("json", "text", "verbose_json"):
            raise UsageError(f"unknown response_format {response_format!r}.", hint="Known: json, text, verbose_json.")
        if audio_format not in ("flac", "wav"):
            raise UsageError(f"unknown audio_format {audio_format!r}.", hint="Known: flac, wav.")
        taken = sorted(_OWN_FIELDS & set(extra or {}))
        if taken:
            raise UsageError(f"extra holds {', '.join(taken)}.", hint="Give these by their own options.")
        self._model = model
        self._revision = revision
        self._temperature = temperature
        self._prompt = prompt
        self._response_format = response_format
        self._audio_format: AudioFormat = audio_format
        self._extra = dict(extra or {})
        self._languages = tuple(primary_code(language) for language in languages)
        self._client = client or ServerClient(
            url, key_variable=key_variable, patience=Patience(timeout_s, attempts), concurrency=concurrency
        )
        self._health = Health(
            self._client.url,
            what="clip",
            check="Check the model's name and the options (response_format, extra, language).",
        )

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the transcripts. Without a given revision the server is asked for it, once.

        Raises `NoAnswerError` if there is no server, `ModelError` if it refuses the key.
        """
        extra: dict[str, Setting] = dict(self._extra)
        return ComponentSpec(
            "transcriber",
            "server",
            self._model.rsplit("/", maxsplit=1)[-1],
            self._model,
            self._revision or self._client.model_revision(self._model),
            {
                "audio": f"{self._audio_format}, 16 bit",
                "extra": extra,
                "prompt": self._prompt,
                "response_format": self._response_format,
                "sample_rate": SAMPLE_RATE,
                "temperature": self._temperature,
                **({} if self._revision else {"url": self._client.url}),
                **LOOP_SETTINGS,
            },
        )

    @property
    def sample_rate(self) -> int:
        """16 000 Hz."""
        return SAMPLE_RATE

    def supports(self, language: str) -> bool:
        """Whether it is one of the languages that were given; any, if none were."""
        return not self._languages or primary_code(language) in self._languages

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        """One transcript per clip ((T,) float32 at 16 kHz), in order; [] for no clips.

        A clip that cannot be heard, that the server refuses (400, 413, 415, 422), or that has no answer after all
        attempts has `error`. The time of the call is shared equally.

        Raises `ModelError` where no clip can succeed: a refused key, an unknown model, `GONE_AFTER` clips in a row
        without an answer, or a server that refuses the first `GONE_AFTER` clips that it is given.
        """
        code = require_language(language, self._languages, self._model) if self._languages else primary_code(language)
        results = [Transcript("", error=clip_fault(clip)) for clip in clips]
        usable = [i for i, result in enumerate(results) if not result.error]
        if not usable:
            return results
        started = time.perf_counter()
        heard = self._client.each([clips[i] for i in usable], lambda clip: self._heard(clip, code))
        seconds = (time.perf_counter() - started) / len(usable)
        for i, (text, error) in zip(usable, heard, strict=True):
            results[i] = Transcript(text, error=error, loop=is_loop(text), seconds=seconds)
        return results

    def _heard(self, clip: Samples, code: str) -> tuple[str, str]:
        """(text, error) of one clip."""
        fields: dict[str, Field] = {"model": self._model, "language": code, "response_format": self._response_format}
        if self._prompt:
            fields["prompt"] = self._prompt
        if self._temperature is not None:
            fields["temperature"] = self._temperature
        as_text = self._response_format == "text"
        try:
            answer = self._client.post_form(
                "audio/transcriptions", fields | self._extra, self._upload(clip), as_text=as_text
            )
            text = answer if as_text else answer.get("text") if isinstance(answer, dict) else None
            if not isinstance(text, str):
                raise NoAnswerError(
                    f"{self._client.url}/audio/transcriptions answered with status 200, but without a text.",
                    hint="Check that the URL is that of a server with OpenAI's protocol.",
                )
        except ContentRefusedError as error:
            self._health.refused(error)
            return "", error.message
        except NoAnswerError as error:
            self._health.silent(error)
            return "", error.message
        self._health.answered()
        return text.strip(), ""

    def _upload(self, clip: Samples) -> Upload:
        sound = clip.astype(np.float32, copy=False)
        peak = float(np.abs(sound).max())
        if peak > _FULL_SCALE:
            sound = sound * np.float32(_FULL_SCALE / peak)
        if self._audio_format == "flac":
            return Upload("clip.flac", encode_flac(sound, "the clip", SAMPLE_RATE), "audio/flac")
        buffer = io.BytesIO()
        soundfile.write(buffer, to_pcm16(sound, "the clip"), SAMPLE_RATE, format="WAV", subtype="PCM_16")
        return Upload("clip.wav", buffer.getvalue(), "audio/wav")
