"""What the components behind a URL share: the server, the model and its revision, how a clip is uploaded."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
import soundfile

from ...errors import UsageError
from ...loaders.audio import encode_flac, to_pcm16
from ...loaders.records import Samples
from ..protocols import Setting
from .model_server import DEFAULT_KEY_VARIABLE, DEFAULT_URL, ModelServer

LosslessFormat = Literal["flac", "wav"]
AudioFormat = Literal[LosslessFormat, "mp3"]
MP3_BITS_PER_S = 64_000
_MP3_LEVEL = 0.6
"""libsndfile's measure: 64 kbit/s at 16 kHz (160 kbit/s at 0, 8 kbit/s at 1)."""
_FULL_SCALE = 32767 / 32768


class ServerComponent:
    """What the components behind a URL share.

    `model` is the server's id of it, `url` the base (`http://host:8000/v1`), `extra` are further fields of a request.
    `key_variable`, `concurrency`, `timeout_s` and `attempts` are those of `ModelServer`, and no part of the spec.

    `revision` is what to call the model's version. "" asks the server's `/models`, and then the URL is a part of the
    spec, as another server may serve something else by the same name. With a `revision` it is not: a run can continue
    on another host.
    """

    own_fields: frozenset[str] = frozenset()

    def __init__(
        self,
        model: str,
        *,
        url: str = DEFAULT_URL,
        revision: str = "",
        extra: Mapping[str, Any] | None = None,
        key_variable: str = DEFAULT_KEY_VARIABLE,
        concurrency: int = 4,
        timeout_s: float = 120.0,
        attempts: int = 5,
    ) -> None:
        if not model:
            raise UsageError("no model is named.", hint="Write <backend>:<model>, with the server's id of the model.")
        taken = sorted(self.own_fields & set(extra or {}))
        if taken:
            raise UsageError(f"extra holds {', '.join(taken)}.", hint="Give these by their own options.")
        self._model, self._given_revision = model, revision
        self._extra: dict[str, Any] = dict(extra or {})
        self._server = ModelServer(
            url, key_variable=key_variable, concurrency=concurrency, timeout_s=timeout_s, attempts=attempts
        )

    @property
    def _name(self) -> str:
        return self._model.rsplit("/", maxsplit=1)[-1]

    @cached_property
    def _revision(self) -> str:
        """As given, or as the server says. Raises as `ModelServer.model_revision`."""
        return self._given_revision or self._server.model_revision(self._model)

    @property
    def _server_settings(self) -> dict[str, Setting]:
        return {"extra": dict(self._extra), **({} if self._given_revision else {"url": self._server.url})}


def audio_file(clip: Samples, audio_format: AudioFormat, rate: int) -> bytes:
    """A clip ((T,) float32 at `rate` Hz) as a mono file; one that would clip is scaled, as a whole, to fit.

    WAV and FLAC have 16 bits and lose nothing more; MP3 has a constant `MP3_BITS_PER_S`.
    """
    audio = clip.astype(np.float32, copy=False)
    peak = float(np.abs(audio).max())
    if peak > _FULL_SCALE:
        audio = audio * np.float32(_FULL_SCALE / peak)
    if audio_format == "flac":
        return encode_flac(audio, "the clip", rate)
    buffer = io.BytesIO()
    samples = to_pcm16(audio, "the clip")
    if audio_format == "wav":
        soundfile.write(buffer, samples, rate, format="WAV", subtype="PCM_16")
        return buffer.getvalue()
    if "MP3" not in soundfile.available_formats():
        raise UsageError("this build of libsndfile writes no MP3.", hint="Give audio_format 'wav' or 'flac'.")
    constant: Any = {"bitrate_mode": "CONSTANT", "compression_level": _MP3_LEVEL}
    soundfile.write(buffer, samples, rate, format="MP3", subtype="MPEG_LAYER_III", **constant)
    return buffer.getvalue()
