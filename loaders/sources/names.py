"""How a source is written: `KIND`, `KIND:PLACE`, `KIND:PLACE@REVISION`, each with `?option=value&option=value`.

    mini
    ./folder                                    a collection folder, the same as collection:./folder
    beir:data/fiqa?language=en&split=dev
    beir:data/fiqa?language=en&speech=clips     with the recordings in the folder clips
    mteb:mteb/fiqa                              pinned by squtr
    mteb:org/name@<commit>?language=fr          anything else on the Hub is pinned by the user
    release:SQuTR.zip
    recorded:my-voice?language=es

Options of recordings with several channels: `channel=0` (or 1, …), or `channel=mean`.

In PLACE and in values, `?`, `&` and `%` are written %3F, %26 and %25.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

from ...errors import UsageError
from ..audio import Channel, parse_channel

COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class SourceName:
    """A parsed name. `place` is a path or a Hub id (with its `@REVISION`), "" if none is written.

    `on_bad` is what happens to bad rows (see `rules`); it is no part of the name.
    """

    text: str
    kind: str
    place: str = ""
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    on_bad: str = "refuse"

    def option(self, key: str, default: str = "") -> str:
        return self.options.get(key, default)

    @property
    def channel(self) -> Channel:
        """The option `channel` of recordings; None where it is not written. Raises `UsageError`."""
        written = self.option("channel")
        return parse_channel(written, f"the channel of the source {self.text!r}") if written else None

    def folder(self) -> Path:
        """`place` as a path. Raises `UsageError` where none is written."""
        if not self.place:
            raise UsageError(f"the source {self.text!r} names no folder.", hint=f"Write {self.kind}:PATH.")
        return Path(self.place).expanduser()

    def language(self, what: str) -> str:
        """The option `language`. Raises `UsageError` if it is missing, where `what` does not say its language."""
        language = self.option("language")
        if not language:
            joint = "&" if self.options else "?"
            raise UsageError(
                f"{what} does not say its language.",
                hint=f"Add it to the source's name: {self.text}{joint}language=en (or zh, es, …).",
            )
        return check_language(language)


def channel_suffix(channel: Channel) -> str:
    """What the version of a source says of the channel that it takes."""
    return "" if channel is None else f"-channel-{channel}"


def check_language(language: str) -> str:
    """`language`, if it looks like a language code. Config names split at "_", so none may hold it."""
    if not re.fullmatch(r"[a-z]{2,3}(?:-[A-Za-z0-9]+)*", language):
        raise UsageError(f"{language!r} is no language code.", hint="Write for example en, zh or es.")
    return language


def parse_source_name(text: str) -> SourceName:
    """The parts of a source's name. Raises `UsageError` for an option without a value or given twice.

    >>> name = parse_source_name("beir:data/fiqa?language=en&speech=my%26clips")
    >>> name.kind, name.place, name.option("speech")
    ('beir', 'data/fiqa', 'my&clips')
    """
    before, _, after = text.partition("?")
    kind, _, place = before.partition(":")
    options: dict[str, str] = {}
    for pair in filter(None, after.split("&")):
        key, _, value = pair.partition("=")
        if not key or not value:
            raise UsageError(
                f"the source {text!r} has the option {pair!r}.", hint="Write options as ?option=value&option=value."
            )
        if key in options:
            raise UsageError(f"the source {text!r} has the option {key!r} twice.", hint="Keep one.")
        options[key] = unquote(value)
    return SourceName(text, kind, unquote(place), MappingProxyType(options))


def hub_place(name: SourceName, known: Mapping[str, str]) -> tuple[Path, None] | tuple[str, str]:
    """Where a source lies: an existing path (and None), or a Hub repository and its commit.

    `known` holds the commits that squtr pins. Raises `UsageError` for anything else; a branch or tag is refused,
    because it may move and then no longer identifies the content.
    """
    path = Path(name.place).expanduser()
    if path.exists():
        return path, None
    repository, _, revision = name.place.partition("@")
    if not _REPOSITORY.fullmatch(repository) or name.place.startswith("."):
        raise UsageError(
            f"{name.place!r} is neither a path that exists nor a repository of the Hub.",
            hint=f"Check the path, or write {name.kind}:org/name@<commit>.",
        )
    revision = revision or known.get(repository, "")
    if not COMMIT.fullmatch(revision):
        state = f"has the revision {revision!r}" if revision else "has no revision"
        raise UsageError(
            f"{repository!r} is no path that exists, and as a repository of the Hub it {state}.",
            hint=f"Check the path, or write {name.kind}:{repository}@<commit>, with the 40 digits of the commit that "
            "its page shows under Files, History.",
        )
    return repository, revision
