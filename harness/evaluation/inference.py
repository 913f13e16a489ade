"""A model that takes audio, at work on clips: what it gives, checked and kept, and which clips failed."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import AudioError, ModelError, SqutrError
from ...loaders.audio import resample
from ...loaders.records import Samples, SpokenQuery
from ...loaders.text import valid_text
from ..components.raised import sentences
from ..protocols import AudioTextEncoder, FrontEnd, PrecomputedTranscripts, Rewritten, Transcriber, Transcript
from ..systems.system import System
from .tools import Tools

if TYPE_CHECKING:
    from .shards import LoadedShard

Vector = NDArray[np.float32]
Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Inferred:
    """A row without its audio, with what was inferred from it; an encoder's transcript is empty, or says why it failed.

    `audio_sha256` is "" where the audio was not used (precomputed transcripts and runs). `rewritten` is what a rewriter
    made of the transcript, None without one.
    """

    row: SpokenQuery
    audio_sha256: str
    transcript: Transcript
    rewritten: Rewritten | None = None

    @property
    def error(self) -> str:
        """Why there is nothing to search with, "" if there is."""
        rewriting = "" if self.rewritten is None or not self.rewritten.error else self.rewritten.error
        return self.transcript.error or (f"the rewriter failed: {rewriting}" if rewriting else "")


@dataclass(frozen=True, slots=True)
class AudioModel:
    """A transcriber or an encoder of audio, behind a front end or not."""

    model: Transcriber | AudioTextEncoder
    front_end: FrontEnd | None = None

    @property
    def key(self) -> str:
        """What its outputs are kept by: the fingerprint of the model, with that of the front end."""
        own = self.model.spec.fingerprint
        return own if self.front_end is None else f"{own}-{self.front_end.spec.fingerprint}"

    @property
    def name(self) -> str:
        own = self.model.spec.name
        return own if self.front_end is None else f"{self.front_end.spec.name} | {own}"

    @property
    def sample_rate(self) -> int:
        """The rate in Hz at which it wants clips: that of the front end, where there is one."""
        return self.model.sample_rate if self.front_end is None else self.front_end.sample_rate

    @property
    def transcriber(self) -> Transcriber | None:
        return cast(Transcriber, self.model) if hasattr(self.model, "transcribe") else None

    @property
    def encoder(self) -> AudioTextEncoder | None:
        return None if hasattr(self.model, "transcribe") else self.model


@dataclass(frozen=True, slots=True)
class Precomputed:
    transcripts: PrecomputedTranscripts | None

    @property
    def key(self) -> str:
        return "none" if self.transcripts is None else self.transcripts.spec.fingerprint

    @property
    def name(self) -> str:
        return "precomputed runs" if self.transcripts is None else self.transcripts.spec.name


def model_of(system: System, language: str) -> AudioModel | Precomputed:
    """What a system infers with in a language."""
    plain = system.for_language(language)
    front_end = cast("FrontEnd | None", plain.front_end)
    if plain.encoder is not None:
        return AudioModel(cast(AudioTextEncoder, plain.encoder), front_end)
    if plain.model_transcriber is not None:
        return AudioModel(plain.model_transcriber, front_end)
    return Precomputed(plain.precomputed_transcripts)


@dataclass(slots=True)
class Outputs:
    """What one model gave for its cells, or why it failed on a cell; vectors of an encoder by PCM digest.

    `seconds` is the time spent in its inference, `waiting_s` the part in which the model waited for audio.
    """

    cells: dict[Cell, list[Inferred]] = field(default_factory=dict)
    failed: dict[Cell, SqutrError] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    seconds: float = 0.0
    waiting_s: float = 0.0

    def of(self, cell: Cell) -> list[Inferred]:
        """The rows of a cell. Raises why the model failed on it."""
        if cell in self.failed:
            raise self.failed[cell]
        return self.cells[cell]


class Inference:
    """One model at work in one language; `busy` once it was given a clip."""

    def __init__(self, model: AudioModel, language: str, tools: Tools, found: Outputs) -> None:
        self.busy = False
        self.model = model
        self._language, self._tools = language, tools
        self._vectors = found.vectors
        self._done: dict[str, Transcript] = {}
        self._space = f"{model.key}-audio-{language}"

    def known_clips(self, files: Sequence[str]) -> Mapping[str, str]:
        """The PCM digests of these files (sha256), as far as they are known."""
        return {} if self._tools.store is None else self._tools.store.clips(files)

    def known(self, digests: Sequence[str]) -> Mapping[str, Transcript]:
        """The known transcripts of these clips; of an encoder, if the vector is there too."""
        store = self._tools.store
        if store is None:
            return {}
        known = store.transcripts(digests, language=self._language, model=self.model.key)
        if self.model.encoder is None or not known:
            return known
        if self._tools.embeddings is None:
            return {}
        vectors = self._tools.embeddings.get_many(self._space, list(known))
        self._vectors.update(vectors)
        return {digest: transcript for digest, transcript in known.items() if digest in vectors}

    def infer(self, loaded: LoadedShard) -> list[Inferred]:
        """The shard's rows with what the model gave for them, kept before it is returned."""
        durations = {d: q.duration_s for d, q in zip(loaded.digests, loaded.shard.rows, strict=True)}
        # Shards are loaded ahead: the same audio may have been in one before.
        before = {digest: self._done[digest] for digest in loaded.clips if digest in self._done}
        new = {digest: clip for digest, clip in loaded.clips.items() if digest not in before}
        self.busy = self.busy or bool(new)
        made = infer_clips(self.model, new, self._language, self._vectors) if new else {}
        self._done.update(made)
        store = self._tools.store
        if store is not None:
            if self.model.encoder is not None and self._tools.embeddings is not None:
                done = [digest for digest, transcript in made.items() if not transcript.error]
                if done:
                    self._tools.embeddings.put_many(self._space, done, np.stack([self._vectors[d] for d in done]))
            store.keep_transcripts(
                loaded.files,
                {digest: (transcript, durations[digest]) for digest, transcript in made.items()},
                language=self._language,
                model=self.model.key,
            )
        known = {**loaded.known, **loaded.failed, **before, **made}
        return [
            Inferred(row, digest, known[digest]) for row, digest in zip(loaded.shard.rows, loaded.digests, strict=True)
        ]


def infer_clips(
    model: AudioModel, clips: Mapping[str, Samples], language: str, vectors: dict[str, Vector] | None = None
) -> dict[str, Transcript]:
    """The transcripts of clips at `model.sample_rate`, by their keys; an encoder's vectors go into `vectors`."""
    kept = dict(clips)
    failed: dict[str, Transcript] = {}
    front_s = 0.0
    if model.front_end is not None:
        started = time.perf_counter()
        kept, failed = _enhanced(model.front_end, kept)
        kept = {d: resample(clip, model.sample_rate, model.model.sample_rate) for d, clip in kept.items()}
        front_s = (time.perf_counter() - started) / max(1, len(kept))
    answers = _outputs(model, list(kept.values()), language) if kept else []
    made: dict[str, Transcript] = {}
    for digest, answer in zip(kept, answers, strict=True):
        if isinstance(answer, Transcript):
            made[digest] = answer
            continue
        vector, seconds = answer
        finite = bool(np.isfinite(vector).all())
        if finite and vectors is not None:
            vectors[digest] = vector
        made[digest] = Transcript("", error="" if finite else "the encoder gave no finite vector", seconds=seconds)
    return {digest: replace(t, front_end_seconds=front_s) for digest, t in made.items()} | failed


def _outputs(model: AudioModel, clips: list[Samples], language: str) -> list[Transcript | tuple[Vector, float]]:
    spec = model.model.spec
    started = time.perf_counter()
    answers: list[Transcript] | list[Vector] = []
    with sentences(f"{spec.name} on {len(clips)} clips in {language!r}"):
        if model.transcriber is not None:
            answers = [checked_transcript(t) for t in model.transcriber.transcribe(clips, language=language)]
        elif model.encoder is not None:
            answers = _rows(np.asarray(model.encoder.encode_audio(clips, language=language), dtype=np.float32))
    if len(answers) != len(clips):
        raise ModelError(
            f"{spec.name} gave {len(answers)} outputs for {len(clips)} clips.",
            hint="It must give one per clip, in order.",
        )
    seconds = (time.perf_counter() - started) / len(clips)
    return [a if isinstance(a, Transcript) else (a, seconds) for a in answers]


def checked_transcript(transcript: object) -> Transcript:
    if not isinstance(transcript, Transcript):
        raise TypeError(f"it gave {type(transcript).__name__} instead of Transcript")
    if transcript.error:
        return replace(transcript, text="", hypotheses=())
    best = tuple(replace(h, text=valid_text(h.text)) for h in transcript.hypotheses)
    for hypothesis in best:
        if not math.isfinite(hypothesis.score):
            raise ValueError(f"the hypothesis {hypothesis.text[:80]!r} has the log-probability {hypothesis.score}")
    if not (math.isnan(transcript.confidence) or 0 <= transcript.confidence <= 1):
        raise ValueError(f"the transcript {transcript.text[:80]!r} has the confidence {transcript.confidence}")
    return replace(transcript, text=valid_text(transcript.text), hypotheses=best)


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
