"""Precomputed rankings: TREC run files, by query id."""

from __future__ import annotations

import gzip
import math
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TextIO

from ....errors import DataError, SqutrWarning
from ...protocols import ComponentSpec, Hit
from ..path_patterns import FilePattern, Missing, check_missing, refuse_missing
from .ranking import checked_k

_COLUMNS = 6


class TrecRun:
    """A precomputed run by query id: lines `query Q0 document rank score tag`, in UTF-8, gzipped if the name ends in
    `.gz`.

    `path` is a file, or a pattern with placeholders (see `FilePattern`), for example `runs/{subset}_{condition}.trec`.
    A file whose path names no condition is the run of one condition, and is refused for a second. Hits are ordered as
    trec_eval does, by score and then by document id, both descending; the ranks in the file are not read. A query that
    the run lacks is an error, and so is a document that the corpus lacks, unless `missing` is "count": then such a
    query has no hits, and such a document keeps its rank. `languages` tells the language of a subset for `{language}`
    and `{config}`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str = "",
        missing: Missing = "error",
        languages: Mapping[str, str] | None = None,
    ) -> None:
        check_missing(missing)
        self.missing = missing
        self._files = FilePattern(path, what="runs", languages=languages)
        self._name = name
        self._read: tuple[Path, Mapping[str, list[Hit]]] | None = None
        self._unlabeled: dict[Path, str] = {}

    @cached_property
    def spec(self) -> ComponentSpec:
        revision = self._files.revision()
        return ComponentSpec("retriever", "trec", self._name or self._default_name, self._files.model, revision)

    @property
    def _default_name(self) -> str:
        return self._files.default_name.removesuffix(".trec").removesuffix(".run")

    def supports(self, language: str) -> bool:
        return bool(language)

    def hits(self, subset: str, condition: str, query_ids: Sequence[str], *, k: int) -> list[list[Hit]]:
        checked_k(k)
        file = self._files.file(subset, condition)
        if not {"condition", "config"} & self._files.names:
            known = self._unlabeled.setdefault(file, condition)
            if known != condition:
                raise DataError(
                    f"{file} names no condition: it was taken for {known} and cannot be {condition} too.",
                    hint="Write {condition} in the path.",
                )
        if self._read is None or self._read[0] != file:
            self._read = (file, _parsed(file))
        there = self._read[1]
        absent = [query_id for query_id in query_ids if query_id not in there]
        what = f"no ranking of {subset} under {condition} in {file}"
        if self.missing == "error" or len(absent) == len(query_ids):
            refuse_missing(what, absent, len(query_ids), there)
        elif absent:
            warnings.warn(
                f"{len(absent)} of {len(query_ids)} items have {what}: they score 0.", SqutrWarning, stacklevel=2
            )
        return [there.get(query_id, [])[:k] for query_id in query_ids]


def _parsed(file: Path) -> Mapping[str, list[Hit]]:
    run: dict[str, dict[str, float]] = {}
    with _opened(file) as lines:
        for number, line in enumerate(lines, start=1):
            columns = line.split()
            if not columns:
                continue
            place = f"{file}, line {number}"
            if len(columns) != _COLUMNS:
                raise DataError(
                    f"{place}: {len(columns)} columns instead of {_COLUMNS}.",
                    hint="A line is: query Q0 document rank score tag.",
                )
            query, _, document, _, written, _ = columns
            try:
                score = float(written)
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                raise DataError(f"{place}: the score {written!r} is no finite number.", hint="Mend the run.")
            hits = run.setdefault(query, {})
            if document in hits:
                raise DataError(f"{place}: {document!r} occurs twice for query {query!r}.", hint="Mend the run.")
            hits[document] = score
    return {
        query: [Hit(d, s) for d, s in sorted(hits.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)]
        for query, hits in run.items()
    }


@contextmanager
def _opened(file: Path) -> Iterator[TextIO]:
    try:
        # With or without a byte order mark, which would be a part of the first query's id.
        packed = file.suffix == ".gz"
        with gzip.open(file, "rt", encoding="utf-8-sig") if packed else file.open(encoding="utf-8-sig") as lines:
            yield lines
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{file} cannot be read: {error}.", hint="It must be a run in UTF-8.") from error
