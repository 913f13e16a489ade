"""One listener at work on sounds: what it makes of them, checked and kept, and who failed on which."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ...errors import AudioError, ModelError, SqutrError
from ...loaders.audio import resample
from ...loaders.records import Samples
from ..protocols import FrontEnd, Transcript
from .listeners import Ear, Heard, Listened, Tools, Vector
from .shards import LoadedShard


class Hearing:
    """One listener at work in one language, at the rate that it wants sound in; `busy` once a model heard something."""

    def __init__(self, ear: Ear, language: str, tools: Tools, found: Listened) -> None:
        self.busy = False
        self._ear, self._language, self._tools = ear, language, tools
        self._vectors = found.vectors
        self._heard_here: dict[str, Transcript] = {}
        self._space = f"{ear.key}-audio-{language}"
        self.rate = ear.model.sample_rate if ear.front_end is None else ear.front_end.sample_rate

    def known_sounds(self, encoded: Sequence[str]) -> Mapping[str, str]:
        """The digests of these files' sounds, as far as they are known."""
        return {} if self._tools.store is None else self._tools.store.sounds(encoded)

    def known(self, digests: Sequence[str]) -> Mapping[str, Transcript]:
        """What is known of these sounds; of an encoder, if the vector is there too."""
        store = self._tools.store
        if store is None:
            return {}
        known = store.transcripts(digests, language=self._language, listener=self._ear.key)
        if self._ear.encoder is None or not known:
            return known
        if self._tools.embeddings is None:
            return {}
        vectors = self._tools.embeddings.get_many(self._space, list(known))
        self._vectors.update(vectors)
        return {digest: transcript for digest, transcript in known.items() if digest in vectors}

    def hear(self, loaded: LoadedShard) -> list[Heard]:
        """The shard's queries with what was made of them, kept before it is returned."""
        durations = {d: q.duration_s for d, q in zip(loaded.digests, loaded.shard.queries, strict=True)}
        # Shards are loaded ahead: the same sound may have been heard since in one before.
        before = {digest: self._heard_here[digest] for digest in loaded.clips if digest in self._heard_here}
        made = self._made({digest: clip for digest, clip in loaded.clips.items() if digest not in before})
        self._heard_here.update(made)
        if self._tools.store is not None:
            if self._ear.encoder is not None and self._tools.embeddings is not None:
                done = [digest for digest, transcript in made.items() if not transcript.error]
                if done:
                    self._tools.embeddings.put_many(self._space, done, np.stack([self._vectors[d] for d in done]))
            self._tools.store.keep_heard(
                loaded.sounds,
                {digest: (transcript, durations[digest]) for digest, transcript in made.items()},
                language=self._language,
                listener=self._ear.key,
            )
        all_known = {**loaded.known, **loaded.failed, **before, **made}
        return [
            Heard(query, digest, all_known[digest])
            for query, digest in zip(loaded.shard.queries, loaded.digests, strict=True)
        ]

    def _made(self, clips: dict[str, Samples]) -> dict[str, Transcript]:
        """Transcripts of these sounds, behind the front end."""
        if not clips:
            return {}
        self.busy = True
        failed: dict[str, Transcript] = {}
        front_s = 0.0
        if self._ear.front_end is not None:
            started = time.perf_counter()
            clips, failed = _enhanced(self._ear.front_end, clips)
            clips = {d: resample(clip, self.rate, self._ear.model.sample_rate) for d, clip in clips.items()}
            front_s = (time.perf_counter() - started) / max(1, len(clips))
        answers = self._heard(list(clips.values())) if clips else []
        made = self._with_vectors(dict(zip(clips, answers, strict=True)))
        return {digest: replace(t, front_end_seconds=front_s) for digest, t in made.items()} | failed

    def _heard(self, clips: list[Samples]) -> list[Transcript | tuple[Vector, float]]:
        spec = self._ear.model.spec
        transcriber, encoder = self._ear.transcriber, self._ear.encoder
        started = time.perf_counter()
        answers: list[Transcript] | list[Vector] = []
        with sentences(f"{spec.name} on {len(clips)} clips in {self._language!r}"):
            if transcriber is not None:
                answers = [checked_transcript(t) for t in transcriber.transcribe(clips, language=self._language)]
            elif encoder is not None:
                answers = _rows(np.asarray(encoder.encode_audio(clips, language=self._language), dtype=np.float32))
        if len(answers) != len(clips):
            raise ModelError(
                f"{spec.name} gave {len(answers)} answers for {len(clips)} clips.",
                hint="It must give one per clip, in order.",
            )
        seconds = (time.perf_counter() - started) / len(clips)
        return [a if isinstance(a, Transcript) else (a, seconds) for a in answers]

    def _with_vectors(self, answers: Mapping[str, Transcript | tuple[Vector, float]]) -> dict[str, Transcript]:
        """Transcripts as they are; of vectors, keep those that are finite and say which are not."""
        made: dict[str, Transcript] = {}
        for digest, answer in answers.items():
            if isinstance(answer, Transcript):
                made[digest] = answer
                continue
            vector, seconds = answer
            if np.isfinite(vector).all():
                self._vectors[digest] = vector
                made[digest] = Transcript("", seconds=seconds)
            else:
                made[digest] = Transcript("", error="the encoder gave no finite vector", seconds=seconds)
        return made


@contextmanager
def sentences(what: str) -> Iterator[None]:
    """Whatever a component raises, as a `ModelError` that begins with `what`; errors of squtr stay as they are.

    A user's own class may raise anything. Its configs fail with a sentence, the others go on.
    """
    try:
        yield
    except SqutrError:
        raise
    except Exception as error:
        raise ModelError(
            f"{what} failed: {type(error).__name__}: {error}.",
            hint="Mend it, then run the evaluation again: what was done is kept.",
        ) from error


def checked_transcript(transcript: object) -> Transcript:
    """A transcript that can be kept: text that is text, log-probabilities that are numbers."""
    if not isinstance(transcript, Transcript):
        raise TypeError(f"it gave {type(transcript).__name__} instead of Transcript")
    if transcript.error:
        return replace(transcript, text="", hypotheses=())
    best = tuple(replace(h, text=_written(h.text)) for h in transcript.hypotheses)
    for hypothesis in best:
        if not math.isfinite(hypothesis.score):
            raise ValueError(f"the hypothesis {hypothesis.text[:80]!r} has the log-probability {hypothesis.score}")
    return replace(transcript, text=_written(transcript.text), hypotheses=best)


def _written(text: str) -> str:
    """`text`, with what no file can hold (halves of surrogate pairs that have no other half) replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _rows(vectors: Vector) -> list[Vector]:
    if vectors.ndim != 2:
        raise ValueError(f"it gave vectors of shape {vectors.shape}")
    return list(vectors)


def _enhanced(front_end: FrontEnd, clips: Mapping[str, Samples]) -> tuple[dict[str, Samples], dict[str, Transcript]]:
    """The enhanced clips, and a failed transcript for each that the front end could not work on."""
    enhanced: dict[str, Samples] = {}
    failed: dict[str, Transcript] = {}
    try:
        enhanced = dict(zip(clips, _worked_on(front_end, list(clips.values())), strict=True))
    except AudioError:
        # One clip of them: each is tried alone.
        for digest, clip in clips.items():
            try:
                (enhanced[digest],) = _worked_on(front_end, [clip])
            except AudioError as error:
                failed[digest] = Transcript("", error=f"{front_end.spec.name}: {error.message}")
    for digest in [digest for digest, clip in enhanced.items() if not np.isfinite(clip).all()]:
        del enhanced[digest]
        failed[digest] = Transcript("", error=f"{front_end.spec.name} gave samples that are not finite")
    return enhanced, failed


def _worked_on(front_end: FrontEnd, clips: list[Samples]) -> list[Samples]:
    with sentences(f"{front_end.spec.name} on {len(clips)} clips"):
        enhanced = front_end.enhance(clips)
    if [clip.shape for clip in enhanced] != [clip.shape for clip in clips]:
        raise ModelError(
            f"{front_end.spec.name} changed the lengths of {len(clips)} clips.",
            hint="A front end must give as many samples as it was given.",
        )
    return enhanced
