"""The `datasets` builder behind the bare name "squtr": mixes spoken queries on the fly, or reads what was built.

`datasets` finds the one builder class of this module. It is loaded through `hook.py`, never imported directly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets.builder import Key

from ..errors import DataError, UsageError, unknown_name
from .card import config_patterns
from .conditions import STANDARD_CONDITIONS, QueryConfig, TableConfig, config_names, parse_config
from .questions.bare_name import QUESTION_CONFIGS, QuestionLoading
from .questions.data import find_set
from .questions.manifest import QUESTIONS
from .home import data_folder
from .manifest import MANIFEST_NAME, Manifest, read_manifest
from .recipe import OpenedRecipe, open_recipe
from .records import Source
from .rir_mega.bare_name import BARE_CONFIGS, PairLoading
from .rir_mega.manifest import RIR_MEGA
from .rir_mega.recipe import DRR_BINS, RT60_BINS
from .rows import (
    ROWS_PER_TABLE,
    batches,
    corpus_features,
    corpus_table,
    qrels_features,
    qrels_table,
    query_features,
    query_table,
    render_rows,
)
from .sources import SOURCES, load_source
from .sources.release import ReleaseSource
from .sources.release_data import ReleaseData

QUERIES_PER_BLOCK = ROWS_PER_TABLE
"""What one process takes at a time, and one table."""
FIRST_BLOCKS = (2, 6, 24)
"""The first blocks of a subset are smaller: a stream gives its first rows when its first block is done, and for each of
them a noise and a room may have to be made or read."""


_SOURCE, _RECIPE, _LOADING = "_opened_source", "_opened_recipe", "_loading"
SHARED_OPTIONS = ("noise", "rirs", "channel", "seed", "level")
PAIR_OPTIONS = (
    "pairs", "rirs_per_utterance", "languages", "noise_snr", "early_only", "stratify", "rt60_bins", "drr_bins",
    "known_rirs_only",
)  # fmt: skip
"""Options that the configs of `rir_mega` alone take."""
PUBLISHED = "release"
_OWN_MIXTURE = ("synthetic", "simulated", None, "whole")


@dataclass
class SqutrConfig(datasets.BuilderConfig):
    """Options of `load_dataset("squtr", config, …)`; every one enters the cache key.

    `source`: a source's name or folder; None reads what `squtr build` put into `$SQUTR_HOME`, else the published
    release on the Hub, with its own noisy recordings. `noise`, `rirs`: bank names or folders; `channel` (from 0) for
    recordings with several channels; `seed`; `level`: "whole" or "active"; `limit`: queries per subset, 0 for all.
    Where one of `noise`, `rirs`, `channel` and `level` is given, or a condition was not published, the release's clean
    speech is mixed.

    The configs of `rir_mega` take `source`, `noise`, `rirs`, `channel`, `seed`, `level` and the options from `pairs`
    on, which are those of `rir_mega.recipe.open_pairs`. Those of `questions` take `source` alone.
    """

    source: str | None = None
    noise: str = "synthetic"
    rirs: str = "simulated"
    channel: int | None = None
    seed: int = 0
    level: str = "whole"
    limit: int = 0
    pairs: int = 0
    rirs_per_utterance: int = 1
    languages: tuple[str, ...] | None = None
    noise_snr: float | None = None
    early_only: bool = False
    stratify: str = "rt60"
    rt60_bins: int = RT60_BINS
    drr_bins: int = DRR_BINS
    known_rirs_only: bool = False

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """The cache key: the config's name and the fingerprint of everything that decides its bytes."""
        if custom_features is not None:
            raise UsageError("squtr fixes the features.", hint="Load first, then use cast_column.")
        return f"{self.name}-{self.fingerprint()}"

    def loading(self) -> PairLoading | QuestionLoading | None:
        """How this config of `rir_mega` or `questions` is loaded; None for a config of SQuTR. Raises `UsageError` for an
        option of another benchmark."""
        if self.name in QUESTION_CONFIGS:
            return self._questions()
        if self.name not in BARE_CONFIGS:
            for benchmark, configs in ((RIR_MEGA, BARE_CONFIGS), (QUESTIONS, QUESTION_CONFIGS)):
                if self.name.startswith(f"{benchmark}_"):
                    raise unknown_name("config", self.name, configs)
            for option in PAIR_OPTIONS:
                if getattr(self, option) != getattr(type(self), option):
                    raise UsageError(f"{self.name!r} takes no option {option}.", hint="That is one of rir_mega.")
            return None
        if self.limit:
            raise UsageError(f"{self.name!r} takes no option limit.", hint="Give the number of pairs with pairs.")
        kept: PairLoading | None = self.__dict__.get(_LOADING)
        if kept is None:
            options = {option: getattr(self, option) for option in (*SHARED_OPTIONS, *PAIR_OPTIONS)}
            kept = self.__dict__[_LOADING] = PairLoading(self.name, self.source, options)
        return kept

    def _questions(self) -> QuestionLoading:
        for option in ("limit", *SHARED_OPTIONS, *PAIR_OPTIONS):
            if getattr(self, option) != getattr(type(self), option):
                raise UsageError(f"{self.name!r} takes no option {option}.", hint="Its sound is as it was recorded.")
        kept: QuestionLoading | None = self.__dict__.get(_LOADING)
        if kept is None:
            kept = self.__dict__[_LOADING] = QuestionLoading(self.name, self.source)
        return kept

    def fingerprint(self) -> str:
        """The fingerprint of the recipe, or of the manifest that is read."""
        loading = self.loading()
        if loading is not None:
            return loading.fingerprint()
        if self.reads_built():
            return read_default_manifest().recipe_fingerprint
        config = self.parsed()
        if isinstance(config, TableConfig):
            return f"{self.opened_source().version}-{self.limit}-{self.seed}"
        release = self.published_sound(config)
        return self.opened(config).recipe.fingerprint if release is None else f"release-{release.revision}"

    def reads_built(self) -> bool:
        """Whether no source is named and `squtr build` made the default data set."""
        return self.source is None and (data_folder() / MANIFEST_NAME).exists()

    def published_sound(self, config: QueryConfig) -> ReleaseData | None:
        """The release's own recordings, if no source is named and nothing asks for another mixture."""
        options = (self.noise, self.rirs, self.channel, self.level)
        source = self.opened_source()
        if self.source is not None or options != _OWN_MIXTURE or not isinstance(source, ReleaseSource):
            return None
        release = ReleaseData(source, subsets=config.subsets, limit=self.limit, seed=self.seed)
        return release if config.condition.name in release.conditions else None

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
        if self.reads_built():
            return parse_config(self.name, read_default_manifest().subsets)
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
        return parse_config(self.name, subsets)

    def opened(self, config: QueryConfig | TableConfig) -> OpenedRecipe:
        """The opened recipe of this config; kept: a stream asks for every block, and banks keep what they made."""
        kept: OpenedRecipe | None = self.__dict__.get(_RECIPE)
        if kept is not None:
            return kept
        spoken = isinstance(config, QueryConfig)
        opened = self.__dict__[_RECIPE] = open_recipe(
            self.opened_source(),
            conditions=[config.condition.name] if isinstance(config, QueryConfig) else ["clean"],
            subsets=config.subsets if isinstance(config, QueryConfig) else [config.subset],
            noise=self.noise,
            rirs=self.rirs,
            channel=self.channel if spoken else None,
            seed=self.seed,
            level=self.level,
            limit=self.limit,
        )
        return opened


def read_default_manifest() -> Manifest:
    """The manifest of the data set in `$SQUTR_HOME`. Raises `DataError` if its build is not finished."""
    folder = data_folder()
    manifest = read_manifest(folder)
    if not manifest.complete:
        raise DataError(f"the build in {folder} is not finished.", hint="Run the same `squtr build` again.")
    return manifest


def _block_bounds(size: int) -> Iterator[tuple[int, int]]:
    start = 0
    sizes = chain(FIRST_BLOCKS, repeat(QUERIES_PER_BLOCK))
    while start < size:
        stop = min(size, start + next(sizes))
        yield start, stop
        start = stop


class _KnownConfigs:
    """What `datasets.get_dataset_config_names("squtr")` lists: the configs of what was built into `$SQUTR_HOME`; where
    nothing was, the standard ones of the embedded collection and those of rir_mega and of questions. Others load as well."""

    def __get__(self, builder: object, owner: type) -> dict[str, SqutrConfig]:
        squtr, rir_mega = ((f / MANIFEST_NAME).exists() for f in (data_folder(), data_folder("rir_mega")))
        questions = find_set(data_folder("questions"))
        names: list[str] = []
        if squtr:
            names += config_patterns(read_manifest(data_folder()))
        elif not (rir_mega or questions):
            names += config_names(dict(load_source("mini").subsets), STANDARD_CONDITIONS)
        if rir_mega or not (squtr or questions):
            names += BARE_CONFIGS
        if questions or not (squtr or rir_mega):
            names += QUESTION_CONFIGS
        # Without a source: naming one stays with the user.
        return {name: SqutrConfig(name) for name in names}


class Squtr(datasets.ArrowBasedBuilder):
    """Spoken queries under any condition, corpora and judgments."""

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
        known = {"source", "limit", *SHARED_OPTIONS, *PAIR_OPTIONS}
        if kwargs.get("languages") is not None:
            kwargs["languages"] = tuple(kwargs["languages"])
        for option in kwargs.keys() - known - {"custom_features", "config_id", "version"}:
            raise unknown_name("option", option, known)
        return super()._create_builder_config(config_name=config_name, **kwargs)  # type: ignore[no-any-return]

    def _info(self) -> datasets.DatasetInfo:
        loading = self.config.loading()
        if loading is not None:
            return datasets.DatasetInfo(description=loading.description, features=loading.features())
        config = self.config.parsed()
        if isinstance(config, QueryConfig):
            features = query_features()
        else:
            features = corpus_features() if config.kind == "corpus" else qrels_features()
        return datasets.DatasetInfo(description="Spoken queries under controlled noise and rooms.", features=features)

    def _split_generators(self, _: Any) -> list[datasets.SplitGenerator]:
        loading = self.config.loading()
        if loading is not None:
            splits = loading.blocks()
            return [datasets.SplitGenerator(name=name, gen_kwargs={"blocks": splits[name]}) for name in splits]
        blocks = self._built_files() if self.config.reads_built() else self._blocks()
        # `datasets` divides the one list among processes and among the workers of a stream.
        return [datasets.SplitGenerator(name="test", gen_kwargs={"blocks": blocks})]

    def _built_files(self) -> list[Any]:
        manifest = read_default_manifest()
        parse_config(self.config.name, manifest.subsets)
        patterns = config_patterns(manifest)
        if self.config.name not in patterns:
            raise unknown_name(f"config of the data set in {data_folder()}:", self.config.name, patterns)
        folders = [pattern.removesuffix("*.parquet") for pattern in patterns[self.config.name]]
        return [s.path for folder in folders for s in manifest.shards if s.path.startswith(folder)]

    def _blocks(self) -> list[Any]:
        config = self.config.parsed()
        if isinstance(config, TableConfig):
            return [(config.subset, 0, 0)]
        if self.config.published_sound(config) is not None:
            return [(subset, 0, 0) for subset in config.subsets]
        opened = self.config.opened(config)
        return [
            (subset, start, stop)
            for subset in config.subsets
            for start, stop in _block_bounds(len(opened.queries(subset)))
        ]

    def _generate_tables(self, blocks: list[Any]) -> Iterator[tuple[Key, pa.Table]]:
        for index, table in self._tables(blocks):
            yield Key(*index), table

    def _tables(self, blocks: list[Any]) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        loading = self.config.loading()
        if loading is not None:
            yield from loading.tables(blocks)
            return
        schema = self.info.features.arrow_schema
        if self.config.reads_built():
            for number, path in enumerate(blocks):
                with pq.ParquetFile(data_folder() / path) as file:
                    for index, batch in enumerate(file.iter_batches(ROWS_PER_TABLE)):
                        yield (number, index), pa.Table.from_batches([batch]).cast(schema)
            return
        config = self.config.parsed()
        if isinstance(config, TableConfig):
            yield from self._table_rows(self.config.opened(config), config, schema)
            return
        release = self.config.published_sound(config)
        if release is not None:
            for number, (subset, _, _) in enumerate(blocks):
                published = release.spoken(subset, config.condition.name)
                for index, batch in enumerate(batches(published, ROWS_PER_TABLE)):
                    yield (number, index), query_table(batch, schema)
            return
        opened = self.config.opened(config)
        pieces = [opened.queries(subset)[start:stop] for subset, start, stop in blocks]
        # One run over all blocks, so that no thread waits at a block's end.
        rows = render_rows(opened, config.condition, chain.from_iterable(pieces), workers=os.cpu_count() or 1)
        for number, piece in enumerate(pieces):
            yield (number, 0), query_table(list(islice(rows, len(piece))), schema)

    def _table_rows(
        self, opened: OpenedRecipe, config: TableConfig, schema: pa.Schema
    ) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        if config.kind == "corpus":
            index = -1
            for index, documents in enumerate(batches(opened.source.documents(config.subset), 5_000)):
                yield (0, index), corpus_table(documents, schema)
            if index < 0:
                raise DataError(f"{config.subset!r} has no documents.", hint="Recordings alone serve recognition only.")
            return
        kept = {query.id for query in opened.queries(config.subset)}
        qrels = [qrel for qrel in opened.source.qrels(config.subset) if qrel.query_id in kept]
        if not qrels:
            raise DataError(f"{config.subset!r} has no judgments.", hint="Recordings alone serve recognition only.")
        yield (0, 0), qrels_table(qrels, schema)
