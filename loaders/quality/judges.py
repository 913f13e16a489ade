"""Judges: listening models behind the OpenAI-compatible chat API with audio input.

API: https://platform.openai.com/docs/guides/audio (a message part `input_audio` with base64 data and its format).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import soundfile
from pydantic import ValidationError

from ...errors import ModelError, UsageError
from ..audio import to_pcm16
from ..records import SAMPLE_RATE, Samples
from ..synthesis.speech_folder import write_text
from .prompt import PROMPT_VERSION, SYSTEM, question
from .verdicts import JudgeError, Opinion, Verdict, parse_verdict

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
_REPLY_LIMIT = 1_000_000
_RETRIED = frozenset({408, 409, 425, 429, *range(500, 600)})
_REFUSED = frozenset({401, 403, 404})
_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Clip:
    """What a judge hears and reads. `sha256` is that of the clip's samples."""

    samples: Samples
    sha256: str
    text: str
    spoken_text: str
    language: str


class Judge(Protocol):
    """Listens to a clip."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        ...

    def judge(self, clip: Clip) -> Opinion:
        """Its verdict, or why there is none."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A model at an API. `key_variable` names the environment variable that holds the key, "" for an API without."""

    model: str
    url: str = DEFAULT_URL
    key_variable: str = DEFAULT_KEY_VARIABLE


def parse_judge(text: str) -> JudgeSpec:
    """A judge written `MODEL[,URL[,VARIABLE]]`; the variable `-` is an API without a key.

    >>> parse_judge("gemini-2.5-pro,https://example.org/v1,GEMINI_API_KEY").key_variable
    'GEMINI_API_KEY'
    >>> parse_judge("qwen3-omni,http://localhost:8000/v1,-").key_variable
    ''
    """
    model, *rest = (part.strip() for part in text.split(","))
    if not model or len(rest) > 2 or "" in rest:
        raise UsageError(f"the judge is written {text!r}.", hint="Write MODEL, MODEL,URL or MODEL,URL,VARIABLE.")
    url = rest[0] if rest else DEFAULT_URL
    variable = rest[1] if len(rest) > 1 else DEFAULT_KEY_VARIABLE
    return JudgeSpec(model, url, "" if variable == "-" else variable)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _TroubleError(Exception):
    """A failed attempt. `wait_s` is what the server asked for, None if nothing; `again` whether another may help."""

    def __init__(self, reason: str, *, again: bool, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.again, self.wait_s = reason, again, wait_s


class ChatJudge:
    """A judge behind an API.

    The key is read from the environment when the judge is made, and is never printed, stored or sent to another host.
    Failed requests (408, 409, 425, 429, 5xx, time-outs, broken connections) are repeated up to `attempts` times after
    `backoff_s`, twice that, and so on, at most 60 s; a `Retry-After` in seconds is obeyed up to that. Verdicts are kept
    in the folder `cache` by the sha256 of clip, text, prompt and model; errors are not kept.

    Raises `UsageError` for an empty key variable or an unsafe URL.
    """

    def __init__(
        self,
        spec: JudgeSpec,
        *,
        cache: Path | None = None,
        timeout_s: float = 120.0,
        attempts: int = 5,
        backoff_s: float = 1.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if attempts < 1 or timeout_s <= 0 or backoff_s < 0:
            raise UsageError(f"a judge cannot have {attempts} attempts, {timeout_s:g} s, {backoff_s:g} s.")
        self.spec = spec
        self._key = _read_key(spec)
        self._cache, self._timeout_s, self._attempts = cache, timeout_s, attempts
        self._backoff_s, self._sleep = backoff_s, sleep
        self._opener = urllib.request.build_opener(_NoRedirects)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.spec.model

    def judge(self, clip: Clip) -> Opinion:
        """The verdict on `clip`, or a `JudgeError`. Raises `ModelError` where every clip would fail (401, 403, 404)."""
        kept = self._kept(clip)
        verdict = _read_verdict(kept)
        if verdict is not None:
            return verdict
        try:
            reply = self._ask(clip)
        except _TroubleError as trouble:
            return JudgeError(trouble.reason)
        opinion = parse_verdict(reply)
        if kept is not None and isinstance(opinion, Verdict):
            write_text(kept, opinion.model_dump_json() + "\n")
        return opinion

    def _kept(self, clip: Clip) -> Path | None:
        if self._cache is None:
            return None
        parts = (
            PROMPT_VERSION,
            self.spec.url,
            self.spec.model,
            clip.sha256,
            clip.text,
            clip.spoken_text,
            clip.language,
        )
        digest = hashlib.sha256(json.dumps(parts).encode("utf-8")).hexdigest()
        return self._cache / digest[:2] / f"{digest}.json"

    def _ask(self, clip: Clip) -> str:
        body = json.dumps(_request(self.spec.model, clip)).encode("utf-8")
        last = _TroubleError("was not asked.", again=False)
        for attempt in range(self._attempts):
            if attempt:
                wait = last.wait_s if last.wait_s is not None else self._backoff_s * 2.0 ** (attempt - 1)
                self._sleep(min(wait, _LONGEST_WAIT_S))
            try:
                return _content(self._post(body))
            except _TroubleError as trouble:
                last = trouble
            if not last.again:
                break
        raise last

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "squtr"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(  # noqa: S310  # the scheme is checked when the judge is made
            f"{self.spec.url.rstrip('/')}/chat/completions", data=body, headers=headers, method="POST"
        )
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                content: bytes = response.read(_REPLY_LIMIT + 1)
        except urllib.error.HTTPError as error:
            with error:
                trouble = self._refusal(error)
            raise trouble from None
        except (OSError, HTTPException) as error:
            raise _TroubleError(f"no answer: {self._safe(str(error)) or type(error).__name__}.", again=True) from None
        if len(content) > _REPLY_LIMIT:
            raise _TroubleError(f"the answer is longer than {_REPLY_LIMIT} bytes.", again=False)
        return content

    def _refusal(self, error: urllib.error.HTTPError) -> _TroubleError:
        if error.code in _REFUSED:
            where = f" and the key in {self.spec.key_variable}" if self.spec.key_variable else ""
            # The body is not shown: some servers repeat a part of the key in it.
            raise ModelError(
                f"the judge {self.name!r} was refused with status {error.code} by {self.spec.url}.",
                hint=f"Check the model's name, the URL{where}.",
            ) from None
        body = ""
        with contextlib.suppress(OSError, HTTPException):  # the status says enough
            body = error.read(2000).decode("utf-8", "replace")
        detail = " ".join(self._safe(body).split())[:200]
        return _TroubleError(
            f"status {error.code}{f': {detail}' if detail else ''}.",
            again=error.code in _RETRIED,
            wait_s=_retry_after(error.headers),
        )

    def _safe(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _read_key(spec: JudgeSpec) -> str:
    parts = urlsplit(spec.url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
        raise UsageError(f"the judge {spec.model!r} has the URL {spec.url!r}.", hint="Write https://HOST/v1.")
    if not spec.key_variable:
        return ""
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise UsageError(
            f"the key of the judge {spec.model!r} would travel in the clear to {spec.url}.", hint="Use https."
        )
    key = os.environ.get(spec.key_variable, "").strip()
    if not key:
        raise UsageError(
            f"the judge {spec.model!r} needs a key, but {spec.key_variable} is not set.",
            hint=f"Set it, or write {spec.model},{spec.url},- for an API without a key.",
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the key in {spec.key_variable} holds characters that no header may have.")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _request(model: str, clip: Clip) -> dict[str, Any]:
    audio = {"data": base64.b64encode(wav_bytes(clip.samples)).decode("ascii"), "format": "wav"}
    return {
        "model": model,
        "temperature": 0,
        "messages": [
            {"role": "system", "content": SYSTEM},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": question(clip.text, clip.spoken_text, clip.language)},
                    {"type": "input_audio", "input_audio": audio},
                ],
            },
        ],
    }


def wav_bytes(samples: Samples) -> bytes:
    """A 16-bit mono WAV file of (T,) samples at `SAMPLE_RATE`."""
    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(samples, "the clip"), SAMPLE_RATE, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def _content(answer: bytes) -> str:
    """The text of the first choice. An answer of another form is not asked for again: it is the server's protocol."""
    try:
        content = json.loads(answer)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise _TroubleError("the answer is not that of a chat API.", again=False) from None
    if not isinstance(content, str):
        raise _TroubleError("the answer has no text.", again=False)
    return content


def _retry_after(headers: Message | None) -> float | None:
    value = headers.get("Retry-After", "") if headers is not None else ""
    return float(value) if value.isdigit() else None


def _read_verdict(path: Path | None) -> Verdict | None:
    """A kept verdict; None where there is none, or where it is broken and must be asked for again."""
    if path is None or not path.is_file():
        return None
    try:
        return Verdict.model_validate_json(path.read_bytes())
    except ValidationError:
        return None
