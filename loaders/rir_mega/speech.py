"""The utterances of the benchmark: any source's, at 16 kHz."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..audio import check_samples, resample
from ..records import SAMPLE_RATE, CleanSpeech, Query, Source
from .rooms import RATE


@runtime_checkable
class _AtRate(Protocol):
    def speech_at(self, query: Query, rate: int) -> CleanSpeech: ...


def speech_of(source: Source, query: Query) -> CleanSpeech:
    """The clean recording of `query`, (T,) float32 at 16 kHz, resampled once where the source can.

    Raises `AudioError` naming the query if it is missing or unusable.
    """
    if isinstance(source, _AtRate):
        speech = source.speech_at(query, RATE)
    else:
        given = source.speech(query)
        speech = CleanSpeech(
            resample(given.samples, SAMPLE_RATE, RATE), given.speaker, given.voice, given.tts_error_rate
        )
    check_samples(speech.samples, f"the speech of utterance {query.id!r} ({query.subset})")
    return speech
