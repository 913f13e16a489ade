"""The `datasets` builder behind the bare name "squtr": mixes spoken queries on the fly, or reads what was built.

`datasets` finds the one builder class of this module. It is loaded through `hook.py`, never imported directly.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice, repeat
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import datasets
import pyarrow as pa
from datasets.builder import Key

from ..errors import DataError, UsageError, unknown_name
from .asked import BANKS, REFUSE, Block, BuiltFolder, BuiltReading, check_bank, check_bins, differing, noise_of, planned
from .audio import Channel, parse_channel
from .blocks import render_rows
from .card import config_folders
from .conditions import CLEAN, RIRS, STANDARD_CONDITIONS, QueryConfig, TableConfig, config_names, parse_config
from .data import TEST, SpeechData
from .home import data_folder
from .manifest import SPEECH, kind_of, read_manifest
from .questions.bare_name import QUESTION_CONFIGS, QuestionLoading
from .questions.data import find_set
from .questions.manifest import QUESTIONS
from .recipe import OpenedRecipe, choose_subsets, open_recipe
from .records import Source
from .rirs.table import rir_features, rir_table
from .rows import (
    ROWS_PER_TABLE,
    batches,
    corpus_features,
    corpus_table,
    qrels_features,
    qrels_table,
    query_features,
    query_table,
)
from .sources import SOURCES, Published, load_source, with_channel
from .sources.built import BuiltSource
from .undecoded import undecoded

ROWS_PER_BLOCK = ROWS_PER_TABLE
"""What one process takes at a time, and one table."""
FIRST_BLOCKS = (2, 6, 24)
"""The first blocks of a subset are smaller: a stream gives its first rows when its first block is done, and for each of
them a noise and a RIR may have to be made or read."""

_SOURCE, _RECIPE, _LOADING, _READING = "_opened_source", "_opened_recipe", "_loading", "_reading"
_OPENED = frozenset((_SOURCE, _RECIPE, _LOADING, _READING))
OPTIONS = (
    "limit", "seed", "noise", "rirs", "channel", "speech_channel", "level", "sample_rate", "draws",
    "rirs_per_utterance", "stratify",
    "rt60_bins", "drr_bins", "known_rirs_only", "utterances", "splits", "divided", "shared_speakers",
    "languages", "on_bad",
)  # fmt: skip
"""All options but the source."""
_WHOLE = frozenset(
    ("limit", "seed", "channel", "sample_rate", "draws", "rirs_per_utterance", "rt60_bins", "drr_bins", "utterances")
)
_SWITCHES = frozenset(("known_rirs_only", "splits", "divided", "shared_speakers"))
PUBLISHED = "release"

_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+(@[\w./-]+)?", re.ASCII)
SPLITS_HINT = "Give divided=True (squtr build --divide) for train, validation and test, which share nothing."

Value = TypeVar("Value")


@dataclass
class SqutrConfig(datasets.BuilderConfig):
    """Options of `load_dataset("squtr", config, …)`; every one enters the cache key. None is one that was not given.

    `source`: a source's name or folder, or a folder that `squtr build` wrote; None reads what `squtr build` put into
    `$SQUTR_HOME`, else the published release on the Hub, with its own noisy recordings. `limit`: queries per subset, 0
    for all. `languages` are those over which a plan deals RIRs (None: all of the source). Everything else as in
    `recipe.open_recipe`.

    What was built or published is read where it is what the options ask for; where they ask for another mixture, its
    clean speech is mixed (see `asked`). What can be done neither way is refused.

    The configs of `questions` take `source` alone.
    """

    source: str | None = None
    noise: str | Mapping[str, str] | None = None
    rirs: str | None = None
    channel: int | None = None
    speech_channel: Channel = None
    seed: int | None = None
    level: str | None = None
    limit: int | None = None
    sample_rate: int | None = None
    rirs_per_utterance: int | None = None
    stratify: str | None = None
    rt60_bins: int | None = None
    drr_bins: int | None = None
    known_rirs_only: bool | None = None
    utterances: int | None = None
    draws: int | None = None
    splits: bool | None = None
    divided: bool | None = None
    shared_speakers: bool | None = None
    languages: tuple[str, ...] | None = None
    on_bad: str | None = None

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """The cache key: the config's name and the fingerprint of everything that decides its bytes."""
        if custom_features is not None:
            raise UsageError("squtr fixes the features.", hint="Load first, then use cast_column.")
        return f"{self.name}-{self.fingerprint()}"

    @property
    def options(self) -> dict[str, Any]:
        """The options that were given."""
        return {option: value for option in OPTIONS if (value := getattr(self, option)) is not None}

    def questions(self) -> QuestionLoading | None:
        """How this config of questions is loaded; None for a config of speech. Raises `UsageError` for an option of
        speech."""
        if self.name not in QUESTION_CONFIGS:
            if self.name.startswith(f"{QUESTIONS}_"):
                raise unknown_name("config", self.name, QUESTION_CONFIGS)
            return None
        for option in self.options:
            raise UsageError(f"{self.name!r} takes no option {option}.", hint="Its audio is as it was recorded.")
        return self._kept(_LOADING, lambda: QuestionLoading(self.name, self.source))

    def fingerprint(self) -> str:
        """The fingerprint of the recipe, or of what is read."""
        questions = self.questions()
        if questions is not None:
            return questions.fingerprint()
        reading = self.reading()
        if reading is not None:
            return reading.fingerprint
        config = self.parsed()
        published = self.published(config)
        if published is not None:
            return f"{PUBLISHED}-{published.revision}"
        recipe = self.opened(config).recipe
        if isinstance(config, TableConfig) and config.kind == "corpus":
            # It is the same whatever is mixed.
            source = self.opened_source()
            return hashlib.sha256(json.dumps([source.name, source.version, config.subset]).encode()).hexdigest()[:16]
        return recipe.fingerprint

    def built(self) -> BuiltFolder | None:
        """The built folder that is read: the one that `source` names, or without a source the default one."""
        folder = data_folder() if self.source is None else Path(self.source).expanduser()
        return BuiltFolder(folder, self.options) if kind_of(folder) == SPEECH else None

    def reading(self) -> BuiltReading | None:
        """How what was built is read; None where nothing was, or another mixture is asked for."""

        def read() -> BuiltReading | None:
            built = self.built()
            return None if built is None else built.reading(self.name)

        return self._kept(_READING, read)

    def published(self, config: QueryConfig | TableConfig, split: str = TEST) -> SpeechData | None:
        """The published recordings, if the source has some of this condition and nothing asks for another mixture."""
        source, options = self.opened_source(), self.options
        if not (isinstance(config, QueryConfig) and isinstance(source, Published)):
            return None
        if self.source is not None and not source.published_when_named:
            return None
        options.pop("on_bad", None)
        limit, seed = options.pop("limit", 0), options.get("seed", 0)
        data = source.published(split, subsets=config.subsets, limit=limit, seed=seed)
        recipe = dict(data.recipe)
        if not limit:
            # Nothing is drawn by it: what was published has no seed.
            recipe.pop("seed", None)
        if config.condition.name not in data.conditions or differing(recipe, options, list(data.subsets.values())):
            return None
        return data

    def opened_source(self) -> Source:
        """The source, opened once: a large one takes seconds."""

        def opened() -> Source:
            built = self.built()
            if built is not None:
                return BuiltSource(built.folder)
            # The version of a source says what it leaves out.
            return load_source(
                with_channel(self.source or PUBLISHED, self.speech_channel), on_bad=self.on_bad or REFUSE
            )

        return self._kept(_SOURCE, opened)

    def _kept(self, name: str, make: Callable[[], Value]) -> Value:
        if name not in self.__dict__:
            self.__dict__[name] = make()
        value: Value = self.__dict__[name]
        return value

    def __getstate__(self) -> dict[str, Any]:
        """Without the opened source and banks: every process opens its own."""
        return {key: value for key, value in self.__dict__.items() if key not in _OPENED}

    def mixing(self) -> dict[str, Any]:
        """The options of `open_recipe` but for the banks that were not given: those that were given, and of a built
        folder those of its recipe."""
        built = self.built()
        if built is not None:
            return built.mixing()
        return {option: value for option, value in self.options.items() if option not in ("on_bad", "speech_channel")}

    def parsed(self) -> QueryConfig | TableConfig:
        """The parsed config name. Raises `UnknownNameError` that suggests the nearest."""
        try:
            subsets = dict(self.opened_source().subsets)
        except DataError as error:
            if self.source is not None and _HUB_NAME.fullmatch(self.source) and not Path(self.source).exists():
                name = self.source.partition("@")[0]
                raise DataError(
                    f"there is no folder {self.source}.",
                    hint=f'A set on the Hub is read with datasets.load_dataset("{name}", "{self.name}"). To mix it '
                    f"anew, hf download {name} --repo-type dataset --local-dir data, then source='data'.",
                ) from error
            if self.source is not None or self.built() is not None:
                raise
            raise DataError(
                f"no data set was built into {data_folder()}, and of the published release {error.message}",
                hint=f'{error.hint} Or run `squtr build` (without --out), or name a source: load_dataset("squtr", '
                f'"{self.name}", source="mini") for the embedded collection. Known sources: {", ".join(SOURCES)}.',
            ) from error
        config = parse_config(self.name, subsets)
        if config == RIRS and not planned(self.mixing()):
            raise UsageError(
                "RIRs are listed where a plan deals them.", hint='Give stratify="rt60", or rirs_per_utterance.'
            )
        return config

    def opened(self, config: QueryConfig | TableConfig) -> OpenedRecipe:
        """The opened recipe of this config; kept: a stream asks for every block, and banks keep what they made."""
        return self._kept(_RECIPE, lambda: self._open(config))

    def _open(self, config: QueryConfig | TableConfig) -> OpenedRecipe:
        source, options = self.opened_source(), self.mixing()
        check_bins(options)
        conditions = [config.condition.name] if isinstance(config, QueryConfig) else [CLEAN]
        needed = {bank for bank in BANKS if isinstance(config, QueryConfig) and config.condition.needs(bank)}
        subsets = list(config.subsets) if isinstance(config, QueryConfig) else [config.subset]
        if planned(options):
            # All configs share the plan, those without reverberation too; it is made over all languages.
            conditions, needed = list(dict.fromkeys([*conditions, "reverb"])), needed | {"rirs"}
            subsets = list(source.subsets)
        chosen = choose_subsets(source, options.get("languages"), subsets)
        built = self.built()
        for bank in BANKS:
            if bank not in options and bank in needed and built is not None:
                names = built.bank_names(bank, list(chosen))
                if names:
                    options[bank] = names if bank == "noise" else next(iter(names.values()))
            elif bank in options and bank not in needed:
                # Nothing is made of it, but a wrong name is not passed over.
                check_bank(bank, options[bank], source.subsets, options.get("channel"))
        if "noise" not in needed and options.get("draws", 1) > 1:
            # Without noise there is one row for all draws.
            del options["draws"]
        if "noise" in options:
            options["noise"] = noise_of(options["noise"], chosen, source.subsets)
        opened = open_recipe(source, conditions=conditions, subsets=subsets, **options)
        if len(opened.recipe.splits) > 1 or opened.recipe.stratify:
            # What cannot be dealt or divided is an error of all configs, tables too.
            opened.takes(next(iter(chosen)), opened.recipe.splits[0])
        return opened


def checked_option(option: str, value: Any) -> Any:
    """The value of an option, if it has a type that the option can have. Raises `UsageError`.

    >>> checked_option("languages", ["en", "zh"])
    ('en', 'zh')
    """
    if isinstance(value, Path):
        value = str(value)
    if value is None or option not in OPTIONS:
        return value
    right, wanted = True, ""
    if option in _WHOLE:
        right, wanted = isinstance(value, Integral) and not isinstance(value, bool), "a whole number"
        value = int(value) if right else value
    elif option == "speech_channel":
        return parse_channel(value, option)
    elif option in _SWITCHES:
        right, wanted = isinstance(value, bool), "True or False"
    elif option == "languages":
        right, wanted = not isinstance(value, str) and all(isinstance(one, str) for one in value), "a list of languages"
        value = tuple(value)
    else:
        right, wanted = isinstance(value, (str, Mapping) if option == "noise" else str), "text"
    if not right:
        raise UsageError(f"{option} is {value!r}.", hint=f"Give {wanted}.")
    return value


def split_names(split: Any) -> list[str]:
    """The splits that an argument of `load_dataset` names; none of what is not text, or is divided in another way.

    >>> split_names("train[:10%]+test"), split_names(["test", "dev"]), split_names(None)
    (['train', 'test'], ['test', 'dev'], [])
    """
    if isinstance(split, str):
        return [part.partition("[")[0].strip() for part in split.split("+")]
    return [name for part in split for name in split_names(part)] if isinstance(split, list) else []


def _block_bounds(size: int) -> Iterator[tuple[int, int]]:
    start = 0
    sizes = chain(FIRST_BLOCKS, repeat(ROWS_PER_BLOCK))
    while start < size:
        stop = min(size, start + next(sizes))
        yield start, stop
        start = stop


class _KnownConfigs:
    """What `datasets.get_dataset_config_names("squtr")` lists: the configs of what was built into `$SQUTR_HOME`; where
    nothing was, the standard ones of the embedded collection and those of questions. Others load as well."""

    def __get__(self, builder: object, owner: type) -> dict[str, SqutrConfig]:
        speech = kind_of(data_folder()) == SPEECH
        questions = find_set(data_folder("questions"))
        names: list[str] = []
        if speech:
            names += config_folders(read_manifest(data_folder()))
        elif not questions:
            names += config_names(dict(load_source("mini").subsets), STANDARD_CONDITIONS)
        if questions or not speech:
            names += QUESTION_CONFIGS
        # Without a source: naming one stays with the user.
        return {name: SqutrConfig(name) for name in names}


class Squtr(datasets.ArrowBasedBuilder):
    """Speech under any condition, corpora, judgments and RIRs; and questions about audio."""

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = SqutrConfig
    config: SqutrConfig
    builder_configs = _KnownConfigs()

    def _create_builder_config(
        self, config_name: str | None = None, **kwargs: Any
    ) -> tuple[datasets.BuilderConfig, str]:
        if config_name is None:
            raise UsageError(
                "the config's name is missing.",
                hint='For example: load_dataset("squtr", "zh_medium_noise", source="mini").',
            )
        known = {"source", *OPTIONS}
        for option in kwargs.keys() - known - {"custom_features", "config_id"}:
            raise unknown_name("option", option, known)
        if kwargs.get("config_id") is not None:
            raise UsageError("squtr takes no config_id.", hint="The cache is keyed by all options.")
        kwargs = {option: checked_option(option, value) for option, value in kwargs.items()}
        return super()._create_builder_config(config_name=config_name, **kwargs)  # type: ignore[no-any-return]

    def as_dataset(self, split: Any = None, in_memory: bool = False) -> Any:
        self._check_split(split, list(self.info.splits or {}))
        # Of a config that was prepared before, `datasets` has read the features back.
        self.info.features = undecoded(self.info.features)
        return super().as_dataset(split, in_memory)

    def as_streaming_dataset(self, split: Any = None, base_path: str | None = None) -> Any:
        if split is not None:
            self._check_split(split, [generator.name for generator in self._split_generators(None)])
        self.info.features = undecoded(self.info.features)
        return super().as_streaming_dataset(split, base_path)

    def _check_split(self, split: Any, known: list[str]) -> None:
        """Raise `UnknownNameError`, which says how to get splits, for a split that is not there."""
        for name in split_names(split):
            if name in {*known, "all"}:
                continue
            error = unknown_name("split", name, known)
            if len(known) == 1 and self.config.questions() is None:
                error.hint += f" {SPLITS_HINT}"
            raise error

    def _info(self) -> datasets.DatasetInfo:
        questions = self.config.questions()
        if questions is not None:
            return datasets.DatasetInfo(description=questions.description, features=questions.features())
        return datasets.DatasetInfo(
            description="Speech under controlled noise and reverberation.", features=self._features()
        )

    def _features(self) -> datasets.Features:
        reading = self.config.reading()
        if reading is not None:
            recipe, name = reading.built.recipe, self.config.name
            if name == RIRS.name or name.endswith(("-corpus", "-qrels")):
                return _table_features("rirs" if name == RIRS.name else name.rpartition("-")[2])
            return query_features(recipe["sample_rate"], recipe["columns"])
        config = self.config.parsed()
        if isinstance(config, TableConfig):
            return _table_features(config.kind)
        published = self.config.published(config)
        if published is not None:
            return query_features(published.recipe["sample_rate"])
        return self.config.opened(config).features()

    def _split_generators(self, _: Any) -> list[datasets.SplitGenerator]:
        questions = self.config.questions()
        splits = self._blocks() if questions is None else questions.blocks()
        # `datasets` divides the one list among processes and among the workers of a stream.
        return [datasets.SplitGenerator(name=name, gen_kwargs={"blocks": splits[name]}) for name in splits]

    def _blocks(self) -> dict[str, list[Block]]:
        reading = self.config.reading()
        if reading is not None:
            return reading.blocks()
        config = self.config.parsed()
        if isinstance(config, TableConfig):
            splits = self.config.opened(config).recipe.splits if config == RIRS else (TEST,)
            return {split: [(config.subset, split, 0, 0)] for split in splits}
        published = self.config.published(config)
        if published is not None:
            return {
                split: [
                    (subset, split, start, stop)
                    for subset in config.subsets
                    for start, stop in self._published_bounds(config, split, subset)
                ]
                for split in published.recipe["splits"]
            }
        opened = self.config.opened(config)
        return {
            split: [
                (subset, split, start, stop)
                for subset in config.subsets
                for start, stop in _block_bounds(len(opened.rows(subset, config.condition.name, split)))
            ]
            for split in opened.recipe.splits
        }

    def _published_bounds(self, config: QueryConfig, split: str, subset: str) -> list[tuple[int, int]]:
        data = self.config.published(config, split)
        return [(0, len(data.rows(subset, config.condition.name)))] if data else []

    def _generate_tables(self, blocks: list[Any]) -> Iterator[tuple[Key, pa.Table]]:
        for index, table in self._tables(blocks):
            yield Key(*index), table

    def _tables(self, blocks: list[Any]) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        questions = self.config.questions()
        if questions is not None:
            yield from questions.tables(blocks)
            return
        schema = self.info.features.arrow_schema
        reading = self.config.reading()
        if reading is not None:
            yield from reading.tables(blocks, schema)
            return
        config = self.config.parsed()
        if isinstance(config, TableConfig):
            for number, (_, split, *_) in enumerate(blocks):
                yield from self._table_rows(number, config, split, schema)
            return
        condition = config.condition.name
        if self.config.published(config) is not None:
            for number, (subset, split, start, stop) in enumerate(blocks):
                data = self.config.published(config, split)
                clips = data.spoken(subset, condition, start=start, stop=stop) if data else iter(())
                for index, rows in enumerate(batches(clips, ROWS_PER_TABLE)):
                    yield (number, index), query_table(rows, schema)
            return
        opened = self.config.opened(config)
        pieces = [opened.rows(subset, condition, split)[start:stop] for subset, split, start, stop in blocks]
        # One run over all blocks, so that no thread waits at a block's end.
        rendered = render_rows(
            opened, opened.condition(condition), list(chain.from_iterable(pieces)), workers=os.cpu_count() or 1
        )
        for number, piece in enumerate(pieces):
            yield (number, 0), query_table(list(islice(rendered, len(piece))), schema)

    def _table_rows(
        self, number: int, config: TableConfig, split: str, schema: pa.Schema
    ) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        opened = self.config.opened(config)
        if opened.plan is not None and config == RIRS:
            yield (number, 0), rir_table(opened.plan, split, schema)
            return
        if config.kind == "corpus":
            index = -1
            for index, documents in enumerate(batches(opened.source.documents(config.subset), 5_000)):
                yield (number, index), corpus_table(documents, schema)
            if index < 0:
                raise DataError(f"{config.subset!r} has no documents.", hint="Recordings alone serve recognition only.")
            return
        # Of all splits, as in a built folder.
        kept = {query.cluster for of in opened.recipe.splits for query in opened.queries(config.subset, of)}
        qrels = [qrel for qrel in opened.source.qrels(config.subset) if qrel.query_id in kept]
        if not qrels:
            raise DataError(f"{config.subset!r} has no judgments.", hint="Recordings alone serve recognition only.")
        yield (number, 0), qrels_table(qrels, schema)


def _table_features(kind: str) -> datasets.Features:
    return {"corpus": corpus_features, "qrels": qrels_features, "rirs": rir_features}[kind]()
