"""Building the benchmark's data into a folder that `datasets.load_dataset` reads.

    README.md  manifest.json
    pairs/validation-*.parquet  pairs/test-*.parquet    both arms of every pair: the configs paired, clean and reverb
    rooms/validation-*.parquet  rooms/test-*.parquet    the rooms with their measures: the config rooms

Every file is written to a temporary name and renamed, so a build that was stopped at any point continues with the first
missing file and ends with the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ... import __version__
from ...errors import RecipeMismatchError
from ..build import clear_storage_errors
from ..manifest import MANIFEST_NAME, Shard, file_sha256
from ..rows import ROWS_PER_TABLE, batches
from ..shards import ShardPlan, is_finished, replace_file, shard_name, write_shards
from .card import pair_card
from .manifest import FOLDER, ROOMS_FOLDER, PairManifest, Split, Stratum, read_pair_manifest
from .plan import SPLITS, Plan, PlannedUtterance
from .recipe import OpenedPairs
from .render import render_pairs
from .rows import AUDIO, pair_features, pair_table, room_features, room_table

PAIRS_PER_SHARD = 1000
"""About 350 MB of clips of LibriSpeech's length, within the Hub's preferred 200 to 500 MB."""

Progress = Callable[[int], None]
"""Called with the number of pairs that were finished since the last call."""


def count_pairs(opened: OpenedPairs) -> int:
    """How many pairs a build makes, for a progress bar."""
    return sum(opened.plan.pairs(split) for split in SPLITS)


def build_pairs(opened: OpenedPairs, out: Path, *, workers: int = 0, progress: Progress | None = None) -> PairManifest:
    """Write the data of `opened.recipe` to the folder `out` and return its manifest.

    `workers` is the number of threads (0: one per core) and changes no byte. What an earlier, stopped build of the same
    recipe finished is kept. Raises `RecipeMismatchError` if the folder holds anything else, `StorageError` if the disk
    refuses, `AudioError` or `DataError` for unusable input.
    """
    report = progress or (lambda _: None)
    with clear_storage_errors(out):
        _claim(opened, out)
        plans: list[ShardPlan] = []
        for piece in _pieces(opened):
            plans.append(piece.plan)
            if is_finished(out / piece.plan.path, piece.plan.rows):
                report(piece.plan.rows)
            else:
                write_shards(out, [piece.plan], piece.tables(opened, workers or os.cpu_count() or 1, report))
        for split in SPLITS:
            plan = _rooms_plan(opened.plan, split)
            plans.append(plan)
            if not is_finished(out / plan.path, plan.rows):
                write_shards(out, [plan], [[_rooms(opened.plan, split, plan.schema)]])
        manifest = _manifest(opened, complete=True, shards=[_shard(out, plan) for plan in plans])
        replace_file(out / "README.md", pair_card(manifest, out).encode("utf-8"))
        replace_file(out / MANIFEST_NAME, manifest.to_json())
    return manifest


@dataclass(frozen=True, slots=True)
class _Piece:
    """One shard of a split, and the utterances in it."""

    plan: ShardPlan
    utterances: tuple[PlannedUtterance, ...]

    def tables(self, opened: OpenedPairs, workers: int, report: Progress) -> Iterator[Sequence[pa.Table]]:
        """Row groups of whole utterances, so that a clean clip is stored once however many rooms it is heard in."""
        at_once = max(1, ROWS_PER_TABLE // opened.recipe.rirs_per_utterance)
        rendered = render_pairs(opened, self.utterances, workers=workers)
        for block in batches(rendered, at_once):
            rows = [row for utterance in block for row in utterance]
            yield [pair_table(rows, self.plan.schema)]
            report(len(rows))


def _pieces(opened: OpenedPairs) -> Iterator[_Piece]:
    schema = pair_features().arrow_schema
    each = opened.recipe.rirs_per_utterance
    for split in SPLITS:
        parts = list(batches(opened.plan.utterances[split], max(1, PAIRS_PER_SHARD // each)))
        for index, part in enumerate(parts):
            plan = ShardPlan(
                f"{FOLDER}/{shard_name(index, len(parts), split)}",
                sum(len(utterance.rir_ids) for utterance in part),
                schema,
                FOLDER,
                sounds=AUDIO,
                repeated=("clean_audio",) if each > 1 else (),
            )
            yield _Piece(plan, tuple(part))


def _rooms_plan(plan: Plan, split: str) -> ShardPlan:
    return ShardPlan(f"{ROOMS_FOLDER}/{shard_name(0, 1, split)}", len(plan.uses(split)), room_features().arrow_schema)


def _rooms(plan: Plan, split: str, schema: pa.Schema) -> pa.Table:
    used = plan.uses(split).items()
    return room_table(((plan.rooms[rir_id], plan.stratum_of[rir_id], count) for rir_id, count in used), schema)


def _shard(out: Path, plan: ShardPlan) -> Shard:
    path = out / plan.path
    return Shard(path=plan.path, sha256=file_sha256(path), bytes=path.stat().st_size, rows=plan.rows)


def _manifest(opened: OpenedPairs, *, complete: bool, shards: list[Shard]) -> PairManifest:
    plan = opened.plan
    splits = {}
    for split in SPLITS:
        used = plan.uses(split)
        splits[split] = Split(
            pairs=plan.pairs(split),
            utterances=len(plan.utterances[split]),
            responses=len(used),
            rooms=len({plan.rooms[rir_id].room_id for rir_id in used}),
        )
    return PairManifest(
        squtr_version=__version__,
        recipe_fingerprint=opened.recipe.fingerprint,
        recipe=opened.recipe.as_dict(),
        complete=complete,
        shards=shards,
        edges=plan.strata.edges,
        strata=[Stratum.model_validate(row) for row in plan.table()],
        pair_splits=splits,
    )


def _claim(opened: OpenedPairs, out: Path) -> None:
    """Make `out` ours: refuse a folder that holds something else, mark a new one as begun."""
    if out.exists() and not out.is_dir():
        raise RecipeMismatchError(f"{out} is a file.", hint="Choose another folder with --out.")
    if (out / MANIFEST_NAME).exists():
        held = read_pair_manifest(out)
        if held.recipe_fingerprint != opened.recipe.fingerprint:
            ours = opened.recipe.as_dict()
            differing = sorted(key for key in ours if held.recipe.get(key) != ours[key])
            shown = ", ".join(f"{key} {held.recipe.get(key)!r} there, {ours[key]!r} here" for key in differing[:3])
            raise RecipeMismatchError(
                f"{out} holds another recipe ({shown}).", hint="Choose another folder with --out, or remove it."
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise RecipeMismatchError(
            f"{out} is not empty and was not made by `squtr build rir_mega`.",
            hint="Choose another folder with --out.",
        )
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / MANIFEST_NAME, _manifest(opened, complete=False, shards=[]).to_json())
