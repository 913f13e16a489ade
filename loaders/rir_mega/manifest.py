"""`manifest.json` of the benchmark's data: beside recipe and shards, the edges of the bins and the strata."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ...errors import DataError
from ..manifest import MANIFEST_NAME, Manifest, benchmark_of, read_manifest
from ..questions.manifest import is_built_set, read_question_manifest
from .plan import SPLITS

RIR_MEGA = "rir_mega"
FOLDER = "pairs"
ROOMS_FOLDER = "rooms"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Stratum(_Model):
    """A group of rooms: above the first and at most the second value of `rt60_s` (and `drr_db`); null is open.

    `responses` and `rooms` count what could be drawn, `pairs` (of which `validation` and `test`) what was.
    """

    name: str
    rt60_s: tuple[float | None, float | None] = (None, None)
    drr_db: tuple[float | None, float | None] = (None, None)
    responses: int
    rooms: int
    pairs: int
    validation: int
    test: int


class Split(_Model):
    """How many pairs, utterances, responses and rooms a split has."""

    pairs: int
    utterances: int
    responses: int
    rooms: int


class PairManifest(Manifest):
    """The content of `manifest.json`.

    `edges` are those of the bins that results are reported by: column to values, bin i being above edge i−1 and at most
    edge i. They are quantiles over the responses of the RIR bank, the same for validation and test.
    """

    data_folders: ClassVar[tuple[str, ...]] = (FOLDER, ROOMS_FOLDER)
    side_files: ClassVar[tuple[str, ...]] = ("README.md",)

    benchmark: Literal["rir_mega"] = "rir_mega"
    edges: dict[str, list[float]]
    strata: list[Stratum]
    splits: dict[str, Split]

    @field_validator("splits")
    @classmethod
    def _has_both(cls, splits: dict[str, Split]) -> dict[str, Split]:
        if set(splits) != set(SPLITS):
            raise ValueError(f"the splits are {', '.join(splits) or 'none'}, not {', '.join(SPLITS)}")
        return splits

    @property
    def conditions(self) -> list[str]:
        """The arms."""
        return ["clean", "reverb"]


def read_pair_manifest(folder: Path) -> PairManifest:
    """The manifest of a folder that `squtr build rir_mega` wrote. Raises `DataError` if there is none or it cannot be
    read."""
    path = folder / MANIFEST_NAME
    benchmark = benchmark_of(folder)
    if benchmark not in {RIR_MEGA, ""}:
        raise DataError(
            f"{folder} holds data of the benchmark {benchmark!r}.",
            hint="Give a folder that `squtr build rir_mega` wrote.",
        )
    try:
        return PairManifest.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is not a data set that squtr built: {MANIFEST_NAME} is missing.",
            hint="Run `squtr build rir_mega` first.",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{path}: {place}: {first['msg']}.", hint="Build the folder again.") from error


def read_any_manifest(folder: Path) -> Manifest:
    """The manifest of a built folder, whichever benchmark it is for."""
    benchmark = benchmark_of(folder)
    if is_built_set(folder):
        return read_question_manifest(folder)
    return read_pair_manifest(folder) if benchmark == RIR_MEGA else read_manifest(folder)
