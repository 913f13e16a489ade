"""The text-only control: the same question to the same reader, without the sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from ...protocols import Answerer, AnswerRequest, ComponentSpec, Reply, Setting
from .cascade import llm_of

NOTE = "(El audio no está disponible. Responde de todos modos; si hay opciones, elige la más probable.)"


class TextOnlyAnswerer:
    """An answerer that is given no clips: what its replies get right, the text alone gives away.

    `llm` is asked; of a cascade it is the cascade's own reader. `note` stands before the prompt ("" for none).
    """

    uses_audio = False

    def __init__(self, *, llm: Answerer, note: str = NOTE) -> None:
        self._llm = llm_of(llm)
        self._note = note

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the replies: the reader, and the note."""
        read = self._llm.spec
        settings: dict[str, Setting] = {"note": self._note, "llm": read.as_dict()}
        return ComponentSpec("answerer", "text-only", f"text-only + {read.name}", settings=settings)

    @property
    def sample_rate(self) -> int:
        """The reader's, though it hears nothing."""
        return self._llm.sample_rate

    @property
    def llm(self) -> Answerer:
        """What answers."""
        return self._llm

    def supports(self, language: str) -> bool:
        """Whether the reader was made for this language."""
        return self._llm.supports(language)

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        """One reply per request, in order; clips are not passed on."""
        return self._llm.answer([self._silent(request) for request in requests])

    def _silent(self, request: AnswerRequest) -> AnswerRequest:
        prompt = f"{self._note}\n\n{request.prompt}" if self._note else request.prompt
        return replace(request, prompt=prompt, audios=(), audio_names=(), transcripts=())
