"""Systems of the harness as models of `mteb`.

A retriever and a cascade search by themselves (mteb's `SearchProtocol`), so their rankings are those of
`squtr evaluate`; an encoder of texts, or of sound and texts, is an encoder of mteb, for any of its tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import AudioError, UsageError
from ...loaders.audio import resample, to_pcm16
from ...loaders.records import Document, Samples
from ..pipeline.listening import Ear
from ..protocols import AudioTextEncoder, FrontEnd, Retriever, TextEncoder, Transcriber, Transcript
from ..store import Store
from ..text.script import fold_script
from .catalogue import LANGUAGE_NAMES, language_of
from .meta import Description, model_fields
from .search import Rankings, strict_scores
from .versions import load_bridge

if TYPE_CHECKING:
    from datasets import Dataset

Role = Literal["query", "document"]
CLIPS_PER_STEP = 64
TEXTS_PER_STEP = 4096


def mteb_model(
    system: Any, *, cache: Path | str | None = None, name: str = "", meta: Mapping[str, Any] | None = None
) -> Any:
    """A system of the harness as a model that `mteb.evaluate` takes.

    `system` is a cascade, an end-to-end system, a retriever, a `TextEncoder`, an `AudioTextEncoder`, or the short form
    of one ("whisper-base + bm25", "bm25", "sentence-transformers:all-minilm-l6-v2"). A cascade and a retriever search
    by themselves, a dense one too; encoders become encoders of mteb, for any of its tasks. With `cache`, transcripts
    are kept in that folder, together with those of `squtr evaluate`. `name` replaces the name; `meta` adds fields of
    mteb's `ModelMeta` that are not known here (`n_parameters`, `license`, `release_date`, …).

    Raises `UsageError` for what is no system or cannot search without knowing query and condition (ready transcripts,
    ready runs), and `MissingExtraError` without mteb.
    """
    load_bridge()
    folder = Path(cache) if cache is not None else None
    opened: Any = _parsed(system, folder) if isinstance(system, str) else system
    if hasattr(opened, "transcriber") and hasattr(opened, "retriever"):
        return CascadeModel(opened, cache=folder, name=name, meta=meta)
    if hasattr(opened, "index") and hasattr(opened, "search"):
        return RetrieverModel(cast(Retriever, opened), name=name, meta=meta)
    front_end: FrontEnd | None = None
    if hasattr(opened, "encoder") and not hasattr(opened, "encode"):
        front_end, name, opened = opened.front_end, name or opened.name, opened.encoder
    if hasattr(opened, "encode_audio"):
        return AudioTextModel(cast(AudioTextEncoder, opened), front_end=front_end, name=name, meta=meta)
    if hasattr(opened, "encode"):
        return TextModel(cast(TextEncoder, opened), name=name, meta=meta)
    raise UsageError(
        f"{type(opened).__name__} is no system that mteb can run: it neither searches nor encodes.",
        hint="Give a cascade, an end-to-end system, a retriever or an encoder. Of a ready run, export the results:"
        " squtr export --format mteb RUN --out DIR.",
    )


def _parsed(text: str, cache: Path | None) -> object:
    """A system, a retriever alone, or a text encoder alone, by its short form."""
    from ..backends import ENCODERS, RETRIEVERS, load_text_encoder
    from ..systems.reading import cached_retriever, parse_system

    backend = text.partition(":")[0].partition("(")[0].strip()
    if "+" not in text and backend in {*RETRIEVERS, "rrf", "score"} - {"trec"}:
        return cached_retriever(text, cache)
    if "+" not in text and backend in ENCODERS:
        return load_text_encoder(text)
    return parse_system(text, cache=cache)


class _Model:
    """What all have: metadata, made once."""

    def __init__(self, description: Description, meta: Mapping[str, Any] | None) -> None:
        self.description = description
        self._meta: Any = load_bridge().model_meta({**model_fields(description), **dict(meta or {})})

    @property
    def mteb_model_meta(self) -> Any:
        """mteb's `ModelMeta`."""
        return self._meta


class RetrieverModel(_Model):
    """A retriever for typed queries, lexical or other, through `index` and `search`."""

    def __init__(
        self,
        retriever: Retriever,
        *,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        description: Description | None = None,
    ) -> None:
        spec = retriever.spec
        own = Description(name or spec.name, {"retriever": spec.as_dict()}, _languages(retriever), audio=False)
        super().__init__(description or own, meta)
        self._retriever = retriever
        self._corpus: Dataset | None = None
        self._indexed = ""

    def index(self, corpus: Dataset, *, task_metadata: Any, hf_subset: str, **_: Any) -> None:
        """Index the corpus, unless it is the one that is indexed already."""
        language = _language(task_metadata, hf_subset)
        if corpus is self._corpus and self._indexed.endswith(f"-{language}"):
            return
        ids, texts = list(corpus["id"]), list(corpus["text"])
        titles = list(corpus["title"]) if "title" in corpus.column_names else [""] * len(ids)
        documents = [Document(i, title or "", text) for i, title, text in zip(ids, titles, texts, strict=True)]
        digest = f"{_corpus_digest(documents)}-{language}"
        if digest != self._indexed:
            self._indexed = ""
            self._retriever.index(documents, language=language)
        self._corpus, self._indexed = corpus, digest

    def search(
        self, queries: Dataset, *, task_metadata: Any, hf_subset: str, top_k: int, top_ranked: Any = None, **_: Any
    ) -> Rankings:
        """Scores by query id and document id; a query that finds nothing has an empty ranking."""
        if top_ranked is not None:
            raise UsageError(
                f"{self.description.name} searches a whole corpus; it cannot rerank the candidates of"
                f" {task_metadata.name}.",
                hint="Choose a retrieval task.",
            )
        texts = self._texts(queries, _language(task_metadata, hf_subset))
        distinct = list(dict.fromkeys(texts))
        found = dict(zip(distinct, self._retriever.search(distinct, k=top_k), strict=True))
        return {id_: strict_scores(found[text]) for id_, text in zip(queries["id"], texts, strict=True)}

    def _texts(self, queries: Dataset, language: str) -> list[str]:
        """What is searched with, one per query."""
        del language
        if "text" not in queries.column_names:
            raise UsageError(
                f"{self.description.name} searches with typed queries; these have {', '.join(queries.column_names)}.",
                hint="Choose the typed control, or give a cascade: squtr.mteb_model('whisper-base + bm25').",
            )
        return list(queries["text"])


class CascadeModel(RetrieverModel):
    """A transcriber and a retriever: spoken queries are transcribed, each sound once; typed ones taken as they are."""

    def __init__(
        self, cascade: Any, *, cache: Path | None = None, name: str = "", meta: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(_searching(cascade), description=cascade_description(cascade, name), meta=meta)
        self._cascade = cascade
        self._transcriber: Transcriber = cascade.transcriber
        self._front_end: FrontEnd | None = getattr(cascade, "front_end", None)
        self._heard: dict[tuple[str, str], Transcript] = {}
        self._store = Store(cache) if cache is not None else None

    def _texts(self, queries: Dataset, language: str) -> list[str]:
        if "audio" not in queries.column_names:
            return super()._texts(queries, language)
        folding = self._cascade.folding(language)
        texts: list[str] = []
        for clips in _clips(queries):
            for transcript in self._transcribe(clips, language):
                texts.append(transcript.text if folding == "none" else fold_script(transcript.text, "simplified"))
        return texts

    def _transcribe(self, clips: Sequence[tuple[str, Samples, int]], language: str) -> list[Transcript]:
        digests = [_sound_digest(samples, rate, name) for name, samples, rate in clips]
        # The key under which `squtr evaluate` keeps transcripts.
        listener = Ear(self._transcriber, self._front_end).key
        unheard = [d for d in dict.fromkeys(digests) if (d, language) not in self._heard]
        if unheard and self._store is not None:
            known = self._store.transcripts(unheard, language=language, listener=listener)
            self._heard |= {(digest, language): transcript for digest, transcript in known.items()}
            unheard = [digest for digest in unheard if digest not in known]
        sounds = {digest: clip for digest, clip in zip(digests, clips, strict=True) if digest in unheard}
        ready: dict[str, Samples] = {}
        for digest, (name, samples, rate) in sounds.items():
            try:
                ready[digest] = enhanced(samples, rate, self._front_end, self._transcriber.sample_rate)
            except AudioError as error:
                self._heard[digest, language] = Transcript("", error=f"{name}: {error.message}")
        if ready:
            made = self._transcriber.transcribe(list(ready.values()), language=language)
            heard = dict(zip(ready, made, strict=True))
            self._heard |= {(digest, language): transcript for digest, transcript in heard.items()}
            if self._store is not None:
                lengths = {digest: len(sounds[digest][1]) / sounds[digest][2] for digest in heard}
                self._store.keep_heard(
                    {}, {d: (t, lengths[d]) for d, t in heard.items()}, language=language, listener=listener
                )
        return [self._heard[digest, language] for digest in digests]


class _EncoderModel(_Model):
    """What mteb's encoders have beside `encode`: cosines of rows of unit length; a row of NaN is like nothing."""

    def similarity(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """(N, M) cosines of (N, D) and (M, D)."""
        return _no_likeness(np.atleast_2d(_plain(embeddings1)) @ np.atleast_2d(_plain(embeddings2)).T)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """(N,) cosines of (N, D) and (N, D), row by row."""
        return _no_likeness(np.sum(_plain(embeddings1) * _plain(embeddings2), axis=1))


class TextModel(_EncoderModel):
    """A text encoder."""

    def __init__(self, encoder: TextEncoder, *, name: str = "", meta: Mapping[str, Any] | None = None) -> None:
        components = {"encoder": encoder.spec.as_dict()}
        super().__init__(Description(name or encoder.spec.name, components, _languages(encoder), audio=False), meta)
        self._encoder = encoder

    def encode(self, inputs: Any, *, prompt_type: Any = None, **_: Any) -> NDArray[np.float32]:
        """(N, D) float32 for a data loader of N rows with `text`; without a prompt type they are queries."""
        return _encoded_texts(self._encoder, (text for batch in inputs for text in batch["text"]), prompt_type)


class AudioTextModel(_EncoderModel):
    """An encoder of sound and texts into one space."""

    def __init__(
        self,
        encoder: AudioTextEncoder,
        *,
        front_end: FrontEnd | None = None,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        components = {"encoder": encoder.spec.as_dict()}
        if front_end is not None:
            components["front_end"] = front_end.spec.as_dict()
        super().__init__(Description(name or encoder.spec.name, components, _languages(encoder), audio=True), meta)
        self._encoder, self._front_end = encoder, front_end

    def encode(
        self, inputs: Any, *, task_metadata: Any, hf_subset: str, prompt_type: Any = None, **_: Any
    ) -> NDArray[np.float32]:
        """(N, D) float32 for a data loader of N rows with `audio` or `text`; NaN for sound that cannot be encoded."""
        texts: list[str] = []
        parts: list[NDArray[np.float32]] = []
        for batch in inputs:
            if "audio" not in batch:
                texts += batch["text"]
                continue
            clips = [(item["array"], int(item["sampling_rate"])) for item in batch["audio"]]
            parts.append(self._heard(clips, _language(task_metadata, hf_subset)))
        return np.concatenate(parts) if parts else _encoded_texts(self._encoder, iter(texts), prompt_type)

    def _heard(self, clips: Sequence[tuple[Any, int]], language: str) -> NDArray[np.float32]:
        ready: dict[int, Samples] = {}
        for i, (array, rate) in enumerate(clips):
            try:
                ready[i] = enhanced(_mono(array), rate, self._front_end, self._encoder.sample_rate)
            except AudioError:
                continue  # its row stays NaN, which finds nothing
        vectors = self._encoder.encode_audio(list(ready.values()), language=language)
        rows = np.full((len(clips), vectors.shape[1]), np.nan, dtype=np.float32)
        rows[list(ready)] = vectors
        return rows


def cascade_description(cascade: Any, name: str = "") -> Description:
    """What a cascade says of itself."""
    front_end = getattr(cascade, "front_end", None)
    components = {
        **({"front_end": front_end.spec.as_dict()} if front_end is not None else {}),
        "transcriber": cascade.transcriber.spec.as_dict(),
        "retriever": cascade.retriever.spec.as_dict(),
    }
    settings = {} if cascade.script == "auto" else {"script": cascade.script}
    return Description(name or cascade.name, components, _languages(cascade), audio=True, settings=settings)


def enhanced(samples: Samples, rate: int, front_end: FrontEnd | None, target: int) -> Samples:
    """(T,) float32 at `rate` Hz as a model hears it: through the front end, then at `target` Hz."""
    if front_end is None:
        return resample(samples, rate, target)
    heard = front_end.enhance([resample(samples, rate, front_end.sample_rate)])[0]
    return resample(heard, front_end.sample_rate, target)


def _searching(cascade: Any) -> Retriever:
    """The retriever of a cascade, if it can be run on sound alone."""
    if not hasattr(cascade.transcriber, "transcribe") or not hasattr(cascade.retriever, "search"):
        raise UsageError(
            f"{cascade.name} looks up what was made elsewhere by query and condition, which no model of mteb is told.",
            hint="Export its results instead: squtr export --format mteb RUN --out DIR.",
        )
    if getattr(cascade, "n_best", 1) > 1:
        raise UsageError(
            f"{cascade.name} searches with several transcripts per query, which is not offered through mteb.",
            hint="Evaluate it with `squtr evaluate` and export the results, or set n_best to 1.",
        )
    return cast(Retriever, cascade.retriever)


def _languages(part: Any) -> list[str]:
    """The languages of the benchmark that it was made for."""
    return [language for language in LANGUAGE_NAMES if part.supports(language)]


def _language(task_metadata: Any, hf_subset: str) -> str:
    tags = task_metadata.eval_langs
    return language_of(tags.get(hf_subset, []) if isinstance(tags, Mapping) else tags)


def _corpus_digest(documents: Sequence[Document]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.id, document.title, document.text):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big"))
            digest.update(encoded)
    return digest.hexdigest()


def _clips(queries: Dataset) -> Iterator[list[tuple[str, Samples, int]]]:
    """Name, samples and rate in Hz of the queries' sound, in steps."""
    step: list[tuple[str, Samples, int]] = []
    for row in queries:
        step.append((f"query {row['id']!r}", _mono(row["audio"]["array"]), int(row["audio"]["sampling_rate"])))
        if len(step) == CLIPS_PER_STEP:
            yield step
            step = []
    if step:
        yield step


def _mono(array: Any) -> Samples:
    """(T,) float32. Raises `AudioError` for several channels: they are never averaged, because they may cancel."""
    samples = np.asarray(array, dtype=np.float32)
    if samples.ndim > 1 and samples.shape[0] == 1:
        samples = samples[0]
    if samples.ndim != 1:
        raise AudioError(f"a sound has shape {samples.shape} instead of (T,).", hint="Choose one channel.")
    return samples


def _sound_digest(samples: Samples, rate: int, name: str) -> str:
    """The digest of a sound as 16-bit samples, by which `squtr evaluate` keeps transcripts too.

    A sound beyond 16 bits' range, which only other tasks of mteb can have, goes by its float samples.
    """
    digest = hashlib.sha256(f"{rate}\n".encode())
    try:
        digest.update(np.ascontiguousarray(to_pcm16(samples, name)).tobytes())
    except AudioError:
        digest.update(b"float32\n" + np.ascontiguousarray(samples).tobytes())
    return digest.hexdigest()


def _encoded_texts(
    encoder: TextEncoder | AudioTextEncoder, texts: Iterator[str], prompt_type: Any
) -> NDArray[np.float32]:
    """(N, D) float32."""
    role: Role = "document" if getattr(prompt_type, "value", prompt_type) == "document" else "query"
    every = list(texts)
    steps = range(0, max(len(every), 1), TEXTS_PER_STEP)
    return np.concatenate([encoder.encode(every[start : start + TEXTS_PER_STEP], role=role) for start in steps])


def _plain(vectors: Any) -> NDArray[np.float32]:
    return np.asarray(vectors.detach().cpu() if hasattr(vectors, "detach") else vectors, dtype=np.float32)


def _no_likeness(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """NaN, from a row that could not be encoded, as minus infinity: no hit."""
    return np.where(np.isnan(cosines), np.float32(-np.inf), cosines)
