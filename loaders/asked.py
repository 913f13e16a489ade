"""What a call of `load_dataset` asks for, held against what was built.

An option that was not given asks for nothing; what was built decides it. One that was given is honored: by reading,
where what was built has the same value, by mixing the clean speech of the folder anew where it has another, or it is
refused with what to do. Nothing is passed over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import DataError, SqutrError, UsageError, unknown_name
from .audio import Channel
from .banks import load_noise_bank, load_rir_bank
from .card import config_folders
from .data import BuiltData, utterances
from .manifest import Manifest, Shard, read_manifest
from .origins import Kind, origins
from .recipe import choose_queries, open_noises
from .rows import ROWS_PER_TABLE
from .sources.names import channel_suffix
from .sources.rules import OnBad, check_on_bad, version_suffix

Options = Mapping[str, Any]

PLAN: Options = {"stratify": "", "rirs_per_utterance": 1, "known_rirs_only": False, "utterances": 0, "splits": False}
"""The options that ask for a plan of RIRs, with the values that ask for none."""
NEUTRAL: Options = {**PLAN, "draws": 1, "divided": False, "shared_speakers": False}
"""What an option is in a recipe that does not name it."""
BINS: Mapping[str, str] = {"rt60_bins": "rt60", "drr_bins": "drr"}
"""Options that bear on a plan alone, and what it has to be stratified by."""

REFUSE: OnBad = "refuse"
SKIP: OnBad = "skip"
BANKS: tuple[Kind, ...] = ("noise", "rirs")
KEPT = ("seed", "level", "sample_rate", "draws", "divided", "shared_speakers")
"""What another mixture has as the recipe has it, where it was not given."""
JUDGED: Mapping[str, str] = {"queries": "utterance_id", "qrels": "query-id"}
"""The folders of a built set that have rows by query, and the column that says which."""
Block = tuple[str, str, int, int]
"""What one process takes at a time: a file or a subset, its split, and a range of positions."""


def planned(options: Options) -> bool:
    """Whether these options of `open_recipe` have a plan deal RIRs.

    >>> planned({"stratify": "rt60"}), planned({"splits": False, "limit": 3})
    (True, False)
    """
    return any(options.get(option, none) != none for option, none in PLAN.items())


def check_bins(options: Options) -> None:
    """Raise `UsageError` for a number of bins that nothing is divided into."""
    stratify = options.get("stratify") or ("rt60" if planned(options) else "")
    for option, by in BINS.items():
        if option in options and by not in stratify.split("+"):
            stated = f"stratify={stratify!r}" if stratify else "no plan that deals RIRs"
            wanted = "rt60+drr" if by == "drr" else "rt60"
            raise UsageError(
                f"{option}={options[option]} goes with {stated}.", hint=f'Leave it out, or add stratify="{wanted}".'
            )


def noise_of(noise: Any, subsets: Mapping[str, str], known: Mapping[str, str]) -> Any:
    """What `noise` says of these subsets (name to language), where it maps subsets and languages to banks.

    Raises `UnknownNameError` for a subset or language that is not `known`.
    """
    if not isinstance(noise, Mapping):
        return noise
    for place in noise.keys() - {"", *known, *known.values()}:
        raise unknown_name("subset or language with noise of its own", place, [*known, *known.values()])
    return {place: bank for place, bank in noise.items() if place in {"", *subsets, *subsets.values()}}


def check_bank(kind: Kind, name: Any, subsets: Mapping[str, str], channel: int | None) -> None:
    """Open a bank that nothing is made of. Raises what a bank raises that cannot be opened."""
    if kind == "noise":
        open_noises(name, subsets, channel)
    else:
        load_rir_bank(name, channel)


def differing(recipe: Mapping[str, Any], options: Options, languages: Sequence[str]) -> list[str]:
    """The options that ask for something else than data with this recipe, as JSON object, has.

    `languages` are those of the config that is asked for. Raises what a bank raises that cannot be opened.
    """
    return [
        option
        for option, value in options.items()
        if option != "channel" and not _same(recipe, option, value, languages, options.get("channel"))
    ] + (["channel"] if "channel" in options and not _same_channel(recipe, options) else [])


def _same(recipe: Mapping[str, Any], option: str, value: Any, languages: Sequence[str], channel: int | None) -> bool:
    subsets: Mapping[str, str] = recipe["subsets"]
    if option == "noise":
        noises = open_noises(value, subsets, channel)
        return _same_banks(recipe, "noise", {subset: (bank.name, bank.version) for subset, bank in noises.items()})
    if option == "rirs":
        rirs = load_rir_bank(value, channel)
        return _same_banks(recipe, "rirs", dict.fromkeys(subsets, (rirs.name, rirs.version)))
    if option == "on_bad":
        return check_on_bad(value) == SKIP or not _left_bad_out(recipe)
    if option == "speech_channel":
        return _speech_channel_is(recipe, value)
    if option == "splits":
        return bool(value) == _splits_of_plan(recipe)
    if option == "languages":
        built = set(subsets.values())
        return set(value) == built if recipe.get("stratify") else set(languages) <= set(value) <= built
    if option == "limit" and not recipe.get("limit"):
        return bool(value == 0)
    return bool(value == recipe.get(option, NEUTRAL.get(option)))


def _left_bad_out(recipe: Mapping[str, Any]) -> bool:
    return any(origin.version.endswith(version_suffix(SKIP)) for origin in origins(recipe))


def _speech_channel_is(recipe: Mapping[str, Any], channel: Channel) -> bool:
    """Whether all sources took this channel; their versions say it."""
    return all(f"{channel_suffix(channel)}-" in f"{origin.version}-" for origin in origins(recipe))


def _splits_of_plan(recipe: Mapping[str, Any]) -> bool:
    return len(recipe["splits"]) > 1 and not recipe.get("divided")


def _same_banks(recipe: Mapping[str, Any], kind: Kind, named: Mapping[str, tuple[str, str]]) -> bool:
    """Whether the banks are those of the recipe; any are where nothing was made of such banks."""
    return all(
        (origin.name, origin.version) == bank
        for subset, bank in named.items()
        for origin in origins(recipe, kind, (subset,))
    )


def _same_channel(recipe: Mapping[str, Any], options: Options) -> bool:
    for kind in BANKS:
        if kind not in options:
            for origin in origins(recipe, kind):
                bank = _reopened(kind, origin.name, options["channel"])
                if bank is None or bank.version != origin.version:
                    return False
    return True


def _reopened(kind: Kind, name: str, channel: int | None) -> Any:
    """The bank of this name, None where it is not known here."""
    try:
        return load_noise_bank(name, channel) if kind == "noise" else load_rir_bank(name, channel)
    except SqutrError:
        # A folder's name alone does not say where it lies, and what is fetched may not be.
        return None


@dataclass(frozen=True)
class BuiltFolder:
    """A folder that `squtr build` wrote, whose build is finished, and the options that were given with it."""

    folder: Path
    options: Options

    @cached_property
    def manifest(self) -> Manifest:
        manifest = read_manifest(self.folder)
        if not manifest.complete:
            raise DataError(f"the build in {self.folder} is not finished.", hint="Run the same `squtr build` again.")
        return manifest

    @property
    def recipe(self) -> Mapping[str, Any]:
        return self.manifest.recipe

    def languages(self, config: str) -> list[str]:
        """The languages of a config, by its name alone: it may be one that was not built."""
        scope = config.partition("_")[0].removesuffix("-corpus").removesuffix("-qrels")
        subsets = self.manifest.subsets
        return [subsets[scope]] if scope in subsets else [scope] if scope in subsets.values() else []

    def reading(self, config: str) -> BuiltReading | None:
        """How a config is read as it was built; None where the options ask for another mixture."""
        other = differing(self.recipe, self.options, self.languages(config))
        if not other:
            return BuiltReading(self, config)
        fewer = other == ["limit"] and not self.recipe.get("stratify")
        self._refuse_more()
        return BuiltReading(self, config, int(self.options["limit"])) if fewer else None

    def _refuse_more(self) -> None:
        """Raise `UsageError` where more is asked for than was built."""
        if self.options.get("on_bad") == REFUSE and _left_bad_out(self.recipe):
            raise UsageError(
                f"{self.folder} was built with on_bad={SKIP!r}: rows that break a rule were left out.",
                hint=f"{_BUILD_AGAIN} without --on-bad, or leave on_bad out.",
            )
        channel = self.options.get("speech_channel")
        if channel is not None and not _speech_channel_is(self.recipe, channel):
            raise UsageError(
                f"{self.folder} was not built with speech_channel={channel!r}, and holds one channel of speech.",
                hint=f"{_BUILD_AGAIN} with --speech-channel {channel}, or name its source.",
            )
        limit, built = self.options.get("limit"), int(self.recipe.get("limit") or 0)
        if limit is not None and limit < 0:
            raise UsageError(f"the limit is {limit}.", hint="Give a number, or 0 for all.")
        if limit is not None and built and (limit == 0 or limit > built):
            raise UsageError(
                f"{self.folder} was built with limit={built}, so that limit={limit} cannot be answered.",
                hint=f"{_BUILD_AGAIN} without --limit, or ask for fewer.",
            )
        rate, stored = self.options.get("sample_rate"), int(self.recipe["sample_rate"])
        if rate is not None and rate > stored:
            raise UsageError(
                f"{self.folder} was built at {stored} Hz, so that sample_rate={rate} cannot be answered.",
                hint=f"{_BUILD_AGAIN} with --sample-rate {rate}, or name its source.",
            )

    def mixing(self) -> dict[str, Any]:
        """The options of `open_recipe` for another mixture of the clean speech: what was given, and for the rest what
        the folder's recipe says; without its banks."""
        recipe, options = self.recipe, self.options
        found: dict[str, Any] = {name: recipe[name] for name in KEPT if name in recipe}
        if recipe.get("stratify") and options.get("stratify") != "":
            stratify = options.get("stratify", recipe["stratify"])
            found |= {name: recipe[name] for name in ("rirs_per_utterance", "known_rirs_only")}
            found |= {"stratify": stratify, "splits": _splits_of_plan(recipe)}
            found |= {name: recipe[name] for name, by in BINS.items() if by in stratify.split("+") and recipe[name]}
        if options.get("divided") is False:
            found.pop("shared_speakers", None)
        found |= options
        # The speech that was built has one channel.
        found.pop("speech_channel", None)
        # Of what was built, there is nothing bad.
        found.pop("on_bad", None)
        return found

    def bank_names(self, kind: Kind, subsets: Sequence[str]) -> dict[str, str]:
        """The names of the recipe's banks by subset; {} where nothing was made of such banks.

        Raises `UsageError` for one that cannot be opened by its name, or has another content here.
        """
        channel = self.options.get("channel")
        found: dict[str, str] = {}
        for origin in origins(self.recipe, kind, subsets):
            bank = _reopened(kind, origin.name, channel)
            if bank is None or (channel is None and bank.version != origin.version):
                what = "noise" if kind == "noise" else "RIRs"
                state = "is not known here by its name" if bank is None else f"has the version {bank.version} here"
                given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
                made = f"the {what} {origin.name!r} (version {origin.version})"
                raise UsageError(
                    f"{self.folder} was built with {made}, which {state}.",
                    hint=f"Say what to mix anew with: {kind}=…, beside {given}.",
                )
            found |= {subset: origin.name for subset in origin.subsets if subset in subsets}
        return found


_BUILD_AGAIN = "Build into another folder (squtr build --out DIR)"


@dataclass(frozen=True)
class BuiltReading:
    """A config of a built folder as it was built: all rows, or those of at most `limit` queries of each subset.

    Queries are drawn by the rule that draws them for a build, among those that were built.
    """

    built: BuiltFolder
    config: str
    limit: int = 0

    @cached_property
    def _shards(self) -> dict[str, list[Shard]]:
        """The shards by split. Raises `UnknownNameError` for a config that was not built."""
        manifest, folder = self.built.manifest, self.built.folder
        configs = config_folders(manifest)
        if self.config not in configs:
            error = unknown_name(f"config of the data set in {folder}:", self.config, configs)
            error.hint = f"{error.hint} Its clean speech is mixed with source='built:{folder}'."
            raise error
        return {
            split: shards
            for split in manifest.splits
            if (shards := [shard for place in configs[self.config] for shard in manifest.below(place, split)])
        }

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of a sha256 over the recipe, the limit and the shards that are read."""
        shards = [[shard.path, shard.sha256] for shards in self._shards.values() for shard in shards]
        content = json.dumps([self.built.manifest.recipe_fingerprint, self.limit, shards])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def blocks(self) -> dict[str, list[Block]]:
        return {
            split: [(shard.path, split, 0, shard.rows) for shard in shards] for split, shards in self._shards.items()
        }

    def tables(self, blocks: Sequence[Block], schema: pa.Schema) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        """The tables of some blocks, each with the number of its block and its number in there."""
        for number, (path, *_) in enumerate(blocks):
            for index, table in enumerate(self._read(path)):
                yield (number, index), table.cast(schema)

    def _read(self, path: str) -> Iterator[pa.Table]:
        """The rows of a shard, or those of the chosen queries; row groups that have none of them are not read."""
        top, *folders = PurePosixPath(path).parts
        limited = bool(self.limit) and top in JUDGED
        column = JUDGED[top] if limited else ""
        kept = pa.array(sorted(self._chosen(folders[top == "queries"])[column]), pa.string()) if limited else None
        with pq.ParquetFile(self.built.folder / path) as file:
            for group in range(file.metadata.num_row_groups):
                if kept is not None:
                    ids = file.read_row_group(group, columns=[column])[column]
                    if not pc.any(pc.is_in(ids, kept)).as_py():
                        continue
                for batch in file.iter_batches(ROWS_PER_TABLE, row_groups=[group]):
                    table = pa.Table.from_batches([batch])
                    yield table if kept is None else table.filter(pc.is_in(table[column], kept))

    def _chosen(self, subset: str) -> dict[str, frozenset[str]]:
        """The ids of the chosen utterances and of the queries that are judged, by the column that they stand in."""
        chosen: dict[str, dict[str, frozenset[str]]] = self.__dict__.setdefault("_chosen_of", {})
        if subset not in chosen:
            splits = [BuiltData(self.built.folder, split) for split in self.built.manifest.splits]
            queries = [query for data in splits for query in utterances(data.rows(subset, data.conditions[0]))]
            kept = choose_queries(queries, self.limit, self.built.recipe["seed"])
            ids, judged = (frozenset(query.id for query in kept), frozenset(query.cluster for query in kept))
            chosen[subset] = dict(zip(JUDGED.values(), (ids, judged), strict=True))
        return chosen[subset]
