"""A local LLM as a rewriter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ...protocols import AnswerRequest, ComponentSpec, Rewritten
from ...text.languages import KNOWN_LANGUAGES
from ..answerers.llm import TextAnswerer
from ..transcribers.common import primary_code
from .common import prompt_settings, read_output
from .prompts import rewrite_prompt


class LLMRewriter:
    """A causal language model of transformers that corrects transcripts, asked through its chat template.

    `prompt` is the name of a prompt (`correct/1` for one transcript, `correct-n-best/1` for the n best), or a text of
    your own with `{text}` or `{texts}`, and `{language}` if wanted; "" is the named one that fits `n_best`, which is
    that of the system. Decoding is greedy. An output that is no correction is a failure (`common.read_output`).

    The other options are those of `llm`; a model that thinks before it writes may need `template_options:
    {enable_thinking: false}`.
    """

    def __init__(self, model: str | Path, *, prompt: str = "", n_best: int = 1, **llm: Any) -> None:
        self._prompt, self.n_best = rewrite_prompt(prompt, n_best), n_best
        self._llm = TextAnswerer(model, **llm)

    @cached_property
    def spec(self) -> ComponentSpec:
        own = self._llm.spec
        settings = {**own.settings, **prompt_settings(self._prompt, self.n_best)}
        return ComponentSpec("rewriter", "rewrite", own.name, own.model, own.revision, settings)

    @property
    def weights(self) -> Path:
        return self._llm.weights

    def supports(self, language: str) -> bool:
        return primary_code(language) in KNOWN_LANGUAGES

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        asked = [AnswerRequest(self._prompt.filled(own, language), language=language) for own in transcripts]
        return [
            Rewritten("", reply.error, reply.seconds)
            if reply.error
            else read_output(reply.text, own, truncated=reply.truncated, seconds=reply.seconds)
            for own, reply in zip(transcripts, self._llm.answer(asked), strict=True)
        ]
