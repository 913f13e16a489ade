"""A denoiser in a file: ONNX or TorchScript, a waveform to a waveform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ....errors import AudioError, ModelError, UsageError, unknown_name
from ....loaders.records import Samples
from ...protocols import Setting
from ..transcribers.common import minor_version
from ..weights import local_revision
from .common import Denoiser, Run, import_extra

Layout = Literal["t", "bt", "bct"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True)
class ModelFile:
    path: Path
    rate: int
    delay: int
    block: int
    layout: Layout | None
    device: str
    threads: int

    def __post_init__(self) -> None:
        if self.rate < 1 or self.delay < 0 or self.block < 1:
            raise UsageError(
                f"the denoiser {self.path.name!r} cannot have rate {self.rate}, delay {self.delay}, block {self.block}."
            )
        if self.layout is not None and self.layout not in LAYOUTS:
            raise unknown_name("layout", self.layout, LAYOUTS)
        if self.device not in DEVICES:
            raise unknown_name("device of the denoiser", self.device, DEVICES)


class _FileDenoiser(ABC):
    def __init__(self, file: ModelFile) -> None:
        self._file = file

    @property
    def title(self) -> str:
        return self._file.path.stem

    @property
    def model(self) -> str:
        return self._file.path.name

    @property
    def rate(self) -> int:
        return self._file.rate

    @cached_property
    def revision(self) -> str:
        return local_revision(self._file.path)

    @property
    def settings(self) -> Mapping[str, Setting]:
        file = self._file
        return {"block": file.block, "delay": file.delay, "layout": file.layout or "default", "runtime": self._runtime}

    @property
    @abstractmethod
    def _runtime(self) -> str:
        """Name and version of what runs the file."""

    @abstractmethod
    def load(self) -> Run:
        """Load the file. Raises `MissingExtraError`, `ModelError`."""

    def _around(self, run: Callable[[NDArray[np.float32]], Any], layout: Layout) -> Run:
        """`run` on a clip that is laid out and padded, and its output cut to the clip."""
        file = self._file
        shape = {"t": (-1,), "bt": (1, -1), "bct": (1, 1, -1)}[layout]

        def enhance(clip: Samples) -> NDArray[np.float32]:
            length = -(-(clip.size + file.delay) // file.block) * file.block
            padded = np.zeros(length, dtype=np.float32)
            padded[: clip.size] = clip
            out = np.asarray(run(padded.reshape(shape)), dtype=np.float32)
            if out.size != length or max(out.shape, default=0) != length:
                raise AudioError(
                    f"{file.path.name} made a signal of shape {out.shape} of {length} samples.",
                    hint="It must be as long; if the model wants multiples of some length, give that as block.",
                )
            return out.reshape(-1)[file.delay : file.delay + clip.size]

        return enhance


class OnnxDenoiser(_FileDenoiser):
    """An ONNX file with one input of float32 samples; the first output is taken."""

    @property
    def _runtime(self) -> str:
        return f"onnxruntime {minor_version('onnxruntime', 'onnxruntime', 'denoiser')}"

    def load(self) -> Run:
        ort = import_extra("onnxruntime", "denoiser")
        file = self._file
        failures = _onnx_failures()
        provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}[file.device]
        if provider not in ort.get_available_providers():
            raise ModelError(
                f"onnxruntime has no {provider} here, which device {file.device!r} needs.",
                hint="Install onnxruntime-gpu, or use the device cpu.",
            )
        options = ort.SessionOptions()
        options.intra_op_num_threads = file.threads
        options.inter_op_num_threads = 1
        try:
            session = ort.InferenceSession(str(file.path), options, providers=[provider])
        except failures as error:
            raise _unreadable(file.path, error) from error
        inputs = session.get_inputs()
        if len(inputs) != 1 or inputs[0].type != "tensor(float)":
            takes = ", ".join(f"{entry.name}: {entry.type}" for entry in inputs) or "nothing"
            raise ModelError(
                f"the denoiser {file.path} takes {takes} instead of one waveform in float32.",
                hint="Export it with its states and its spectrum inside.",
            )
        layout = file.layout or self._own_layout(inputs[0].shape)
        name, output = inputs[0].name, session.get_outputs()[0].name

        def run(batch: NDArray[np.float32]) -> Any:
            try:
                return session.run([output], {name: batch})[0]
            except failures as error:
                raise _failed(file.path, error) from error

        return self._around(run, layout)

    def _own_layout(self, shape: list[int | str | None]) -> Layout:
        path = self._file.path
        if not 1 <= len(shape) <= len(LAYOUTS) or any(isinstance(n, int) and n != 1 for n in shape):
            raise ModelError(
                f"the denoiser {path} takes the shape {shape} instead of (T,), (1, T) or (1, 1, T) with any T.",
                hint="Export it with a dynamic length.",
            )
        return LAYOUTS[len(shape) - 1]


class TorchScriptDenoiser(_FileDenoiser):
    """A TorchScript file, which runs without the code that made it."""

    @property
    def _runtime(self) -> str:
        return f"torch {minor_version('torch', 'torch', 'torch')}"

    def load(self) -> Run:
        torch = import_extra("torch", "torch")
        file = self._file
        if file.device == "cuda" and not torch.cuda.is_available():
            raise ModelError("torch finds no CUDA device here.", hint="Use the device cpu.")
        try:
            module = torch.jit.load(str(file.path), map_location=file.device).eval()
        except (RuntimeError, ValueError) as error:
            raise _unreadable(file.path, error) from error

        def run(batch: NDArray[np.float32]) -> Any:
            try:
                with torch.inference_mode():
                    out = module(torch.from_numpy(batch).to(file.device))
            except RuntimeError as error:
                raise _failed(file.path, error) from error
            if not isinstance(out, torch.Tensor):
                raise ModelError(
                    f"the denoiser {file.path} returned {type(out).__name__} instead of one tensor.",
                    hint="Export it so that it returns the waveform alone.",
                )
            return out.float().cpu().numpy()

        return self._around(run, file.layout or "bt")


FILE_DENOISERS: Mapping[str, Callable[[ModelFile], Denoiser]] = {
    ".onnx": OnnxDenoiser,
    ".pt": TorchScriptDenoiser,
    ".ts": TorchScriptDenoiser,
    ".jit": TorchScriptDenoiser,
}


def _onnx_failures() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: classes of its own that share no base but `Exception`."""
    own = vars(import_extra("onnxruntime.capi.onnxruntime_pybind11_state", "denoiser")).values()
    return (RuntimeError, ValueError, *(c for c in own if isinstance(c, type) and issubclass(c, Exception)))


def _unreadable(path: Path, error: Exception) -> ModelError:
    return ModelError(f"the denoiser {path} cannot be loaded: {_reason(error)}.", hint="Export it again.")


def _failed(path: Path, error: Exception) -> AudioError:
    return AudioError(f"{path.name} failed: {_reason(error)}.", hint="Give the layout or the block that it wants.")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
