"""What a repository on the Hub and a folder hold together, where their recipes agree."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import DataError, RecipeMismatchError
from ..growth import grows, uncovered, united
from ..manifest import (
    MANIFEST_NAME,
    SPEECH,
    Manifest,
    Shard,
    Statistics,
    all_libraries,
    joint_left_out,
    kind_of,
    read_manifest_as,
    recipe_fingerprint,
)

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_REPLACE = "Push to another repository, or use --replace: then it holds this folder and nothing else."


def published_manifest(api: HfApi, repo_id: str, revision: str, model: type[Manifest], kind: str) -> Manifest:
    """The manifest of a data set on the Hub. Raises `RecipeMismatchError` for one of other data, or unreadable."""
    with tempfile.TemporaryDirectory(prefix="squtr-hub-") as scratch:
        api.hf_hub_download(repo_id, MANIFEST_NAME, repo_type="dataset", revision=revision, local_dir=scratch)
        there = kind_of(Path(scratch))
        if there not in {kind, ""}:
            raise RecipeMismatchError(f"{repo_id} holds {there}, the folder {kind}.", hint=_REPLACE)
        try:
            return read_manifest_as(model, kind, Path(scratch))
        except DataError as error:
            raise RecipeMismatchError(
                f"the manifest of {repo_id} cannot be read: another version of squtr wrote it.", hint=_REPLACE
            ) from error


def union(repo_id: str, there: Manifest, here: Manifest) -> Manifest:
    """The manifest of what is published `there` and of a folder, the folder's shards where both have a place.

    `here` itself where it holds everything. Raises `RecipeMismatchError` where the recipes disagree, or some subset
    would lack a condition.
    """
    if there.recipe_fingerprint == here.recipe_fingerprint:
        return here
    if here.kind != SPEECH:
        raise RecipeMismatchError(f"{repo_id} holds another set of questions than the folder.", hint=_REPLACE)
    differences = grows(there.recipe, here.recipe)
    if differences.disagreeing:
        raise RecipeMismatchError(
            f"{repo_id} holds another recipe ({'; '.join(differences.disagreeing[:3])}).", hint=_REPLACE
        )
    if not differences:
        return here
    if gaps := uncovered(there.recipe, here.recipe):
        subset, condition = gaps[0]
        raise RecipeMismatchError(
            f"together with what {repo_id} holds, the subset {subset} would lack the condition {condition}.",
            hint=f"Build {subset} under {condition} too, or use --replace: then it holds this folder and nothing else.",
        )
    recipe = united(there.recipe, here.recipe)
    return here.model_copy(
        update={
            "recipe": recipe,
            "recipe_fingerprint": recipe_fingerprint(recipe),
            "benchmark": recipe["benchmark"],
            "shards": _shards(there.shards, here.shards),
            "libraries": all_libraries([there.libraries, here.libraries]),
            "left_out": joint_left_out(there.left_out, here.left_out),
            "statistics": _statistics(recipe["subsets"], recipe["conditions"], there, here),
        }
    )


def _place(shard: Shard) -> tuple[str, str]:
    """The folder and the split of a shard."""
    folder, _, name = shard.path.rpartition("/")
    return folder, name.partition("-")[0]


def _shards(there: Sequence[Shard], here: Sequence[Shard]) -> list[Shard]:
    own = {_place(shard) for shard in here}
    return sorted([*here, *(shard for shard in there if _place(shard) not in own)], key=lambda shard: shard.path)


def _statistics(subsets: Sequence[str], conditions: Sequence[str], there: Manifest, here: Manifest) -> list[Statistics]:
    places = {(row.subset, row.condition, row.split): row for row in (*there.statistics, *here.statistics)}
    order = [(s, c, split) for s in subsets for c in conditions for split in here.splits]
    return [places[place] for place in order if place in places]
