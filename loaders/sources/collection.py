"""A collection folder: texts, judgments and clean speech side by side, the layout of the embedded source `mini`.

    about.json                 {"name": "mini", "license": "CC0-1.0", "subsets": {"mini-en": "en", …}}
    corpus.<language>.jsonl    {"_id", "title", "text"}
    queries.<language>.jsonl   {"_id", "text", "domain"}
    qrels.<language>.jsonl     {"query-id", "corpus-id", "score"}
    speech.<language>.jsonl    {"_id", "file", "voice", "speaker", "tts_error_rate"}
    speech/<language>/…        the recordings that `file` names, relative to `speech/`

One subset per language.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...errors import AudioError, DataError, UnknownNameError, nearest
from ..audio import Channel
from ..jsonl import text_field
from ..records import SAMPLE_RATE, CleanSpeech, Document, Query
from .checked import CheckedTables, Part
from .clips import Clip, clip_of, read_clip
from .names import SourceName, channel_suffix
from .rules import version_suffix
from .tables import Table, jsonl_table

TABLES = ("corpus", "queries", "qrels", "speech")


class CollectionSource(CheckedTables):
    """A collection folder as a source. Tables are read and checked when first needed, audio on demand."""

    judged_only = False

    def __init__(self, root: Path, benchmark: str = "", on_bad: str = "refuse", channel: Channel = None) -> None:
        super().__init__(on_bad)
        self.root = root
        self.benchmark = benchmark
        self._channel = channel
        self._documents: dict[str, list[Document]] = {}
        self._clips: dict[str, dict[str, Clip]] = {}
        about = self._about
        self.name = text_field(about, "name", str(root / "about.json"))
        self.license = text_field(about, "license", str(root / "about.json"))

    @cached_property
    def _about(self) -> dict[str, Any]:
        path = self.root / "about.json"
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise DataError(
                f"{self.root} is not a collection folder: about.json is missing.", hint="Check the path."
            ) from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} is not JSON: {error}.", hint="Mend the file.") from error
        if not isinstance(about, dict) or not isinstance(about.get("subsets"), dict) or not about["subsets"]:
            raise DataError(f"{path} lacks the object 'subsets' (subset name to language).", hint="Mend the file.")
        for subset in about["subsets"]:
            if "_" in subset or "/" in subset:
                raise DataError(f"{path}: the subset name {subset!r} holds '_' or '/'.", hint="Use '-' instead.")
        return about

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over all tables; these hold the checksums of the recordings."""
        digest = hashlib.sha256()
        for path in (self.root / "about.json", *(self._path(t, s) for s in self.subsets for t in TABLES)):
            content = path.read_bytes() if path.exists() else b""
            digest.update(f"{path.name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:12] + channel_suffix(self._channel) + version_suffix(self.on_bad)

    @property
    def subsets(self) -> Mapping[str, str]:
        return MappingProxyType(self._about["subsets"])

    def table(self, part: Part, subset: str) -> Table:
        return jsonl_table(self._path(part, subset))

    def _path(self, table: str, subset: str) -> Path:
        return self.root / f"{table}.{self.language_of(subset)}.jsonl"

    def language_of(self, subset: str) -> str:
        language = self.subsets.get(subset)
        if language is None:
            guess = nearest(subset, self.subsets)
            raise UnknownNameError(
                f"{self.name} has no subset {subset!r}.",
                hint=f"{f'Did you mean {guess!r}? ' if guess else ''}Known: {', '.join(self.subsets)}.",
            )
        return str(language)

    def documents(self, subset: str) -> Sequence[Document]:
        if subset not in self._documents:
            self._documents[subset] = list(self.stream(subset))
        return self._documents[subset]

    def _clip(self, query: Query) -> Clip:
        table = jsonl_table(self._path("speech", query.subset))
        if query.subset not in self._clips:
            clips: dict[str, Clip] = {}
            for number, row in table.rows():
                place = table.place(number)
                clips[text_field(row, "_id", place)] = clip_of(row, place)
            self._clips[query.subset] = clips
        clip = self._clips[query.subset].get(query.id)
        if clip is None:
            raise AudioError(
                f"query {query.id!r} has no recording in {table.name}.", hint="Record it, or leave the query out."
            )
        return clip

    def speaker_of(self, query: Query) -> str:
        clip = self._clip(query)
        return clip.speaker or clip.voice

    def speech(self, query: Query) -> CleanSpeech:
        return self.speech_at(query, SAMPLE_RATE)

    def speech_at(self, query: Query, rate: int) -> CleanSpeech:
        return read_clip(self.root / "speech", self._clip(query), query, rate, channel=self._channel)


def open_mini(_: SourceName) -> CollectionSource:
    # It has no bad row, so on_bad changes nothing.
    return CollectionSource(Path(__file__).resolve().parent.parent / "data" / "mini", "squtr")


def open_collection(name: SourceName) -> CollectionSource:
    """The collection folder that `name` places. Raises `DataError` that says how to write another layout."""
    folder = name.folder()
    for kind, sign in (("beir", "qrels"), ("release", "source_data")):
        if (folder / sign).is_dir() and not (folder / "about.json").exists():
            end = "?language=en" if kind == "beir" else ""
            raise DataError(
                f"{folder} is not a collection folder: it holds {sign}/ and no about.json.",
                hint=f"Write {kind}:{folder}{end}.",
            )
    return CollectionSource(folder, on_bad=name.on_bad, channel=name.channel)
