"""The published SQuTR data set as a source: texts and clean speech, from its folder, its zip or the Hub.

    source_data/<language>/<subset>/
      corpus.jsonl                                  {"_id", "title", "text"}
      queries.jsonl                                 {"_id", "text"}
      qrels/test.jsonl                              {"query-id", "corpus-id", "score"}
      queries_with_audio_clean.jsonl                {"_id", "text", "audio"}
      queries_with_audio_noise_snr_{0,10,20}.jsonl  {"_id", "text", "audio", "snr_db", "noise_id"}
      audio_clean/…  audio_noise_snr_{0,10,20}/…    the audio that `audio` names

The published files have defects. They are handled as described here, and `ReleaseSource.report` counts them:

- a grade written as text counts as the number;
- an empty document stays in the corpus, where nothing finds it;
- where a query's text differs between files, that of `queries.jsonl` holds;
- the metadata of a recording may lie at the subset's root or beside the audio; where both exist, the root's holds;
- a judgment of a document that is not in the corpus stays: it can never be found, and ideal rankings count it;
- a query that nothing judges stays, and so does one without a recording.

What could mean two things is an error: an id that occurs twice, a pair judged twice, a judged query without text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...errors import AudioError, DataError, unknown_name
from ..jsonl import read_json_lines, text_field
from ..left_out import LeftOut
from ..records import CleanSpeech, Document, Qrel, Query
from .archive import FolderTree, HubZip, Tree, ZipTree, read_recording
from .clips import Clip, clean_speech, optional_text
from .names import SourceName, hub_place
from .release_report import DefectCounter, SourceReport
from .rules import OnFault
from .tables import (
    SCORE_KEYS,
    Row,
    Table,
    aliased,
    read_qrels,
    read_queries,
    stream_documents,
    subset_name,
    unknown_documents,
)

if TYPE_CHECKING:
    from .release_data import ReleaseData

REPOSITORY = "SLLMCommunity/SQuTR"
REVISION = "2f1b041e2e98e0d28ed68fbcf22126ef247eb719"
"""The commit that is read where none is written; its one data file is a zip of 21,069,841,248 B."""
LICENSE = "CC-BY-SA-4.0"

SUBSETS = ("fiqa", "hotpotqa", "nq", "medicalretrieval", "duretrieval", "t2retrieval")

CLEAN = "clean"
_CORPUS = re.compile(r"(?:(.*)/)?([a-z]{2,3})/([^/]+)/corpus\.jsonl")
_METADATA = re.compile(r"queries_with_audio_(clean|noise_snr_(-?\d+))\.jsonl")
_NOISE_ID = re.compile(r"demand_([A-Z0-9]+)_ch(0[1-9]|1[0-6])")


@dataclass(frozen=True, slots=True)
class NoiseId:
    """What the release says of a noise; `channel` counts from 1 as DEMAND's 16 microphones do, None if unknown."""

    family: str
    channel: int | None


def parse_noise_id(noise_id: str) -> NoiseId:
    """Environment and channel of a DEMAND recording; any other id is its own family.

    >>> parse_noise_id("demand_SCAFE_ch07")
    NoiseId(family='SCAFE', channel=7)
    >>> parse_noise_id("noisex_babble")
    NoiseId(family='noisex_babble', channel=None)
    """
    match = _NOISE_ID.fullmatch(noise_id)
    return NoiseId(noise_id, None) if match is None else NoiseId(match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class PublishedClip:
    """A row of the metadata: the recording of a query under one condition. `snr_db` is None without noise."""

    id: str
    text: str
    audio: str
    snr_db: float | None
    noise_id: str
    place: str


class ReleaseSource:
    """The release in a tree of files. Tables are read when first needed, documents streamed, audio read singly."""

    name = "release"
    license = LICENSE
    benchmark = "squtr"
    split = "test"
    published_when_named = False

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._queries: dict[str, list[Query]] = {}
        self._clips: dict[tuple[str, str], dict[str, PublishedClip]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.tree,))

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over texts and clean speech; the same from folder, zip and Hub."""
        return self.fingerprint((CLEAN,))[:12]

    def published(
        self, split: str = "test", *, subsets: Sequence[str] | None = None, limit: int = 0, seed: int = 0
    ) -> ReleaseData:
        from .release_data import ReleaseData

        if split != "test":
            raise unknown_name("split of the release:", split, ["test"])
        return ReleaseData(self, subsets=subsets, limit=limit, seed=seed)

    def fingerprint(self, variants: Sequence[str]) -> str:
        """The sha256 over all tables, by their sha256, and the recordings of these variants, by size and CRC-32.

        A variant is `clean` or `noise_snr_<dB>`. Of a folder, every file is read the first time.
        """
        kept = self.tree.kept_digests()
        digest = hashlib.sha256()
        for subset, folder in self._folders.items():
            for table in ("corpus.jsonl", "queries.jsonl", "qrels/test.jsonl"):
                digest.update(f"{subset}/{table} {self.tree.sha256(f'{folder}{table}', kept)}\n".encode())
            for variant in variants:
                metadata = self._metadata(subset, variant)
                digest.update(
                    f"{subset}/{variant} {self.tree.sha256(metadata[0], kept) if metadata else ''}\n".encode()
                )
            for name in (n for variant in variants for n in self._recordings(folder, variant)):
                checksum = self.tree.crc32(name, kept)
                digest.update(f"{name[len(folder) :]} {self.tree.files[name]} {checksum}\n".encode())
        kept.save()
        return digest.hexdigest()

    def _recordings(self, folder: str, variant: str) -> list[str]:
        start = f"{folder}audio_{variant}/"
        return [name for name in self.tree.files if name.startswith(start) and not name.endswith(".jsonl")]

    @cached_property
    def _places(self) -> dict[str, tuple[str, str]]:
        """Subset to its language and its folder, which ends with "/", in published order."""
        found: dict[str, tuple[str, str]] = {}
        for name in self.tree.files:
            match = _CORPUS.fullmatch(name) if name.endswith("/corpus.jsonl") else None
            if match is None:
                continue
            subset, folder = subset_name(match[3]), name.removesuffix("corpus.jsonl")
            if subset in found:
                raise DataError(
                    f"{self.tree.label} holds the subset {subset!r} in {found[subset][1]} and in {folder}.",
                    hint="Remove one.",
                )
            found[subset] = (match[2], folder)
        if not found:
            raise DataError(
                f"{self.tree.label} is not the SQuTR release.",
                hint="It must hold source_data/<language>/<subset>/corpus.jsonl: check the path.",
            )
        order = {subset: index for index, subset in enumerate(SUBSETS)}
        return dict(sorted(found.items(), key=lambda item: (order.get(item[0], len(order)), item[1])))

    @property
    def _folders(self) -> dict[str, str]:
        return {subset: folder for subset, (_, folder) in self._places.items()}

    @property
    def subsets(self) -> Mapping[str, str]:
        return MappingProxyType({subset: language for subset, (language, _) in self._places.items()})

    def _place(self, subset: str) -> tuple[str, str]:
        if subset not in self._places:
            raise unknown_name("subset of the release:", subset, self._places)
        return self._places[subset]

    def _table(self, name: str) -> Table:
        def rows(bad: OnFault) -> Iterator[Row]:
            with self.tree.open(name) as stream:
                yield from read_json_lines(stream, name, bad)

        return Table(name, rows)

    def _of(self, subset: str, table: str) -> Table:
        return self._table(f"{self._place(subset)[1]}{table}")

    def queries(self, subset: str) -> Sequence[Query]:
        if subset not in self._queries:
            self._queries[subset] = read_queries(self._of(subset, "queries.jsonl"), subset, self._place(subset)[0])
        return self._queries[subset]

    def documents(self, subset: str) -> Iterator[Document]:
        return stream_documents(self._of(subset, "corpus.jsonl"))

    def qrels(self, subset: str) -> Sequence[Qrel]:
        table = self._of(subset, "qrels/test.jsonl")
        found = read_qrels(table)
        known = {query.id for query in self.queries(subset)}
        for qrel, number in found.items():
            if qrel.query_id not in known:
                raise DataError(
                    f"{table.place(number)}: the query {qrel.query_id!r} is not in queries.jsonl.", hint="Mend the id."
                )
        return list(found)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Clean recordings of no query, of the subsets that were read (none yet: of all)."""
        unused: list[str] = []
        for subset in list(self._queries) or list(self.subsets):
            known = {query.id for query in self.queries(subset)}
            clips = self.clips(subset, CLEAN) if self._metadata(subset, CLEAN) else {}
            unused += [clip.audio for clip in clips.values() if clip.id not in known]
        return LeftOut.of("recordings without a query", unused)

    def variants(self, subset: str) -> dict[str, float | None]:
        """What the subset has recordings of: `clean` and `noise_snr_<dB>`, with the level; quieter noise first."""
        folder = self._place(subset)[1]
        found: dict[str, float | None] = {}
        for name in self.tree.files:
            if not name.startswith(folder):
                continue
            match = _METADATA.fullmatch(name.rpartition("/")[2])
            if match is not None and self._metadata(subset, match[1]) is not None:
                found[match[1]] = None if match[2] is None else float(match[2])
        return dict(sorted(found.items(), key=lambda variant: (variant[1] is not None, -(variant[1] or 0.0))))

    def _metadata(self, subset: str, variant: str) -> tuple[str, ...] | None:
        """The names of the metadata of a variant: that which holds, and a second one if both places have it."""
        folder = self._place(subset)[1]
        name = f"queries_with_audio_{variant}.jsonl"
        found = tuple(n for n in (f"{folder}{name}", f"{folder}audio_{variant}/{name}") if n in self.tree.files)
        return found or None

    def clips(self, subset: str, variant: str) -> Mapping[str, PublishedClip]:
        """The metadata of a variant, by query id. Raises `DataError` if there is none, or an id occurs twice."""
        if (subset, variant) not in self._clips:
            names = self._metadata(subset, variant)
            if names is None:
                raise DataError(
                    f"{self.tree.label} has no queries_with_audio_{variant}.jsonl for {subset}.", hint="Complete it."
                )
            self._clips[subset, variant] = self._read_clips(names[0])
        return self._clips[subset, variant]

    def _read_clips(self, name: str) -> dict[str, PublishedClip]:
        found: dict[str, PublishedClip] = {}
        table = self._table(name)
        for number, row in table.rows():
            place = table.place(number)
            level = row.get("snr_db")
            if level is not None and (isinstance(level, bool) or not isinstance(level, int | float | str)):
                raise DataError(f"{place}: field 'snr_db' is {level!r} where a number is expected.")
            try:
                snr_db = None if level is None else float(level)
            except ValueError as error:
                raise DataError(f"{place}: field 'snr_db' is {level!r} where a number is expected.") from error
            clip = PublishedClip(
                text_field(row, "_id", place),
                optional_text(row, "text", place),
                text_field(row, "audio", place),
                snr_db,
                optional_text(row, "noise_id", place),
                place,
            )
            if clip.id in found:
                raise DataError(f"{place}: the query id {clip.id!r} occurs twice.", hint="Ids must be unique.")
            found[clip.id] = clip
        return found

    def recording(self, subset: str, variant: str, clip: PublishedClip) -> str | None:
        """The file of a clip in the tree, None if it is not there."""
        folder = self._place(subset)[1]
        names = (f"{folder}audio_{variant}/{clip.audio}", f"{folder}{clip.audio}")
        return next((name for name in names if name in self.tree.files), None)

    def speech(self, query: Query) -> CleanSpeech:
        """Raises `AudioError` naming query and file. The release does not say who speaks."""
        clip = self.clips(query.subset, CLEAN).get(query.id)
        file = None if clip is None else self.recording(query.subset, CLEAN, clip)
        if clip is None or file is None:
            state = "no recording" if clip is None else f"the recording {clip.audio}, which does not exist"
            raise AudioError(
                f"query {query.id!r} of {query.subset} has {state} in {self.tree.label}.",
                hint="Complete the release, or leave the query out.",
            )
        name = f"the recording {file} of query {query.id!r}"
        return clean_speech(read_recording(self.tree, file), Clip(file), name)

    def report(self, subset: str) -> SourceReport:
        """What is wrong with a subset, counted. Reads all its tables to the end, no audio."""
        defects = DefectCounter()
        queries = {query.id: query for query in self.queries(subset)}
        qrels = self.qrels(subset)
        for _, row in self._of(subset, "qrels/test.jsonl").rows():
            if isinstance(row.get(aliased(row, SCORE_KEYS)), str):
                defects.add("grade_is_text", f"{row.get('query-id')} {row.get('corpus-id')}")
        documents = 0

        def watched() -> Iterator[Document]:
            nonlocal documents
            for document in self.documents(subset):
                documents += 1
                if not document.contents:
                    defects.add("empty_document", document.id)
                yield document

        for id_ in sorted(unknown_documents(qrels, watched())):
            defects.add("judged_document_is_missing", id_)
        judged = {qrel.query_id for qrel in qrels}
        for id_ in queries:
            if id_ not in judged:
                defects.add("query_is_not_judged", id_)
        for variant, level in self.variants(subset).items():
            self._report_variant(subset, variant, level, queries, defects)
        return SourceReport(subset, len(queries), documents, len(qrels), defects.found())

    def _report_variant(
        self, subset: str, variant: str, level: float | None, queries: Mapping[str, Query], defects: DefectCounter
    ) -> None:
        names = self._metadata(subset, variant) or ()
        folder = self._place(subset)[1]
        if names and names[0].startswith(f"{folder}audio_"):
            defects.add("metadata_is_beside_the_audio", names[0])
        if len(names) > 1:
            with self.tree.open(names[0]) as one, self.tree.open(names[1]) as two:
                same = one.read() == two.read()
            defects.add("metadata_is_there_twice" if same else "metadata_is_there_twice_and_differs", names[1])
        clips = self.clips(subset, variant)
        for clip in clips.values():
            query = queries.get(clip.id)
            if query is None:
                defects.add("recording_of_unknown_query", f"{variant} {clip.id}")
            elif clip.text.strip() != query.text:
                defects.add("text_differs", f"{variant} {clip.id}")
            if self.recording(subset, variant, clip) is None:
                defects.add("recording_is_missing", f"{variant} {clip.id} {clip.audio}")
            if clip.snr_db != level:
                defects.add("level_differs", f"{variant} {clip.id} {clip.snr_db}")
        for id_ in queries:
            if id_ not in clips:
                defects.add("query_has_no_recording", f"{variant} {id_}")


def open_release(name: SourceName) -> ReleaseSource:
    """`release` (the published one), `release:FOLDER`, `release:ZIP` or `release:ORG/NAME@COMMIT`."""
    if not name.place:
        name = SourceName(name.text, name.kind, REPOSITORY, name.options)
    place, revision = hub_place(name, {REPOSITORY: REVISION})
    if revision is not None:
        return ReleaseSource(HubZip(str(place), revision, name.option("file")))
    folder = name.folder()
    return ReleaseSource(FolderTree(folder) if folder.is_dir() else ZipTree(folder))
