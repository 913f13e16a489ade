"""What the transcribers on torch share: a spec with versions, and which languages they know."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....errors import ModelError
from ...protocols import ComponentSpec, Setting
from ..torch_models import BatchedTorchComponent, TorchOptions
from .common import LOOP_SETTINGS, SAMPLE_RATE, minor_version, primary_code

NO_SCORE = -1e8
"""Scores below are no hypotheses: transformers gives a beam that never ended -1e9."""


@contextlib.contextmanager
def searching(torch: TorchOptions, model: Any, name: str) -> Iterator[None]:
    """Inference by `generate` of transformers: what it raises, as errors of the model or of the clip."""
    try:
        with torch.inference(model):
            yield
    except ValueError as error:  # its settings contradict what is asked, whatever the clip
        raise ModelError(
            f"the model {name} refuses to decode: {error}.", hint="Check its generation_config.json and max_new_tokens."
        ) from error
    except IndexError as error:  # transformers looks for the last token of a search that wrote none
        raise RuntimeError(f"the search found nothing that the model may write ({error})") from error


class TorchTranscriber(BatchedTorchComponent, abc.ABC):
    """A `Transcriber` at 16 kHz. A subclass has `spec`, `transcribe` and the codes of its `_languages`."""

    @property
    def sample_rate(self) -> int:
        return SAMPLE_RATE

    @property
    @abc.abstractmethod
    def _languages(self) -> Sequence[str]: ...

    def supports(self, language: str) -> bool:
        return primary_code(language) in self._languages

    def _spec(self, backend: str, settings: Mapping[str, Setting], *, transformers: bool = True) -> ComponentSpec:
        """With the numeric path and the versions of what computes."""
        versions = {"torch": minor_version("torch", "torch", "torch")}
        if transformers:
            versions["transformers"] = minor_version("transformers", "transformers", "torch")
        rate = {"sample_rate": self.sample_rate}
        everything = {**self._torch.settings(device=True), **versions, **rate, **LOOP_SETTINGS, **settings}
        return self.described("transcriber", backend, everything)
