"""Speaking all queries of a source into a folder: takes, ratings, journal. A stopped run continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ...errors import SynthesisError, unknown_name
from ..audio import encode_flac, pcm_sha256
from ..records import SAMPLE_RATE, Query
from .candidates import RatedTake, Rating, Take, Vary, best_take, plan_takes, rate_takes, speak_takes
from .protocol import Synthesizer
from .speaking import has_speech
from .speech_folder import JOINT, SpeechFolder, SpeechRow, number_or_none
from .spoken_form import IN_WORDS, spoken_text
from .written import unread_signs

_TOGETHER = 4
"""Queries whose takes are transcribed in one call; a stopped run repeats at most these."""


@dataclass(frozen=True, slots=True)
class Speaking:
    """`voices` are per language ({}: all); `candidates` takes are compared if there are `ratings`.

    `in_words` gives the engine the text in words (`spoken_text`), else as it is written.
    """

    synthesizer: Synthesizer
    ratings: Sequence[Rating] = ()
    voices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    candidates: int = 1
    vary: Vary = "voice"
    in_words: bool = True
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """What decides the speech, as JSON object; voices are apart, see `SpeechFolder.settle`."""
        return {
            "synthesizer": {**asdict(self.synthesizer.spec), "settings": dict(self.synthesizer.spec.settings)},
            "candidates": self.candidates,
            "vary": self.vary,
            "in_words": self.in_words,
            "seed": self.seed,
            "transcriber": self.transcriber,
            "reference": "written",
        }

    @property
    def transcriber(self) -> str:
        """The names of all transcribers that rate, "" for none."""
        return JOINT.join(rating.name for rating in self.ratings)

    def voices_of(self, language: str) -> list[str]:
        return sorted(set(self.voices.get(language) or self.synthesizer.voices(language)))

    def spoken(self, query: Query) -> str:
        return spoken_text(query.text, query.language) if self.in_words else query.text


@dataclass(frozen=True, slots=True)
class Spoken:
    """One query that was spoken: its row, not yet with a file, and the clip as FLAC (b"" if the row has a failure)."""

    row: SpeechRow
    audio: bytes = b""


Batch = Sequence[tuple[Query, str]]
"""Queries of one language, each with its spoken form, that are spoken and transcribed together."""


class SpeechEngine(Protocol):
    def __call__(self, speaking: Speaking, batches: Sequence[Batch]) -> Iterator[list[Spoken]]: ...


def speak_here(speaking: Speaking, batches: Sequence[Batch]) -> Iterator[list[Spoken]]:
    return (speak_batch(speaking, batch) for batch in batches)


def choose_voices(synthesizer: Synthesizer, names: Sequence[str], languages: Sequence[str]) -> dict[str, list[str]]:
    """`names` by the languages they speak; all voices if empty. Raises `UnknownNameError`, also if one has none."""
    known = {language: synthesizer.voices(language) for language in dict.fromkeys(languages)}
    every = [voice for voices in known.values() for voice in voices]
    for name in names:
        if name not in every:
            raise unknown_name(f"voice of {synthesizer.spec.engine} for {', '.join(known)}:", name, every)
    chosen = {language: [v for v in voices if not names or v in names] for language, voices in known.items()}
    for language, voices in chosen.items():
        if not voices:
            raise unknown_name(f"voice for {language}, none of", ", ".join(names), known[language])
    return chosen


def synthesize(
    queries: Sequence[Query],
    folder: SpeechFolder,
    speaking: Speaking,
    progress: Callable[[int], None] | None = None,
    *,
    engine: SpeechEngine = speak_here,
) -> list[SpeechRow]:
    """Speak what `folder` does not have yet, and return the rows of all `queries` in order.

    A query that cannot be spoken gives a row with `failure`. Raises `RecipeMismatchError` if the folder was spoken with
    other settings, `UsageError` for a language that the engine does not speak.
    """
    languages = list(dict.fromkeys(query.language for query in queries))
    folder.settle(speaking.settings(), {language: speaking.voices_of(language) for language in languages})
    tell = progress or (lambda _: None)
    texts = {(query.subset, query.id): speaking.spoken(query) for query in queries}
    missing = [query for query in queries if not folder.is_current(query, texts[query.subset, query.id])]
    tell(len(queries) - len(missing))
    batches = [[(query, texts[query.subset, query.id]) for query in batch] for batch in _batches(missing)]
    for spoken in engine(speaking, batches) if batches else ():
        folder.append([folder.store_clip(made.row, made.audio) if made.audio else made.row for made in spoken])
        tell(len(spoken))
    rows = folder.rows() if queries else {}
    return [rows[query.subset, query.id] for query in queries]


def _batches(queries: Sequence[Query]) -> Iterator[list[Query]]:
    batch: list[Query] = []
    for query in queries:
        if batch and (len(batch) == _TOGETHER or batch[0].language != query.language):
            yield batch
            batch = []
        batch.append(query)
    if batch:
        yield batch


def speak_batch(speaking: Speaking, batch: Batch) -> list[Spoken]:
    """The takes of some queries of one language, transcribed in one call, and the best of each."""
    takes: list[list[Take]] = []
    failures: list[str] = []
    for query, text in batch:
        made, failure = _takes(query, speaking, text)
        takes.append(made)
        failures.append(failure)
    if not speaking.ratings:
        rated = [[RatedTake(take) for take in of_query] for of_query in takes]
    else:
        rated = rate_takes(takes, [query.text for query, _ in batch], batch[0][0].language, speaking.ratings)
    spoken = []
    for (query, text), of_query, failure in zip(batch, rated, failures, strict=True):
        blank = SpeechRow(
            _id=query.id,
            subset=query.subset,
            language=query.language,
            text=query.text,
            spoken_text=text,
            failure=failure,
        )
        spoken.append(Spoken(blank) if failure else _spoken(blank, of_query, speaking))
    return spoken


def _takes(query: Query, speaking: Speaking, text: str) -> tuple[list[Take], str]:
    if not has_speech(text):
        return [], f"there is nothing to say in {query.text!r}."
    # Other languages are left to their engines' own front ends.
    signs = unread_signs(text) if speaking.in_words and query.language.partition("-")[0] in IN_WORDS else ()
    if signs:
        return [], f"no rule says how {' '.join(signs)} is read in {query.text!r}."
    n = speaking.candidates if speaking.ratings else 1
    plan = plan_takes(query, speaking.voices_of(query.language), n, vary=speaking.vary, seed=speaking.seed)
    try:
        return speak_takes(speaking.synthesizer, query, text, plan), ""
    except SynthesisError as error:
        return [], error.message


def _spoken(blank: SpeechRow, rated: Sequence[RatedTake], speaking: Speaking) -> Spoken:
    best = rated[best_take(rated)]
    name = f"query {blank.id!r} of {blank.subset!r}"
    audio = encode_flac(best.take.samples, name)
    spec = speaking.synthesizer.spec
    row = blank.model_copy(
        update={
            "voice": best.take.voice,
            "speaker": f"{spec.engine}/{best.take.voice}",
            "license": spec.license,
            "duration_s": round(best.take.samples.size / SAMPLE_RATE, 3),
            "tts_error_rate": number_or_none(best.error_rate),
            "transcript": best.transcript,
            "transcript_error": best.error,
            "transcriber": speaking.transcriber,
            "rates_by_transcriber": [number_or_none(rate) for rate in best.rates],
            "numbers_missed": list(best.missed),
            "candidates": len(rated),
            "rates": [number_or_none(take.error_rate) for take in rated],
            "seed": best.take.seed,
            "sha256": pcm_sha256(audio, name),
        }
    )
    return Spoken(row, audio)
