"""One collection of texts spoken by several people: a folder of recordings for each, `?speech=amy,bob`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ...errors import AudioError, UsageError
from ..left_out import LeftOut, left_out_of, merged
from ..records import CleanSpeech, Document, Qrel, Query
from ..rows import speech_of
from .spoken import SpokenSource

SPEAKER = "~"
"""Between the id of a query and the name of the folder that speaks it."""


class SeveralSpeakers:
    """The utterances of several `parts`, which speak the same texts: the id of one is `<query>~<folder>`.

    An utterance's `query_id` is that of its query, by which it is judged, and by which utterances are drawn together in
    statistics. Raises `UsageError` for two folders of one name.
    """

    def __init__(self, parts: Sequence[SpokenSource]) -> None:
        self._parts = {part.recordings.name: part for part in parts}
        if len(self._parts) != len(parts):
            raise UsageError(
                "two folders of recordings have the same name.", hint="Rename one: names are part of the ids."
            )
        self.texts = parts[0].texts
        self.name = "+".join([self.texts.name, *self._parts])
        self.license = " AND ".join(dict.fromkeys(part.license for part in parts))
        self.subsets: Mapping[str, str] = dict(self.texts.subsets)
        self._queries: dict[str, dict[str, tuple[SpokenSource, Query]]] = {}

    @property
    def split(self) -> str:
        return str(getattr(self.texts, "split", ""))

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over the versions of all parts."""
        parts = "\n".join(f"{name} {part.version}" for name, part in self._parts.items())
        return hashlib.sha256(parts.encode()).hexdigest()[:12]

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        own = [entry for part in self._parts.values() for entry in left_out_of(part)]
        of_texts = left_out_of(self.texts)
        return merged([*of_texts, *(entry for entry in own if entry not in of_texts)])

    @property
    def selection(self) -> Mapping[str, Any]:
        """How the speech of all folders together was selected, {} where nothing was synthesized."""
        found = [dict(part.selection) for part in self._parts.values() if part.selection]
        if not found:
            return {}
        joint: dict[str, Any] = {"lost": dict(sum((Counter(one["lost"]) for one in found), Counter()))}
        for key in ("queries", "accepted", "rejected", "flagged"):
            joint[key] = sum(one[key] for one in found)
        for key in ("voices", "transcribers", "judges"):
            joint[key] = sorted({name for one in found for name in one[key]})
        joint["engine"] = " + ".join(dict.fromkeys(one["engine"] for one in found))
        return joint | {key: max(one[key] for one in found) for key in ("candidates", "max_error_rate")}

    def _spoken(self, subset: str) -> dict[str, tuple[SpokenSource, Query]]:
        if subset not in self._queries:
            by_part = {name: {query.id: query for query in part.queries(subset)} for name, part in self._parts.items()}
            self._queries[subset] = {
                f"{query.id}{SPEAKER}{name}": (self._parts[name], query)
                for query in self.texts.queries(subset)
                for name, spoken in by_part.items()
                if query.id in spoken
            }
        return self._queries[subset]

    def queries(self, subset: str) -> Sequence[Query]:
        return [replace(query, id=id_, query_id=query.id) for id_, (_, query) in self._spoken(subset).items()]

    def documents(self, subset: str) -> Iterable[Document]:
        return self.texts.documents(subset)

    def qrels(self, subset: str) -> Sequence[Qrel]:
        kept = {query.id for _, query in self._spoken(subset).values()}
        return [qrel for qrel in self.texts.qrels(subset) if qrel.query_id in kept]

    def _part(self, query: Query) -> tuple[SpokenSource, Query]:
        found = self._spoken(query.subset).get(query.id)
        if found is None:
            raise AudioError(f"{self.name} has no utterance {query.id!r}.", hint="Ask for one of its own.")
        return found

    def speaker_of(self, query: Query) -> str:
        part, own = self._part(query)
        return part.speaker_of(own)

    def speech(self, query: Query) -> CleanSpeech:
        part, own = self._part(query)
        return part.speech(own)

    def speech_at(self, query: Query, rate: int) -> CleanSpeech:
        part, own = self._part(query)
        return speech_of(part, own, rate)
