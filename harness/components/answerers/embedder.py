"""An answerer without a language model: the option whose text is nearest to the transcript."""

from __future__ import annotations

import re
import string
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ....errors import UsageError
from ...protocols import AnswerRequest, ComponentSpec, Reply, Setting, TextEncoder
from ..checked import encode
from ..transcribers.common import SAMPLE_RATE

Role = Literal["query", "document"]
_SENTENCE = re.compile(r"(?<=[.!?…])\s+")


class EmbedderAnswerer:
    """Multiple choice by a text encoder.

    `model` is one of `sentence-transformers` (or `encoder`, an object, in its place). The question with each option is
    encoded as query, the transcript as documents: passages of at most `passage_words` words that share half of them
    with the next. The reply is the letter of the option whose best passage is most similar, by cosine; of equals, the
    first. Without a transcript, options are compared with the question alone.

    It cannot follow an instruction: its reply is then the sentence of the transcript that is most similar to it, and
    empty without a transcript. It does not understand; it is the cheapest baseline that uses the audio at all.
    """

    sample_rate = SAMPLE_RATE
    uses_audio = False

    def __init__(
        self, model: str, *, passage_words: int = 40, device: str = "auto", encoder: TextEncoder | None = None
    ) -> None:
        if passage_words < 2:
            raise UsageError(f"passages of {passage_words} words are too short.", hint="Give 2 or more.")
        self._passage_words = passage_words
        self._requested, self._device, self._given = model, device, encoder

    @cached_property
    def _encoder(self) -> TextEncoder:
        if self._given is not None:
            return self._given
        from ..encoders.sentence_transformers import SentenceTransformerEncoder

        return SentenceTransformerEncoder(self._requested, device=self._device)

    @cached_property
    def spec(self) -> ComponentSpec:
        encoder = self._encoder.spec
        settings: dict[str, Setting] = {
            "encoder": encoder.as_dict(),
            "passage_words": self._passage_words,
            "rule": "question and option",
        }
        return ComponentSpec("answerer", "embedder", encoder.name, encoder.model, encoder.revision, settings)

    def supports(self, language: str) -> bool:
        return self._encoder.supports(language)

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        started = time.perf_counter()
        plans = [self._compared(request) for request in requests]
        queries = self._vectors([text for plan in plans for text in plan.wanted], "query")
        documents = self._vectors([text for plan in plans for text in plan.known], "document")
        texts = [plan.reply(queries, documents) for plan in plans]
        seconds = (time.perf_counter() - started) / max(1, len(texts))
        return [Reply(text, seconds=seconds) for text in texts]

    def _vectors(self, texts: Sequence[str], role: Role) -> dict[str, NDArray[np.float32]]:
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, encode(self._encoder, distinct, role=role), strict=True)) if distinct else {}

    def _compared(self, request: AnswerRequest) -> _Compared:
        spoken = request.spoken_question and bool(request.transcripts)
        question = request.transcripts[-1] if spoken else request.question
        transcripts = request.transcripts[:-1] if spoken else request.transcripts
        if request.options:
            wanted = [f"{question} {option}".strip() for option in request.options]
            known = [passage for text in transcripts for passage in passages(text, self._passage_words)]
            if not known:
                wanted, known = list(request.options), [question or " "]
            return _Compared(tuple(wanted), tuple(known), True)
        sentences = [one.strip() for text in transcripts for one in _SENTENCE.split(text) if one.strip()]
        return _Compared((question,) if question.strip() and sentences else (), tuple(sentences), False)


@dataclass(frozen=True, slots=True)
class _Compared:
    """What is compared for one request: options (or an instruction) with passages (or sentences)."""

    wanted: tuple[str, ...]
    known: tuple[str, ...]
    choice: bool

    def reply(self, queries: Mapping[str, NDArray[np.float32]], documents: Mapping[str, NDArray[np.float32]]) -> str:
        if not self.wanted or not self.known:
            return self.known[0] if self.known else ""
        wanted = np.stack([queries[text] for text in self.wanted])
        similarity = wanted @ np.stack([documents[text] for text in self.known]).T
        if self.choice:
            return string.ascii_uppercase[int(np.argmax(similarity.max(axis=1)))]
        return self.known[int(np.argmax(similarity[0]))]


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
