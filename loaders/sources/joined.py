"""Several sources as one set: their subsets side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ...errors import DataError, UsageError
from ..left_out import LeftOut, left_out_of, merged
from ..origins import Origin, joined
from ..records import CleanSpeech, Document, Qrel, Query, Source
from ..rows import speech_of
from ..splits import speaker_of
from .selection import selection_text


class JoinedSource:
    """The subsets of several sources, whose names must differ; each is read from its own source.

    Raises `UsageError` for no source, `DataError` for a subset that two of them have.
    """

    def __init__(self, parts: Sequence[Source]) -> None:
        if not parts:
            raise UsageError("no source is given.", hint="Give at least one, for example mini.")
        self.parts = tuple(parts)
        self._owners: dict[str, Source] = {}
        for part in self.parts:
            for subset in part.subsets:
                held = self._owners.setdefault(subset, part)
                if held is not part:
                    raise DataError(
                        f"the subset {subset!r} is in both {held.name} and {part.name}.",
                        hint="Give one of them another name (?subset=NAME), or leave it out.",
                    )
        benchmarks = {getattr(part, "benchmark", "") for part in self.parts}
        self.benchmark = benchmarks.pop() if len(benchmarks) == 1 else ""

    @property
    def name(self) -> str:
        return joined(part.name for part in self.parts)

    @property
    def version(self) -> str:
        return joined(part.version for part in self.parts)

    @property
    def license(self) -> str:
        return " AND ".join(dict.fromkeys(part.license for part in self.parts))

    @property
    def subsets(self) -> Mapping[str, str]:
        return MappingProxyType({name: language for part in self.parts for name, language in part.subsets.items()})

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return merged(entry for part in self.parts for entry in left_out_of(part))

    def owner(self, subset: str) -> Source:
        # One that does not know the subset says so itself.
        return self._owners.get(subset, self.parts[0])

    def queries(self, subset: str) -> Sequence[Query]:
        return self.owner(subset).queries(subset)

    def documents(self, subset: str) -> Iterable[Document]:
        return self.owner(subset).documents(subset)

    def qrels(self, subset: str) -> Sequence[Qrel]:
        return self.owner(subset).qrels(subset)

    def speaker_of(self, query: Query) -> str:
        return speaker_of(self.owner(query.subset), query)

    def speech(self, query: Query) -> CleanSpeech:
        return self.owner(query.subset).speech(query)

    def speech_at(self, query: Query, rate: int) -> CleanSpeech:
        return speech_of(self.owner(query.subset), query, rate)


def parts_of(source: Source) -> tuple[Source, ...]:
    return source.parts if isinstance(source, JoinedSource) else (source,)


def origins_of(source: Source, subsets: Iterable[str]) -> tuple[Origin, ...]:
    """What a recipe says of `source`, of which it takes `subsets`: one entry for each part of it that serves some."""
    chosen = list(subsets)
    found = []
    for part in parts_of(source):
        own = tuple(subset for subset in chosen if subset in part.subsets)
        if own:
            split = str(getattr(part, "split", ""))
            attribution, selection = getattr(part, "attribution", ""), selection_text(part)
            found.append(Origin(part.name, part.version, part.license, own, split, attribution, selection))
    return tuple(found)
