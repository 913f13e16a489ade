"""`manifest.json`: what a built folder holds, and what it was made from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import DataError

MANIFEST_NAME = "manifest.json"
SQUTR = "squtr"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Shard(_Model):
    """A parquet file; `path` is relative to the folder, with forward slashes."""

    path: str
    sha256: str
    bytes: int
    rows: int


class Manifest(_Model):
    """The content of `manifest.json`. It holds no time and no place, so that the same recipe gives the same file.

    `data_folders` are where shards lie (whatever else lies there would be read as data, because configs are patterns),
    `side_files` what a complete folder has besides.
    """

    data_folders: ClassVar[tuple[str, ...]] = ("corpus", "qrels", "queries")
    side_files: ClassVar[tuple[str, ...]] = ("README.md", "eval.yaml")

    schema_version: Literal["1"] = "1"
    benchmark: str = SQUTR
    squtr_version: str
    recipe_fingerprint: str
    recipe: dict[str, Any]
    complete: bool
    shards: list[Shard]

    @property
    def subsets(self) -> dict[str, str]:
        """Subset name to language."""
        return dict(self.recipe["subsets"])

    @property
    def conditions(self) -> list[str]:
        """The conditions that were built."""
        return list(self.recipe["conditions"])

    def to_json(self) -> bytes:
        """As UTF-8 JSON."""
        text = json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=2, sort_keys=True)
        return text.encode("utf-8") + b"\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a built folder. Raises `DataError` if there is none or it cannot be read."""
    path = folder / MANIFEST_NAME
    benchmark = benchmark_of(folder)
    if benchmark not in {SQUTR, ""}:
        raise DataError(
            f"{folder} holds data of the benchmark {benchmark!r}.",
            hint="Give a folder that `squtr build --source` wrote.",
        )
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is not a data set that squtr built: {MANIFEST_NAME} is missing.", hint="Run `squtr build` first."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{path}: {place}: {first['msg']}.", hint="Build the folder again.") from error


def benchmark_of(folder: Path) -> str:
    """The benchmark whose data a built folder holds, "" if it has no manifest that says so."""
    try:
        held = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError):
        return ""
    return str(held.get("benchmark", "")) if isinstance(held, dict) else ""


def file_sha256(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
