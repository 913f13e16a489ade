"""One split of a data set of speech as the harness reads it: a built folder, or a recipe rendered on the fly."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DataError, UsageError, unknown_name
from .blocks import render_rows
from .corpus import Corpus
from .corpus_parquet import ParquetRows
from .left_out import LeftOut
from .manifest import MANIFEST_NAME, Manifest, Shard, read_manifest
from .recipe import OpenedRecipe
from .records import Document, Qrel, Query, SpokenQuery
from .rows import ROWS_PER_TABLE, spoken_row

TEST = "test"


class SpeechData(Protocol):
    """Utterances under several conditions, and where they are queries, their corpora and judgments: one split."""

    @property
    def recipe(self) -> Mapping[str, Any]:
        """What decides the data, as JSON object (see `Recipe`)."""
        ...

    @property
    def revision(self) -> str:
        """The fingerprint of the recipe, or the commit."""
        ...

    @property
    def manifest_sha256(self) -> str:
        """The sha256 of `manifest.json`, "" for data that was not built."""
        ...

    @property
    def benchmark(self) -> str:
        """The name of the benchmark that the data is made for, "" for none."""
        ...

    @property
    def split(self) -> str: ...

    @property
    def subsets(self) -> Mapping[str, str]: ...

    @property
    def conditions(self) -> Sequence[str]: ...

    @property
    def edges(self) -> Mapping[str, Sequence[float]]:
        """Edges of bins that are fixed in the data (see `Manifest`) by row column, {} for none."""
        ...

    def queries(self, subset: str) -> Sequence[Query]:
        """The utterances (typed queries), with unique ids."""
        ...

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        """The rows of a condition in order; where an utterance has several RIRs, one for each (see `Query`)."""
        ...

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """The spoken rows in the order of `rows`: those at positions `start` to `stop` (not included) of it."""
        ...

    def has_corpus(self, subset: str) -> bool: ...

    def documents(self, subset: str) -> Sequence[Document]:
        """The corpus; empty for speech with transcripts alone."""
        ...

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        """Grades by the id of an utterance (see `queries`) and a document."""
        ...


class LiveData:
    """A recipe rendered when it is read; `rows_at_once` is how many rows a reader should ask for together."""

    rows_at_once = 64
    manifest_sha256 = ""

    def __init__(self, opened: OpenedRecipe, split: str = TEST, *, workers: int = 0) -> None:
        if split not in opened.recipe.splits:
            raise unknown_name("split", split, opened.recipe.splits)
        self._opened = opened
        self._workers = workers or os.cpu_count() or 1
        self.split = split
        self.recipe: Mapping[str, Any] = opened.recipe.as_dict()
        self.revision = opened.recipe.fingerprint
        self.benchmark = opened.recipe.benchmark
        self.subsets: Mapping[str, str] = dict(opened.recipe.subsets)
        self.conditions: Sequence[str] = opened.recipe.conditions
        plan = opened.plan
        self.edges: Mapping[str, Sequence[float]] = plan.strata.edges if plan else {}
        self._corpora: WeakValueDictionary[str, Corpus] = WeakValueDictionary()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What of sources and banks was not taken."""
        return self._opened.left_out

    def queries(self, subset: str) -> Sequence[Query]:
        return self._opened.queries(subset, self.split)

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        return [row.query for row in self._opened.rows(subset, condition, self.split)]

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        rows = self._opened.rows(subset, condition, self.split)[start:stop]
        return render_rows(self._opened, self._opened.condition(condition), rows, workers=self._workers)

    def has_corpus(self, subset: str) -> bool:
        return next(iter(self._opened.source.documents(subset)), None) is not None

    def documents(self, subset: str) -> Corpus:
        corpus = self._corpora.get(subset)
        if corpus is None:
            corpus = self._corpora[subset] = Corpus.of(self._opened.source.documents(subset))
        return corpus

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        return grades_of(self.queries(subset), self._opened.source.qrels(subset))


class BuiltData:
    """A split of a folder that `squtr build` wrote. Raises `DataError`, `UnknownNameError` for another split."""

    def __init__(self, folder: Path, split: str = TEST) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder} does not exist.", hint="Run `squtr build` first, or check the path.")
        self.folder = folder
        self.manifest: Manifest = read_manifest(folder)
        if not self.manifest.complete:
            raise DataError(f"the build in {folder} is not finished.", hint="Run the same `squtr build` again.")
        if split not in self.manifest.splits:
            raise unknown_name(f"split of {folder}:", split, self.manifest.splits)
        self.split = split
        self.recipe: Mapping[str, Any] = self.manifest.recipe
        self.revision = self.manifest.recipe_fingerprint
        self.benchmark = self.manifest.benchmark
        self.subsets: Mapping[str, str] = self.manifest.subsets
        self.conditions: Sequence[str] = self.manifest.conditions
        self.edges: Mapping[str, Sequence[float]] = self.manifest.edges
        self._corpora: WeakValueDictionary[str, Corpus] = WeakValueDictionary()

    @cached_property
    def manifest_sha256(self) -> str:
        return hashlib.sha256((self.folder / MANIFEST_NAME).read_bytes()).hexdigest()

    def _language(self, subset: str) -> str:
        if subset not in self.subsets:
            raise unknown_name(f"subset of {self.folder}:", subset, self.subsets)
        return self.subsets[subset]

    def _spoken_shards(self, subset: str, condition: str) -> list[Shard]:
        language = self._language(subset)
        if condition not in self.manifest.conditions:
            raise unknown_name(f"condition of {self.folder}:", condition, self.manifest.conditions)
        return self.manifest.below(f"queries/{language}/{subset}/{condition}", self.split)

    def _batches(
        self, shards: Sequence[Shard], columns: list[str] | None = None, *, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        at = 0  # the position of the shard's first row
        for shard in shards:
            first, at = at, at + shard.rows
            if at <= start or (stop is not None and first >= stop):
                continue
            path = self.folder / shard.path
            try:
                with pq.ParquetFile(path) as file:
                    if file.metadata.num_rows != shard.rows:
                        raise DataError(
                            f"{path} has {file.metadata.num_rows} rows, the manifest says {shard.rows}.",
                            hint="Build the folder again.",
                        )
                    yield from rows_between(file, start - first, at if stop is None else stop - first, columns)
            except (OSError, pa.ArrowException) as error:
                raise DataError(f"{path} cannot be read: {error}.", hint="Build the folder again.") from error

    def queries(self, subset: str) -> Sequence[Query]:
        return utterances(self.rows(subset, self.conditions[0]))

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        columns = ["id", "language", "text", "utterance_id", "query_id"]
        return [
            Query(
                row["id"],
                subset,
                row["language"],
                row["text"],
                utterance_id=row["utterance_id"],
                query_id=row["query_id"],
            )
            for batch in self._batches(self._spoken_shards(subset, condition), columns)
            for row in batch.to_pylist()
        ]

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        for batch in self._batches(self._spoken_shards(subset, condition), start=start, stop=stop):
            yield from map(spoken_row, batch.to_pylist())

    def columns(self, subset: str, condition: str, names: list[str]) -> Iterator[dict[str, Any]]:
        """These columns of the rows of a condition, in order; audio is not read where it is not named."""
        for batch in self._batches(self._spoken_shards(subset, condition), names):
            yield from batch.to_pylist()

    def rirs(self) -> list[dict[str, Any]]:
        """The RIRs of the split (see `rirs.table`), where they were dealt by a plan; else none."""
        return [row for batch in self._batches(self.manifest.below("rirs", self.split)) for row in batch.to_pylist()]

    def has_corpus(self, subset: str) -> bool:
        self._language(subset)
        return bool(self.manifest.below(f"corpus/{subset}"))

    def documents(self, subset: str) -> Corpus:
        self._language(subset)
        corpus = self._corpora.get(subset)
        if corpus is None:
            rows = ParquetRows(self.folder, self.manifest.below(f"corpus/{subset}"))
            corpus = self._corpora[subset] = Corpus(rows)
        return corpus

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        batches = self._batches(self.manifest.below(f"qrels/{subset}"))
        rows = (row for batch in batches for row in batch.to_pylist())
        return grades_of(self.queries(subset), (Qrel(row["query-id"], row["corpus-id"], row["score"]) for row in rows))


def grades_of(queries: Sequence[Query], qrels: Iterable[Qrel]) -> dict[str, dict[str, int]]:
    """Grades by utterance and document; utterances of one query share them.

    >>> queries = [Query("q~amy", "s", "en", "text", query_id="q"), Query("p", "s", "en", "text")]
    >>> grades_of(queries, [Qrel("q", "d1", 1), Qrel("other", "d1", 1)])
    {'q~amy': {'d1': 1}, 'p': {}}
    """
    by_query: dict[str, dict[str, int]] = {query.cluster: {} for query in queries}
    for qrel in qrels:
        if qrel.query_id in by_query:
            by_query[qrel.query_id][qrel.document_id] = qrel.score
    return {query.id: by_query[query.cluster] for query in queries}


def utterances(rows: Sequence[Query]) -> list[Query]:
    """The utterances of a condition's rows, each once, in order.

    >>> utterances([Query("a@r1", "s", "en", "text", utterance_id="a"), Query("a@r2", "s", "en", "text", "", "a")])
    [Query(id='a', subset='s', language='en', text='text', group='', utterance_id='', query_id='a')]
    """
    found: dict[str, Query] = {}
    for row in rows:
        if row.utterance not in found:
            found[row.utterance] = Query(
                row.utterance, row.subset, row.language, row.text, row.group, query_id=row.cluster
            )
    return list(found.values())


def rows_between(file: pq.ParquetFile, start: int, stop: int, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows at positions `start` to `stop` of a file; row groups outside are not read."""
    at = 0
    for group in range(file.metadata.num_row_groups):
        first, at = at, at + file.metadata.row_group(group).num_rows
        if at <= start or first >= stop:
            continue
        position = first
        for batch in file.iter_batches(ROWS_PER_TABLE, row_groups=[group], columns=columns):
            low, high = max(start - position, 0), min(stop - position, batch.num_rows)
            if low < high:
                yield batch.slice(low, high - low)
            position += batch.num_rows


def check_config(data: SpeechData, config: str) -> str:
    """`config`, if it is a language or subset with a condition (or `text`) of this data. Raises `UnknownNameError`."""
    scope, _, condition = config.partition("_")
    conditions = ("text", *data.conditions)
    scopes = (*dict.fromkeys(data.subsets.values()), *data.subsets)
    if scope not in scopes or condition not in conditions:
        raise unknown_name("config", config, [f"{s}_{c}" for s in scopes for c in conditions])
    return config


def config_subsets(data: SpeechData, config: str) -> tuple[list[str], str]:
    scope, _, condition = check_config(data, config).partition("_")
    if scope in data.subsets:
        return [scope], condition
    return [subset for subset, language in data.subsets.items() if language == scope], condition


def check_pairing(expected: Sequence[Query], spoken: SpokenQuery, position: int) -> None:
    """Raise `UsageError` where a spoken row is not the one of its position in `rows`: the pairing is broken."""
    if position >= len(expected) or expected[position].id != spoken.id:
        raise UsageError(
            f"the row {spoken.id!r} under {spoken.condition} is not the one at position {position}.",
            hint="Build the folder again.",
        )
