"""Systems of the harness as models of `mteb`: retrievers and cascades search by themselves, encoders encode."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import AudioError, UsageError
from ...loaders.audio import resample, to_pcm16
from ...loaders.document_ids import DocumentIds
from ...loaders.records import Document, Samples
from ..components import checked
from ..components.raised import sentences
from ..components.retrievers.fusion import Method, fuse_hypotheses
from ..components.retrievers.route import is_route
from ..evaluation.inference import AudioModel, infer_clips
from ..evaluation.options import DEFAULT_DEPTH, DEFAULT_MAX_FAILED
from ..evaluation.store import Store
from ..protocols import AudioTextEncoder, FrontEnd, Hit, Retriever, TextEncoder, Transcriber, Transcript
from ..systems.system import System
from ..tasks.retrieval.search_requests import is_composite
from ..tasks.retrieval.search_texts import SearchTexts, search_texts
from .encoder_models import AudioTextModel, TextModel
from .meta import Description, system_settings
from .model_common import Model, languages_of, mono, task_language, tell_failed
from .search import Rankings, strict_scores
from .versions import load_bridge

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["AudioTextModel", "CascadeModel", "RetrieverModel", "TextModel", "mteb_model"]

CLIPS_PER_STEP = 64


def mteb_model(
    system: Any,
    *,
    cache: Path | str | None = None,
    name: str = "",
    meta: Mapping[str, Any] | None = None,
    depth: int = DEFAULT_DEPTH,
    max_failed: float = DEFAULT_MAX_FAILED,
) -> Any:
    """A system of the harness as a model that `mteb.evaluate` takes.

    `system` is a cascade, an end-to-end system, a retriever, a `TextEncoder`, an `AudioTextEncoder`, or the short form
    of one. A cascade and a retriever search by themselves; encoders, and the encoder of a dense retriever that compares
    exactly, become encoders of mteb. With `cache`, transcripts are kept in that folder, together with those of `squtr
    evaluate`. `name` replaces the name; `meta` adds fields of mteb's `ModelMeta` (`license`, …). `depth` is how many
    documents are retrieved where the ranking depends on it, as `--depth` of `squtr evaluate`. A spoken query that
    cannot be transcribed or encoded finds nothing, with a warning; where more than a share of `max_failed` fails, or
    all, the search raises `ModelError`.

    Raises `UsageError` for what is no system, for components per language, and for precomputed transcripts and runs;
    `MissingExtraError` without mteb.
    """
    load_bridge()
    if depth < 1:
        raise UsageError(f"the depth is {depth}.", hint="Give at least 1.")
    folder = Path(cache) if cache is not None else None
    opened: Any = _parsed(system, folder) if isinstance(system, str) else system
    front_end: FrontEnd | None = None
    if isinstance(opened, System):
        if opened.languages:
            raise UsageError(
                f"{opened.name} has components per language, and a model of mteb has one of each role.",
                hint=f"Give the system of one language: system.for_language({opened.languages[0]!r}).",
            )
        if opened.kind == "cascade":
            return CascadeModel(opened, cache=folder, name=name, meta=meta, depth=depth, max_failed=max_failed)
        if opened.kind != "end-to-end":
            raise _no_model(f"{opened.name} ({opened.kind})")
        front_end, name, opened = cast("FrontEnd | None", opened.front_end), name or opened.name, opened.encoder
    if hasattr(opened, "index") and hasattr(opened, "search"):
        _refuse_route(opened)
        alone = _encoder_of(opened)
        if alone is None:
            return RetrieverModel(cast(Retriever, opened), name=name, meta=meta, depth=depth)
        opened = alone
    if hasattr(opened, "encode_audio"):
        encoder = cast(AudioTextEncoder, opened)
        return AudioTextModel(encoder, front_end=front_end, name=name, meta=meta, max_failed=max_failed)
    if hasattr(opened, "encode"):
        return TextModel(cast(TextEncoder, opened), name=name, meta=meta)
    raise _no_model(type(opened).__name__)


def _no_model(name: str) -> UsageError:
    return UsageError(
        f"{name} is no system that mteb can run: it neither searches nor encodes.",
        hint="Give a cascade, an end-to-end system, a retriever or an encoder. For a precomputed run, export the"
        " results: squtr export mteb RUN --out DIR.",
    )


def _parsed(text: str, cache: Path | None) -> object:
    from ..components import AUDIO_TEXT_ENCODERS, ENCODERS, RETRIEVERS, load_text_encoder
    from ..systems import cached_retriever, load_system

    if "+" not in text and "|" not in text:
        stages = text.partition(">")[0].partition("(")[0]
        backend = stages.partition(":")[0].strip()
        if backend in {*RETRIEVERS, "rrf", "score"} - {"trec"}:
            return cached_retriever(text, cache)
        # A name of both tables is an encoder of audio and text, as it is for `squtr evaluate`.
        if backend in ENCODERS and backend not in AUDIO_TEXT_ENCODERS:
            return load_text_encoder(text)
    return load_system(text, cache=cache)


def _encoder_of(retriever: Any) -> TextEncoder | AudioTextEncoder | None:
    """The encoder of a dense retriever that ranks by its vectors alone; None of any other."""
    if retriever.spec.settings.get("similarity") != "cosine" or {"storage", "search"} & set(retriever.spec.settings):
        return None
    encoder: TextEncoder | AudioTextEncoder | None = getattr(retriever, "encoder", None)
    return encoder


class RetrieverModel(Model):
    def __init__(
        self,
        retriever: Retriever,
        *,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        depth: int = DEFAULT_DEPTH,
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
        self._ids: DocumentIds | None = None
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
            with sentences(f"{checked.name_of(self._retriever, 'index')} on {len(documents)} documents"):
                self._retriever.index(documents, language=language)
            self._ids = DocumentIds.of(ids)
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
        searched = self._search_texts(queries, task_language(task_metadata, hf_subset))
        distinct = list(dict.fromkeys(text for one in searched for text in one.texts))
        k = top_k if self._most is None else min(top_k, self._most)
        found = dict(zip(distinct, checked.search(self._retriever, distinct, k=k, ids=self._ids), strict=True))
        rankings = [self._ranking(one, [found[text] for text in one.texts], k) for one in searched]
        return {id_: strict_scores(hits) for id_, hits in zip(queries["id"], rankings, strict=True)}

    def _search_texts(self, queries: Dataset, language: str) -> list[SearchTexts]:
        del language
        if "text" not in queries.column_names:
            raise UsageError(
                f"{self.description.name} searches with typed queries; these have {', '.join(queries.column_names)}.",
                hint="Choose the typed control, or give a cascade: squtr.mteb_model('whisper-base + bm25').",
            )
        return [SearchTexts((text,), (0.0,)) for text in queries["text"]]

    def _ranking(self, searched: SearchTexts, found: Sequence[Sequence[Hit]], k: int) -> Sequence[Hit]:
        del searched, k
        return found[0]


class CascadeModel(RetrieverModel):
    """A transcriber and a retriever: spoken queries are transcribed, each clip once."""

    def __init__(
        self,
        cascade: System,
        *,
        cache: Path | None = None,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        depth: int = DEFAULT_DEPTH,
        max_failed: float = DEFAULT_MAX_FAILED,
    ) -> None:
        transcriber, retriever = _transcriber_and_retriever(cascade)
        description = cascade_description(cascade, name, depth)
        super().__init__(retriever, description=description, meta=meta, depth=depth)
        if cascade.n_best > 1:
            self._most = depth
        self._cascade = cascade
        self._model = AudioModel(transcriber, cast("FrontEnd | None", cascade.front_end))
        self._max_failed = max_failed
        self._known: dict[tuple[str, str], Transcript] = {}
        self._store = Store(cache) if cache is not None else None

    def _search_texts(self, queries: Dataset, language: str) -> list[SearchTexts]:
        if "audio" not in queries.column_names:
            return super()._search_texts(queries, language)
        transcripts = [one for clips in _clips(queries) for one in self._transcribe(clips, language)]
        failed = {str(id_): one.error for id_, one in zip(queries["id"], transcripts, strict=True) if one.error}
        tell_failed(failed, len(transcripts), self.description.name, self._max_failed)
        return [search_texts(self._cascade, transcript, language) for transcript in transcripts]

    def _ranking(self, searched: SearchTexts, found: Sequence[Sequence[Hit]], k: int) -> Sequence[Hit]:
        if len(found) == 1:
            return found[0]
        return fuse_hypotheses(found, searched.scores, method=cast(Method, self._cascade.n_best_fusion), k=k)

    def _transcribe(self, clips: Sequence[tuple[str, Samples, int]], language: str) -> list[Transcript]:
        digests = [_clip_digest(samples, rate, name) for name, samples, rate in clips]
        # The key under which `squtr evaluate` keeps transcripts.
        model = self._model.key
        missing = [d for d in dict.fromkeys(digests) if (d, language) not in self._known]
        if missing and self._store is not None:
            known = self._store.transcripts(missing, language=language, model=model)
            self._known |= {(digest, language): transcript for digest, transcript in known.items()}
            missing = [digest for digest in missing if digest not in known]
        given = {digest: clip for digest, clip in zip(digests, clips, strict=True) if digest in missing}
        inputs = {d: resample(samples, rate, self._model.sample_rate) for d, (_, samples, rate) in given.items()}
        if inputs:
            new = infer_clips(self._model, inputs, language)
            self._known |= {(digest, language): transcript for digest, transcript in new.items()}
            if self._store is not None:
                lengths = {digest: len(given[digest][1]) / given[digest][2] for digest in new}
                self._store.keep_transcripts(
                    {}, {d: (t, lengths[d]) for d, t in new.items()}, language=language, model=model
                )
        return [self._known[digest, language] for digest in digests]


def cascade_description(cascade: System, name: str = "", depth: int = DEFAULT_DEPTH) -> Description:
    _, retriever = _transcriber_and_retriever(cascade)
    languages = languages_of(cascade)
    fuses = cascade.n_best > 1 or is_composite(retriever)
    return Description(
        name or cascade.name,
        cascade.components(""),
        languages,
        audio=True,
        settings=system_settings(
            scripts={language: cascade.folding(language) for language in languages},
            n_best=cascade.n_best,
            n_best_fusion=cascade.n_best_fusion,
            depth=depth if fuses else 0,
        ),
    )


def _transcriber_and_retriever(cascade: System) -> tuple[Transcriber, Retriever]:
    """The components of a cascade, if audio is all that it needs, and no stage between the two."""
    if cascade.rewriter is not None:
        raise UsageError(
            f"{cascade.name} has a rewriter, which models of mteb have no place for.",
            hint="Evaluate it with squtr evaluate, and export the results: squtr export mteb RUN --out DIR.",
        )
    if cascade.model_transcriber is None or cascade.searcher is None:
        raise UsageError(
            f"{cascade.name} is precomputed by query and condition, which mteb tells no model.",
            hint="Export its results instead: squtr export mteb RUN --out DIR.",
        )
    _refuse_route(cascade.searcher)
    return cascade.model_transcriber, cascade.searcher


def _refuse_route(retriever: Any) -> None:
    if is_route(retriever):
        raise UsageError(
            f"{retriever.spec.name} chooses by the confidence of a transcript, which mteb passes to no model.",
            hint="Give one of its parts, or evaluate it with squtr evaluate.",
        )


def _corpus_digest(documents: Sequence[Document]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.id, document.title, document.text):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big"))
            digest.update(encoded)
    return digest.hexdigest()


def _clips(queries: Dataset) -> Iterator[list[tuple[str, Samples, int]]]:
    """Name, samples and rate in Hz of the queries' clips, in steps."""
    step: list[tuple[str, Samples, int]] = []
    for row in queries:
        step.append((f"query {row['id']!r}", mono(row["audio"]["array"]), int(row["audio"]["sampling_rate"])))
        if len(step) == CLIPS_PER_STEP:
            yield step
            step = []
    if step:
        yield step


def _clip_digest(samples: Samples, rate: int, name: str) -> str:
    """The digest of a clip as 16-bit samples, as `squtr evaluate` has it; beyond their range, as floats."""
    digest = hashlib.sha256(f"{rate}\n".encode())
    try:
        digest.update(np.ascontiguousarray(to_pcm16(samples, name)).tobytes())
    except AudioError:
        digest.update(b"float32\n" + np.ascontiguousarray(samples).tobytes())
    return digest.hexdigest()
