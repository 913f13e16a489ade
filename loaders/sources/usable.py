"""A source without the queries of which the recording cannot be used: what `on_bad="skip"` does to audio."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import AudioError, DataError
from ..in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from ..left_out import LeftOut, left_out_of, merged
from ..records import CleanSpeech, Document, Qrel, Query, Source
from .rules import version_suffix

REASON = "queries with a recording that cannot be used"


class UsableSource:
    """`source` without queries of which `speech` raises `AudioError`; every recording of a subset is decoded once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._checked: dict[str, tuple[list[Query], tuple[str, ...]]] = {}

    def __getattr__(self, name: str) -> Any:
        # What only some sources have: split, benchmark, speaker_of, speech_at.
        if name.startswith("_") or name == "source":
            raise AttributeError(name)
        return getattr(self.source, name)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def version(self) -> str:
        # Every source that skips says so, also one that has no tables of its own.
        suffix = version_suffix("skip")
        return self.source.version.removesuffix(suffix) + suffix

    @property
    def license(self) -> str:
        return self.source.license

    @property
    def subsets(self) -> Mapping[str, str]:
        return self.source.subsets

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        subsets = list(self._checked) or list(self.subsets)
        bad = [id_ for subset in subsets for id_ in self._check(subset)[1]]
        return merged([*left_out_of(self.source), *LeftOut.of(REASON, bad)])

    def queries(self, subset: str) -> Sequence[Query]:
        """Raises `DataError` if none is left."""
        return self._check(subset)[0]

    def documents(self, subset: str) -> Iterable[Document]:
        return self.source.documents(subset)

    def qrels(self, subset: str) -> Sequence[Qrel]:
        ids = {query.cluster for query in self.queries(subset)}
        return [qrel for qrel in self.source.qrels(subset) if qrel.query_id in ids]

    def speech(self, query: Query) -> CleanSpeech:
        return self.source.speech(query)

    def _check(self, subset: str) -> tuple[list[Query], tuple[str, ...]]:
        if subset not in self._checked:
            queries = self.source.queries(subset)
            import_before_threads(*SIGNAL_PACKAGES)
            right = list(in_order(self._is_usable, queries, workers=os.cpu_count() or 1))
            kept = [query for query, is_usable in zip(queries, right, strict=True) if is_usable]
            if not kept:
                raise DataError(
                    f"no query of {subset} has a recording that can be used.",
                    hint="Build without --on-bad skip to see why.",
                )
            bad = tuple(query.id for query, is_usable in zip(queries, right, strict=True) if not is_usable)
            self._checked[subset] = (kept, bad)
        return self._checked[subset]

    def _is_usable(self, query: Query) -> bool:
        has_recording = getattr(self.source, "has_recording", None)
        if has_recording is not None and not has_recording(query):
            # The option `missing` decides whether that is an error.
            return True
        try:
            self.source.speech(query)
        except AudioError:
            return False
        return True
