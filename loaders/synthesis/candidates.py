"""Several takes of a query, and the one that a transcriber understands best (SQuTR, arXiv 2602.12783, section 3.2).

The reference is the text as it is written, never the words that the engine got: these may be what is wrong. Every
number that is written must be in the transcript too. With several transcribers the worst rate counts.

A take is a voice and a seed. Engines that draw from a seed give takes of one voice; for engines that do not, takes
differ in their voice: the keyed voice first, then the others in a keyed order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ...errors import AudioError, ModelError, SynthesisError, UsageError
from ..audio import resample
from ..keyed import keyed_seed
from ..records import NAN, SAMPLE_RATE, Query, Samples
from .number_checks import Normalize, numbers_missed
from .protocol import Synthesizer
from .speaking import choose_voice, finish_speech

Vary = Literal["seed", "voice"]


class ClipTranscript(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def error(self) -> str: ...


class ClipTranscriber(Protocol):
    """Speech to text, as much of it as rating takes needs."""

    @property
    def sample_rate(self) -> int: ...

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> Sequence[ClipTranscript]:
        """One transcript per clip ((T,) float32 at `sample_rate`), in order."""
        ...


ErrorRate = Callable[[str, str, str], float]
"""(reference, hypothesis, language) to the error rate of one clip: WER, or CER where words are not separated."""


@dataclass(frozen=True, slots=True)
class Rating:
    """How takes are rated: a transcriber, the name that is stored as the origin of the rates, and an error rate.

    `normalize` is the normalizer of the error rate, in which numbers are compared.
    """

    transcriber: ClipTranscriber
    name: str
    error_rate: ErrorRate
    normalize: Normalize


@dataclass(frozen=True, slots=True)
class Take:
    voice: str
    seed: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class RatedTake:
    """A take with its error rate: NaN if it was not rated or could not be transcribed (`error` says why).

    `transcript` is that of the transcriber with the highest rate; `rates` has the rate of each, in their order, and
    `missed` the numbers that a transcript lacks.
    """

    take: Take
    error_rate: float = NAN
    transcript: str = ""
    error: str = ""
    rates: tuple[float, ...] = ()
    missed: tuple[str, ...] = ()


def plan_takes(query: Query, voices: Sequence[str], n: int, *, vary: Vary, seed: int = 0) -> list[tuple[str, int]]:
    """Voice and seed of `n` takes of `query`; fewer if takes differ in voice and there are fewer voices.

    The first voice is that of `choose_voice`, so `n` = 1 is the plain draw. Raises `UsageError` for `n` below 1 or
    without voices.

    >>> query = Query("q1", "mini-en", "en", "When?")
    >>> [voice for voice, _ in plan_takes(query, ["a"], 3, vary="seed")], len(plan_takes(query, ["a"], 3, vary="voice"))
    (['a', 'a', 'a'], 1)
    """
    if n < 1:
        raise UsageError(f"the number of candidates is {n}.", hint="Give 1 or more.")
    first = choose_voice(query, voices, seed)
    seeds = [keyed_seed(seed, "take", query.subset, query.id, str(number)) % (1 << 31) for number in range(n)]
    if vary == "seed":
        return [(first, take_seed) for take_seed in seeds]
    others = sorted(
        {voice for voice in voices if voice != first},
        key=lambda voice: keyed_seed(seed, "voice order", query.subset, query.id, voice),
    )
    return [(voice, seeds[0]) for voice in [first, *others][:n]]


def speak_takes(synthesizer: Synthesizer, query: Query, text: str, plan: Sequence[tuple[str, int]]) -> list[Take]:
    """`text` spoken by each voice and seed of `plan`; what fails or repeats an earlier take is left out.

    Raises `SynthesisError` that names the query if none is left.
    """
    takes: list[Take] = []
    failures: list[str] = []
    for voice, seed in plan:
        name = f"query {query.id!r} of {query.subset!r}"
        try:
            spoken = synthesizer.synthesize(text, voice=voice, language=query.language, seed=seed)
            samples = finish_speech(spoken, f"{name}, spoken by {voice!r},")
        except (SynthesisError, AudioError) as error:
            failures.append(error.message)
            continue
        if not any(take.samples.shape == samples.shape and (take.samples == samples).all() for take in takes):
            takes.append(Take(voice, seed, samples))
    if not takes:
        raise SynthesisError(
            f"query {query.id!r} of {query.subset!r} cannot be spoken: {failures[0]}",
            hint="Change its text or choose other voices.",
        )
    return takes


def rate_takes(
    takes: Sequence[Sequence[Take]], written: Sequence[str], language: str, ratings: Sequence[Rating]
) -> list[list[RatedTake]]:
    """All takes of several queries rated against their `written` texts, in one call of each transcriber.

    A take's rate is the highest of `ratings`. Raises `ModelError`, and `UsageError` without ratings.
    """
    if not ratings:
        raise UsageError("takes cannot be rated without a transcriber.", hint="Name one.")
    flat = [(take, text) for of_query, text in zip(takes, written, strict=True) for take in of_query]
    alone = [_rated_by(flat, language, rating) for rating in ratings]
    together = iter([_together([one[position] for one in alone]) for position in range(len(flat))])
    return [[next(together) for _ in of_query] for of_query in takes]


def _rated_by(takes: Sequence[tuple[Take, str]], language: str, rating: Rating) -> list[RatedTake]:
    clips = [resample(take.samples, SAMPLE_RATE, rating.transcriber.sample_rate) for take, _ in takes]
    transcripts = list(rating.transcriber.transcribe(clips, language=language)) if clips else []
    if len(transcripts) != len(takes):
        raise ModelError(f"{rating.name} returned {len(transcripts)} transcripts for {len(takes)} clips.")
    out = []
    for (take, text), transcript in zip(takes, transcripts, strict=True):
        if transcript.error:
            out.append(RatedTake(take, error=transcript.error, rates=(NAN,)))
            continue
        hypothesis = transcript.text.strip()
        rate = rating.error_rate(text, hypothesis, language)
        missed = numbers_missed(text, hypothesis, language, rating.normalize)
        out.append(RatedTake(take, rate, hypothesis, rates=(rate,), missed=missed))
    return out


def _together(rated: Sequence[RatedTake]) -> RatedTake:
    """One take as several transcribers rate it: not transcribed if one failed."""
    worst = max(rated, key=lambda one: (_nan_last(one.error_rate), bool(one.missed)))
    rates = tuple(rate for one in rated for rate in one.rates)
    missed = next((one.missed for one in rated if one.missed), ())
    return replace(worst, rates=rates, missed=missed)


def best_take(rated: Sequence[RatedTake]) -> int:
    """The position of the lowest error rate, of those that miss no number if there are any.

    Ties go to the lowest mean of all transcribers' rates, then to the first; what has no rate comes last.

    >>> import numpy as np
    >>> take = Take("a", 0, np.zeros(1, dtype=np.float32))
    >>> best_take([RatedTake(take), RatedTake(take, 0.2), RatedTake(take, 0.1), RatedTake(take, 0.1)])
    2
    """

    def order(position: int) -> tuple[bool, bool, float, float]:
        one = rated[position]
        return math.isnan(one.error_rate), bool(one.missed), _nan_last(one.error_rate), _nan_last(sum(one.rates))

    return min(range(len(rated)), key=order)


def _nan_last(rate: float) -> float:
    return math.inf if math.isnan(rate) else rate
