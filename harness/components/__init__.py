"""Backends: explicit tables of components, and what loads them by name.

A component is written `<backend>` or `<backend>:<model>`, for example `faster-whisper:whisper-base`, `bm25`,
`dense:all-minilm-l6-v2`, `clap:laion/clap-htsat-unfused`. A known transcriber's name alone stands for its usual
backend. `class:<module>:<Class>` is a user's own class (`user_classes`). Importing this package loads no engine; the
module of a backend is imported when it is asked for.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...errors import UsageError, unknown_name
from ..protocols import Answerer, AudioTextEncoder, FrontEnd, Retriever, TextEncoder, Transcriber
from .user_classes import PREFIX, WRITTEN, Kind, kind_of, load_user_class


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A row of the table.

    `path` is the dotted path `package.module:Class` below `harness`, `extra` the extra of squtr that installs what it
    needs ("" for none), `takes_model` whether `<backend>:<model>` is how it is written.
    """

    name: str
    path: str
    extra: str
    takes_model: bool


def _table(*rows: BackendSpec) -> Mapping[str, BackendSpec]:
    return {row.name: row for row in rows}


_ASR = "harness.components.transcribers"
TRANSCRIBERS = _table(
    BackendSpec("faster-whisper", f"{_ASR}.faster_whisper:FasterWhisperTranscriber", "asr", True),
    BackendSpec("transformers", f"{_ASR}.transformers:TransformersTranscriber", "torch", True),
    BackendSpec("ctc", f"{_ASR}.ctc:CTCTranscriber", "torch", True),
    BackendSpec("openai-whisper", f"{_ASR}.openai_whisper:OpenAIWhisperTranscriber", "openai-whisper", True),
    BackendSpec("funasr", f"{_ASR}.funasr:FunASRTranscriber", "funasr", True),
    BackendSpec("qwen-asr", f"{_ASR}.qwen:QwenASRTranscriber", "qwen-asr", True),
    BackendSpec("glm-asr", f"{_ASR}.glm:GLMASRTranscriber", "torch", True),
    BackendSpec("server", f"{_ASR}.server:ServerTranscriber", "", True),
    BackendSpec("transcripts", f"{_ASR}.files:TranscriptsFile", "", True),
)
RETRIEVERS = _table(
    BackendSpec("bm25", "harness.components.retrievers.bm25:BM25Retriever", "", False),
    BackendSpec("dense", "harness.components.retrievers.dense:DenseRetriever", "torch", True),
    BackendSpec("dense-server", "harness.components.retrievers.dense_server:ServerDenseRetriever", "", True),
    BackendSpec("dense-mteb", "harness.mteb.reverse:MtebDenseRetriever", "mteb", True),
    BackendSpec("splade", "harness.components.retrievers.splade:SpladeRetriever", "torch", True),
    BackendSpec("colbert", "harness.components.retrievers.colbert:ColBERTRetriever", "torch", True),
    BackendSpec("hybrid", "harness.components.retrievers.hybrid:HybridRetriever", "", False),
    BackendSpec("rerank", "harness.components.retrievers.rerank:RerankedRetriever", "torch", True),
    BackendSpec("trec", "harness.components.retrievers.trec_run:TrecRun", "", True),
)
ENCODERS = _table(
    BackendSpec(
        "sentence-transformers",
        "harness.components.encoders.sentence_transformers:SentenceTransformerEncoder",
        "torch",
        True,
    ),
    BackendSpec("server", "harness.components.encoders.server:ServerEncoder", "", True),
    BackendSpec("mteb", "harness.mteb.reverse:MtebTextEncoder", "mteb", True),
)
AUDIO_TEXT_ENCODERS = _table(
    BackendSpec("clap", "harness.components.encoders.clap:ClapEncoder", "torch", True),
    BackendSpec("chat-template", "harness.components.encoders.chat_template:ChatTemplateEncoder", "torch", True),
    BackendSpec(
        "sentence-transformers-audio",
        "harness.components.encoders.audio_sentence_transformers:MultimodalEncoder",
        "torch",
        True,
    ),
    BackendSpec("mteb", "harness.mteb.reverse:MtebAudioTextEncoder", "mteb", True),
)
FRONT_ENDS = _table(
    BackendSpec("wpe", "harness.components.front_ends.wpe:WPEFrontEnd", "wpe", False),
    BackendSpec("spectral-gate", "harness.components.front_ends.spectral:SpectralGateFrontEnd", "", False),
    BackendSpec("wiener", "harness.components.front_ends.spectral:WienerFrontEnd", "", False),
    BackendSpec("denoiser", "harness.components.front_ends.neural:NeuralFrontEnd", "denoiser", True),
)
_ANSWER = "harness.components.answerers"
ANSWERERS = _table(
    BackendSpec("chat", f"{_ANSWER}.chat:ChatAnswerer", "torch", True),
    BackendSpec("chat-server", f"{_ANSWER}.server:ServerAnswerer", "", True),
    BackendSpec("llm", f"{_ANSWER}.llm:TextAnswerer", "torch", True),
    BackendSpec("embedder", f"{_ANSWER}.embedder:EmbedderAnswerer", "torch", True),
    BackendSpec("cascade", f"{_ANSWER}.cascade:CascadeAnswerer", "", False),
    BackendSpec("text-only", f"{_ANSWER}.text_only:TextOnlyAnswerer", "", False),
    BackendSpec("replies", f"{_ANSWER}.files:RepliesFile", "", True),
)

USUAL_TRANSCRIBERS: Mapping[str, str] = dict.fromkeys(
    (
        "whisper-tiny",
        "whisper-tiny.en",
        "whisper-base",
        "whisper-base.en",
        "whisper-small",
        "whisper-small.en",
        "whisper-medium",
        "whisper-large-v2",
        "whisper-large-v3",
        "whisper-large-v3-turbo",
    ),
    "faster-whisper",
)
"""Models that are known by their bare name, with the backend that it stands for."""


def load_transcriber(name: str, **options: Any) -> Transcriber:
    """The transcriber written `<backend>:<model>`, or a name of `USUAL_TRANSCRIBERS`; `options` are its constructor's.

    No weights are looked up or loaded. Raises `UnknownNameError` that lists the choices, `UsageError` for a missing
    model, an unknown option, or a user's class that is no transcriber.

    >>> load_transcriber("faster-whisper:whisper-base", threads=2).sample_rate
    16000
    >>> load_transcriber("whisper-bass")
    Traceback (most recent call last):
    ...
    squtr.errors.UnknownNameError: unknown transcriber ...
    """
    usual = USUAL_TRANSCRIBERS.get(name)
    full_name = name if usual is None else f"{usual}:{name}"
    kinds: tuple[Kind, ...] = ("transcriber", "precomputed_transcripts")
    return cast(
        Transcriber, _load("transcriber", full_name, TRANSCRIBERS, options, kinds=kinds, also=USUAL_TRANSCRIBERS)
    )


def load_retriever(name: str, **options: Any) -> Retriever:
    """The retriever written `bm25` or `dense:<model>`; `options` are its constructor's.

    Raises as `load_transcriber`.

    >>> load_retriever("bm25").spec.name
    'BM25'
    """
    return cast(Retriever, _load("retriever", name, RETRIEVERS, options, kinds=("retriever", "precomputed_run")))


def load_text_encoder(name: str, **options: Any) -> TextEncoder:
    """The text encoder written `sentence-transformers:<model>`; `options` are its constructor's.

    Raises as `load_transcriber`.

    >>> load_text_encoder("sentence-transformers:multilingual-e5-small", query_prompt="query: ").supports("zh")
    True
    """
    return cast(TextEncoder, _load("text encoder", name, ENCODERS, options, kinds=("encoder",)))


def load_audio_text_encoder(name: str, **options: Any) -> AudioTextEncoder:
    """The encoder of sound and text written `clap:<model>` or `chat-template:<model>`; `options` are its constructor's.

    Raises as `load_transcriber`.

    >>> load_audio_text_encoder("clap:laion/clap-htsat-unfused", long_clips="mean").supports("zh")
    False
    """
    kinds: tuple[Kind, ...] = ("audio_text_encoder",)
    return cast(AudioTextEncoder, _load("audio-text encoder", name, AUDIO_TEXT_ENCODERS, options, kinds=kinds))


def load_front_end(name: str, **options: Any) -> FrontEnd:
    """The front end written `wpe` or `denoiser:<model>`; `options` are its constructor's.

    Raises as `load_transcriber`.

    >>> load_front_end("reverse")
    Traceback (most recent call last):
    ...
    squtr.errors.UnknownNameError: unknown front end 'reverse'...
    """
    return cast(FrontEnd, _load("front end", name, FRONT_ENDS, options, kinds=("front_end",)))


def load_answerer(name: str, **options: Any) -> Answerer:
    """The answerer written `chat:<model>`, `chat-server:<model>`, `llm:<model>`, …; `options` are its constructor's.

    `cascade` takes the objects `transcriber` and `reader`, `text-only` the object `reader`; the short forms
    `<transcriber> + <reader>` and `text-only + <reader>` make them (see `harness.escucha.answerers`). Raises as
    `load_transcriber`.

    >>> load_answerer("embedder:multilingual-e5-small").supports("es")
    True
    """
    return cast(Answerer, _load("answerer", name, ANSWERERS, options, kinds=("answerer",)))


def _load(
    kind: str,
    name: str,
    table: Mapping[str, BackendSpec],
    options: Mapping[str, Any],
    *,
    kinds: tuple[Kind, ...],
    also: Mapping[str, str] = {},
) -> object:
    if name.startswith(PREFIX):
        made = load_user_class(name, **options)
        if kind_of(made) not in kinds:
            raise UsageError(f"{name} is no {kind}, but of kind {kind_of(made)}.")
        return made
    backend, separator, model = name.partition(":")
    row = table.get(backend)
    if row is None:
        choices = [f"{r.name}:<model>" if r.takes_model else r.name for r in table.values()]
        raise unknown_name(kind, name, [*choices, *also, WRITTEN])
    if row.takes_model and not model:
        raise UsageError(f"the {kind} {name!r} needs a model.", hint=f"Write {backend}:<model>.")
    if separator and not row.takes_model:
        raise UsageError(f"the {kind} {backend!r} takes no model, but {name!r} gives one.", hint=f"Write {backend}.")
    module_path, _, class_name = row.path.partition(":")
    # Relative to the package above `harness`, whatever that is called.
    component = getattr(importlib.import_module(f"...{module_path}", __name__), class_name)
    arguments = (model,) if row.takes_model else ()
    try:
        inspect.signature(component).bind(*arguments, **options)
    except TypeError as error:
        known = [p for p in inspect.signature(component).parameters.values() if p.kind is p.KEYWORD_ONLY]
        raise UsageError(
            f"the {kind} {name!r} was given wrong options: {error}.", hint=f"Known: {', '.join(p.name for p in known)}."
        ) from error
    return cast(object, component(*arguments, **options))
