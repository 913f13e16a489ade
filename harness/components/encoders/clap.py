"""Dual encoders of audio and text as CLAP (arXiv 2211.06687): one tower for each, one space for both."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...protocols import ComponentSpec
from ..library_log import quiet
from ..loading_report import HEADS
from .audio_common import Batches, as_rows, unit_rows
from .processor_encoder import ProcessorEncoder
from .prompts import Role

LongClips = Literal["truncate", "mean"]
_LONG_CLIPS = {"truncate": "truncate", "mean": "mean of windows"}
_CPU_WINDOWS, _GPU_WINDOWS = 8, 128


class ClapEncoder(ProcessorEncoder):
    """A model of transformers with `get_audio_features` and `get_text_features` in one space, CLAP first of all.

    `model` is a folder or a Hub repository (with `revision`). The vectors are the projections, of unit length.
    `query_prefix` and `document_prefix` stand before a typed query and a document. `max_tokens` cuts a text (77 for
    LAION's models, as they were trained; else the tokenizer's limit).

    A model takes a window (10 s for CLAP, filled up by repeating a shorter clip; `max_seconds` makes it shorter). Of a
    longer clip, `long_clips="truncate"` takes the beginning, `"mean"` the mean vector of as many windows as cover it,
    spread evenly. CLAP's own processor would take random crops instead, and would mark a random clip of a batch as
    long: neither ever happens here.

    `batch_size` is the number of clips' windows or texts in a batch. It and the options of torch are those of
    `BatchedTorchComponent`.
    """

    def __init__(self, model: str | Path, *, long_clips: LongClips = "truncate", **torch: Any) -> None:
        if long_clips not in _LONG_CLIPS:
            raise UsageError(f"long_clips {long_clips!r} is none of {', '.join(_LONG_CLIPS)}.")
        super().__init__(model, **torch)
        self._long_clips: LongClips = long_clips

    @cached_property
    def spec(self) -> ComponentSpec:
        settings = {
            "document_prefix": self._prefixes["document"],
            "long_clips": _LONG_CLIPS[self._long_clips],
            "max_tokens": self._token_limit,
            "query_prefix": self._prefixes["query"],
            "sample_rate": self.sample_rate,
            "window_s": self._window_s,
            **self._torch.settings(device=False),
        }
        return self.described("audio_text_encoder", "clap", settings)

    @cached_property
    def _model(self) -> Any:
        model = self._torch.load_model("AutoModel", self._found.path, name=self._name, unused=HEADS)
        for method in ("get_audio_features", "get_text_features"):
            if not callable(getattr(model, method, None)):
                raise ModelError(
                    f"{self._name} ({type(model).__name__}) is no dual encoder of audio and text: it has no {method}.",
                    hint="Use the backend chat-template or sentence-transformers-audio for models of other kinds.",
                )
        return model

    @cached_property
    def _audio_batches(self) -> Batches:
        budget = _CPU_WINDOWS if self._device_type == "cpu" else _GPU_WINDOWS
        return Batches(size=self._batch_size, budget=budget)

    def _audio_cost(self, clip: Samples) -> int:
        return len(self._windows(clip))

    def _windows(self, clip: Samples) -> list[Samples]:
        width = self._window
        if width is None or clip.size <= width:
            return [clip]
        if self._long_clips == "truncate":
            return [clip[:width]]
        count = -(-clip.size // width)
        return [clip[start : start + width] for start in np.linspace(0, clip.size - width, count).round().astype(int)]

    def _audio_rows(self, clips: list[Samples]) -> NDArray[Any]:
        windows = [self._windows(clip) for clip in clips]
        rows = self._window_rows([window for group in windows for window in group])
        if all(len(group) == 1 for group in windows):
            return rows
        ends = np.cumsum([len(group) for group in windows])
        units = unit_rows(rows).astype(np.float64)
        return np.stack([part.mean(axis=0) for part in np.split(units, ends[:-1])])

    def _window_rows(self, windows: list[Samples]) -> NDArray[np.float64]:
        torch_dtype = self._model.dtype
        with quiet():
            features = self._processor.feature_extractor(
                windows, sampling_rate=self.sample_rate, return_tensors="pt"
            ).to(self._model.device, dtype=torch_dtype)
        if "is_longer" in features:
            # No window is longer than the model's own; the extractor would mark one of them at random.
            features["is_longer"] = features["is_longer"].new_zeros(features["is_longer"].shape)
        with self._torch.inference(self._model):
            return as_rows(_projection(self._model.get_audio_features(**features)))

    def _text_rows(self, texts: list[str], role: Role) -> NDArray[np.float64]:
        inputs = self._processor.tokenizer(
            [self._prefixes[role] + text for text in texts],
            padding=True,
            truncation=self._token_limit is not None,
            max_length=self._token_limit,
            return_tensors="pt",
        ).to(self._model.device)
        with self._torch.inference(self._model):
            return as_rows(_projection(self._model.get_text_features(**inputs)))

    def _text_costs(self, texts: list[str]) -> list[int]:
        limit = self._token_limit
        encoded = self._processor.tokenizer(texts, truncation=limit is not None, max_length=limit, padding=False)
        return [len(ids) for ids in encoded["input_ids"]]


def _projection(output: Any) -> Any:
    pooled = getattr(output, "pooler_output", None)
    return output if pooled is None else pooled
