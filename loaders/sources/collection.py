"""A collection folder: texts, judgements and clean speech side by side, the layout of the embedded source `mini`.

    about.json                 {"name": "mini", "licence": "CC0-1.0", "subsets": {"mini-en": "en", …}}
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
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...errors import AudioError, DataError, UnknownNameError, nearest
from ..audio import check_samples, decode_audio, resample
from ..jsonl import integer_field, read_jsonl, text_field
from ..records import NAN, CleanSpeech, Document, Qrel, Query

TABLES = ("corpus", "queries", "qrels", "speech")


@dataclass(frozen=True, slots=True)
class _Clip:
    file: str
    voice: str
    speaker: str
    tts_error_rate: float


class CollectionSource:
    """A collection folder as a source. Tables are read and checked when first needed, sound on demand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._queries: dict[str, list[Query]] = {}
        self._documents: dict[str, list[Document]] = {}
        self._clips: dict[str, dict[str, _Clip]] = {}
        about = self._about
        self._name = text_field(about, "name", str(root / "about.json"))
        self._licence = text_field(about, "licence", str(root / "about.json"))

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

    @property
    def name(self) -> str:
        """The collection's name, from `about.json`."""
        return self._name

    @property
    def licence(self) -> str:
        """SPDX identifiers of text and speech, from `about.json`."""
        return self._licence

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over all tables; these hold the checksums of the recordings."""
        digest = hashlib.sha256()
        for path in (self.root / "about.json", *(self._table(t, s) for s in self.subsets for t in TABLES)):
            content = path.read_bytes() if path.exists() else b""
            digest.update(f"{path.name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:12]

    @property
    def subsets(self) -> Mapping[str, str]:
        """Subset name to language code."""
        return MappingProxyType(self._about["subsets"])

    def _table(self, table: str, subset: str) -> Path:
        return self.root / f"{table}.{self._language(subset)}.jsonl"

    def _language(self, subset: str) -> str:
        language = self.subsets.get(subset)
        if language is None:
            guess = nearest(subset, self.subsets)
            raise UnknownNameError(
                f"{self.name} has no subset {subset!r}.",
                hint=f"{f'Did you mean {guess!r}? ' if guess else ''}Known: {', '.join(self.subsets)}.",
            )
        return str(language)

    def queries(self, subset: str) -> Sequence[Query]:
        """All queries in file order. Raises `DataError` for a duplicate id or an empty text."""
        if subset not in self._queries:
            path, language = self._table("queries", subset), self._language(subset)
            found: dict[str, Query] = {}
            for number, row in read_jsonl(path):
                place = f"{path}, line {number}"
                id_ = text_field(row, "_id", place)
                query = Query(
                    id_,
                    subset,
                    language,
                    text_field(row, "text", place).strip(),
                    text_field(row, "domain", place, default=""),
                )
                if id_ in found:
                    raise DataError(f"{place}: the query id {id_!r} occurs twice.", hint="Ids must be unique.")
                if not query.text:
                    raise DataError(f"{place}: query {id_!r} has no text.", hint="Give it a text or remove it.")
                found[id_] = query
            if not found:
                raise DataError(f"{path} holds no queries.", hint="Add at least one.")
            self._queries[subset] = list(found.values())
        return self._queries[subset]

    def documents(self, subset: str) -> Sequence[Document]:
        """All documents in file order. Raises `DataError` for a duplicate id or an empty corpus."""
        if subset not in self._documents:
            path = self._table("corpus", subset)
            found: dict[str, Document] = {}
            for number, row in read_jsonl(path):
                place = f"{path}, line {number}"
                id_ = text_field(row, "_id", place)
                if id_ in found:
                    raise DataError(f"{place}: the document id {id_!r} occurs twice.", hint="Ids must be unique.")
                title, text = (text_field(row, "title", place, default=""), text_field(row, "text", place))
                found[id_] = Document(id_, title, text)
            if not found:
                raise DataError(f"{path} holds no documents.", hint="Add at least one.")
            self._documents[subset] = list(found.values())
        return self._documents[subset]

    def qrels(self, subset: str) -> Sequence[Qrel]:
        """All judgements. Raises `DataError` where one names an unknown query or document, or judges a pair twice."""
        path = self._table("qrels", subset)
        query_ids = {query.id for query in self.queries(subset)}
        document_ids = {document.id for document in self.documents(subset)}
        found: dict[tuple[str, str], Qrel] = {}
        for number, row in read_jsonl(path):
            place = f"{path}, line {number}"
            qrel = Qrel(
                text_field(row, "query-id", place),
                text_field(row, "corpus-id", place),
                integer_field(row, "score", place),
            )
            if qrel.query_id not in query_ids:
                raise DataError(f"{place}: the query {qrel.query_id!r} is not in queries.", hint="Mend the id.")
            if qrel.document_id not in document_ids:
                raise DataError(
                    f"{place}: the document {qrel.document_id!r} is not in the corpus.", hint="Mend the id."
                )
            if found.setdefault((qrel.query_id, qrel.document_id), qrel) is not qrel:
                raise DataError(
                    f"{place}: query {qrel.query_id!r} and document {qrel.document_id!r} are judged twice.",
                    hint="Keep one line.",
                )
        if not found:
            raise DataError(f"{path} holds no judgements.", hint="Add at least one.")
        return list(found.values())

    def _clip(self, query: Query) -> _Clip:
        if query.subset not in self._clips:
            path = self._table("speech", query.subset)
            clips: dict[str, _Clip] = {}
            for number, row in read_jsonl(path):
                place = f"{path}, line {number}"
                rate = row.get("tts_error_rate")
                rate = float(rate) if isinstance(rate, int | float) and math.isfinite(rate) else NAN
                clips[text_field(row, "_id", place)] = _Clip(
                    text_field(row, "file", place),
                    text_field(row, "voice", place, default=""),
                    text_field(row, "speaker", place, default=""),
                    rate,
                )
            self._clips[query.subset] = clips
        clip = self._clips[query.subset].get(query.id)
        if clip is None:
            raise AudioError(
                f"query {query.id!r} has no recording in {self._table('speech', query.subset)}.",
                hint="Record it, or leave the query out.",
            )
        return clip

    def speech(self, query: Query) -> CleanSpeech:
        """The clean recording of `query`, resampled to 24 kHz. Raises `AudioError` naming query and file."""
        clip = self._clip(query)
        speech = (self.root / "speech").resolve()
        path = (speech / clip.file).resolve()
        name = f"the recording {clip.file} of query {query.id!r}"
        if not path.is_relative_to(speech):
            raise AudioError(f"{name} lies outside {speech}.", hint="Use a path inside the folder.")
        if not path.is_file():
            raise AudioError(f"{name} does not exist in {speech}.", hint="Restore the file, or leave the query out.")
        samples, rate = decode_audio(path, name)
        samples = resample(check_samples(samples, name), rate)
        return CleanSpeech(samples, clip.speaker, clip.voice, clip.tts_error_rate)


def mini() -> CollectionSource:
    """The embedded collection."""
    return CollectionSource(Path(__file__).resolve().parent.parent / "data" / "mini")
