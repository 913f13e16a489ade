"""Speech language models of transformers whose processor writes the request: GLM-ASR, Qwen3-ASR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ....loaders.records import Samples
from ..generation import end_tokens, without_end
from ..torch_models import TorchOptions
from .greedy_scores import GreedyScores


@dataclass(frozen=True, slots=True)
class Written:
    """New tokens without the end, whether the cap cut them, and the geometric mean probability (NaN of none)."""

    tokens: list[int]
    cut: bool
    confidence: float


class RequestModel:
    """The model in `folder`: of transformers' class `<family>ForConditionalGeneration`, with `<family>Processor`."""

    def __init__(self, folder: Path, family: str, options: TorchOptions, max_new_tokens: int, *, name: str) -> None:
        self._folder, self._name = folder, name
        self._family = family
        self._torch = options
        self._max_new_tokens = max_new_tokens

    @cached_property
    def processor(self) -> Any:
        processor = self._torch.load_part("AutoProcessor", self._folder, name=self._name)
        wanted = f"{self._family}Processor"
        if type(processor).__name__ != wanted:
            raise ModelError(
                f"the processor in {self._folder} is a {type(processor).__name__}, not a {wanted}.",
                hint="Give another model, or take another backend.",
            )
        return processor

    @cached_property
    def model(self) -> Any:
        return self._torch.load_model(f"{self._family}ForConditionalGeneration", self._folder, name=self._name)

    @property
    def sample_rate(self) -> int:
        return int(self.processor.feature_extractor.sampling_rate)

    def write(self, clips: Sequence[Samples], **request: Any) -> list[Written]:
        """What is written for each clip ((T,) float32 at `sample_rate`).

        `request` is what the processor's `apply_transcription_request` takes beside the audio. Raises `RuntimeError`.
        """
        try:
            inputs = self.processor.apply_transcription_request(
                audio=[clip.astype("float32", copy=False) for clip in clips], **request
            ).to(self.model.device, dtype=self.model.dtype)
            audio_tokens = (inputs["input_ids"] == self.processor.audio_token_id).sum(dim=1)
            if bool((audio_tokens == 0).any()):
                # What is written then is made up from the instruction alone.
                raise RuntimeError("the clip is too short for one token of audio")
            scores = GreedyScores()
            with self._torch.inference(self.model):
                output = self.model.generate(
                    **inputs,
                    do_sample=False,
                    num_beams=1,
                    max_new_tokens=self._max_new_tokens,
                    logits_processor=[scores],
                )
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        ends = end_tokens(self.model)
        new = output[:, inputs["input_ids"].shape[1] :].tolist()
        found = []
        for i, row in enumerate(new):
            tokens, cut = without_end(row, ends, self._max_new_tokens)
            sure = scores.mean(i, min(len(tokens) + 1, len(row))) if tokens else math.nan
            found.append(Written(tokens, cut, sure))
        return found
