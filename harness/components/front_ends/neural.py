"""Denoising by a neural network: engines whose weights a package carries, and a user's own ONNX or TorchScript file."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError, unknown_name
from ....loaders.records import Samples
from ...protocols import ComponentSpec
from .common import PEAK_LIMIT, Denoiser, Run, enhance_each, require_between, require_threads
from .files import FILE_DENOISERS, Layout, ModelFile
from .native import DeepFilterNet3, RNNoise

BUNDLED: Mapping[str, type[Denoiser]] = {"deepfilternet3": DeepFilterNet3, "rnnoise": RNNoise}


class NeuralFrontEnd:
    """A neural denoiser: `denoiser:rnnoise`, `denoiser:deepfilternet3`, `denoiser:path/to/model.onnx`.

    `model` is a name of `BUNDLED`, or the path of a file that maps a waveform to a waveform of the same length: ONNX
    (`.onnx`) or TorchScript (`.pt`, `.ts`, `.jit`). A file needs its `rate` in Hz. It may be late by `delay` samples,
    which are made up for; it may want lengths that are multiples of `block`, which zeros at the end make up. `layout`
    "bt" feeds it (1, T), "t" (T,), "bct" (1, 1, T); by default ONNX says that itself and TorchScript gets "bt".
    `device` is "cpu" or "cuda", for files only.

    `attenuation_limit_db` mixes the clip back in at that level, so that noise is lowered by no more: transcribers
    suffer from what enhancement does to speech, and less so with some of the clip left (Iwamoto et al., arXiv
    2201.06685). None leaves the engine's output as it is.

    Every clip starts from a fresh state, so no output depends on the clips before it. A bundled engine works on
    `threads` clips at a time; a file's engine uses that many threads for one clip after the other.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        rate: int | None = None,
        delay: int | None = None,
        block: int | None = None,
        layout: Layout | None = None,
        attenuation_limit_db: float | None = None,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        if attenuation_limit_db is not None:
            require_between(0.0, 100.0, attenuation_limit_db=attenuation_limit_db)
        self._limit_db = attenuation_limit_db
        self._threads = require_threads(threads)
        self._lock = threading.Lock()
        self._loaded: Run | None = None
        bundled = BUNDLED.get(str(model))
        self._side_by_side = bundled is not None
        if bundled is not None:
            given = {"rate": rate, "delay": delay, "block": block, "layout": layout}
            wrong = [name for name, value in given.items() if value is not None] + ["device"] * (device != "cpu")
            if wrong:
                raise UsageError(
                    f"the denoiser {str(model)!r} has its own {', '.join(wrong)}.",
                    hint="Leave that out: it is for a model's file.",
                )
            self._denoiser = bundled()
            return
        path = Path(model)
        row = FILE_DENOISERS.get(path.suffix.lower())
        if row is None:
            raise unknown_name("denoiser", str(model), [*BUNDLED, *(f"FILE{suffix}" for suffix in FILE_DENOISERS)])
        if not path.is_file():
            raise ModelError(f"the denoiser {path} does not exist.", hint="Check the path.")
        if rate is None:
            raise UsageError(f"the denoiser {path.name!r} needs its sample rate.", hint="Give rate, for example 16000.")
        self._denoiser = row(ModelFile(path, rate, delay or 0, 1 if block is None else block, layout, device, threads))

    @cached_property
    def spec(self) -> ComponentSpec:
        engine = self._denoiser
        return ComponentSpec(
            "front_end",
            "denoiser",
            engine.title,
            engine.model,
            engine.revision,
            {
                **engine.settings,
                "attenuation_limit_db": None if self._limit_db is None else float(self._limit_db),
                "peak_limit": PEAK_LIMIT,
                "sample_rate": engine.rate,
            },
        )

    @property
    def sample_rate(self) -> int:
        return self._denoiser.rate

    def enhance(self, clips: Sequence[Samples]) -> list[Samples]:
        if not clips:
            return []
        with self._lock:
            if self._loaded is None:
                self._loaded = self._denoiser.load()
        run = self._loaded
        share = np.float32(0.0 if self._limit_db is None else 10.0 ** (-self._limit_db / 20.0))

        def work(clip: Samples) -> NDArray[np.float32]:
            out = run(clip)
            # A wrong shape is not mixed but found by the check that follows.
            return out + share * (clip - out) if share and out.shape == clip.shape else out

        return enhance_each(clips, work, name=self._denoiser.title, threads=self._threads if self._side_by_side else 1)
