"""Building a data set into a folder that `datasets.load_dataset` reads. A stopped build continues."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from .. import __version__
from ..errors import DataError, SqutrWarning
from .blocks import take_digest
from .card import dataset_card
from .conditions import Condition
from .engines import BlockEngine, ThreadEngine
from .faults import Fault, Faults
from .finished import FinishedShards, Inputs
from .hub.evaluation_file import EVALUATION_NAME, evaluation_file
from .in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from .manifest import MANIFEST_NAME, Manifest, Shard, file_sha256
from .origins import without_versions
from .output_folder import writing_folder
from .recipe import OpenedRecipe
from .records import Take
from .rirs.plan import Plan
from .rirs.table import rir_features, rir_table
from .rows import ROWS_PER_TABLE, batches, corpus_features, corpus_table, qrels_features, qrels_table
from .shards import ShardPlan, is_finished, replace_file, shard_name, write_shards

ROWS_PER_SHARD = 2000
"""About 300 MB of clips, within the Hub's preferred 200 to 500 MB."""

DOCUMENTS_PER_SHARD = 500_000
DOCUMENTS_PER_TABLE = 5_000

Progress = Callable[[int], None]
"""Called with the number of clips that were finished since the last call."""


def count_clips(opened: OpenedRecipe) -> int:
    recipe = opened.recipe
    return sum(
        len(opened.rows(subset, condition, split))
        for split in recipe.splits
        for subset, _ in recipe.subsets
        for condition in recipe.conditions
    )


def build(
    opened: OpenedRecipe,
    out: Path,
    *,
    workers: int = 0,
    progress: Progress | None = None,
    engine: BlockEngine | None = None,
) -> Manifest:
    """Write the data set of `opened.recipe` to `out`, keeping what a stopped build of the same recipe finished.

    `workers` threads (0: one per core) or `engine` render; both change the speed only. What is wrong with speech, noise
    and RIRs is told at the end, in one `AudioError` (`DataError`); shards without it are finished, and kept when the
    source was mended. Raises `RecipeMismatchError` if the folder holds anything else, `StorageError`, and `DataError`
    for unusable texts.
    """
    report = progress or (lambda _: None)
    work = _Work(engine or ThreadEngine(workers), workers or os.cpu_count() or 1, report, Faults())
    with writing_folder(out, _manifest(opened, complete=False, shards=[]), mended=without_versions) as finished:
        plans: list[ShardPlan] = []
        for group in _groups(opened):
            plans += group.plans
            missing = [plan for plan in group.plans if not is_finished(out / plan.path, plan.rows)]
            missing += group.changed([plan for plan in group.plans if plan not in missing], finished, work)
            report(sum(plan.rows for plan in group.plans if plan.condition and plan not in missing))
            if missing:
                try:
                    write_shards(out, missing, group.tables(missing, work))
                except _FaultyError:
                    continue
                if inputs := group.inputs(missing):
                    finished.add(inputs)
        work.faults.refuse(
            f"{opened.source.name} and its banks",
            hint="Mend or remove them and run the same command again: what is finished is kept.",
        )
        manifest = _manifest(opened, complete=True, shards=[_shard(out, plan) for plan in plans])
        finished.clear(plan.path for plan in plans)
        replace_file(out / "README.md", dataset_card(manifest, out).encode("utf-8"))
        if EVALUATION_NAME in manifest.side_files:
            replace_file(out / EVALUATION_NAME, evaluation_file(manifest).encode("utf-8"))
        replace_file(out / MANIFEST_NAME, manifest.to_json())
    return manifest


@dataclass(frozen=True, slots=True)
class _Work:
    """What renders, in how many threads clips are read, who is told of finished clips, and what was found wrong."""

    engine: BlockEngine
    workers: int
    report: Progress
    faults: Faults

    def found(self, faults: Sequence[Fault]) -> None:
        if faults and not len(self.faults):
            warnings.warn(
                f"{faults[0].message} The build goes on, to find what else is wrong.", SqutrWarning, stacklevel=2
            )
        self.faults.add(faults)


class _FaultyError(Exception):
    """Clips of a group cannot be used; they are among the faults."""


def _shard(out: Path, plan: ShardPlan) -> Shard:
    path = out / plan.path
    return Shard(path=plan.path, sha256=file_sha256(path), bytes=path.stat().st_size, rows=plan.rows)


def _manifest(opened: OpenedRecipe, *, complete: bool, shards: list[Shard]) -> Manifest:
    plan = opened.plan
    return Manifest(
        squtr_version=__version__,
        recipe_fingerprint=opened.recipe.fingerprint,
        recipe=opened.recipe.as_dict(),
        benchmark=opened.recipe.benchmark,
        complete=complete,
        shards=shards,
        edges=plan.strata.edges if plan else {},
        strata=plan.table() if plan else [],
    )


class _Group(Protocol):
    """Shards that are written side by side."""

    plans: list[ShardPlan]

    def tables(self, missing: Sequence[ShardPlan], work: _Work) -> Iterator[Sequence[pa.Table]]:
        """The tables of `missing`. Raises `_FaultyError` where they cannot all be made."""
        ...

    def changed(self, held: Sequence[ShardPlan], finished: FinishedShards, work: _Work) -> list[ShardPlan]:
        """Those of the finished shards `held` that were made from something else."""
        ...

    def inputs(self, made: Sequence[ShardPlan]) -> dict[str, Inputs]:
        """What the shards that were just written were made from, by path; {} where nobody asks."""
        ...


class _Plain:
    """A group of plain tables: where the source was mended they are not listed, and made again."""

    def changed(self, _: Sequence[ShardPlan], __: FinishedShards, ___: _Work) -> list[ShardPlan]:
        return []

    def inputs(self, _: Sequence[ShardPlan]) -> dict[str, Inputs]:
        return {}


def _groups(opened: OpenedRecipe) -> Iterator[_Group]:
    for subset, _ in opened.recipe.subsets:
        # Recordings alone have neither corpus nor judgments: a file without rows would break `load_dataset`.
        yield from _CorpusGroup.all_of(opened, subset)
        qrels = _QrelsGroup(opened, subset)
        if qrels.plans[0].rows:
            yield qrels
    for split in opened.recipe.splits:
        for subset, language in opened.recipe.subsets:
            per_shard = max(1, ROWS_PER_SHARD // opened.recipe.rirs_per_utterance)
            pieces = list(batches(opened.takes(subset, split), per_shard))
            for index, piece in enumerate(pieces):
                name = shard_name(index, len(pieces), split)
                yield _SpokenGroup(opened, f"queries/{language}/{subset}", piece, name)
        if opened.plan:
            yield _RirGroup(opened.plan, split)


class _CorpusGroup(_Plain):
    """One shard of a corpus, streamed: only a table's documents are held."""

    def __init__(self, opened: OpenedRecipe, subset: str, index: int, total: int) -> None:
        self._opened, self._subset = opened, subset
        self._start = index * DOCUMENTS_PER_SHARD
        rows = min(DOCUMENTS_PER_SHARD, total - self._start)
        name = shard_name(index, -(-total // DOCUMENTS_PER_SHARD))
        self.plans = [ShardPlan(f"corpus/{subset}/{name}", rows, corpus_features().arrow_schema)]

    @classmethod
    def all_of(cls, opened: OpenedRecipe, subset: str) -> list[_CorpusGroup]:
        total = sum(1 for _ in opened.source.documents(subset))
        return [cls(opened, subset, index, total) for index in range(-(-total // DOCUMENTS_PER_SHARD))]

    def tables(self, missing: Sequence[ShardPlan], _: _Work) -> Iterator[Sequence[pa.Table]]:
        (plan,) = missing
        documents = islice(self._opened.source.documents(self._subset), self._start, self._start + plan.rows)
        for batch in batches(documents, DOCUMENTS_PER_TABLE):
            yield [corpus_table(batch, plan.schema)]


class _QrelsGroup(_Plain):
    def __init__(self, opened: OpenedRecipe, subset: str) -> None:
        kept = {query.id for split in opened.recipe.splits for query in opened.queries(subset, split)}
        self._qrels = [qrel for qrel in opened.source.qrels(subset) if qrel.query_id in kept]
        path = f"qrels/{subset}/{shard_name(0, 1)}"
        self.plans = [ShardPlan(path, len(self._qrels), qrels_features().arrow_schema)]

    def tables(self, missing: Sequence[ShardPlan], _: _Work) -> Iterator[Sequence[pa.Table]]:
        yield [qrels_table(self._qrels, missing[0].schema)]


class _RirGroup(_Plain):
    def __init__(self, plan: Plan, split: str) -> None:
        self._plan, self._split = plan, split
        path = f"rirs/{shard_name(0, 1, split)}"
        self.plans = [ShardPlan(path, len(plan.uses(split)), rir_features().arrow_schema)]

    def tables(self, missing: Sequence[ShardPlan], _: _Work) -> Iterator[Sequence[pa.Table]]:
        yield [rir_table(self._plan, self._split, missing[0].schema)]


class _SpokenGroup:
    """The same utterances under every condition: the speech of each is decoded, and convolved, once for all."""

    def __init__(self, opened: OpenedRecipe, folder: str, takes: list[Take], name: str) -> None:
        self._opened, self._takes = opened, takes
        self._digest = ""
        schema = opened.features().arrow_schema
        self.plans = [
            ShardPlan(f"{folder}/{condition.name}/{name}", _rows(takes, condition), schema, condition.name)
            for condition in opened.conditions.values()
        ]

    def tables(self, missing: Sequence[ShardPlan], work: _Work) -> Iterator[Sequence[pa.Table]]:
        conditions = [self._opened.condition(plan.condition) for plan in missing]
        # Row groups of whole utterances.
        blocks = list(batches(self._takes, max(1, ROWS_PER_TABLE // self._opened.recipe.rirs_per_utterance)))
        digests: list[str] = []
        faulty = False
        for block, made in zip(blocks, work.engine(self._opened, conditions, blocks), strict=True):
            work.found(made.faults)
            faulty = faulty or bool(made.faults)
            digests += made.digests
            if not faulty:
                yield made.tables
            work.report(sum(_rows(block, condition) for condition in conditions))
        if faulty:
            raise _FaultyError
        self._digest = _digest(digests)

    def changed(self, held: Sequence[ShardPlan], finished: FinishedShards, work: _Work) -> list[ShardPlan]:
        others = [plan for plan in held if finished.is_of_other_recipe(plan.path)]
        if not others:
            return []
        import_before_threads(*SIGNAL_PACKAGES)
        try:
            self._digest = _digest(in_order(self._digest_of, self._takes, workers=work.workers))
        except DataError:
            # Of what was right then, something is wrong now: rendering tells it.
            return others
        inputs = self.inputs(others)
        changed = [plan for plan in others if finished.inputs(plan.path) != inputs[plan.path]]
        finished.add({plan.path: inputs[plan.path] for plan in others if plan not in changed})
        return changed

    def _digest_of(self, take: Take) -> str:
        return take_digest(take, self._opened.speech(take.query))

    def inputs(self, made: Sequence[ShardPlan]) -> dict[str, Inputs]:
        return {plan.path: self._inputs(self._opened.condition(plan.condition)) for plan in made}

    def _inputs(self, condition: Condition) -> Inputs:
        recipe, subset = self._opened.recipe, self._takes[0].query.subset
        found = {"utterances": self._digest}
        if condition.needs("noise"):
            found["noise"] = recipe.version("noise", subset)
        if condition.needs("rirs"):
            found["rirs"] = f"{recipe.version('rirs', subset)} {recipe.rir_measures}"
        return found


def _rows(takes: Sequence[Take], condition: Condition) -> int:
    return sum(len(take.rows(reverb=condition.needs("rirs"))) for take in takes)


def _digest(digests: Iterable[str]) -> str:
    return hashlib.sha256("".join(digests).encode()).hexdigest()
