"""Backends: explicit tables of transcribers and retrievers, and what loads them by name.

A component is written `<backend>` or `<backend>:<model>`, for example `faster-whisper:whisper-base`, `bm25`,
`dense:all-minilm-l6-v2`. A known transcriber's name alone stands for its usual backend. Importing this package loads no
engine; the module of a backend is imported when it is asked for.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...errors import UsageError, unknown_name
from ..protocols import Retriever, Transcriber


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


_ASR = "harness.backends.asr"
TRANSCRIBERS = _table(
    BackendSpec("faster-whisper", f"{_ASR}_faster_whisper:FasterWhisperTranscriber", "asr", True),
    BackendSpec("transformers", f"{_ASR}_transformers:TransformersTranscriber", "torch", True),
    BackendSpec("ctc", f"{_ASR}_ctc:CTCTranscriber", "torch", True),
    BackendSpec("openai-whisper", f"{_ASR}_openai_whisper:OpenAIWhisperTranscriber", "openai-whisper", True),
    BackendSpec("funasr", f"{_ASR}_funasr:FunASRTranscriber", "funasr", True),
    BackendSpec("qwen-asr", f"{_ASR}_qwen:QwenASRTranscriber", "qwen-asr", True),
    BackendSpec("glm-asr", f"{_ASR}_glm:GLMASRTranscriber", "torch", True),
    BackendSpec("server", f"{_ASR}_server:ServerTranscriber", "", True),
    BackendSpec("transcripts", f"{_ASR}_ready:TranscriptsFile", "", True),
)
RETRIEVERS = _table(
    BackendSpec("bm25", "harness.backends.bm25:BM25Retriever", "", False),
    BackendSpec("dense", "harness.backends.dense:DenseRetriever", "torch", True),
    BackendSpec("dense-server", "harness.backends.dense_server:ServerDenseRetriever", "", True),
    BackendSpec("splade", "harness.backends.splade:SpladeRetriever", "torch", True),
    BackendSpec("colbert", "harness.backends.colbert:ColBERTRetriever", "colbert", True),
    BackendSpec("hybrid", "harness.backends.hybrid:HybridRetriever", "", False),
    BackendSpec("rerank", "harness.backends.rerank:RerankedRetriever", "torch", True),
    BackendSpec("trec", "harness.backends.trec_run:TrecRun", "", True),
)
ENCODERS = _table(
    BackendSpec("sentence-transformers", "harness.backends.encoders:SentenceTransformerEncoder", "torch", True),
    BackendSpec("server", "harness.backends.encoder_server:ServerEncoder", "", True),
)
AUDIO_TEXT_ENCODERS = _table(
    BackendSpec("clap", "harness.backends.audio_clap:ClapEncoder", "torch", True),
    BackendSpec("chat-template", "harness.backends.audio_chat:ChatTemplateEncoder", "torch", True),
    BackendSpec("sentence-transformers-audio", "harness.backends.audio_st:MultimodalEncoder", "torch", True),
)
FRONT_ENDS = _table(
    BackendSpec("wpe", "harness.backends.front_wpe:WPEFrontEnd", "wpe", False),
    BackendSpec("spectral-gate", "harness.backends.front_spectral:SpectralGateFrontEnd", "", False),
    BackendSpec("wiener", "harness.backends.front_spectral:WienerFrontEnd", "", False),
    BackendSpec("denoiser", "harness.backends.front_neural:NeuralFrontEnd", "denoiser", True),
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
    model or an unknown option.

    >>> load_transcriber("faster-whisper:whisper-base", threads=2).sample_rate
    16000
    >>> load_transcriber("whisper-bass")
    Traceback (most recent call last):
    ...
    squtr.errors.UnknownNameError: unknown transcriber ...
    """
    usual = USUAL_TRANSCRIBERS.get(name)
    full_name = name if usual is None else f"{usual}:{name}"
    return cast(Transcriber, _load("transcriber", full_name, TRANSCRIBERS, options, also=USUAL_TRANSCRIBERS))


def load_retriever(name: str, **options: Any) -> Retriever:
    """The retriever written `bm25` or `dense:<model>`; `options` are its constructor's.

    Raises as `load_transcriber`.

    >>> load_retriever("bm25").spec.name
    'BM25'
    """
    return cast(Retriever, _load("retriever", name, RETRIEVERS, options))


def _load(
    kind: str, name: str, table: Mapping[str, BackendSpec], options: Mapping[str, Any], also: Mapping[str, str] = {}
) -> object:
    backend, separator, model = name.partition(":")
    row = table.get(backend)
    if row is None:
        choices = [f"{r.name}:<model>" if r.takes_model else r.name for r in table.values()]
        raise unknown_name(kind, name, [*choices, *also])
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
