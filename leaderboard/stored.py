"""What a stored result looks like: one immutable JSON file, named by its time and content, its records beside it.

    results/<benchmark>/<system>/<time>-<hash>.json      this model
    results/<benchmark>/<system>/<time>-<hash>.parquet   one row per item, as the evaluation wrote it

`<time>` is the second of the submission in UTC (`20260131T235959Z`), `<hash>` begins the sha256 of what was measured:
two submitters never meet in one name, and the same result submitted twice is recognized.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import DataError
from ..harness.results.files import file_name
from .entry import Model, content_sha256
from .strict_json import is_hidden, read_object, shown, wrong_name

STORE_VERSION: Final = "1"
FOLDER = "results"

_HASH_LENGTH = 16
_MOST_FOLDER = 80
_TIME = "%Y%m%dT%H%M%SZ"
_PATH = re.compile(
    r"results/(?P<benchmark>[a-z][a-z0-9_]{0,31})/(?P<system>[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,99})/"
    r"(?P<time>\d{8}T\d{6}Z)-(?P<hash>[0-9a-f]{16})\.(?P<kind>json|parquet)",
    re.ASCII,
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Items(_Strict):
    """The table beside a result: its size, so that it can be refused before it is read, and its sha256."""

    rows: int = Field(ge=0)
    bytes: int = Field(ge=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class About(_Strict):
    """What the submitter says about the model in one role. A link is https."""

    role: Literal["front_end", "transcriber", "rewriter", "encoder", "retriever", "answerer"]
    link: str = Field(
        default="", pattern=r"^(https://[A-Za-z0-9.-]+(:\d+)?(/[A-Za-z0-9_.~%/+@=,;:-]*)?)?$", max_length=300
    )
    parameters: int | None = Field(default=None, ge=1, le=10**14)
    open_weights: bool | None = None

    def as_model(self) -> Model:
        """As it stands in an entry."""
        return Model(self.role, "", link=self.link, parameters=self.parameters, open_weights=self.open_weights)


class StoredResult(_Strict):
    """A result as it was submitted. `result` is what the evaluation wrote, unchanged; `items` null without records."""

    store_version: Literal["1"] = STORE_VERSION
    submitted: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$")
    content_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    items: Items | None
    about: list[About] = Field(default_factory=list, max_length=10)
    note: str = Field(default="", max_length=2000)
    result: dict[str, Any]

    @property
    def benchmark(self) -> str:
        """Of the result, "" if it does not say."""
        found = self.result.get("benchmark")
        return found if isinstance(found, str) else ""

    @property
    def system(self) -> str:
        """The system's name, "" if the result does not say."""
        block = self.result.get("system")
        found = block.get("name") if isinstance(block, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def config(self) -> str:
        """The config, "" if the result does not say."""
        block = self.result.get("data")
        found = block.get("config") if isinstance(block, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def measured_sha256(self) -> str:
        """Of all that was measured: the result and its records, not when or by whom it was sent."""
        return measured_sha256(self.content_sha256, self.items.sha256 if self.items else "")

    @property
    def path(self) -> str:
        """Where it belongs in a store."""
        moment = datetime.fromisoformat(self.submitted)
        return stored_path(self.benchmark, self.system, moment, self.measured_sha256)

    def as_bytes(self) -> bytes:
        """The content of its file."""
        content = json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=1, allow_nan=False)
        return content.encode("utf-8") + b"\n"


@dataclass(frozen=True, slots=True)
class Named:
    """What the path of a stored file says."""

    benchmark: str
    folder: str
    time: str
    hash: str
    kind: str


def measured_sha256(result_sha256: str, items_sha256: str) -> str:
    """The sha256 that names a stored result."""
    return hashlib.sha256(f"{result_sha256}\n{items_sha256}".encode()).hexdigest()


def folder_name(system: str) -> str:
    """A system's name as the name of a folder: ASCII, short, never `.` or `..`.

    What cannot be written so is replaced, and then a part of the name's sha256 keeps two systems apart.

    >>> folder_name("whisper-base + BM25"), folder_name("../../etc"), folder_name("结巴")
    ('whisper-base+BM25', 'etc-74ccf3c5', 'system-9d480e0e')
    """
    plain = system.replace(" + ", "+")
    made = re.sub(r"[^A-Za-z0-9_.+-]+", "-", unicodedata.normalize("NFKC", file_name(plain)), flags=re.ASCII)
    made = re.sub(r"\.{2,}", ".", made).strip("-.")
    short = made[:_MOST_FOLDER].rstrip("-.") or "system"
    return short if short == plain else f"{short}-{hashlib.sha256(system.encode('utf-8')).hexdigest()[:8]}"


def stored_path(benchmark: str, system: str, moment: datetime, measured: str) -> str:
    """Where a result belongs in a store."""
    time = moment.astimezone(UTC).strftime(_TIME)
    return f"{FOLDER}/{benchmark}/{folder_name(system)}/{time}-{measured[:_HASH_LENGTH]}.json"


def parse_path(path: str) -> Named | None:
    """What a path in a store says; None for what is no place for a result, such as one with `..` in it.

    >>> parse_path("results/squtr/a+b/20260131T235959Z-0123456789abcdef.json").hash
    '0123456789abcdef'
    >>> parse_path("results/../x.json")
    """
    match = _PATH.fullmatch(path)
    if match is None or ".." in path:
        return None
    return Named(match["benchmark"], match["system"], match["time"], match["hash"], match["kind"])


def items_path(path: Path) -> Path:
    """The table that belongs to a JSON file: beside a stored result, or as an evaluation names it."""
    return path.with_suffix(".parquet")


def written_items(path: Path) -> Path:
    """The table that an evaluation wrote beside its result."""
    return path.with_suffix(".items.parquet")


def make_stored(
    result: Mapping[str, Any],
    items: bytes | None,
    rows: int,
    *,
    about: Sequence[About] = (),
    note: str = "",
    now: datetime | None = None,
) -> StoredResult:
    """A result as it is stored: `items` is the content of its table (None without), with `rows` rows."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return StoredResult(
        submitted=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        content_sha256=content_sha256(result),
        items=Items(rows=rows, bytes=len(items), sha256=hashlib.sha256(items).hexdigest()) if items else None,
        about=list(about),
        note=note,
        result=dict(result),
    )


def is_stored(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a stored result, and not what an evaluation wrote."""
    return "store_version" in document


def read_stored(path: Path) -> StoredResult:
    """The stored result in a file. Raises `DataError` naming file and field."""
    return parse_stored(read_object(path), str(path))


def parse_stored(document: Mapping[str, Any], name: str) -> StoredResult:
    """The stored result in a JSON object. Raises `DataError` with `name` for the file."""
    try:
        return StoredResult.model_validate(document)
    except ValidationError as error:
        raise DataError(
            f"{name} is not a stored result: {first_problem(error)}.", hint="Make it with `squtr submit`."
        ) from error


def first_problem(error: ValidationError) -> str:
    """The first finding of a model, as a clause with the field, safe to print."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(shown(part)[1:-1] if isinstance(part, str) else str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def check_name(what: str, name: str, where: str) -> None:
    """Raise `DataError` for a name that cannot be shown."""
    problem = wrong_name(name)
    if problem:
        raise DataError(f"{where}: the {what} {shown(name)} {problem}.", hint="Give it a plain name.")


def check_note(note: str) -> None:
    """Raise `DataError` for a note that is too long or holds what cannot be seen."""
    if len(note) > 2000 or any(is_hidden(char) for char in note if char != "\n"):
        raise DataError("the note has over 2000 characters, or some that cannot be seen.", hint="Write plain text.")


def inside(folder: Path, path: str) -> Path:
    """The file of a store's path below `folder`. Raises `DataError` for what would lie elsewhere."""
    if parse_path(path) is None:
        raise DataError(f"{shown(path, 120)} is no place for a result.", hint="Make it with `squtr submit`.")
    return folder / PurePosixPath(path)
