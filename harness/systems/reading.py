"""Systems by what a user writes: a short form, or the path of a spec file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ...errors import UsageError
from ..protocols import Retriever
from .building import Builder, Overrides
from .short_form import parse_retriever, parse_short_form
from .spec_file import read_systems
from .system import System

SPEC_SUFFIXES = (".yaml", ".yml", ".json")


def parse_system(
    text: str,
    *,
    cache: Path | None = None,
    transcriber_options: Mapping[str, object] | None = None,
    options: Overrides | None = None,
) -> System:
    """The system in its short form, for example `faster-whisper:whisper-base + bm25` (see `short_form`).

    With `cache`, retrievers keep what they make of a corpus below that folder. `transcriber_options` are given to the
    transcriber, `options` to every component that has them; one that no component has is an error. Raises `UsageError`
    for another form and `UnknownNameError` for an unknown part.
    """
    overrides = options or Overrides()
    if transcriber_options:
        overrides = overrides.with_transcriber(transcriber_options)
    builder = Builder(cache=cache, overrides=overrides)
    system = builder.system(parse_short_form(text))
    builder.check_used()
    return system


def is_spec_file(text: str) -> bool:
    """Whether `text` names a spec file rather than a short form.

    >>> is_spec_file("robust.yaml"), is_spec_file("transcripts:mine.json + bm25"), is_spec_file("trec:a.json")
    (True, False, False)
    """
    return text.lower().endswith(SPEC_SUFFIXES) and not any(sign in text for sign in ("+", "|")) and ":" not in text


def load_systems(
    written: Sequence[str], *, cache: Path | None = None, options: Overrides | None = None
) -> list[System]:
    """The systems of several short forms and spec files, in order; equal components of them are one object.

    Arguments and errors are those of `parse_system` and `read_systems`.
    """
    builder = Builder(cache=cache, overrides=options)
    found: list[System] = []
    for text in written:
        if is_spec_file(text):
            found += read_systems(text, builder=builder)
        else:
            found.append(builder.system(parse_short_form(text)))
    builder.check_used()
    return found


def cached_retriever(name: str, cache: Path | None) -> Retriever:
    """The retriever in its short form, which keeps what it makes of a corpus below `cache` (None keeps nothing)."""
    made = Builder(cache=cache).component("retriever", parse_retriever(name)).component
    if hasattr(made, "search"):
        return cast(Retriever, made)
    raise UsageError(f"{name!r} is a ready run, which cannot search.", hint="Give a retriever, for example bm25.")
