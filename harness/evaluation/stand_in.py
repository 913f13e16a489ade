"""Data that has the size of a benchmark's and no content, for plans that are made before the data is there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import NormalDist
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, UsageError, unknown_name
from ...loaders.corpus import Corpus
from ...loaders.document_ids import DocumentIds
from ...loaders.questions.question import Question
from ...loaders.records import Document, Query, SpokenQuery
from ..systems.papers.sizes import STAND_INS, QuestionSize, SpeechSize, SubsetSize

PREFIX = "stand-in:"
Item = TypeVar("Item")


def is_stand_in(name: str) -> bool:
    return name.startswith(PREFIX)


def open_stand_in(name: str) -> StandInSpeech | StandInQuestions:
    """The data that `stand-in:<name>` means. Raises `UnknownNameError`."""
    chosen = name.removeprefix(PREFIX)
    if chosen not in STAND_INS:
        raise unknown_name("stand-in data", chosen, STAND_INS)
    size = STAND_INS[chosen]
    return StandInSpeech(size) if isinstance(size, SpeechSize) else StandInQuestions(size)


def refuse_stand_in(name: str) -> UsageError:
    return UsageError(
        f"{name} has the size of the data and no audio or text.", hint="Add --dry-run, or give the data itself."
    )


class Lazy(Sequence[Item]):
    """`length` items, each made when it is asked for."""

    def __init__(self, length: int, make: Callable[[int], Item]) -> None:
        self._range, self._make = range(length), make

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        if isinstance(place, slice):
            return [self._make(i) for i in self._range[place]]
        return self._make(self._range[place])


class StandInSpeech:
    """Speech (`SpeechData`) whose queries and documents are as many, and as long in the mean, as the published ones."""

    manifest_sha256 = ""
    split = "test"

    def __init__(self, size: SpeechSize) -> None:
        self.size = size
        self.benchmark = size.benchmark
        self.subsets: Mapping[str, str] = {name: subset.language for name, subset in size.subsets.items()}
        self.conditions: Sequence[str] = size.conditions
        self.edges: Mapping[str, Sequence[float]] = {}
        self.recipe: Mapping[str, Any] = {"sources": [{"name": "stand-in", "version": size.source}]}
        self.revision = "stand-in"

    def queries(self, subset: str) -> Sequence[Query]:
        of = self._subset(subset)
        return Lazy(of.queries, lambda i: Query(f"q{i}", subset, of.language, _words(of.query_length, of.language, i)))

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        if condition not in self.conditions:
            raise unknown_name("condition", condition, self.conditions)
        return self.queries(subset)

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        raise DataError(f"{subset} under {condition} is stand-in data: it has no audio.", hint="Use it for --dry-run.")

    def seconds(self, subset: str) -> float:
        """The mean length of a clip."""
        return self._subset(subset).seconds

    def has_corpus(self, subset: str) -> bool:
        return self._subset(subset).documents > 0

    def documents(self, subset: str) -> Corpus:
        of = self._subset(subset)
        return Corpus(_Documents(of))

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        """As many judgments as published, dealt to the queries in turn."""
        of = self._subset(subset)
        grades: dict[str, dict[str, int]] = {f"q{i}": {} for i in range(of.queries)}
        for i in range(of.qrels):
            grades[f"q{i % of.queries}"][f"d{i % of.documents}"] = 1
        return grades

    def _subset(self, subset: str) -> SubsetSize:
        if subset not in self.size.subsets:
            raise unknown_name("subset", subset, self.size.subsets)
        return self.size.subsets[subset]


class _Documents:
    def __init__(self, of: SubsetSize) -> None:
        self._of = of

    def __len__(self) -> int:
        return self._of.documents

    def ids(self) -> DocumentIds:
        return DocumentIds.of(f"d{i}" for i in range(len(self)))

    def read(self, start: int, stop: int) -> list[Document]:
        return [self._document(i) for i in range(start, min(stop, len(self)))]

    def take(self, positions: NDArray[np.int64]) -> list[Document]:
        return [self._document(int(i)) for i in positions]

    def _document(self, i: int) -> Document:
        return Document(f"d{i}", "", _words(self._of.document_length, self._of.language, i))


def _words(mean: float, language: str, i: int) -> str:
    """So many words (characters of Chinese) that the mean over positions is `mean`."""
    length = math.floor((i + 1) * mean) - math.floor(i * mean)
    return "字" * length if language == "zh" else " ".join(["words"] * length)


class StandInQuestions:
    """Questions as many and about audio as long as published: lengths are a log-normal's with that median and mean."""

    license = ""

    def __init__(self, size: QuestionSize) -> None:
        self.size = size
        self.name = self.benchmark = size.benchmark
        self.language = size.language

    @cached_property
    def _seconds(self) -> list[float]:
        of = self.size
        chances = [(i + 0.5) / of.questions for i in range(of.questions)]

        def lengths(spread: float) -> list[float]:
            drawn = (of.median_s * math.exp(spread * NormalDist().inv_cdf(p)) for p in chances)
            return [min(max(one, of.shortest_s), of.longest_s) for one in drawn]

        low, high = 0.0, 8.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(lengths(middle)) < of.mean_s * of.questions else (low, middle)
        return lengths(high)

    def questions(self, config: str = "all") -> Sequence[Question]:
        """The questions in order; each kind is spread evenly over the lengths."""
        counts = [n for n, many in self.size.options.items() for _ in range(many)]
        return Lazy(self.size.questions, lambda i: self._question(i, counts))

    def _question(self, i: int, counts: Sequence[int]) -> Question:
        of = self.size
        following = _spread(i, of.following, of.questions)
        number = 0 if following else counts[i * len(counts) // of.questions]
        clips = 2 if _spread(i, of.comparative, of.questions) else 1
        return Question(
            f"q{i}",
            "aif" if following else "mcqa",
            tuple(f"a{i}-{n}" for n in range(clips)),
            _words(15, of.language, i),
            tuple(f"option {n}" for n in range(number)),
            "option 0" if number else "",
            question_audio=f"s{i}" if _spread(i, of.spoken, of.questions) else "",
            duration_s=self._seconds[i],
            audio_durations_s=(self._seconds[i] / clips,) * clips,
        )


def _spread(i: int, some: int, all_: int) -> bool:
    """Whether position `i` is one of `some` that are spread evenly over `all_`."""
    return (i + 1) * some // all_ > i * some // all_
