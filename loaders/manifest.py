"""`manifest.json`: what a built folder holds, and what it was made from."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import DataError
from .left_out import LeftOut

MANIFEST_NAME = "manifest.json"
SPEECH = "speech"
KINDS: Mapping[str, str] = {SPEECH: ".manifest:Manifest", "questions": ".questions.manifest:QuestionManifest"}
"""Kinds of data sets, and the model of each one's manifest."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Shard(_Model):
    """A parquet file; `path` is relative to the folder, with forward slashes."""

    path: str
    sha256: str
    bytes: int
    rows: int


class Average(_Model):
    """The mean of a column where it applies: its sum over `count` rows."""

    sum: float
    count: int


class Statistics(_Model):
    """What the card says of the clips of a subset under a condition in a split, read back from the shards.

    `means` are by column; `noise_families` and `voices` count clips.
    """

    subset: str
    condition: str
    split: str
    clips: int
    seconds: float
    means: dict[str, Average]
    noise_families: dict[str, int]
    voices: dict[str, int]


class Stratum(_Model):
    """A group of RIRs: above the first and at most the second value of `rt60_s` (and `drr_db`); null is open.

    `rirs` and `rooms` count what could be drawn, `pairs` the pairs of an utterance and a RIR by split.
    """

    name: str
    rt60_s: tuple[float | None, float | None] = (None, None)
    drr_db: tuple[float | None, float | None] = (None, None)
    rirs: int
    rooms: int
    pairs: dict[str, int]


class Manifest(_Model):
    """The content of `manifest.json`. It holds no time and no place, so that the same recipe gives the same file.

    `libraries` are the versions of those that decide the bytes of shards ("1, 2" where several wrote some), {} where
    that was not noted.

    `data_folders` are where shards lie (whatever else lies there would be read as data, because configs are patterns).
    `benchmark` is the name of the benchmark that the data was built
    for, "" for none. `edges` are those of the bins that results are reported by: column to values, bin i being above
    edge i−1 and at most edge i; they are quantiles over the RIRs that could be drawn, the same for every split.
    `left_out` says what of sources and banks was not taken, and why. `statistics` are those of the card, so that sets
    can be joined without their clips.
    """

    data_folders: ClassVar[tuple[str, ...]] = ("corpus", "qrels", "queries", "rirs")
    schema_version: Literal["1"] = "1"
    kind: str = SPEECH
    benchmark: str = ""
    squtr_version: str
    recipe_fingerprint: str
    recipe: dict[str, Any]
    complete: bool
    shards: list[Shard]
    edges: dict[str, list[float]] = {}
    strata: list[Stratum] = []
    libraries: dict[str, str] = {}
    left_out: list[LeftOut] = []
    statistics: list[Statistics] = []

    @property
    def subsets(self) -> dict[str, str]:
        return dict(self.recipe["subsets"])

    @property
    def conditions(self) -> list[str]:
        return list(self.recipe["conditions"])

    @property
    def splits(self) -> list[str]:
        return list(self.recipe["splits"])

    @property
    def side_files(self) -> tuple[str, ...]:
        """What a complete folder has beside shards and manifest; `eval.yaml` where there is a corpus."""
        return ("README.md", "eval.yaml") if self.below("corpus") else ("README.md",)

    def below(self, folder: str, split: str = "") -> list[Shard]:
        """The shards below a folder (relative, without the last slash), of one split if one is named."""
        return [shard for shard in self.shards if shard.path.startswith(f"{folder}/{split}{'-' if split else ''}")]

    def to_json(self) -> bytes:
        text = json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=2, sort_keys=True)
        return text.encode("utf-8") + b"\n"


Model = TypeVar("Model", bound=Manifest)


def _held(folder: Path) -> Mapping[str, Any]:
    """The manifest as it is, empty where there is none that can be read."""
    try:
        held = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def kind_of(folder: Path) -> str:
    """The kind of the data set in a folder, a key of `KINDS`; "" where there is no manifest that says so."""
    return str(_held(folder).get("kind", ""))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder of speech. Raises `DataError` if there is none, or it is of other data or unreadable."""
    return read_manifest_as(Manifest, SPEECH, folder)


def read_any_manifest(folder: Path) -> Manifest:
    """The manifest of a built folder, whatever kind of data it holds. Raises what `read_manifest` raises."""
    kind = kind_of(folder)
    if kind not in KINDS:
        return read_manifest(folder)
    module, _, name = KINDS[kind].partition(":")
    model = getattr(importlib.import_module(module, __package__), name)
    return cast("Manifest", read_manifest_as(model, kind, folder))


def read_manifest_as(model: type[Model], kind: str, folder: Path) -> Model:
    """The manifest of a folder of this kind. Raises what `read_manifest` raises."""
    path = folder / MANIFEST_NAME
    held = kind_of(folder)
    if held not in {kind, ""}:
        raise DataError(f"{folder} holds {held}, not {kind}.", hint="Give a folder that `squtr build` wrote.")
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is not a data set that squtr built: {MANIFEST_NAME} is missing.", hint="Run `squtr build` first."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{path}: {place}: {first['msg']}.", hint="Build the folder again.") from error


def recipe_fingerprint(recipe: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the sha256 of a recipe's canonical JSON."""
    canonical = json.dumps(recipe, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]


def libraries() -> dict[str, str]:
    """The versions of the libraries that decide the bytes of shards."""
    import numpy
    import pyarrow
    import scipy
    import soundfile

    return {
        "libsndfile": str(soundfile.__libsndfile_version__),
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
        "scipy": scipy.__version__,
    }


def joint_left_out(first: Iterable[LeftOut], second: Iterable[LeftOut]) -> list[LeftOut]:
    """What was left out of both; what both say alike is the same thing."""
    held = list(first)
    return [*held, *(row for row in second if row not in held)]


def all_libraries(versions: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The versions of all, by library.

    >>> all_libraries([{"numpy": "2.1"}, {"numpy": "2.2"}, {"numpy": "2.1"}])
    {'numpy': '2.1, 2.2'}
    """
    found: dict[str, dict[str, None]] = {}
    for each in versions:
        for name, version in each.items():
            found.setdefault(name, {}).update(dict.fromkeys(version.split(", ")))
    return {name: ", ".join(sorted(several)) for name, several in sorted(found.items())}


def file_sha256(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
