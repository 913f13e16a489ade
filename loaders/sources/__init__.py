"""The table of sources: where texts and clean speech come from. How a source is written: see `names`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable
from urllib.parse import quote

from ...errors import UsageError, unknown_name
from ..audio import Channel, parse_channel
from ..records import Source
from .names import SourceName, parse_source_name
from .rules import check_on_bad

if TYPE_CHECKING:
    from ..data import SpeechData


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A row of the table: the kind that the user types, the function behind it, and the options that it takes.

    `speaks`: whether it has recordings of its own that may be bad. Every kind also takes `speech` (a folder of
    recordings), and with it `missing` (see `with_recordings`) and `channel`.
    """

    name: str
    target: str
    summary: str
    place: str
    options: tuple[str, ...] = ()
    speaks: bool = False


@runtime_checkable
class Published(Protocol):
    """A source that was published with recordings of its own under several conditions.

    `published_when_named`: whether a user who names it means those, and not its clean speech to be mixed.
    """

    published_when_named: bool

    def published(
        self, split: str, *, subsets: Sequence[str] | None = None, limit: int = 0, seed: int = 0
    ) -> SpeechData: ...


SPEECH_OPTIONS = ("speech", "missing", "channel")

SOURCES = {
    spec.name: spec
    for spec in (
        SourceSpec("mini", ".collection:open_mini", "the embedded collection: en, zh and es, with its own speech", ""),
        SourceSpec("built", ".built:open_built", "a folder that squtr built, to mix its clean speech anew", "PATH"),
        SourceSpec(
            "collection",
            ".collection:open_collection",
            "a folder laid out as mini is",
            "PATH",
            ("channel",),
            speaks=True,
        ),
        SourceSpec(
            "beir",
            ".beir:open_beir",
            "a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv",
            "PATH",
            ("language", "split", "subset", "license"),
        ),
        SourceSpec(
            "mteb",
            ".mteb_collection:open_mteb",
            "retrieval data on the Hub; without a place the six published subsets",
            "ORG/NAME@COMMIT",
            ("language", "split", "subset", "license", "config"),
        ),
        SourceSpec(
            "release", ".release:open_release", "the published SQuTR: folder, zip or Hub", "PATH or ORG/NAME@COMMIT",
            ("file",),
        ),
        SourceSpec(
            "recorded",
            ".recorded:open_recorded",
            "recordings with transcripts, without a corpus",
            "PATH",
            ("language", "subset", "license", "channel"),
            speaks=True,
        ),
        SourceSpec(
            "librispeech",
            ".librispeech:open_librispeech",
            "read English books, from the Hub or unpacked; recordings without a corpus",
            "PART or PATH",
            ("part", "channel"),
            speaks=True,
        ),
        SourceSpec(
            "whisper_rir_mega",
            ".whisper_rir_mega:open_whisper_rir_mega",
            "the published pairs of clean and reverberant speech: folder or Hub",
            "PATH or ORG/NAME@REVISION",
        ),
    )
}  # fmt: skip


def load_source(name: str, *, on_bad: str = "refuse") -> Source:
    """The source called `name` (see `names` for how it is written), or the collection folder at that path.

    A path is anything that contains a path separator or names an existing folder; its layout is that of
    `CollectionSource`. With the option `speech`, its clean speech comes from that folder of recordings.

    `on_bad` is what happens to rows that break a rule (see `rules`), and to recordings that cannot be used: "refuse"
    raises an error that tells all of them when they are read; "skip" leaves them out, and `left_out` counts them.
    What others published with recordings under several conditions (release, whisper_rir_mega) counts its own defects.

    Raises `UnknownNameError` for an unknown kind or option, `UsageError` for a name that misses something, and
    `DataError` if the source cannot be read.

    >>> dict(load_source("mini").subsets)
    {'mini-en': 'en', 'mini-zh': 'zh', 'mini-es': 'es'}
    """
    parsed = replace(_parse(name), on_bad=check_on_bad(on_bad))
    spec = SOURCES[parsed.kind]
    for option in parsed.options:
        if option not in (*spec.options, *SPEECH_OPTIONS):
            raise unknown_name(f"option of the source {spec.name}:", option, (*spec.options, *SPEECH_OPTIONS))
    if parsed.place and not spec.place:
        raise UsageError(f"the source {spec.name!r} takes no place, {parsed.place!r}.", hint=f"Write {spec.name}.")
    module, _, attribute = spec.target.partition(":")
    opened = cast("Source", getattr(importlib.import_module(module, __name__), attribute)(parsed))
    if "speech" not in parsed.options:
        if "missing" in parsed.options:
            raise UsageError(
                f"the source {name!r} says what to do with missing recordings, but has none.", hint="Add speech=DIR."
            )
        if "channel" in parsed.options and "channel" not in spec.options:
            raise UsageError(
                f"the source {name!r} says which channel is taken of recordings, but has none.", hint="Add speech=DIR."
            )
        return _usable(opened) if spec.speaks and on_bad == "skip" else opened
    from .recorded import Recordings
    from .speakers import SeveralSpeakers
    from .spoken import with_recordings

    folders = parsed.option("speech")
    parts = [
        with_recordings(
            opened,
            Recordings(Path(folder).expanduser(), channel=parsed.channel, on_bad=on_bad),
            missing=parsed.option("missing", "refuse"),
        )
        for folder in ([folders] if Path(folders).expanduser().exists() else folders.split(","))
    ]
    spoken: Source = parts[0] if len(parts) == 1 else SeveralSpeakers(parts)
    return _usable(spoken) if on_bad == "skip" else spoken


def _usable(source: Source) -> Source:
    from .usable import UsableSource

    return UsableSource(source)


def with_channel(name: str, channel: Channel) -> str:
    """The name of a source with the option `channel`; None leaves it as it is. Raises `UsageError`.

    >>> with_channel("recorded:mine?language=en", 0)
    'recorded:mine?language=en&channel=0'
    """
    if channel is None:
        return name
    if name not in SOURCES and Path(name).is_dir():
        name = f"collection:{quote(name, safe='/')}"
    return f"{name}{'&' if '?' in name else '?'}channel={parse_channel(channel, 'the channel of speech')}"


def _parse(name: str) -> SourceName:
    if not name:
        raise UsageError("the source has no name.", hint=f"Known: {', '.join(SOURCES)}, or a folder.")
    kind = name.partition("?")[0].partition(":")[0]
    if kind in SOURCES:
        return parse_source_name(name)
    if "/" in kind and "?" in name and not Path(name).exists():
        return replace(parse_source_name(f"collection:{name}"), text=name)
    if "/" in kind or Path(name).is_dir():
        return SourceName(name, "collection", name)
    raise unknown_name("source", kind, SOURCES)
