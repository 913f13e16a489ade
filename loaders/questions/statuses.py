"""What became of each clip: whether it is there, and if not, why. Missing audio is coverage, never a wrong answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import DataError
from ..shards import replace_file
from .question import Question

Status = Literal["ok", "removed", "private", "geo_blocked", "wrong_duration", "failed", "missing"]
STATUSES: Mapping[Status, str] = {
    "ok": "there",
    "removed": "its publisher or the site removed it",
    "private": "it is private, or wants a login",
    "geo_blocked": "it is not available in this country",
    "wrong_duration": "what the address gives now has another length",
    "failed": "the download failed",
    "missing": "it was not fetched yet",
}
SETTLED: tuple[Status, ...] = ("removed", "private", "geo_blocked", "wrong_duration")
"""What another try will hardly change."""
STATUS_FOLDER = "status"


class AudioStatus(BaseModel):
    """One clip's status file, `status/<id>.json`. `reason` is the message of the site or the program."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    status: Status
    url: str = ""
    reason: str = ""
    duration_s: float | None = None
    expected_s: float | None = None
    sha256: str = ""
    attempts: int = 1
    tool: str = ""


def write_status(folder: Path, status: AudioStatus) -> None:
    content = json.dumps(status.model_dump(), ensure_ascii=False, indent=1, allow_nan=False)
    replace_file(folder / STATUS_FOLDER / f"{status.id}.json", (content + "\n").encode("utf-8"))


def read_statuses(folder: Path) -> dict[str, AudioStatus]:
    """All statuses below `folder`, by id; none if nothing was fetched. Raises `DataError` for a broken file."""
    found: dict[str, AudioStatus] = {}
    for path in sorted((folder / STATUS_FOLDER).glob("*.json")):
        try:
            status = AudioStatus.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise DataError(
                f"{path} is no status: {error.errors()[0]['msg']}.", hint="Delete the file and fetch again."
            ) from error
        found[status.id] = status
    return found


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many items of a set have all their audio; seconds are of the covered ones, where known.

    `missing`: item id to the first of its clips that is not there, and that clip's status.
    """

    items: int
    covered: int
    missing: Mapping[str, tuple[str, Status]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def by_status(self) -> dict[Status, int]:
        counted = [status for _, status in self.missing.values()]
        return {status: counted.count(status) for status in STATUSES if status in counted}


def coverage_of(questions: Iterable[Question], statuses: Mapping[str, Status], *, spoken: bool = False) -> Coverage:
    """The coverage of `questions`, with `spoken` of their spoken form; a clip without a status is missing.

    >>> one = Question("q", "aif", ("a", "b"), "Di algo.", (), "", ({"id": "words"},))
    >>> coverage_of([one], {"a": "ok", "b": "private"}).by_status
    {'private': 1}
    """
    listed = list(questions)
    missing: dict[str, tuple[str, Status]] = {}
    seconds = 0.0
    for question in listed:
        wanted = question.all_audios if spoken else question.audios
        absent = next((audio for audio in wanted if statuses.get(audio, "missing") != "ok"), None)
        if absent is not None:
            missing[question.id] = (absent, statuses.get(absent, "missing"))
        elif not math.isnan(question.duration_s):
            seconds += question.duration_s
    return Coverage(len(listed), len(listed) - len(missing), missing, seconds)
