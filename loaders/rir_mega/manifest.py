"""`manifest.json` of the benchmark's data: beside recipe and shards, the edges of the bins and the strata."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ...errors import DataError
from ..manifest import MANIFEST_NAME, Manifest
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

    benchmark: str = "rir_mega"
    edges: dict[str, list[float]]
    strata: list[Stratum]
    pair_splits: dict[str, Split]

    @property
    def conditions(self) -> list[str]:
        """The arms."""
        return ["clean", "reverb"]


def read_pair_manifest(folder: Path) -> PairManifest:
    """Until the builder is one."""
    return PairManifest.model_validate_json((folder / MANIFEST_NAME).read_bytes())


def benchmark_of(folder: Path) -> str:
    """Until the builder is one."""
    import json

    try:
        return str(json.loads((folder / MANIFEST_NAME).read_bytes()).get("benchmark", ""))
    except (OSError, ValueError):
        return ""
