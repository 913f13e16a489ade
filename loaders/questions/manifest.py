"""`manifest.json` of a built set of questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ..manifest import Manifest, kind_of, read_manifest_as

QUESTIONS = "questions"
"""The kind of data, the folder of its shards, and the config of the bare name."""


class QuestionManifest(Manifest):
    """The content of `manifest.json`. `balance` is the report of `balance.balance_of`, `license` that of all audio."""

    data_folders: ClassVar[tuple[str, ...]] = (QUESTIONS,)

    kind: str = QUESTIONS
    license: str
    language: str
    items: int
    balance: dict[str, Any]

    @property
    def subsets(self) -> dict[str, str]:
        return {QUESTIONS: self.language}

    @property
    def conditions(self) -> list[str]:
        return []

    @property
    def splits(self) -> list[str]:
        return ["test"]


def is_built_set(folder: Path) -> bool:
    return kind_of(folder) == QUESTIONS


def read_question_manifest(folder: Path) -> QuestionManifest:
    """The manifest of a built set. Raises `DataError` if there is none, it is of other data, or unreadable."""
    return read_manifest_as(QuestionManifest, QUESTIONS, folder)
