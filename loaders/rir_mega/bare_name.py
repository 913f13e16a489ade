"""`load_dataset("squtr", "rir_mega", …)`: the benchmark's configs behind the bare name.

`rir_mega` (or `rir_mega_paired`) has both arms, `rir_mega_clean` and `rir_mega_reverb` one, `rir_mega_rooms` the rooms.
They come from what was built, from the published set, or from a source whose speech is put into rooms on the fly; the
rows are the same. The builder in `on_the_fly` hands over to this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import UsageError, unknown_name
from ..home import data_folder
from ..manifest import MANIFEST_NAME
from ..rows import ROWS_PER_TABLE, batches
from .data import RirMegaData
from .manifest import FOLDER, RIR_MEGA, ROOMS_FOLDER, benchmark_of
from .plan import SPLITS
from .published import PUBLISHED, PublishedData, fingerprint, open_published
from .recipe import OpenedPairs, open_pairs
from .render import render_pairs
from .rows import CONFIGS, ROOMS_CONFIG, config_features, pair_table, room_table

if TYPE_CHECKING:
    import datasets

BARE_CONFIGS: Mapping[str, str] = {
    RIR_MEGA: "paired",
    **{f"{RIR_MEGA}_{config}": config for config in (*CONFIGS, ROOMS_CONFIG)},
}
"""Config of the bare name to config of a built folder."""

FIRST_UTTERANCES = (2, 6)
"""The first blocks of a split are smaller: a stream gives its first rows when its first block is done."""

Block = tuple[str, int, int]
"""What one process takes at a time: a split, or a file's path, and a range of positions."""


@dataclass
class PairLoading:
    """One config, from `source` (None: what was built into `$SQUTR_HOME`, else the published set) and the options of
    `open_pairs`. It travels to other processes without what it opened."""

    config: str
    source: str | None
    options: Mapping[str, Any]
    _opened: RirMegaData | PublishedData | OpenedPairs | None = field(default=None, repr=False, compare=False)

    description: ClassVar[str] = "The same utterances, clean and in a room."

    def __post_init__(self) -> None:
        if self.config not in BARE_CONFIGS:
            raise unknown_name("config", self.config, BARE_CONFIGS)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def inner(self) -> str:
        """The config as a built folder calls it."""
        return BARE_CONFIGS[self.config]

    def opened(self) -> RirMegaData | PublishedData | OpenedPairs:
        """What is read, opened once."""
        if self._opened is None:
            self._opened = self._open()
        if isinstance(self._opened, PublishedData) and self.inner == ROOMS_CONFIG:
            raise UsageError("the published set has no impulse responses to measure.", hint="Build one to have rooms.")
        return self._opened

    def _open(self) -> RirMegaData | PublishedData | OpenedPairs:
        source = self.source
        if source is None:
            built = data_folder("rir_mega")
            return RirMegaData(built) if (built / MANIFEST_NAME).exists() else open_published()
        if source == PUBLISHED or source.startswith(f"{PUBLISHED}:"):
            return open_published(source.partition(":")[2])
        folder = Path(source).expanduser()
        if benchmark_of(folder) == RIR_MEGA:
            return RirMegaData(folder)
        return open_pairs(source, **self.options)

    def fingerprint(self) -> str:
        """What identifies the rows, for the cache."""
        opened = self.opened()
        if isinstance(opened, RirMegaData):
            return f"{opened.revision}-{opened.manifest_sha256[:16]}"
        return fingerprint(opened) if isinstance(opened, PublishedData) else opened.recipe.fingerprint

    def features(self) -> datasets.Features:
        """The features of the config."""
        return config_features(self.inner)

    def blocks(self) -> dict[str, list[Block]]:
        """The blocks of each split, in order."""
        opened = self.opened()
        if isinstance(opened, RirMegaData):
            folder = ROOMS_FOLDER if self.inner == ROOMS_CONFIG else FOLDER
            shards = opened.manifest.shards
            return {
                split: [(s.path, 0, s.rows) for s in shards if s.path.startswith(f"{folder}/{split}-")]
                for split in SPLITS
            }
        if isinstance(opened, PublishedData):
            return {split: list(_blocks(split, rows, ROWS_PER_TABLE)) for split, rows in opened.splits.items()}
        plan = opened.plan
        if self.inner == ROOMS_CONFIG:
            return {split: [(split, 0, len(plan.uses(split)))] for split in SPLITS}
        at_once = max(1, ROWS_PER_TABLE // opened.recipe.rirs_per_utterance)
        return {split: list(_blocks(split, len(plan.utterances[split]), at_once)) for split in SPLITS}

    def tables(self, blocks: list[Block]) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        """The tables of some blocks of one split, each with the number of its block and its number in there."""
        opened, schema = self.opened(), self.features().arrow_schema
        if isinstance(opened, RirMegaData):
            for number, (path, _, _) in enumerate(blocks):
                with pq.ParquetFile(opened.folder / path) as file:
                    for index, batch in enumerate(file.iter_batches(ROWS_PER_TABLE, columns=schema.names)):
                        yield (number, index), pa.Table.from_batches([batch]).select(schema.names).cast(schema)
        elif isinstance(opened, PublishedData):
            for number, (split, start, stop) in enumerate(blocks):
                yield (number, 0), pair_table(list(opened.pairs(split, start, stop)), schema)
        elif self.inner == ROOMS_CONFIG:
            plan = opened.plan
            for number, (split, start, stop) in enumerate(blocks):
                used = islice(plan.uses(split).items(), start, stop)
                rows = ((plan.rooms[rir_id], plan.stratum_of[rir_id], count) for rir_id, count in used)
                yield (number, 0), room_table(rows, schema)
        else:
            pieces = [opened.plan.utterances[split][start:stop] for split, start, stop in blocks]
            # One run over all blocks, so that no thread waits at a block's end.
            rendered = render_pairs(opened, chain.from_iterable(pieces), workers=os.cpu_count() or 1)
            for number, piece in enumerate(pieces):
                rows_of = chain.from_iterable(islice(rendered, len(piece)))
                for index, batch_rows in enumerate(batches(rows_of, ROWS_PER_TABLE)):
                    yield (number, index), pair_table(batch_rows, schema)


def _blocks(split: str, size: int, at_once: int) -> Iterator[Block]:
    start = 0
    for count in chain(FIRST_UTTERANCES, iter(lambda: at_once, 0)):
        if start >= size:
            return
        stop = min(size, start + min(count, at_once))
        yield split, start, stop
        start = stop
