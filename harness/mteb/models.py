"""Systems of the harness as models of `mteb`.

A retriever and a cascade search by themselves (mteb's `SearchProtocol`), so their rankings are those of
`squtr evaluate`; an encoder of texts, or of sound and texts, is an encoder of mteb, for any of its tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import AudioError, UsageError
from ...loaders.audio import to_pcm16
from ...loaders.records import Document, Samples
from ..components.retrievers.fusion import Method, fuse_hypotheses
from ..evaluation.asking import Asked, search_texts
from ..evaluation.demands import is_composite
from ..evaluation.evaluate import Options
from ..evaluation.listeners import Ear
from ..evaluation.store import Store
from ..protocols import AudioTextEncoder, FrontEnd, Hit, Retriever, TextEncoder, Transcriber, Transcript
from .encoder_models import AudioTextModel, TextModel
from .meta import Description, system_settings
from .model_common import Model, as_heard, languages_of, mono, task_language
from .search import Rankings, strict_scores
from .versions import load_bridge

if TYPE_CHECKING:
    from datasets import Dataset

    from ..systems.system import Cascade

__all__ = ["AudioTextModel", "CascadeModel", "RetrieverModel", "TextModel", "mteb_model"]

CLIPS_PER_STEP = 64
DEPTH = Options().depth
"""Documents that `squtr evaluate` retrieves if it is not told otherwise."""


def mteb_model(
    system: Any,
    *,
    cache: Path | str | None = None,
    name: str = "",
    meta: Mapping[str, Any] | None = None,
    depth: int = DEPTH,
) -> Any:
    """A system of the harness as a model that `mteb.evaluate` takes.

    `system` is a cascade, an end-to-end system, a retriever, a `TextEncoder`, an `AudioTextEncoder`, or the short form
    of one ("whisper-base + bm25", "bm25", "sentence-transformers:all-minilm-l6-v2"). A cascade and a retriever search
    by themselves. Encoders become encoders of mteb, for any of its tasks; so does the encoder of a dense retriever that
    stands alone and compares exactly. With `cache`, transcripts are kept in that folder, together with those of
    `squtr evaluate`. `name` replaces the name; `meta` adds fields of mteb's `ModelMeta` that are not known here
    (`n_parameters`, `license`, `release_date`, …). `depth` is how many documents a system retrieves whose ranking
    depends on it (it fuses rankings, or reranks), as `--depth` of `squtr evaluate`; others give as many as mteb asks
    for.

    Raises `UsageError` for what is no system or cannot search without knowing query and condition (ready transcripts,
    ready runs), and `MissingExtraError` without mteb.
    """
    load_bridge()
    if depth < 1:
        raise UsageError(f"the depth is {depth}.", hint="Give at least 1.")
    folder = Path(cache) if cache is not None else None
    opened: Any = _parsed(system, folder) if isinstance(system, str) else system
    if hasattr(opened, "transcriber") and hasattr(opened, "retriever"):
        return CascadeModel(opened, cache=folder, name=name, meta=meta, depth=depth)
    if hasattr(opened, "index") and hasattr(opened, "search"):
        alone = _encoder_of(opened)
        if alone is None:
            return RetrieverModel(cast(Retriever, opened), name=name, meta=meta, depth=depth)
        opened = alone
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
    from ..components import AUDIO_TEXT_ENCODERS, ENCODERS, RETRIEVERS, load_text_encoder
    from ..systems.reading import cached_retriever, parse_system

    if "+" not in text and "|" not in text:
        stages = text.partition(">")[0].partition("(")[0]
        backend = stages.partition(":")[0].strip()
        if backend in {*RETRIEVERS, "rrf", "score"} - {"trec"}:
            return cached_retriever(text, cache)
        # A name of both tables is an encoder of sound and text, as it is for `squtr evaluate`.
        if backend in ENCODERS and backend not in AUDIO_TEXT_ENCODERS:
            return load_text_encoder(text)
    return parse_system(text, cache=cache)


def _encoder_of(retriever: Any) -> TextEncoder | AudioTextEncoder | None:
    """The encoder of a dense retriever that ranks by its vectors alone; None of any other."""
    if retriever.spec.settings.get("similarity") != "cosine" or {"storage", "search"} & set(retriever.spec.settings):
        return None
    encoder: TextEncoder | AudioTextEncoder | None = getattr(retriever, "encoder", None)
    return encoder


class RetrieverModel(Model):
    """A retriever for typed queries, lexical or other, through `index` and `search`."""

    def __init__(
        self,
        retriever: Retriever,
        *,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        depth: int = DEPTH,
        description: Description | None = None,
    ) -> None:
        spec = retriever.spec
        fuses = is_composite(retriever)
        own = Description(
            name or spec.name,
            {"retriever": spec.as_dict()},
            languages_of(retriever),
            audio=False,
            settings=system_settings(depth=depth if fuses else 0),
        )
        super().__init__(description or own, meta)
        self._retriever = retriever
        # What is fused or reranked depends on how much is looked at, so that is the same as in `squtr evaluate`.
        self._most = depth if fuses else None
        self._corpus: Dataset | None = None
        self._indexed = ""

    def index(self, corpus: Dataset, *, task_metadata: Any, hf_subset: str, **_: Any) -> None:
        """Index the corpus, unless it is the one that is indexed already."""
        language = task_language(task_metadata, hf_subset)
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
        asked = self._asked(queries, task_language(task_metadata, hf_subset))
        distinct = list(dict.fromkeys(text for query in asked for text in query.texts))
        k = top_k if self._most is None else min(top_k, self._most)
        found = dict(zip(distinct, self._retriever.search(distinct, k=k), strict=True))
        rankings = [self._ranking(query, [found[text] for text in query.texts], k) for query in asked]
        return {id_: strict_scores(hits) for id_, hits in zip(queries["id"], rankings, strict=True)}

    def _asked(self, queries: Dataset, language: str) -> list[Asked]:
        """What is searched with, per query."""
        del language
        if "text" not in queries.column_names:
            raise UsageError(
                f"{self.description.name} searches with typed queries; these have {', '.join(queries.column_names)}.",
                hint="Choose the typed control, or give a cascade: squtr.mteb_model('whisper-base + bm25').",
            )
        return [Asked((text,), (0.0,)) for text in queries["text"]]

    def _ranking(self, asked: Asked, found: Sequence[Sequence[Hit]], k: int) -> Sequence[Hit]:
        """The ranking of one query, from those of its texts."""
        del asked, k
        return found[0]


class CascadeModel(RetrieverModel):
    """A transcriber and a retriever: spoken queries are transcribed, each sound once; typed ones taken as they are.

    With several transcripts per query (`n_best`), each is searched with and their rankings are fused.
    """

    def __init__(
        self,
        cascade: Cascade,
        *,
        cache: Path | None = None,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        depth: int = DEPTH,
    ) -> None:
        transcriber, retriever = _listening_and_searching(cascade)
        description = cascade_description(cascade, name, depth)
        super().__init__(retriever, description=description, meta=meta, depth=depth)
        if cascade.n_best > 1:
            self._most = depth
        self._cascade = cascade
        self._transcriber = transcriber
        self._front_end = cascade.front_end
        self._heard: dict[tuple[str, str], Transcript] = {}
        self._store = Store(cache) if cache is not None else None

    def _asked(self, queries: Dataset, language: str) -> list[Asked]:
        if "audio" not in queries.column_names:
            return super()._asked(queries, language)
        return [
            search_texts(self._cascade, transcript, language)
            for clips in _clips(queries)
            for transcript in self._transcribe(clips, language)
        ]

    def _ranking(self, asked: Asked, found: Sequence[Sequence[Hit]], k: int) -> Sequence[Hit]:
        if len(found) == 1:
            return found[0]
        return fuse_hypotheses(found, asked.scores, method=cast(Method, self._cascade.n_best_fusion), k=k)

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
                ready[digest] = as_heard(samples, rate, self._front_end, self._transcriber.sample_rate)
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


def cascade_description(cascade: Cascade, name: str = "", depth: int = DEPTH) -> Description:
    """What a cascade says of itself."""
    transcriber, retriever = _listening_and_searching(cascade)
    front_end = {} if cascade.front_end is None else {"front_end": cascade.front_end.spec.as_dict()}
    languages = languages_of(cascade)
    fuses = cascade.n_best > 1 or is_composite(retriever)
    return Description(
        name or cascade.name,
        {**front_end, "transcriber": transcriber.spec.as_dict(), "retriever": retriever.spec.as_dict()},
        languages,
        audio=True,
        settings=system_settings(
            scripts={language: cascade.folding(language) for language in languages},
            n_best=cascade.n_best,
            n_best_fusion=cascade.n_best_fusion,
            depth=depth if fuses else 0,
        ),
    )


def _listening_and_searching(cascade: Cascade) -> tuple[Transcriber, Retriever]:
    """The parts of a cascade, if it can be run on sound alone."""
    if cascade.listener is None or cascade.searcher is None:
        raise UsageError(
            f"{cascade.name} looks up what was made elsewhere by query and condition, which no model of mteb is told.",
            hint="Export its results instead: squtr export --format mteb RUN --out DIR.",
        )
    return cascade.listener, cascade.searcher


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
        step.append((f"query {row['id']!r}", mono(row["audio"]["array"]), int(row["audio"]["sampling_rate"])))
        if len(step) == CLIPS_PER_STEP:
            yield step
            step = []
    if step:
        yield step


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
