"""The table of sources: where texts and clean speech come from."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ...errors import UsageError, unknown_name
from ..records import Source


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A row of the table: what the user types, and the class behind it."""

    name: str
    target: str
    summary: str


SOURCES = {
    spec.name: spec
    for spec in (SourceSpec("mini", ".collection:mini", "the embedded collection: en, zh and es, with its own speech"),)
}


def load_source(name: str) -> Source:
    """The source called `name`, or the collection folder at that path.

    A path is anything that contains a path separator or names an existing folder; its layout is that of
    `CollectionSource`. Raises `UnknownNameError`, or `DataError` if the folder cannot be read.
    """
    spec = SOURCES.get(name)
    if spec is None:
        if "/" in name or Path(name).is_dir():
            from .collection import CollectionSource

            return CollectionSource(Path(name))
        if not name:
            raise UsageError("the source has no name.", hint=f"Known: {', '.join(SOURCES)}, or a folder.")
        raise unknown_name("source", name, SOURCES)
    module, _, attribute = spec.target.partition(":")
    return cast("Source", getattr(importlib.import_module(module, __name__), attribute)())
