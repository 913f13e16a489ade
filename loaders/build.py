"""Building a data set into a folder that `datasets.load_dataset` reads. A stopped build continues."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from .. import __version__
from ..errors import DataError, IntegrityError, RecipeMismatchError, SqutrWarning
from .blocks import take_digest
from .conditions import Condition
from .engines import BlockEngine, ThreadEngine
from .faults import Fault, Faults
from .finished import FinishedShards, Made
from .growth import Differences, grows, uncovered, united
from .in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from .manifest import Manifest, Shard, all_libraries, joint_left_out, recipe_fingerprint
from .origins import KINDS, joined, origins, without_versions
from .output_folder import check_rebuilt, damage, writing_folder
from .recipe import OpenedRecipe
from .records import Take
from .rirs.table import rir_features, rir_table
from .rows import ROWS_PER_TABLE, batches, corpus_features, corpus_table, qrels_features, qrels_table
from .shards import ShardPlan, replace_file, shard_name, write_series, write_shards
from .side_files import side_contents
from .statistics import statistics_of

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
    add: bool = False,
    workers: int = 0,
    progress: Progress | None = None,
    engine: BlockEngine | None = None,
) -> Manifest:
    """Write the data set of `opened.recipe` to `out`, keeping what a stopped build of the same recipe finished.

    A complete folder grows where the recipe is its own with more conditions or subsets: what is there is kept, and
    stays valid until the end. With `add` the recipe names only what is to be added, and the folder holds both then.
    A shard is kept if its hash is the one that was taken when it was written; a damaged one is made again, with a
    warning that names it.

    `workers` threads (0: one per core) or `engine` render; both change the speed only. What is wrong with speech, noise
    and RIRs is told at the end, in one `AudioError` (`DataError`); shards without it are finished, and kept when the
    source was mended. Raises `RecipeMismatchError` if the folder holds anything else, `StorageError`, `DataError` for
    unusable texts, and `IntegrityError` if a damaged shard cannot be made as it was.
    """
    report = progress or (lambda _: None)
    work = _Work(engine or ThreadEngine(workers), workers or os.cpu_count() or 1, report, Faults())
    begun = _manifest(opened)

    def fits(held: Manifest) -> None:
        _check_fit(out, held, begun, add=add)

    with writing_folder(out, begun, fits=fits) as (held, finished):
        shards = [shard for group in _groups(opened) for shard in group.finish(out, finished, work)]
        if finished.damaged:
            warnings.warn(damage(finished), SqutrWarning, stacklevel=2)
        work.faults.refuse(
            f"{opened.source.name} and its banks",
            hint="Mend or remove them and run the same command again: what is finished is kept.",
        )
        shards += _kept(out, finished, {shard.path for shard in shards})
        manifest = _complete(opened, begun, held, finished, shards)
        manifest = manifest.model_copy(update={"statistics": statistics_of(manifest, out)})
        check_rebuilt(out, held, manifest)
        finished.remove_stale(shard.path for shard in shards)
        for name, content in side_contents(manifest).items():
            replace_file(out / name, content)
        finished.close()
    return manifest


def _check_fit(out: Path, held: Manifest, begun: Manifest, *, add: bool) -> None:
    """Raise `RecipeMismatchError` unless what the folder holds can stay where `begun` is built."""
    one, two = held.recipe, begun.recipe
    differences = grows(one, two)
    if not held.complete and "sources" in one:
        # Sources and banks may have been mended: what each shard was made from says whether it stays.
        differences = grows(without_versions(one), without_versions(two))
        if add and differences:
            raise RecipeMismatchError(
                f"the build of {out} is not finished.", hint="First run its command again, then add to it."
            )
    elif add:
        differences = replace(differences, lacking_conditions=(), lacking_subsets=())
        if not differences and (gaps := uncovered(one, two)):
            subset, condition = gaps[0]
            owner = next(iter(origins(one if subset in one["subsets"] else two, "sources", [subset])))
            raise RecipeMismatchError(
                f"{condition} would be added to {out}, but not for its subset {subset}.",
                hint=f"Name the source of {subset} as well (--source, {owner.name} there), or leave the condition out.",
            )
    if not differences:
        return
    raise _mismatch(out, differences)


def _mismatch(out: Path, differences: Differences) -> RecipeMismatchError:
    if differences.disagreeing:
        return RecipeMismatchError(
            f"{out} holds another recipe ({'; '.join(differences.disagreeing[:3])}).",
            hint="Choose another folder with --out, or remove it.",
        )
    options = [
        f"{option} {' '.join(names)}"
        for option, names in (
            ("--conditions", differences.lacking_conditions),
            ("--subsets", differences.lacking_subsets),
        )
        if names
    ]
    return RecipeMismatchError(
        f"{out} also holds {differences.lacking}, which this recipe lacks.",
        hint=f"Add them to the command ({', '.join(options)}) or use --add; else choose another folder with --out.",
    )


def _kept(out: Path, finished: FinishedShards, made: set[str]) -> list[Shard]:
    """The shards of the folder that are not part of this recipe, after reading them."""
    kept = []
    for path, listed in finished.listed.items():
        if path in made:
            continue
        if finished.find(path) is None:
            raise IntegrityError(
                f"{path} in {out} is {finished.damaged.get(path, 'missing')}, and is not part of this recipe.",
                hint=f"First make it again: squtr build --add, with its source and {_options_of(path)}.",
            )
        kept.append(listed)
    return kept


def _options_of(path: str) -> str:
    """The options that name what a shard belongs to.

    >>> _options_of("queries/en/fiqa/snr_5/test-00000-of-00001.parquet"), _options_of("qrels/nq/test-0-of-1.parquet")
    ('--subsets fiqa --conditions snr_5', '--subsets nq')
    """
    parts = path.split("/")
    return f"--subsets {parts[2]} --conditions {parts[3]}" if parts[0] == "queries" else f"--subsets {parts[1]}"


def _complete(
    opened: OpenedRecipe, begun: Manifest, held: Manifest, finished: FinishedShards, shards: Sequence[Shard]
) -> Manifest:
    """The manifest of the complete folder; with what it held already, unless that is part of this recipe."""
    recipe, left_out = begun.recipe, list(opened.left_out)
    if held.complete and grows(held.recipe, begun.recipe):
        recipe = united(held.recipe, begun.recipe)
        left_out = joint_left_out(held.left_out, left_out)
    return begun.model_copy(
        update={
            "complete": True,
            "recipe": recipe,
            "recipe_fingerprint": recipe_fingerprint(recipe),
            "benchmark": recipe["benchmark"],
            "shards": sorted(shards, key=lambda shard: shard.path),
            "libraries": all_libraries(finished.libraries(shard.path) for shard in shards),
            "left_out": left_out,
        }
    )


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


def _manifest(opened: OpenedRecipe) -> Manifest:
    """The manifest of a build that has begun."""
    plan, recipe = opened.plan, opened.recipe.as_dict()
    return Manifest(
        squtr_version=__version__,
        recipe_fingerprint=recipe_fingerprint(recipe),
        recipe=recipe,
        benchmark=opened.recipe.benchmark,
        complete=False,
        shards=[],
        edges=plan.strata.edges if plan else {},
        strata=plan.table() if plan else [],
    )


_OF_ITS_OWN = {"subsets", "conditions", "steps", "benchmark", "rir_measures", *KINDS}
"""What of a recipe is not the same for all shards."""


def _made(recipe: Mapping[str, Any], subset: str, inputs: Mapping[str, str] | None = None, **own: Any) -> Made:
    """What decides a shard of `subset`: its source, the recipe where it is the same for all, and what is its own."""
    source = next(iter(origins(recipe, "sources", [subset])))
    part = {key: value for key, value in recipe.items() if key not in _OF_ITS_OWN}
    part |= {"subset": subset, "source": [source.name, source.split], **own}
    if recipe["stratify"] or recipe.get("divided"):
        # Plan and division are made over all.
        part["subsets"] = recipe["subsets"]
    digest = hashlib.sha256(json.dumps(part, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return Made(digest[:16], {"source": source.version, **(inputs or {})})


class _Group(Protocol):
    """Shards that are written side by side."""

    def finish(self, out: Path, finished: FinishedShards, work: _Work) -> list[Shard]:
        """Keep what is finished and write the rest: all shards, [] where clips of the group cannot be used."""
        ...


def _groups(opened: OpenedRecipe) -> Iterator[_Group]:
    for subset, _ in opened.recipe.subsets:
        # Recordings alone have neither corpus nor judgments: a file without rows would break `load_dataset`.
        yield _CorpusGroup(opened, subset)
        yield _QrelsGroup(opened, subset)
    for split in opened.recipe.splits:
        for subset, language in opened.recipe.subsets:
            per_shard = max(1, ROWS_PER_SHARD // opened.recipe.rirs_per_utterance)
            pieces = list(batches(opened.takes(subset, split), per_shard))
            for index, piece in enumerate(pieces):
                name = shard_name(index, len(pieces), split)
                yield _SpokenGroup(opened, f"queries/{language}/{subset}", piece, name)
        if opened.plan:
            yield _RirGroup(opened, split)


class _CorpusGroup:
    """The corpus of a subset, streamed once: only a table's documents are held."""

    def __init__(self, opened: OpenedRecipe, subset: str) -> None:
        self._opened, self._subset = opened, subset

    def finish(self, out: Path, finished: FinishedShards, work: _Work) -> list[Shard]:
        place, schema = f"corpus/{self._subset}", corpus_features().arrow_schema
        made = _made(self._opened.recipe.as_dict(), self._subset, table="corpus")
        paths = finished.numbered(place)
        kept = {path: shard for path in paths if (shard := finished.kept(path, made))}
        if paths and len(kept) == len(paths):
            return [kept[path] for path in paths]
        # Some were damaged, and the rest is right: how many there are is known.
        wanted = [index for index, path in enumerate(paths) if path not in kept] if kept else None

        def finishing(written: Sequence[Shard]) -> None:
            same = all(kept[shard.path].rows == shard.rows for shard in written if shard.path in kept)
            if kept and (not same or [shard.path for shard in written] != paths):
                raise DataError(
                    f"{self._opened.source.name} gives another corpus of {self._subset} than when {out} was built.",
                    hint="Its files were changed: build into another folder with --out.",
                )
            finished.add([shard for shard in written if shard.path not in kept], made)

        written = write_series(out, place, schema, self._pieces(schema), wanted=wanted, finishing=finishing)
        return [kept.get(shard.path, shard) for shard in written]

    def _pieces(self, schema: pa.Schema) -> Iterator[Iterator[pa.Table]]:
        documents = iter(self._opened.source.documents(self._subset))
        # The next shard begins where the tables of the one before were taken to their end.
        while first := list(islice(documents, 1)):
            piece = chain(first, islice(documents, DOCUMENTS_PER_SHARD - 1))
            yield (corpus_table(batch, schema) for batch in batches(piece, DOCUMENTS_PER_TABLE))


class _QrelsGroup:
    def __init__(self, opened: OpenedRecipe, subset: str) -> None:
        self._opened, self._subset = opened, subset

    def finish(self, out: Path, finished: FinishedShards, work: _Work) -> list[Shard]:
        path = f"qrels/{self._subset}/{shard_name(0, 1)}"
        made = _made(self._opened.recipe.as_dict(), self._subset, table="qrels")
        if shard := finished.kept(path, made):
            return [shard]
        opened, subset = self._opened, self._subset
        kept = {query.cluster for split in opened.recipe.splits for query in opened.queries(subset, split)}
        qrels = [qrel for qrel in opened.source.qrels(subset) if qrel.query_id in kept]
        if not qrels:
            return []
        plan = ShardPlan(path, len(qrels), qrels_features().arrow_schema)
        table = qrels_table(qrels, plan.schema)
        return write_shards(out, [plan], [[table]], finishing=lambda shards: finished.add(shards, made))


class _RirGroup:
    def __init__(self, opened: OpenedRecipe, split: str) -> None:
        self._opened, self._split = opened, split

    def finish(self, out: Path, finished: FinishedShards, work: _Work) -> list[Shard]:
        opened, plan = self._opened, self._opened.plan
        if plan is None:
            return []
        recipe = opened.recipe.as_dict()
        versions = {kind: joined(origin.version for origin in origins(recipe, kind)) for kind in ("sources", "rirs")}
        inputs = versions | {"rir_measures": opened.recipe.rir_measures}
        made = _made(recipe, next(iter(recipe["subsets"])), inputs, table="rirs", split=self._split)
        path = f"rirs/{shard_name(0, 1, self._split)}"
        if shard := finished.kept(path, made):
            return [shard]
        planned = ShardPlan(path, len(plan.uses(self._split)), rir_features().arrow_schema)
        table = rir_table(plan, self._split, planned.schema)
        return write_shards(out, [planned], [[table]], finishing=lambda shards: finished.add(shards, made))


class _SpokenGroup:
    """The same utterances under every condition: the speech of each is decoded, and convolved, once for all."""

    def __init__(self, opened: OpenedRecipe, folder: str, takes: list[Take], name: str) -> None:
        self._opened, self._takes = opened, takes
        schema = opened.features().arrow_schema
        self._plans = [
            ShardPlan(f"{folder}/{condition.name}/{name}", _rows(takes, condition), schema, condition.name)
            for condition in opened.conditions.values()
        ]

    def finish(self, out: Path, finished: FinishedShards, work: _Work) -> list[Shard]:
        kept: dict[str, Shard] = {}
        mended: list[ShardPlan] = []
        for plan in self._plans:
            made = self._made(plan)
            if shard := finished.kept(plan.path, made, but={"utterances"}):
                kept[plan.path] = shard
            elif finished.kept(plan.path, made, but={"utterances", "source"}):
                mended.append(plan)
        if mended:
            kept |= self._unchanged(mended, finished, work)
        work.report(sum(plan.rows for plan in self._plans if plan.path in kept))
        missing = [plan for plan in self._plans if plan.path not in kept]
        written: dict[str, Shard] = {}
        if missing:
            digests: list[str] = []

            def finishing(shards: Sequence[Shard]) -> None:
                digest = _digest(digests)
                finished.add(shards, {plan.path: self._made(plan, digest) for plan in missing})

            try:
                made_now = write_shards(out, missing, self._tables(missing, work, digests), finishing=finishing)
            except _FaultyError:
                return []
            written = {shard.path: shard for shard in made_now}
        return [(kept | written)[plan.path] for plan in self._plans]

    def _tables(self, missing: Sequence[ShardPlan], work: _Work, digests: list[str]) -> Iterator[Sequence[pa.Table]]:
        """The tables of `missing`, and into `digests` what they are made from. Raises `_FaultyError`."""
        conditions = [self._opened.condition(plan.condition) for plan in missing]
        # Row groups of whole utterances.
        blocks = list(batches(self._takes, max(1, ROWS_PER_TABLE // self._opened.recipe.rirs_per_utterance)))
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

    def _unchanged(self, mended: Sequence[ShardPlan], finished: FinishedShards, work: _Work) -> dict[str, Shard]:
        """Those shards of a source that was mended whose own utterances are the same."""
        import_before_threads(*SIGNAL_PACKAGES)
        try:
            digest = _digest(in_order(self._digest_of, self._takes, workers=work.workers))
        except DataError:
            # Of what was right then, something is wrong now: rendering tells it.
            return {}
        made = {plan.path: self._made(plan, digest) for plan in mended}
        kept = {path: shard for path, own in made.items() if (shard := finished.kept(path, own, but={"source"}))}
        if kept:
            finished.keep(kept.values(), made)
        return kept

    def _digest_of(self, take: Take) -> str:
        return take_digest(take, self._opened.speech(take.query))

    def _made(self, plan: ShardPlan, utterances: str = "") -> Made:
        condition, query = self._opened.condition(plan.condition), self._takes[0].query
        recipe, subset = self._opened.recipe, query.subset
        inputs = {"utterances": utterances}
        names: dict[str, list[str]] = {}
        described = recipe.as_dict()
        if condition.needs("noise"):
            inputs["noise"] = recipe.version("noise", subset)
            names["noise"] = [origin.name for origin in origins(described, "noise", [subset])]
        if condition.needs("rirs"):
            inputs["rirs"] = f"{recipe.version('rirs', subset)} {recipe.rir_measures}"
            names["rirs"] = [origin.name for origin in origins(described, "rirs", [subset])]
        steps = described["steps"][plan.condition]
        return _made(described, subset, inputs, language=query.language, steps=steps, **names)


def _rows(takes: Sequence[Take], condition: Condition) -> int:
    return sum(len(take.rows(reverb=condition.needs("rirs"), noise=condition.needs("noise"))) for take in takes)


def _digest(digests: Iterable[str]) -> str:
    return hashlib.sha256("".join(digests).encode()).hexdigest()
