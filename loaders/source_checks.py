"""What is wrong with a source, and what is odd about it, before anything is built of it.

Errors are those of a build, all of them. Remarks fail nothing: the data are read as they are, and a user who knows
what is odd decides. Documents are streamed twice; of texts and clips, digests are kept.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b

from ..errors import DataError
from .faults import SHOWN
from .in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from .left_out import EXAMPLES, LeftOut, left_out_of
from .mixing import mean_square
from .records import CleanSpeech, Query, Source
from .shard_checks import Progress
from .sources.checked import CheckedTables
from .sources.joined import parts_of
from .sources.speakers import SeveralSpeakers
from .sources.spoken import SpokenSource
from .sources.texts import TextSource
from .sources.usable import UsableSource
from .text import has_replacement

NEAR_SILENCE_DB = -55
"""RMS over the whole clip, of full scale: speech of a usual recording lies 30 dB above it."""
_TAG = re.compile(r"<\|[^<>|]*\|>|\[[A-Z]+(?:[ _][A-Z]+)*\]|</?(?:unk|pad|s|eos|bos|sil|spn|noise)>", re.IGNORECASE)
"""What models write beside the words: <|en|>, [BLANK_AUDIO], <unk>. In brackets, capitals alone (see `model_tags`)."""

DOUBLES = "documents with the text of a relevant one that are not judged relevant themselves"
EMPTY = "documents with neither title nor text"
LOST = "{} with a character that was lost (U+FFFD)"
TAGS = "queries with a tag that nobody says, as <|en|> or [BLANK_AUDIO]"
SAME_QUERY = "queries with the text of another query"
SAME_AUDIO = "queries with the audio of another query"
NEAR_SILENT = f"clips near silence (below {NEAR_SILENCE_DB} dBFS)"


def model_tags(text: str) -> list[str]:
    """The tags of models in a text.

    >>> model_tags("<|en|> what is a [mask] [BLANK_AUDIO] <unk>?")
    ['<|en|>', '[BLANK_AUDIO]', '<unk>']
    """
    found: list[str] = _TAG.findall(text)
    return [tag for tag in found if not tag.startswith("[") or tag.isupper()]


@dataclass(frozen=True, slots=True)
class SourceDiagnosis:
    """What was read, of all subsets. `errors` are the first of `error_count`: what a build would refuse. `remarks` and
    `left_out` fail nothing."""

    name: str
    version: str
    split: str
    queries: int
    documents: int
    judgments: int
    clips: int
    errors: tuple[str, ...]
    error_count: int
    remarks: tuple[LeftOut, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def healthy(self) -> bool:
        return not self.error_count


class _Remarks:
    """Remarks by kind: a count and the first examples."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, kind: str, example: str) -> None:
        self._counts[kind] += 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    def found(self) -> tuple[LeftOut, ...]:
        return tuple(LeftOut(kind, n, tuple(self._examples[kind])) for kind, n in sorted(self._counts.items()))


class _Errors:
    """The first errors and the number of all; one that is told again counts once among the first."""

    def __init__(self) -> None:
        self.first: dict[str, None] = {}
        self.count = 0

    def add(self, messages: Sequence[str], count: int = 0) -> None:
        new = [message for message in messages if message not in self.first]
        self.count += max(count - (len(messages) - len(new)), len(new))
        for message in new[: SHOWN - len(self.first)]:
            self.first[message] = None

    @contextmanager
    def collected(self) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            self.add([error.message])


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def tables_of(source: Source) -> tuple[CheckedTables, ...]:
    """The checked tables below a source, through what speaks them, joins them or leaves some out."""
    found: list[CheckedTables] = []
    for part in parts_of(source):
        if isinstance(part, CheckedTables):
            found.append(part)
        elif isinstance(part, UsableSource):
            found += tables_of(part.source)
        elif isinstance(part, SpokenSource | SeveralSpeakers):
            found += tables_of(part.texts)
    return tuple(found)


def examine_source(source: Source, progress: Progress | None = None) -> SourceDiagnosis:
    """Read all of a source, decode its recordings, and say what is wrong and what is odd.

    Where tables are wrong nothing further is read: it would tell the same again.
    """
    errors, remarks = _Errors(), _Remarks()
    for tables in tables_of(source):
        if tables.on_bad == "refuse":
            bad = tables.examine()
            errors.add([fault.message for fault in bad.first], bad.count)
    counts: Counter[str] = Counter()
    version, left = "", tuple[LeftOut, ...]()
    if not errors.count:
        clips = _Clips(source, errors, remarks, progress)
        with errors.collected():
            for subset in source.subsets:
                with errors.collected():
                    queries = list(source.queries(subset))
                    counts["queries"] += len(queries)
                    _remark_on_queries(queries, remarks)
                    counts["clips"] += clips.examine(queries)
                    documents, judgments = _remark_on_documents(source, subset, remarks)
                    counts["documents"] += documents
                    counts["judgments"] += judgments
            version, left = source.version, left_out_of(source)
    return SourceDiagnosis(
        name=source.name,
        version=version,
        split=str(getattr(source, "split", "")),
        queries=counts["queries"],
        documents=counts["documents"],
        judgments=counts["judgments"],
        clips=counts["clips"],
        errors=tuple(errors.first),
        error_count=errors.count,
        remarks=remarks.found(),
        left_out=left,
    )


def _remark_on_queries(queries: Sequence[Query], remarks: _Remarks) -> None:
    first: dict[bytes, str] = {}
    for query in queries:
        for _ in model_tags(query.text)[:1]:
            remarks.add(TAGS, query.id)
        if has_replacement(query.text):
            remarks.add(LOST.format("queries"), query.id)
        # Several speakers of one query are several utterances of it.
        key = _digest(" ".join(query.text.split()).casefold().encode())
        if first.setdefault(key, query.cluster) != query.cluster:
            remarks.add(SAME_QUERY, query.id)


def _remark_on_documents(source: Source, subset: str, remarks: _Remarks) -> tuple[int, int]:
    """The numbers of documents and judgments."""
    qrels = source.qrels(subset)
    relevant: dict[str, set[str]] = {}
    for qrel in qrels:
        if qrel.score > 0:
            relevant.setdefault(qrel.document_id, set()).add(qrel.query_id)
    digests: dict[str, bytes] = {}
    count = 0
    for document in source.documents(subset):
        count += 1
        contents = document.contents
        if not contents:
            remarks.add(EMPTY, document.id)
        elif document.id in relevant:
            digests[document.id] = _digest(contents.encode())
        if has_replacement(contents):
            remarks.add(LOST.format("documents"), document.id)
    if digests:
        _remark_on_doubles(source, subset, relevant, digests, remarks)
    return count, len(qrels)


def _remark_on_doubles(
    source: Source, subset: str, relevant: dict[str, set[str]], digests: dict[str, bytes], remarks: _Remarks
) -> None:
    """Remark on documents that a query has no judgment of though it has one of an equal text."""
    of_text: dict[bytes, list[str]] = {}
    for id_, digest in digests.items():
        of_text.setdefault(digest, []).append(id_)
    for document in source.documents(subset):
        # Judged documents have their digest already.
        digest = digests.get(document.id) or _digest(document.contents.encode())
        for id_ in of_text.get(digest, ()):
            if id_ != document.id and relevant[id_] - relevant.get(document.id, set()):
                remarks.add(DOUBLES, document.id)
                break


class _Clips:
    """Decodes recordings, and keeps a digest of each."""

    def __init__(self, source: Source, errors: _Errors, remarks: _Remarks, progress: Progress | None) -> None:
        self._source, self._errors, self._remarks, self._progress = source, errors, remarks, progress
        self._first: dict[bytes, tuple[str, str]] = {}
        self._silent = all(isinstance(part, TextSource) for part in parts_of(source))

    def examine(self, queries: Sequence[Query]) -> int:
        """The number of recordings that can be used. Of texts alone there are none."""
        if self._silent or not queries:
            return 0
        import_before_threads(*SIGNAL_PACKAGES)
        decoded = 0
        found = in_order(self._examined, queries, workers=os.cpu_count() or 1)
        for number, (query, clip) in enumerate(zip(queries, found, strict=True), 1):
            if isinstance(clip, DataError):
                self._errors.add([clip.message])
            else:
                decoded += 1
                digest, rms = clip
                if rms < 10 ** (NEAR_SILENCE_DB / 20):
                    self._remarks.add(NEAR_SILENT, query.id)
                key = (query.subset, query.id)
                if self._first.setdefault(digest, key) != key:
                    self._remarks.add(SAME_AUDIO, query.id)
            if self._progress is not None:
                self._progress(f"decoding {query.subset}", number, len(queries))
        return decoded

    def _examined(self, query: Query) -> tuple[bytes, float] | DataError:
        try:
            speech: CleanSpeech = self._source.speech(query)
        except DataError as error:
            return error
        return _digest(speech.samples.tobytes()), float(mean_square(speech.samples)) ** 0.5
