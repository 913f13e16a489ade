"""`load_dataset("squtr", "questions[_<config>]", …)`: sets of questions behind the bare name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ...errors import unknown_name
from .data import QuestionData, open_questions
from .manifest import QUESTIONS
from .question import CONFIGS, Question
from .rows import full_row, question_features, row_groups
from .windows import AudioFile

if TYPE_CHECKING:
    import datasets

QUESTION_CONFIGS: Mapping[str, str] = {QUESTIONS: "all", **{f"{QUESTIONS}_{config}": config for config in CONFIGS}}

QUESTIONS_PER_BLOCK = 16

Block = tuple[str, int, int]
"""What one process takes at a time: the config, and a range of positions."""


@dataclass
class QuestionLoading:
    """One config from `source` (see `data.open_questions`). It travels to other processes without what it opened."""

    config: str
    source: str | None
    _opened: QuestionData | None = field(default=None, repr=False, compare=False)

    description: ClassVar[str] = "Questions about audio."

    def __post_init__(self) -> None:
        if self.config not in QUESTION_CONFIGS:
            raise unknown_name("config", self.config, QUESTION_CONFIGS)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def opened(self) -> QuestionData:
        if self._opened is None:
            self._opened = open_questions(self.source)
        return self._opened

    def fingerprint(self) -> str:
        return self.opened().revision

    def features(self) -> datasets.Features:
        return question_features()

    def _questions(self) -> tuple[Question, ...]:
        return self.opened().questions(QUESTION_CONFIGS[self.config])

    def blocks(self) -> dict[str, list[Block]]:
        size = len(self._questions())
        starts = range(0, size, QUESTIONS_PER_BLOCK)
        return {"test": [(self.config, start, min(size, start + QUESTIONS_PER_BLOCK)) for start in starts]}

    def tables(self, blocks: list[Block]) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        """The tables of some blocks, each with the number of its block and its number in there."""
        data, questions, schema = self.opened(), self._questions(), self.features().arrow_schema

        def audio(id_: str) -> AudioFile | None:
            return data.audio(id_) if data.status(id_) == "ok" else None

        place = {question.id: position for position, question in enumerate(data.questions())}
        for number, (_, start, stop) in enumerate(blocks):
            rows = (full_row(q, place[q.id], data.question_status(q), audio) for q in questions[start:stop])
            for index, table in enumerate(row_groups(rows, schema)):
                yield (number, index), table
