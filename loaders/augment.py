"""Clean speech mixed anew in every epoch, for training: a transform for `datasets`, on rows of a clean config.

The arithmetic is that of every built row (`render`); what is drawn is keyed by the seed, the epoch and the row, so that
a row has the same audio in an epoch whatever the order, the batch or the number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import DataError, UsageError
from .audio import decode_audio
from .banks import NoiseBank, RirBank, load_noise_bank, load_rir_bank
from .conditions import Condition, parse_condition
from .conditions.noise import HIGHEST_SNR_DB, LOWEST_SNR_DB
from .conditions.step import RenderCache, StepContext
from .keyed import keyed_index, keyed_seed
from .mixing import check_level
from .records import CleanSpeech, Query, SpokenQuery
from .render import render
from .rows import QUERY_COLUMNS, audio_cell
from .splits import SPLITS, TRAIN, OneSplit

DRAWN = "snr"
"""What ends a condition whose level is drawn: `snr`, `reverb_snr`."""
STEPS = 10
"""Drawn levels are whole tenths of a dB."""


@dataclass
class NoisyTransform:
    """Mixes the clean audio of rows under conditions that are drawn for each row and epoch.

    - `conditions`: names of conditions; one that ends with `snr` and no number gets a level drawn uniformly, in tenths
      of a dB, from `snr_db` (lowest, highest). One of them is drawn, uniformly, for each row.
    - `noise`, `rirs`, `channel`: the banks, as in `open_recipe`; only what goes to the split `split` is drawn ("" for
      all), so that nothing of it is in the test of a set built with `divided=True`.
    - `seed`: of all draws. `set_epoch` gives every row other ones.

    It is called with a batch of rows as `datasets` gives it (`set_transform`, `with_transform`, or `map(batched=True)`,
    of a stream too): columns `id` and `audio` (bytes) are needed, `subset`, `language`, `text` and what is in a row
    besides are kept. It returns the batch with `audio` mixed and the columns of the mixture (`condition`, `snr_db`,
    `noise_id`, `rir_id`, …) filled; an empty batch stays empty. A copy of it travels to workers, so set the epoch
    before their loader is asked for rows.

    Raises `UsageError` for a wrong choice, `AudioError` naming a row that is unusable.

    >>> NoisyTransform(["clean", "reverb_snr"], snr_db=(0.0, 20.0)).drawn("fiqa", "q1")
    'reverb_snr_9'
    """

    conditions: Sequence[str]
    noise: str = "synthetic"
    rirs: str = "simulated"
    snr_db: tuple[float, float] = (0.0, 20.0)
    split: str = TRAIN
    seed: int = 0
    level: str = "whole"
    channel: int | None = None
    epoch: int = 0
    _cache: RenderCache = field(default_factory=RenderCache, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.conditions or isinstance(self.conditions, str):
            raise UsageError("no list of conditions is given.", hint='For example ["clean", "snr", "reverb_snr"].')
        if self.split not in {"", *SPLITS}:
            raise UsageError(f"there is no split {self.split!r}.", hint=f'Give one of {", ".join(SPLITS)}, or "".')
        low, high = self.snr_db
        if not LOWEST_SNR_DB <= low <= high <= HIGHEST_SNR_DB:
            raise UsageError(
                f"levels are to be drawn from {low:g} to {high:g} dB.",
                hint=f"Give the lowest first, both between {LOWEST_SNR_DB:g} and {HIGHEST_SNR_DB:g}.",
            )
        check_level(self.level)
        for name in self.conditions:
            parse_condition(self._with_level(name, low))

    def __getstate__(self) -> dict[str, Any]:
        """Without opened banks: every process opens its own."""
        return {key: value for key, value in self.__dict__.items() if key != "_banks"}

    def set_epoch(self, epoch: int) -> None:
        """Draw anew for every row; the same epoch gives the same."""
        self.epoch = epoch

    @staticmethod
    def _with_level(name: str, level: float) -> str:
        return f"{name}_{level:g}" if name == DRAWN or name.endswith(f"_{DRAWN}") else name

    def drawn(self, subset: str, id_: str) -> str:
        """The name of the condition of a row in this epoch."""
        key = (str(self.epoch), subset, id_)
        name = self.conditions[keyed_index(len(self.conditions), self.seed, "augment condition", *key)]
        low, high = (round(level * STEPS) for level in self.snr_db)
        level = low + keyed_index(high - low + 1, self.seed, "augment level", *key)
        return self._with_level(name, level / STEPS)

    @cached_property
    def _banks(self) -> tuple[NoiseBank | None, RirBank | None, OneSplit | None]:
        needed = [parse_condition(self._with_level(name, self.snr_db[0])) for name in self.conditions]
        noises = any(condition.needs("noise") for condition in needed)
        rirs = any(condition.needs("rirs") for condition in needed)
        return (
            load_noise_bank(self.noise, self.channel) if noises else None,
            load_rir_bank(self.rirs, self.channel) if rirs else None,
            OneSplit(self.split) if self.split else None,
        )

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        missing = [name for name in ("id", "audio") if name not in batch]
        if missing:
            raise DataError(f"rows without the column {missing[0]} cannot be mixed.", hint="Keep id and audio.")
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        made = [self._mixed(row) for row in rows]
        found: dict[str, list[Any]] = {name: list(values) for name, values in batch.items()}
        for name in QUERY_COLUMNS:
            if name not in _OWN:
                found[name] = [getattr(row, name) for row in made]
        found["audio"] = [audio_cell(row) for row in made]
        return found

    def _mixed(self, row: Mapping[str, Any]) -> SpokenQuery:
        subset, id_ = str(row.get("subset") or ""), str(row["id"])
        audio = row["audio"]
        content = audio.get("bytes") if isinstance(audio, Mapping) else None
        if not content:
            raise DataError(
                f"the row {id_!r} has no bytes of audio.", hint="Load it undecoded: Audio(decode=False), as squtr does."
            )
        name = f"the audio of the row {id_!r}"
        samples, rate = decode_audio(content, name)
        condition: Condition = parse_condition(self.drawn(subset, id_))
        noises, rirs, division = self._banks
        seed = keyed_seed(self.seed, "augment", str(self.epoch)) % (1 << 31)
        context = StepContext(noises, rirs, seed, check_level(self.level), rate, division=division, cache=self._cache)
        speech = CleanSpeech(samples, str(row.get("speaker") or ""), str(row.get("voice") or ""))
        query = Query(id_, subset, str(row.get("language") or ""), str(row.get("text") or ""))
        return render(query, speech, condition, context)


_OWN = frozenset((
    "id", "subset", "language", "text", "audio", "utterance_id", "query_id", "speaker", "voice", "tts_error_rate",
    "tts_takes", "tts_transcriber",
))  # fmt: skip
"""What the mixture leaves as the row has it."""
