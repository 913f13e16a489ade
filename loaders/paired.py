"""Paired data as the harness reads it: a built folder, or a recipe rendered on the fly."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DataError, UsageError, unknown_name
from .card import config_patterns
from .conditions import parse_condition
from .corpus import Corpus
from .corpus_parquet import ParquetRows
from .manifest import MANIFEST_NAME, Manifest, Shard, read_manifest
from .recipe import OpenedRecipe
from .records import Document, Query, SpokenQuery
from .rows import QUERY_COLUMNS, ROWS_PER_TABLE, render_rows


class PairedData(Protocol):
    """Queries under several conditions with their corpora and judgments."""

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe as JSON object (see `Recipe`)."""
        ...

    @property
    def revision(self) -> str:
        """The fingerprint of the recipe."""
        ...

    @property
    def manifest_sha256(self) -> str:
        """The sha256 of `manifest.json`, "" for data that was not built."""
        ...

    @property
    def subsets(self) -> Mapping[str, str]:
        """Subset name to language."""
        ...

    @property
    def conditions(self) -> Sequence[str]:
        """The conditions at hand."""
        ...

    def queries(self, subset: str) -> Sequence[Query]:
        """The typed queries."""
        ...

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """The spoken queries in the order of `queries`: those at positions `start` to `stop` (not included) of it."""
        ...

    def documents(self, subset: str) -> Sequence[Document]:
        """The corpus."""
        ...

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        """Grades by query id and document id."""
        ...


class LiveData:
    """A recipe rendered when it is read.

    `rows_at_once` is how many queries a reader should ask for together: what it does not need is not rendered.
    """

    rows_at_once = 64

    def __init__(self, opened: OpenedRecipe, *, workers: int = 0) -> None:
        self._opened = opened
        self._workers = workers or os.cpu_count() or 1
        self.recipe: Mapping[str, Any] = opened.recipe.as_dict()
        self.revision = opened.recipe.fingerprint
        self.manifest_sha256 = ""
        self.subsets: Mapping[str, str] = dict(opened.recipe.subsets)
        self.conditions: Sequence[str] = opened.recipe.conditions
        self._corpora: WeakValueDictionary[str, Corpus] = WeakValueDictionary()

    def queries(self, subset: str) -> Sequence[Query]:
        """The typed queries that the recipe takes."""
        return self._opened.queries(subset)

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """Render the spoken queries at positions `start` to `stop`."""
        queries = self._opened.queries(subset)[start:stop]
        return render_rows(self._opened, parse_condition(condition), queries, workers=self._workers)

    def documents(self, subset: str) -> Corpus:
        """The corpus, read once for all that hold it at the same time."""
        corpus = self._corpora.get(subset)
        if corpus is None:
            corpus = self._corpora[subset] = Corpus.of(self._opened.source.documents(subset))
        return corpus

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        """The grades of the queries taken."""
        grades: dict[str, dict[str, int]] = {query.id: {} for query in self.queries(subset)}
        for qrel in self._opened.source.qrels(subset):
            if qrel.query_id in grades:
                grades[qrel.query_id][qrel.document_id] = qrel.score
        return grades


class BuiltData:
    """A folder that `squtr build` wrote. Raises `DataError` if it is missing, unfinished or damaged."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder} does not exist.", hint="Run `squtr build` first, or check the path.")
        self.folder = folder
        self.manifest: Manifest = read_manifest(folder)
        if not self.manifest.complete:
            raise DataError(f"the build in {folder} is not finished.", hint="Run the same `squtr build` again.")
        self._patterns = config_patterns(self.manifest)
        self.recipe: Mapping[str, Any] = self.manifest.recipe
        self.revision = self.manifest.recipe_fingerprint
        self.subsets: Mapping[str, str] = self.manifest.subsets
        self.conditions: Sequence[str] = self.manifest.conditions
        self._corpora: WeakValueDictionary[str, Corpus] = WeakValueDictionary()

    @cached_property
    def manifest_sha256(self) -> str:
        """The sha256 of `manifest.json`."""
        return hashlib.sha256((self.folder / MANIFEST_NAME).read_bytes()).hexdigest()

    def _shards(self, config: str) -> list[Shard]:
        if config not in self._patterns:
            raise unknown_name(f"config of {self.folder}:", config, self._patterns)
        folders = [pattern.removesuffix("*.parquet") for pattern in self._patterns[config]]
        return [shard for folder in folders for shard in self.manifest.shards if shard.path.startswith(folder)]

    def _batches(
        self, config: str, columns: list[str] | None = None, *, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        at = 0  # the position of the shard's first row
        for shard in self._shards(config):
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
        """The typed queries, read from the first condition."""
        config = f"{subset}_{self.conditions[0]}"
        return [
            Query(row["id"], subset, row["language"], row["text"])
            for batch in self._batches(config, ["id", "language", "text"])
            for row in batch.to_pylist()
        ]

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """Read the spoken queries at positions `start` to `stop`, a row group at a time; others are not read."""
        for batch in self._batches(f"{subset}_{condition}", start=start, stop=stop):
            for row in batch.to_pylist():
                row["audio"] = row["audio"]["bytes"]
                yield SpokenQuery(**{name: row[name] for name in QUERY_COLUMNS})

    def _table(self, subset: str, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a plain table; none where recordings alone were built, which have neither."""
        config = f"{subset}-{table}"
        if subset in self.subsets and config not in self._patterns:
            return
        for batch in self._batches(config):
            yield from batch.to_pylist()

    def documents(self, subset: str) -> Corpus:
        """The corpus, read when its documents are asked for; empty where recordings alone were built."""
        config = f"{subset}-corpus"
        corpus = self._corpora.get(subset)
        if corpus is None:
            recordings_alone = subset in self.subsets and config not in self._patterns
            rows = ParquetRows(self.folder, [] if recordings_alone else self._shards(config))
            corpus = self._corpora[subset] = Corpus(rows)
        return corpus

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        """Grades by query id and document id."""
        grades: dict[str, dict[str, int]] = {query.id: {} for query in self.queries(subset)}
        for row in self._table(subset, "qrels"):
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
        return grades


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


def check_config(data: PairedData, config: str) -> str:
    """`config`, if it is `<language>_<condition>` or `<subset>_<condition>` of this data, `text` included.

    Raises `UnknownNameError` that suggests the nearest.
    """
    scope, _, condition = config.partition("_")
    conditions = ("text", *data.conditions)
    scopes = (*dict.fromkeys(data.subsets.values()), *data.subsets)
    if scope not in scopes or condition not in conditions:
        raise unknown_name("config", config, [f"{s}_{c}" for s in scopes for c in conditions])
    return config


def config_subsets(data: PairedData, config: str) -> tuple[list[str], str]:
    """The subsets and the condition of a checked config."""
    scope, _, condition = check_config(data, config).partition("_")
    if scope in data.subsets:
        return [scope], condition
    return [subset for subset, language in data.subsets.items() if language == scope], condition


def check_pairing(expected: Sequence[Query], spoken: SpokenQuery, position: int) -> None:
    """Raise `UsageError` where a spoken query is not the typed one of its position: the pairing is broken."""
    if position >= len(expected) or expected[position].id != spoken.id:
        raise UsageError(
            f"query {spoken.id!r} under {spoken.condition} has no typed partner at position {position}.",
            hint="Build the folder again.",
        )
