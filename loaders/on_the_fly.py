"""The `datasets` builder behind the bare name "squtr": mixes spoken queries on the fly, or reads what was built.

`datasets` finds the one builder class of this module. It is loaded through `hook.py`, never imported directly.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets.builder import Key

from ..errors import DataError, UsageError, unknown_name
from .blocks import render_rows
from .card import config_folders
from .conditions import RIRS, STANDARD_CONDITIONS, QueryConfig, TableConfig, config_names, parse_config
from .data import TEST, SpeechData
from .home import data_folder
from .manifest import SPEECH, Manifest, kind_of, read_manifest
from .questions.bare_name import QUESTION_CONFIGS, QuestionLoading
from .questions.data import find_set
from .questions.manifest import QUESTIONS
from .recipe import DRR_BINS, RT60_BINS, OpenedRecipe, open_recipe
from .records import SAMPLE_RATE, Source
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
from .sources import SOURCES, Published, load_source

ROWS_PER_BLOCK = ROWS_PER_TABLE
"""What one process takes at a time, and one table."""
FIRST_BLOCKS = (2, 6, 24)
"""The first blocks of a subset are smaller: a stream gives its first rows when its first block is done, and for each of
them a noise and a RIR may have to be made or read."""

_SOURCE, _RECIPE, _LOADING = "_opened_source", "_opened_recipe", "_loading"
MIXTURE_OPTIONS = (
    "noise", "rirs", "channel", "level", "sample_rate", "rirs_per_utterance", "stratify", "rt60_bins", "drr_bins",
    "known_rirs_only", "utterances", "splits", "languages",
)  # fmt: skip
"""Options that ask for another mixture than the published one."""
OPTIONS = ("limit", "seed", *MIXTURE_OPTIONS)
PUBLISHED = "release"

Block = tuple[str, str, int, int]
"""What one process takes at a time: a file and "", or a subset and a split; and a range of positions."""


@dataclass
class SqutrConfig(datasets.BuilderConfig):
    """Options of `load_dataset("squtr", config, …)`; every one enters the cache key.

    `source`: a source's name or folder, or a folder that `squtr build` wrote; None reads what `squtr build` put into
    `$SQUTR_HOME`, else the published release on the Hub, with its own noisy recordings. `limit`: queries per subset, 0
    for all. `languages` are those over which a plan deals RIRs (None: all of the source). Everything else as in
    `recipe.open_recipe`. Where an option of the mixture is given, or a condition was not published, the clean speech of
    a published set is mixed.

    The configs of `questions` take `source` alone.
    """

    source: str | None = None
    noise: str = "synthetic"
    rirs: str = "simulated"
    channel: int | None = None
    seed: int = 0
    level: str = "whole"
    limit: int = 0
    sample_rate: int = SAMPLE_RATE
    rirs_per_utterance: int = 1
    stratify: str = ""
    rt60_bins: int = RT60_BINS
    drr_bins: int = DRR_BINS
    known_rirs_only: bool = False
    utterances: int = 0
    splits: bool = False
    languages: tuple[str, ...] | None = None

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """The cache key: the config's name and the fingerprint of everything that decides its bytes."""
        if custom_features is not None:
            raise UsageError("squtr fixes the features.", hint="Load first, then use cast_column.")
        return f"{self.name}-{self.fingerprint()}"

    def questions(self) -> QuestionLoading | None:
        """How this config of questions is loaded; None for a config of speech. Raises `UsageError` for an option of
        speech."""
        if self.name not in QUESTION_CONFIGS:
            if self.name.startswith(f"{QUESTIONS}_"):
                raise unknown_name("config", self.name, QUESTION_CONFIGS)
            return None
        for option in self.given(OPTIONS):
            raise UsageError(f"{self.name!r} takes no option {option}.", hint="Its audio is as it was recorded.")
        kept: QuestionLoading | None = self.__dict__.get(_LOADING)
        if kept is None:
            kept = self.__dict__[_LOADING] = QuestionLoading(self.name, self.source)
        return kept

    def given(self, options: Iterable[str]) -> list[str]:
        """Those of these options that have another value than their default."""
        return [option for option in options if getattr(self, option) != getattr(type(self), option)]

    @property
    def planned(self) -> bool:
        """Whether a plan deals RIRs."""
        return bool(self.given(("rirs_per_utterance", "stratify", "known_rirs_only", "utterances", "splits")))

    def fingerprint(self) -> str:
        """The fingerprint of the recipe, or of the manifest that is read."""
        questions = self.questions()
        if questions is not None:
            return questions.fingerprint()
        built = self.built()
        if built is not None:
            return read_complete(built).recipe_fingerprint
        config = self.parsed()
        if isinstance(config, TableConfig) and config != RIRS:
            return f"{self.opened_source().version}-{self.limit}-{self.seed}"
        published = self.published(config)
        return self.opened(config).recipe.fingerprint if published is None else f"{PUBLISHED}-{published.revision}"

    def built(self) -> Path | None:
        """The built folder that is read: the one that `source` names, or without a source the default one."""
        if self.source is not None:
            folder = Path(self.source).expanduser()
            return folder if kind_of(folder) == SPEECH else None
        return data_folder() if kind_of(data_folder()) == SPEECH else None

    def published(self, config: QueryConfig | TableConfig, split: str = TEST) -> SpeechData | None:
        """The published recordings, if the source has some of this condition and nothing asks for another mixture."""
        source = self.opened_source()
        if not (isinstance(config, QueryConfig) and isinstance(source, Published)) or self.given(MIXTURE_OPTIONS):
            return None
        if self.source is not None and not source.published_when_named:
            return None
        data = source.published(split, subsets=config.subsets, limit=self.limit, seed=self.seed)
        return data if config.condition.name in data.conditions else None

    def opened_source(self) -> Source:
        """The source, opened once: a large one takes seconds."""
        kept: Source | None = self.__dict__.get(_SOURCE)
        if kept is None:
            kept = self.__dict__[_SOURCE] = load_source(self.source or PUBLISHED)
        return kept

    def __getstate__(self) -> dict[str, Any]:
        """Without the opened source and banks: every process opens its own."""
        return {key: value for key, value in self.__dict__.items() if key not in {_SOURCE, _RECIPE, _LOADING}}

    def parsed(self) -> QueryConfig | TableConfig:
        """The parsed config name. Raises `UnknownNameError` that suggests the nearest."""
        try:
            subsets = dict(self.opened_source().subsets)
        except DataError as error:
            if self.source is not None:
                raise
            raise DataError(
                f"no data set was built into {data_folder()}, and of the published release {error.message}",
                hint=f'{error.hint} Or run `squtr build` (without --out), or name a source: load_dataset("squtr", '
                f'"{self.name}", source="mini") for the embedded collection. Known sources: {", ".join(SOURCES)}.',
            ) from error
        config = parse_config(self.name, subsets)
        if config == RIRS and not self.planned:
            raise UsageError(
                "RIRs are listed where a plan deals them.", hint='Give stratify="rt60", or rirs_per_utterance.'
            )
        return config

    def opened(self, config: QueryConfig | TableConfig) -> OpenedRecipe:
        """The opened recipe of this config; kept: a stream asks for every block, and banks keep what they made."""
        kept: OpenedRecipe | None = self.__dict__.get(_RECIPE)
        if kept is not None:
            return kept
        conditions = [config.condition.name] if isinstance(config, QueryConfig) else ["clean"]
        if self.planned:
            # All configs share the plan, those without reverberation too; it is made over all languages.
            conditions = list(dict.fromkeys([*conditions, "reverb"]))
            subsets = None
        else:
            subsets = list(config.subsets) if isinstance(config, QueryConfig) else [config.subset]
        opened = self.__dict__[_RECIPE] = open_recipe(
            self.opened_source(),
            conditions=conditions,
            languages=self.languages,
            subsets=subsets,
            noise=self.noise,
            rirs=self.rirs,
            channel=self.channel if isinstance(config, QueryConfig) or self.planned else None,
            seed=self.seed,
            level=self.level,
            limit=self.limit,
            sample_rate=self.sample_rate,
            rirs_per_utterance=self.rirs_per_utterance,
            stratify=self.stratify,
            rt60_bins=self.rt60_bins,
            drr_bins=self.drr_bins,
            known_rirs_only=self.known_rirs_only,
            utterances=self.utterances,
            splits=self.splits,
        )
        return opened


def read_complete(folder: Path) -> Manifest:
    """The manifest of a built folder. Raises `DataError` if its build is not finished."""
    manifest = read_manifest(folder)
    if not manifest.complete:
        raise DataError(f"the build in {folder} is not finished.", hint="Run the same `squtr build` again.")
    return manifest


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
        if kwargs.get("languages") is not None:
            kwargs["languages"] = tuple(kwargs["languages"])
        for option in kwargs.keys() - known - {"custom_features", "config_id", "version"}:
            raise unknown_name("option", option, known)
        return super()._create_builder_config(config_name=config_name, **kwargs)  # type: ignore[no-any-return]

    def _info(self) -> datasets.DatasetInfo:
        questions = self.config.questions()
        if questions is not None:
            return datasets.DatasetInfo(description=questions.description, features=questions.features())
        return datasets.DatasetInfo(
            description="Speech under controlled noise and reverberation.", features=self._features()
        )

    def _features(self) -> datasets.Features:
        built = self.config.built()
        if built is not None:
            recipe, name = read_complete(built).recipe, self.config.name
            if name == RIRS.name or name.endswith(("-corpus", "-qrels")):
                return _table_features("rirs" if name == RIRS.name else name.rpartition("-")[2])
            return query_features(recipe["sample_rate"], recipe["columns"])
        config = self.config.parsed()
        if isinstance(config, TableConfig):
            return _table_features(config.kind)
        published = self.config.published(config)
        return query_features(self.config.sample_rate if published is None else published.recipe["sample_rate"])

    def _split_generators(self, _: Any) -> list[datasets.SplitGenerator]:
        questions = self.config.questions()
        splits = self._blocks() if questions is None else questions.blocks()
        # `datasets` divides the one list among processes and among the workers of a stream.
        return [datasets.SplitGenerator(name=name, gen_kwargs={"blocks": splits[name]}) for name in splits]

    def _blocks(self) -> dict[str, list[Block]]:
        built = self.config.built()
        if built is not None:
            return self._built_files(built)
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

    def _built_files(self, folder: Path) -> dict[str, list[Block]]:
        manifest = read_complete(folder)
        configs = config_folders(manifest)
        if self.config.name not in configs:
            raise unknown_name(f"config of the data set in {folder}:", self.config.name, configs)
        found = {
            split: [
                (shard.path, "", 0, shard.rows)
                for place in configs[self.config.name]
                for shard in manifest.below(place, split)
            ]
            for split in manifest.splits
        }
        return {split: blocks for split, blocks in found.items() if blocks}

    def _generate_tables(self, blocks: list[Any]) -> Iterator[tuple[Key, pa.Table]]:
        for index, table in self._tables(blocks):
            yield Key(*index), table

    def _tables(self, blocks: list[Any]) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        questions = self.config.questions()
        if questions is not None:
            yield from questions.tables(blocks)
            return
        schema = self.info.features.arrow_schema
        built = self.config.built()
        if built is not None:
            for number, (path, *_) in enumerate(blocks):
                with pq.ParquetFile(built / path) as file:
                    for index, batch in enumerate(file.iter_batches(ROWS_PER_TABLE)):
                        yield (number, index), pa.Table.from_batches([batch]).cast(schema)
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
        kept = {query.id for query in opened.queries(config.subset)}
        qrels = [qrel for qrel in opened.source.qrels(config.subset) if qrel.query_id in kept]
        if not qrels:
            raise DataError(f"{config.subset!r} has no judgments.", hint="Recordings alone serve recognition only.")
        yield (number, 0), qrels_table(qrels, schema)


def _table_features(kind: str) -> datasets.Features:
    return {"corpus": corpus_features, "qrels": qrels_features, "rirs": rir_features}[kind]()
