"""Systems by what a user writes: a short form, or the path of a spec file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from ...errors import UsageError
from ..protocols import Retriever
from .building import Builder, Overrides
from .entries import SystemEntry
from .papers import is_paper, paper_file
from .selecting import selected
from .short_form import parse_component, parse_retriever, parse_short_form
from .spec_file import NONE, read_entries
from .system import System

SPEC_SUFFIXES = (".yaml", ".yml", ".json")


def is_spec_file(text: str) -> bool:
    """Whether `text` names a spec file rather than a short form.

    >>> is_spec_file("robust.yaml"), is_spec_file("transcripts:mine.json + bm25"), is_spec_file("trec:a.json")
    (True, False, False)
    """
    return text.lower().endswith(SPEC_SUFFIXES) and not any(sign in text for sign in ("+", "|")) and ":" not in text


def load_systems(
    written: Sequence[str],
    *,
    front_ends: Sequence[str] = (),
    preset: str = "",
    cache: Path | None = None,
    options: Overrides | None = None,
    only: Sequence[str] = (),
) -> list[System]:
    """The systems of several short forms (see `short_form`) and spec files, in order; equal components are one object.

    `paper:<name>` is the packaged spec file of a paper. `only` are patterns of names (`* + BM25`): of what is written,
    systems with other names are left out, and nothing is made of them.

    Each system with a transcriber and without a front end stands behind each of `front_ends` too (`none` is skipped).
    `preset` decodes all transcribers as published. With `cache`, retrievers keep encoded corpora below that folder.
    `options` go before those of a file. Raises `UsageError`, `UnknownNameError`, and what `read_entries` raises.
    """
    builder = Builder(cache=cache, overrides=options)
    entries = written_entries(written, only=only)
    if preset:
        entries = [with_preset(entry, preset) for entry in entries]
    fronts = [parse_component("front_end", text) for text in dict.fromkeys(front_ends) if text != NONE]
    found: list[System] = []
    for entry in entries:
        system = builder.system(entry)
        found.append(system)
        models = any(one.model_transcriber is not None for one in system.distinct)
        if models and entry.front_end is None:
            name = f"{{}} | {entry.name}" if entry.name else ""
            for front in fronts:
                behind = builder.system(replace(entry, front_end=front, name=""))
                shown = _front_name(behind)
                found.append(replace(behind, display_name=name.format(shown)) if name else behind)
    builder.check_used()
    return found


def count_entries(written: Sequence[str]) -> int:
    """How many systems several short forms and spec files name, without front ends beside them."""
    return len(written_entries(written))


def written_entries(written: Sequence[str], *, only: Sequence[str] = ()) -> list[SystemEntry]:
    """The systems as they are written, before any component is constructed; `only` as for `load_systems`."""
    found: list[SystemEntry] = []
    for text in written:
        if is_paper(text):
            found += read_entries(paper_file(text), called=text)
        else:
            found += read_entries(Path(text)) if is_spec_file(text) else [parse_short_form(text)]
    return selected(found, only)


def load_system(text: str, *, cache: Path | None = None, options: Overrides | None = None) -> System:
    found = load_systems([text], cache=cache, options=options)
    if len(found) != 1:
        raise UsageError(f"{text} holds {len(found)} systems.", hint="Use load_systems.")
    return found[0]


def _front_name(system: System) -> str:
    return str(system.components(next(iter(system.languages), ""))["front_end"]["name"])


def with_preset(entry: SystemEntry, preset: str) -> SystemEntry:
    """A system whose transcribers decode as published under `preset`."""
    if entry.transcriber is None:
        return entry
    if isinstance(entry.transcriber, Mapping):
        return replace(
            entry, transcriber={code: replace(one, preset=preset) for code, one in entry.transcriber.items()}
        )
    return replace(entry, transcriber=replace(entry.transcriber, preset=preset))


def cached_retriever(name: str, cache: Path | None) -> Retriever:
    """The retriever in its short form, which keeps what it makes of a corpus below `cache` (None keeps nothing)."""
    made = Builder(cache=cache).component("retriever", parse_retriever(name)).component
    if hasattr(made, "search"):
        return cast(Retriever, made)
    raise UsageError(f"{name!r} is a precomputed run, which cannot search.", hint="Give a retriever, for example bm25.")
