"""Components by role: one table in each folder, and what loads a `<backend>` or `<backend>:<model>` by name.

A backend's module is imported when its component is loaded; this package loads no engine.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ...errors import UsageError, unknown_name
from ..protocols import Answerer, AudioTextEncoder, FrontEnd, Retriever, Rewriter, TextEncoder, Transcriber
from .answerers import ANSWERERS
from .encoders import AUDIO_TEXT_ENCODERS, ENCODERS
from .front_ends import FRONT_ENDS
from .retrievers import RETRIEVERS
from .rewriters import REWRITERS
from .table import BackendSpec, option_names
from .transcribers import TRANSCRIBERS, USUAL_TRANSCRIBERS
from .user_classes import PREFIX, WRITTEN, Kind, kind_of, load_user_class

__all__ = [
    "ANSWERERS", "AUDIO_TEXT_ENCODERS", "ENCODERS", "FRONT_ENDS", "RETRIEVERS", "REWRITERS", "ROLES", "TRANSCRIBERS",
    "USUAL_TRANSCRIBERS", "BackendSpec", "Role", "load", "load_answerer", "load_audio_text_encoder", "load_front_end",
    "load_retriever", "load_rewriter", "load_text_encoder", "load_transcriber",
]  # fmt: skip

Role = Literal["transcriber", "retriever", "encoder", "audio_text_encoder", "front_end", "answerer", "rewriter"]


@dataclass(frozen=True, slots=True)
class _RoleTable:
    """`kinds` are those of a user's class that may take the role, `usual` names that stand for a backend."""

    title: str
    rows: Mapping[str, BackendSpec]
    kinds: tuple[Kind, ...]
    usual: Mapping[str, str] = field(default_factory=dict)


ROLES: Mapping[Role, _RoleTable] = {
    "transcriber": _RoleTable(
        "transcriber", TRANSCRIBERS, ("transcriber", "precomputed_transcripts"), USUAL_TRANSCRIBERS
    ),
    "retriever": _RoleTable("retriever", RETRIEVERS, ("retriever", "precomputed_run")),
    "encoder": _RoleTable("text encoder", ENCODERS, ("encoder",)),
    "audio_text_encoder": _RoleTable("audio-text encoder", AUDIO_TEXT_ENCODERS, ("audio_text_encoder",)),
    "front_end": _RoleTable("front end", FRONT_ENDS, ("front_end",)),
    "answerer": _RoleTable("answerer", ANSWERERS, ("answerer",)),
    "rewriter": _RoleTable("rewriter", REWRITERS, ("rewriter",)),
}


def load(role: Role, name: str, **options: Any) -> object:
    """The component of this role that is written `name`; `options` are its constructor's.

    No weights are looked up or loaded. Raises `UnknownNameError` that lists the choices, `MissingExtraError`, and
    `UsageError` for a missing model, an unknown option, or a user's class of another kind.

    >>> load("front_end", "reverse")
    Traceback (most recent call last):
    ...
    squtr.errors.UnknownNameError: unknown front end 'reverse'...
    """
    table = ROLES[role]
    if name.startswith(PREFIX):
        component = load_user_class(name, **options)
        if kind_of(component) not in table.kinds:
            raise UsageError(f"{name} is no {table.title}, but of kind {kind_of(component)}.")
        return component
    usual = table.usual.get(name)
    backend, separator, model = (name if usual is None else f"{usual}:{name}").partition(":")
    row = table.rows.get(backend)
    if row is None:
        raise unknown_name(table.title, name, [*(r.written for r in table.rows.values()), *table.usual, WRITTEN])
    if row.takes_model and not model:
        raise UsageError(f"the {table.title} {name!r} needs a model.", hint=f"Write {row.written}.")
    if separator and not row.takes_model:
        raise UsageError(
            f"the {table.title} {backend!r} takes no model, but {name!r} gives one.", hint=f"Write {backend}."
        )
    constructors = row.constructors()
    arguments = (model,) if row.takes_model else ()
    known = option_names(constructors)
    try:
        if known is not None and (wrong := [option for option in options if option not in known]):
            raise TypeError(f"got an unexpected keyword argument {wrong[0]!r}")
        inspect.signature(constructors[0]).bind(*arguments, **options)
    except TypeError as error:
        raise UsageError(
            f"the {table.title} {name!r} was given wrong options: {error}.", hint=f"Known: {', '.join(known or ())}."
        ) from error
    return constructors[0](*arguments, **options)


def load_transcriber(name: str, **options: Any) -> Transcriber:
    """`load` for a transcriber: `<backend>:<model>`, or a name of `USUAL_TRANSCRIBERS`.

    >>> load_transcriber("faster-whisper:whisper-base", threads=2).sample_rate
    16000
    """
    return cast(Transcriber, load("transcriber", name, **options))


def load_retriever(name: str, **options: Any) -> Retriever:
    """`load` for a retriever.

    >>> load_retriever("bm25").spec.name
    'BM25'
    """
    return cast(Retriever, load("retriever", name, **options))


def load_text_encoder(name: str, **options: Any) -> TextEncoder:
    """`load` for a text encoder.

    >>> load_text_encoder("sentence-transformers:multilingual-e5-small", query_prompt="query: ").supports("zh")
    True
    """
    return cast(TextEncoder, load("encoder", name, **options))


def load_audio_text_encoder(name: str, **options: Any) -> AudioTextEncoder:
    """`load` for an encoder of audio and text.

    >>> load_audio_text_encoder("clap:laion/clap-htsat-unfused", long_clips="mean").supports("zh")
    False
    """
    return cast(AudioTextEncoder, load("audio_text_encoder", name, **options))


def load_front_end(name: str, **options: Any) -> FrontEnd:
    """`load` for a front end.

    >>> load_front_end("wiener").sample_rate
    16000
    """
    return cast(FrontEnd, load("front_end", name, **options))


def load_answerer(name: str, **options: Any) -> Answerer:
    """`load` for an answerer.

    >>> load_answerer("embedder:multilingual-e5-small").supports("es")
    True
    """
    return cast(Answerer, load("answerer", name, **options))


def load_rewriter(name: str, **options: Any) -> Rewriter:
    """`load` for a rewriter.

    >>> load_rewriter("rewrite-server:a-model", url="http://localhost:8000/v1").supports("en")
    True
    """
    return cast(Rewriter, load("rewriter", name, **options))
