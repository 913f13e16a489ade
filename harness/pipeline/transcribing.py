"""The first stage: spoken queries to transcripts, cached by content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...errors import AudioError
from ...loaders.audio import decode_audio, resample, to_pcm16
from ...loaders.paired import check_pairing
from ...loaders.records import Query, Samples, SpokenQuery
from ...loaders.rows import in_order
from ..protocols import Transcriber, Transcript
from ..transcript_cache import TranscriptCache

DECODING_THREADS = 2
CLIPS_PER_STEP = 32
"""Clips decoded and looked up together; also what is lost at most when a run is killed."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A spoken query without its sound, with what the transcriber made of it."""

    query: SpokenQuery
    audio_sha256: str
    transcript: Transcript


def transcribe(
    transcriber: Transcriber,
    spoken: Iterable[SpokenQuery],
    expected: Sequence[Query],
    *,
    language: str,
    cache: TranscriptCache | None,
    progress: Callable[[int], None],
    keep: Callable[[SpokenQuery], None] = lambda _: None,
) -> list[Heard]:
    """One `Heard` per spoken query, in order, paired with `expected` by id.

    A clip that cannot be decoded is a failed transcript, counted later, never words. `keep` sees every query with its
    sound.
    """
    heard: list[Heard] = []
    for step in _steps(spoken):
        for query in step:
            check_pairing(expected, query, len(heard) + step.index(query))
            keep(query)
        heard.extend(_transcribe_step(transcriber, step, language=language, cache=cache))
        progress(len(step))
    return heard


def _steps(spoken: Iterable[SpokenQuery]) -> Iterator[list[SpokenQuery]]:
    step: list[SpokenQuery] = []
    for query in spoken:
        step.append(query)
        if len(step) == CLIPS_PER_STEP:
            yield step
            step = []
    if step:
        yield step


def _transcribe_step(
    transcriber: Transcriber, step: Sequence[SpokenQuery], *, language: str, cache: TranscriptCache | None
) -> list[Heard]:
    clips: dict[str, Samples] = {}
    digests: list[str] = []
    failures: dict[str, Transcript] = {}
    # In threads, where Ctrl-C cannot be lost inside one of soundfile's callbacks.
    for digest, decoded in in_order(
        lambda query: _decode(query, transcriber.sample_rate), step, workers=DECODING_THREADS
    ):
        digests.append(digest)
        if isinstance(decoded, AudioError):
            failures[digest] = Transcript("", error=decoded.message)
        else:
            clips[digest] = decoded
    fingerprint = transcriber.spec.fingerprint
    known = {} if cache is None else cache.get(list(clips), language=language, transcriber=fingerprint)
    missing = [digest for digest in clips if digest not in known]
    if missing:
        made = dict(zip(missing, transcriber.transcribe([clips[d] for d in missing], language=language), strict=True))
        if cache is not None:
            cache.put(made, language=language, transcriber=fingerprint)
        known |= made
    known |= failures
    return [
        Heard(replace(query, audio=b""), digest, known[digest]) for query, digest in zip(step, digests, strict=True)
    ]


def _decode(query: SpokenQuery, rate: int) -> tuple[str, Samples | AudioError]:
    """The digest of a query's sound, and the sound at `rate` or why it cannot be decoded."""
    name = f"query {query.id!r} under {query.condition}"
    try:
        samples, own_rate = decode_audio(query.audio, name)
    except AudioError as error:
        return "undecodable:" + hashlib.sha256(query.audio).hexdigest(), error
    return samples_sha256(samples, own_rate, name), resample(samples, own_rate, rate)


def samples_sha256(samples: Samples, rate: int, name: str) -> str:
    """The same digest as `pcm_sha256`, from samples decoded to float."""
    digest = hashlib.sha256(f"{rate}\n".encode())
    digest.update(np.ascontiguousarray(to_pcm16(samples, name)).tobytes())
    return digest.hexdigest()


def write_sample(folder: Path, query: SpokenQuery) -> Path:
    """Keep a clip for the report's players: `samples/<subset>/<query id>/<condition>.flac`."""
    from ..results import file_name, write_atomically

    path = folder / "samples" / file_name(query.subset) / file_name(query.id) / f"{query.condition}.flac"
    if not (path.exists() and path.stat().st_size == len(query.audio)):
        write_atomically(path, query.audio)
    return path
