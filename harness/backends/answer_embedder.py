"""A reader without a language model: the option whose text lies nearest to what was heard."""

from __future__ import annotations

import re
import string
import time
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...errors import UsageError
from ..protocols import AnswerRequest, ComponentSpec, Reply, Setting, TextEncoder
from .asr_common import SAMPLE_RATE

_SENTENCE = re.compile(r"(?<=[.!?…])\s+")


class EmbedderAnswerer:
    """Multiple choice by a text encoder.

    `model` is one of `sentence-transformers` (or `encoder`, an object, in its place). The question with each option is
    encoded as query, what was heard as documents: passages of at most `passage_words` words that share half of them
    with the next. The reply is the letter of the option whose best passage is most similar, by cosine; of equals, the
    first. Without a transcript, options are compared with the question alone.

    It cannot follow an instruction: its reply is then the sentence that was heard that is most similar to it, and empty
    where nothing was heard. It does not understand; it is the cheapest baseline that hears at all.

    Needs `pip install 'squtr[torch]'`.
    """

    hears = False

    def __init__(
        self,
        model: str,
        *,
        passage_words: int = 40,
        device: str | None = None,
        encoder: TextEncoder | None = None,
    ) -> None:
        if passage_words < 2:
            raise UsageError(f"passages of {passage_words} words are too short.", hint="Give 2 or more.")
        self._passage_words = passage_words
        self._requested, self._device, self._given = model, device, encoder

    @cached_property
    def _encoder(self) -> TextEncoder:
        if self._given is not None:
            return self._given
        from .encoders import SentenceTransformerEncoder

        return SentenceTransformerEncoder(self._requested, device=self._device)

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the replies. Raises `ModelError` if the weights are not to be found."""
        encoder = self._encoder.spec
        settings: dict[str, Setting] = {
            "encoder": encoder.as_dict(),
            "passage_words": self._passage_words,
            "rule": "question and option",
        }
        return ComponentSpec("answerer", "embedder", encoder.name, encoder.model, encoder.revision, settings)

    @property
    def sample_rate(self) -> int:
        """16 000 Hz, though it hears nothing."""
        return SAMPLE_RATE

    def supports(self, language: str) -> bool:
        """Whether the encoder was made for this language."""
        return self._encoder.supports(language)

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        """One reply per request, in order, from `question`, `options` and `transcripts`."""
        started = time.perf_counter()
        texts = [self._reply(request) for request in requests]
        seconds = (time.perf_counter() - started) / max(1, len(texts))
        return [Reply(text, seconds=seconds) for text in texts]

    def _reply(self, request: AnswerRequest) -> str:
        spoken = request.spoken_question and bool(request.transcripts)
        question = request.transcripts[-1] if spoken else request.question
        heard = request.transcripts[:-1] if spoken else request.transcripts
        if request.options:
            wanted = [f"{question} {option}".strip() for option in request.options]
            known = [passage for text in heard for passage in passages(text, self._passage_words)]
            if not known:
                wanted, known = list(request.options), [question or " "]
            best = self._similarity(wanted, known).max(axis=1)
            return string.ascii_uppercase[int(np.argmax(best))]
        sentences = [one.strip() for text in heard for one in _SENTENCE.split(text) if one.strip()]
        if not sentences or not question.strip():
            return sentences[0] if sentences else ""
        return sentences[int(np.argmax(self._similarity([question], sentences)[0]))]

    def _similarity(self, wanted: Sequence[str], known: Sequence[str]) -> np.ndarray:
        """(len(wanted), len(known)) cosines."""
        queries = self._encoder.encode(wanted, role="query")
        return np.asarray(queries @ self._encoder.encode(known, role="document").T)


def passages(text: str, words: int) -> list[str]:
    """Passages of at most `words` words, each beginning half of them after the one before; [] for no words.

    >>> passages("a b c d e", 4), passages("a b", 4), passages(" ", 4)
    (['a b c d', 'c d e'], ['a b'], [])
    """
    units = text.split()
    if len(units) <= words:
        return [" ".join(units)] if units else []
    step = max(1, words // 2)
    starts = range(0, len(units) - words + step, step)
    return [" ".join(units[start : start + words]) for start in starts]
