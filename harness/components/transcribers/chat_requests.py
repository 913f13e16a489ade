"""Speech language models of transformers whose processor writes the request: GLM-ASR, Qwen3-ASR."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ....loaders.records import Samples
from .common import BatchSize
from .torch_models import AutoBatch, TorchRuntime, imported_transformers


class RequestModel:
    """The model in `folder`: of transformers' class `<family>ForConditionalGeneration`, with `<family>Processor`.

    Decoding is greedy, with at most `max_new_tokens` new tokens per clip. Loaded when something is first written.
    """

    def __init__(self, folder: Path, family: str, runtime: TorchRuntime, max_new_tokens: int) -> None:
        self._folder = folder
        self._class_name = f"{family}ForConditionalGeneration"
        self._processor_name = f"{family}Processor"
        self._runtime = runtime
        self._max_new_tokens = max_new_tokens

    @cached_property
    def processor(self) -> Any:
        """The loaded processor. Raises `ModelError`, also for one of another family."""
        processor = self._runtime.load_part("AutoProcessor", self._folder)
        if type(processor).__name__ != self._processor_name:
            raise ModelError(
                f"the processor in {self._folder} is a {type(processor).__name__}, not a {self._processor_name}.",
                hint="Give another model, or take another backend.",
            )
        return processor

    @property
    def sample_rate(self) -> int:
        """What the feature extractor says, in Hz."""
        return int(self.processor.feature_extractor.sampling_rate)

    def batch_size(self, asked: int | AutoBatch) -> BatchSize:
        """The batch size to start from: as `asked`, or by the memory that the loaded model leaves."""
        return self._runtime.batch_size(asked, self._model)

    def write(self, clips: Sequence[Samples], **request: Any) -> list[tuple[list[int], bool]]:
        """For each clip ((T,) float32 at `sample_rate`) the new tokens without the end, and whether the cap cut them.

        `request` is what the processor's `apply_transcription_request` takes beside the sound. Raises `RuntimeError`
        where the processor or the model cannot work on these clips.
        """
        try:
            inputs = self.processor.apply_transcription_request(
                audio=[clip.astype("float32", copy=False) for clip in clips], **request
            ).to(self._model.device, dtype=self._model.dtype)
            sound = (inputs["input_ids"] == self.processor.audio_token_id).sum(dim=1)
            if bool((sound == 0).any()):
                # What is written then is made up from the instruction alone.
                raise RuntimeError("the clip is too short for one token of sound")
            with self._runtime.inference(self._model):
                output = self._model.generate(
                    **inputs, do_sample=False, num_beams=1, max_new_tokens=self._max_new_tokens
                )
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        return [self._ended(row) for row in output[:, inputs["input_ids"].shape[1] :].tolist()]

    def _ended(self, row: list[int]) -> tuple[list[int], bool]:
        end = next((i for i, token in enumerate(row) if token in self._ends), len(row))
        return row[:end], end == len(row) and len(row) >= self._max_new_tokens

    @cached_property
    def _ends(self) -> frozenset[int]:
        ends = self._model.generation_config.eos_token_id
        return frozenset(ends if isinstance(ends, list | tuple) else [ends])

    @cached_property
    def _model(self) -> Any:
        if not hasattr(imported_transformers(), self._class_name):
            raise ModelError(
                f"this version of transformers has no {self._class_name}.", hint="Run: pip install 'squtr[torch]' -U"
            )
        return self._runtime.load_model(self._class_name, self._folder)
