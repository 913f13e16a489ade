"""Judges of synthesized speech: models with audio input behind an API with OpenAI's chat protocol."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import ModelError, UsageError
from ...loaders.quality.judges import Clip, wav_bytes
from ...loaders.quality.prompt import PROMPT_VERSION, SYSTEM, question
from ...loaders.quality.verdicts import JudgeError, Opinion, Verdict, parse_verdict
from ...loaders.synthesis.speech_folder import write_text
from .model_server import DEFAULT_KEY_VARIABLE, DEFAULT_URL, ModelServer


@dataclass(frozen=True, slots=True)
class JudgeSpec:
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


class ChatJudge:
    """A judge behind an API (see `ModelServer` for keys, retries and time-outs).

    Verdicts are kept in the folder `cache` by the sha256 of clip, text, prompt and model; errors are not kept. Raises
    `UsageError` where the key's variable is not set, and for an unusable URL.
    """

    def __init__(
        self, spec: JudgeSpec, *, cache: Path | None = None, timeout_s: float = 120.0, attempts: int = 5
    ) -> None:
        if spec.key_variable and not os.environ.get(spec.key_variable, "").strip():
            raise UsageError(
                f"the judge {spec.model!r} needs a key, but {spec.key_variable} is not set.",
                hint=f"Set it, or write {spec.model},{spec.url},- for an API without a key.",
            )
        self.spec = spec
        self._cache = cache
        self._server = ModelServer(spec.url, key_variable=spec.key_variable, timeout_s=timeout_s, attempts=attempts)

    @property
    def name(self) -> str:
        return self.spec.model

    def judge(self, clip: Clip) -> Opinion:
        """The verdict on `clip`, or a `JudgeError`. Raises `ModelError` where every clip would fail."""
        kept = self._kept(clip)
        verdict = _read_verdict(kept)
        if verdict is not None:
            return verdict
        (reply,) = self._server.each_or_error(
            [clip],
            lambda one: self._server.chat(_request(self.spec.model, one)),
            what="clip",
            check=f"Check that {self.spec.model} takes audio.",
        )
        if isinstance(reply, ModelError):
            return JudgeError(reply.message)
        opinion = parse_verdict(reply.text)
        if kept is not None and isinstance(opinion, Verdict):
            write_text(kept, opinion.model_dump_json() + "\n")
        return opinion

    def _kept(self, clip: Clip) -> Path | None:
        if self._cache is None:
            return None
        spec = self.spec
        parts = (PROMPT_VERSION, spec.url, spec.model, clip.sha256, clip.text, clip.spoken_text, clip.language)
        digest = hashlib.sha256(json.dumps(parts).encode("utf-8")).hexdigest()
        return self._cache / digest[:2] / f"{digest}.json"


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


def _read_verdict(path: Path | None) -> Verdict | None:
    if path is None or not path.is_file():
        return None
    try:
        return Verdict.model_validate_json(path.read_bytes())
    except ValidationError:
        return None
