"""From a typed query to clean speech."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from ...errors import AudioError, SynthesisError, UsageError
from ..audio import check_samples
from ..keyed import keyed_index
from ..records import SAMPLE_RATE, CleanSpeech, Query, Samples
from .protocol import Synthesizer

PEAK = 0.7
"""Peak of finished speech: leaves room for noise and stays clear of 16-bit clipping."""

_FRAME_S = 0.01
_SILENCE_DB = -45.0


def has_speech(text: str) -> bool:
    """Whether `text` holds anything that can be spoken: a letter or a number.

    >>> has_speech("¿2?"), has_speech("🙂 …"), has_speech("")
    (True, False, False)
    """
    return any(unicodedata.category(character)[0] in "LN" for character in text)


def choose_voice(query: Query, voices: Sequence[str], seed: int = 0) -> str:
    """The voice of `query`, drawn by the keyed rule from the set of voices. Raises `UsageError` if there are none.

    >>> query = Query("q1", "mini-en", "en", "When?")
    >>> choose_voice(query, ["b", "a"]) == choose_voice(query, ["a", "b"])
    True
    """
    distinct = sorted(set(voices))
    if not distinct:
        raise UsageError(
            f"there is no voice for query {query.id!r} of {query.subset!r}.", hint="Name at least one voice."
        )
    return distinct[keyed_index(len(distinct), seed, "voice", query.subset, query.id)]


def speak_query(
    synthesizer: Synthesizer, query: Query, *, voices: Sequence[str] | None = None, seed: int = 0
) -> CleanSpeech:
    """`query` spoken by one of `voices` (default: all), finished. Raises `SynthesisError` naming the query."""
    name = f"query {query.id!r} of {query.subset!r}"
    if not has_speech(query.text):
        raise SynthesisError(
            f"{name} has nothing to say: {query.text!r}.", hint="Give it a text with words, or remove the query."
        )
    voice = choose_voice(query, synthesizer.voices(query.language) if voices is None else voices, seed)
    try:
        samples = finish_speech(
            synthesizer.synthesize(query.text, voice=voice, language=query.language, seed=seed), name
        )
    except (SynthesisError, AudioError) as error:
        raise SynthesisError(
            f"{name} cannot be spoken by {voice!r}: {error.message}",
            hint=error.hint or "Change its text or choose another voice.",
        ) from error
    return CleanSpeech(samples, speaker=f"{synthesizer.spec.engine}/{voice}", voice=voice)


def finish_speech(samples: Samples, name: str, *, margin_s: float = 0.15, peak: float = PEAK) -> Samples:
    """(T,) speech without long silence around it, faded in and out over 5 ms, scaled to `peak`.

    Silence is what lies more than 45 dB under the loudest 10 ms; `margin_s` of it stays on each side (zeros are
    appended where the engine gave less). Pauses inside stay. Raises `AudioError` for a silent or broken signal.
    """
    check_samples(samples, name)
    frame = int(_FRAME_S * SAMPLE_RATE)
    padded = np.pad(samples.astype(np.float64), (0, -samples.size % frame))
    level = np.sqrt(np.mean(padded.reshape(-1, frame) ** 2, axis=1))
    active = np.flatnonzero(level > level.max() * 10 ** (_SILENCE_DB / 20))
    margin = round(margin_s * SAMPLE_RATE)
    start, stop = int(active[0]) * frame - margin, min((int(active[-1]) + 1) * frame, samples.size) + margin
    kept = samples[max(start, 0) : stop].astype(np.float64)
    fade = min(int(0.005 * SAMPLE_RATE), kept.size // 2)
    ramp = np.linspace(0.0, 1.0, fade, endpoint=False)
    kept[:fade] *= ramp
    kept[kept.size - fade :] *= ramp[::-1]
    kept = np.pad(kept, (max(-start, 0), max(stop - samples.size, 0)))
    return np.ascontiguousarray(kept * (peak / np.abs(kept).max()), dtype=np.float32)
