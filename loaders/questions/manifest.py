"""`manifest.json` of a set that `squtr build escucha` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ValidationError

from ...errors import DataError
from ..manifest import MANIFEST_NAME, Manifest, benchmark_of

ESCUCHA = "escucha"
FOLDER = "questions"


class QuestionManifest(Manifest):
    """The content of `manifest.json`. `balance` is the report of `balance.balance_of`, `license` that of all sound."""

    data_folders: ClassVar[tuple[str, ...]] = (FOLDER,)
    side_files: ClassVar[tuple[str, ...]] = ("README.md",)

    benchmark: Literal["escucha"] = "escucha"
    license: str
    items: int
    balance: dict[str, Any]

    @property
    def subsets(self) -> dict[str, str]:
        """The one subset, and its language."""
        return {ESCUCHA: "es"}

    @property
    def conditions(self) -> list[str]:
        """Questions have none."""
        return []


def read_question_manifest(folder: Path) -> QuestionManifest:
    """The manifest of a built set. Raises `DataError` if there is none, it is of another benchmark, or unreadable."""
    path = folder / MANIFEST_NAME
    benchmark = benchmark_of(folder)
    if benchmark not in {ESCUCHA, ""}:
        raise DataError(
            f"{folder} holds data of the benchmark {benchmark!r}.",
            hint="Give a folder that `squtr build escucha` wrote.",
        )
    try:
        return QuestionManifest.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is not a data set that squtr built: {MANIFEST_NAME} is missing.",
            hint="Run `squtr build escucha` first.",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{path}: {place}: {first['msg']}.", hint="Build the folder again.") from error
