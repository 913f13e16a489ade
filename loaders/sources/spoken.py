"""Texts from one source, speech from recordings: how a text-only source becomes one that can be built."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from ...errors import AudioError, DataError, unknown_name
from ..left_out import LeftOut, left_out_of, merged
from ..records import CleanSpeech, Document, Qrel, Query, Source
from .names import channel_suffix
from .recorded import Recording, Recordings
from .rules import RECORDING_SUBSET, Collected, broken, version_suffix

Missing = Literal["refuse", "skip"]
MISSING: tuple[Missing, ...] = ("refuse", "skip")


class SpokenSource:
    """`texts` spoken by `recordings`. With `missing="skip"`, queries without a recording are left out."""

    def __init__(self, texts: Source, recordings: Recordings, missing: Missing = "refuse") -> None:
        self.texts = texts
        self.recordings = recordings
        self._missing = missing
        self._queries: dict[str, list[Query]] = {}
        self._asked: set[str] = set()
        self.name = f"{texts.name}+{recordings.name}"
        self.license = " AND ".join(dict.fromkeys((texts.license, recordings.license)))
        self.subsets: Mapping[str, str] = dict(texts.subsets)
        self._split = str(getattr(texts, "split", ""))
        self._bad = Collected()
        known = ", ".join(texts.subsets)
        for row in recordings.rows:
            if row.subset and row.subset not in texts.subsets:
                message = f"{row.place}: {texts.name} has no subset {row.subset!r}."
                self._bad(broken(RECORDING_SUBSET, message, f"Known: {known}.", row.id or row.clip.file))
            elif self._is_ambiguous(row):
                message = (
                    f"{row.place}: {texts.name} has several subsets, and the id {row.id!r} does not say of which it is."
                )
                self._bad(broken(RECORDING_SUBSET, message, f"Add a column subset ({known}).", row.id))
        if recordings.on_bad == "refuse":
            self._bad.refuse(str(recordings.manifest))

    @property
    def split(self) -> str:
        return self._split

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What texts and recordings leave out, queries without a recording, and recordings without a query."""
        subsets = list(self._asked) or list(self.subsets)
        silent: list[str] = []
        used: set[str] = set()
        for subset in subsets:
            for query in self.texts.queries(subset):
                row = self._find(query)
                if row is not None:
                    used.add(row.clip.file)
                elif self._missing == "skip":
                    silent.append(query.id)
        unused = [
            row.clip.file
            for row in self.recordings.rows
            if row.clip.file not in used and (not row.subset or row.subset in subsets) and not self._is_ambiguous(row)
        ]
        skipped = self._bad.left_out if self.recordings.on_bad == "skip" else ()
        return merged(
            [
                *left_out_of(self.texts),
                *self.recordings.left_out,
                *skipped,
                *LeftOut.of("queries without a recording", silent),
                *LeftOut.of("recordings without a query", dict.fromkeys(unused)),
            ]
        )

    def _is_ambiguous(self, row: Recording) -> bool:
        return bool(row.id and not row.subset and len(self.subsets) > 1)

    def _find(self, query: Query) -> Recording | None:
        """The recording of a query; with `on_bad="skip"` one that says something else counts as there, and is bad."""
        try:
            row = self.recordings.find(query)
        except AudioError:
            if self.recordings.on_bad == "refuse":
                raise
            return self.recordings.of_id(query)
        return None if row is not None and self._is_ambiguous(row) else row

    def has_recording(self, query: Query) -> bool:
        return self._find(query) is not None

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over both versions and the rule for missing recordings."""
        parts = f"{self.texts.version}\n{self.recordings.version}\n{self._missing}"
        return (
            hashlib.sha256(parts.encode()).hexdigest()[:12]
            + channel_suffix(self.recordings.channel)
            + version_suffix(self.recordings.on_bad)
        )

    @property
    def selection(self) -> Mapping[str, Any]:
        """How the speech was selected (see `selection_of`), {} for recordings that were not synthesized."""
        return self.recordings.selection

    def queries(self, subset: str) -> Sequence[Query]:
        """With `missing="skip"`, raises `DataError` if no query is left."""
        self._asked.add(subset)
        if self._missing == "refuse":
            return self.texts.queries(subset)
        if subset not in self._queries:
            kept = [query for query in self.texts.queries(subset) if self._find(query) is not None]
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

    def speaker_of(self, query: Query) -> str:
        row = self._find(query)
        return row.clip.speaker or row.clip.voice if row else ""

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
