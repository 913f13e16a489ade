"""Texts from one source, speech from recordings: how a text-only source becomes one that can be built."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from ...errors import DataError, unknown_name
from ..faults import Fault, Faults
from ..records import CleanSpeech, Document, Qrel, Query, Source
from .recorded import Recordings

Missing = Literal["refuse", "skip"]
MISSING: tuple[Missing, ...] = ("refuse", "skip")


class SpokenSource:
    """`texts` spoken by `recordings`. With `missing="skip"`, queries without a recording are left out."""

    def __init__(self, texts: Source, recordings: Recordings, missing: Missing = "refuse") -> None:
        self.texts = texts
        self.recordings = recordings
        self._missing = missing
        self._queries: dict[str, list[Query]] = {}
        self.name = f"{texts.name}+{recordings.name}"
        self.license = " AND ".join(dict.fromkeys((texts.license, recordings.license)))
        self.subsets: Mapping[str, str] = dict(texts.subsets)
        known = set(texts.subsets)
        faults = Faults()
        for row in recordings.rows:
            if row.subset and row.subset not in known:
                message = f"{row.place}: {texts.name} has no subset {row.subset!r}."
                faults.add([Fault(message, f"Known: {', '.join(texts.subsets)}.")])
            if not row.subset and row.id and len(known) > 1:
                message = (
                    f"{row.place}: {texts.name} has several subsets, and the id {row.id!r} does not say of which it is."
                )
                faults.add([Fault(message, f"Add a column subset ({', '.join(texts.subsets)}).")])
        faults.refuse(
            str(recordings.manifest), hint=f"The column subset must be one of {', '.join(texts.subsets)} in each row."
        )

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over both versions and the rule for missing recordings."""
        parts = f"{self.texts.version}\n{self.recordings.version}\n{self._missing}"
        return hashlib.sha256(parts.encode()).hexdigest()[:12]

    @property
    def selection(self) -> Mapping[str, Any]:
        """How the speech was selected (see `selection_of`), {} for recordings that were not synthesized."""
        return self.recordings.selection

    def queries(self, subset: str) -> Sequence[Query]:
        """With `missing="skip"`, raises `DataError` if no query is left."""
        if self._missing == "refuse":
            return self.texts.queries(subset)
        if subset not in self._queries:
            kept = [query for query in self.texts.queries(subset) if self.recordings.find(query) is not None]
            if not kept:
                raise DataError(
                    f"no query of {subset} has a recording in {self.recordings.manifest}.",
                    hint="Check the ids and texts there.",
                )
            self._queries[subset] = kept
        return self._queries[subset]

    def documents(self, subset: str) -> Iterable[Document]:
        return self.texts.documents(subset)

    def qrels(self, subset: str) -> Sequence[Qrel]:
        qrels = self.texts.qrels(subset)
        if self._missing == "refuse":
            return qrels
        kept = {query.id for query in self.queries(subset)}
        return [qrel for qrel in qrels if qrel.query_id in kept]

    def speech(self, query: Query) -> CleanSpeech:
        return self.recordings.speech(query)


def with_recordings(texts: Source, recordings: Recordings, *, missing: str = "refuse") -> SpokenSource:
    """`texts` spoken by `recordings`: the user's own voices, or a folder of clips synthesized before.

    A recording is found by the query's id, or by its text (see `Recordings.find`). Where a query has none, `speech`
    raises `AudioError`; with `missing="skip"` such queries are left out of the source. Raises `DataError` where a
    recording names a subset that `texts` lacks, or an id without its subset though `texts` has several.
    """
    if missing not in MISSING:
        raise unknown_name("value of missing", missing, MISSING)
    return SpokenSource(texts, recordings, missing)
