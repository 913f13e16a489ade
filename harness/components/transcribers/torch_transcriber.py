"""What the transcribers on torch share: a spec with versions, and which languages they know."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence

from ...protocols import ComponentSpec, Setting
from ..torch_models import BatchedTorchComponent
from .common import LOOP_SETTINGS, SAMPLE_RATE, minor_version, primary_code


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
