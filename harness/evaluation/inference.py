"""A model that takes audio, at work on clips: what it gives, checked and kept, and which clips failed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import SqutrError
from ...loaders.audio import resample
from ...loaders.records import Samples, SpokenQuery
from ..components import checked
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
        self._checked = False
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
        names = {
            d: f"query {q.id!r} of {q.subset} under {q.condition}"
            for d, q in zip(loaded.digests, loaded.shard.rows, strict=True)
        }
        made = infer_clips(self.model, new, self._language, self._vectors, names) if new else {}
        if made and self.model.encoder is not None and not self._checked:
            of_one = [self._vectors[digest] for digest, transcript in made.items() if not transcript.error][:1]
            if of_one:
                checked.check_space(self.model.encoder, np.stack(of_one), "encode_audio")
                self._checked = True
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
    model: AudioModel,
    clips: Mapping[str, Samples],
    language: str,
    vectors: dict[str, Vector] | None = None,
    names: Mapping[str, str] | None = None,
) -> dict[str, Transcript]:
    """The transcripts of clips at `model.sample_rate`, by their keys; an encoder's vectors go into `vectors`.

    `names` are those of the clips in errors.
    """
    called, kept = names or {}, dict(clips)
    failed: dict[str, Transcript] = {}
    front_s = 0.0
    if model.front_end is not None:
        started = time.perf_counter()
        kept, why = checked.enhance_each(model.front_end, kept, called)
        failed = {key: Transcript("", error=error) for key, error in why.items()}
        kept = {d: resample(clip, model.sample_rate, model.model.sample_rate) for d, clip in kept.items()}
        front_s = (time.perf_counter() - started) / max(1, len(kept))
    made = _outputs(model, kept, language, vectors, called) if kept else {}
    return {digest: replace(t, front_end_seconds=front_s) for digest, t in made.items()} | failed


def _outputs(
    model: AudioModel,
    clips: Mapping[str, Samples],
    language: str,
    vectors: dict[str, Vector] | None,
    called: Mapping[str, str],
) -> dict[str, Transcript]:
    names, given = checked.clip_names(clips, called), list(clips.values())
    if model.transcriber is not None:
        found = checked.transcribe(model.transcriber, given, language=language, names=names)
        return dict(zip(clips, found, strict=True))
    started = time.perf_counter()
    encoder = cast(AudioTextEncoder, model.encoder)
    rows = checked.encode_audio(encoder, given, language=language, names=names)
    seconds = (time.perf_counter() - started) / len(clips)
    made: dict[str, Transcript] = {}
    for key, row in zip(clips, rows, strict=True):
        finite = bool(np.isfinite(row).all())
        if finite and vectors is not None:
            vectors[key] = row
        made[key] = Transcript("", error="" if finite else "the encoder gave no finite vector", seconds=seconds)
    return made
