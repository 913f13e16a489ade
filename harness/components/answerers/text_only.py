"""The text-only baseline: the same question to the same LLM, without the audio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from ...protocols import Answerer, AnswerRequest, ComponentSpec, Reply, Setting
from .cascade import llm_of

NOTE = "(El audio no está disponible. Responde de todos modos; si hay opciones, elige la más probable.)"


class TextOnlyAnswerer:
    """An answerer that is given no clips: what its replies get right, the text alone gives away.

    `llm` is asked; of a cascade it is the cascade's own LLM. `note` stands before the prompt ("" for none).
    """

    uses_audio = False

    def __init__(self, *, llm: Answerer, note: str = NOTE) -> None:
        self._llm = llm_of(llm)
        self._note = note

    @cached_property
    def spec(self) -> ComponentSpec:
        read = self._llm.spec
        settings: dict[str, Setting] = {"note": self._note, "llm": read.as_dict()}
        return ComponentSpec("answerer", "text-only", f"text-only + {read.name}", settings=settings)

    @property
    def sample_rate(self) -> int:
        return self._llm.sample_rate

    @property
    def llm(self) -> Answerer:
        return self._llm

    def supports(self, language: str) -> bool:
        return self._llm.supports(language)

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        return self._llm.answer([self._silent(request) for request in requests])

    def _silent(self, request: AnswerRequest) -> AnswerRequest:
        prompt = f"{self._note}\n\n{request.prompt}" if self._note else request.prompt
        return replace(request, prompt=prompt, audios=(), audio_names=(), transcripts=())
