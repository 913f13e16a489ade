"""The recipe of the benchmark's data: everything that decides its bytes, and what it is made from."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from ...errors import UsageError, unknown_name
from ..banks import load_noise_bank
from ..banks.protocols import NoiseBank, RirBank
from ..keyed import RECIPE_VERSION
from ..lru import LruCache
from ..mixing import Level, check_level
from ..recipe import choose_subsets
from ..records import Query, Samples, Source
from ..reverb import PreparedRir
from ..sources import load_source
from .plan import Plan, make_plan
from .rooms import RATE, MeasuredRir, Progress, is_known, measure_rirs, open_rirs, rirs_digest
from .strata import STRATIFY, Strata

RIR_MEGA_VERSION = "1"
"""Version of this benchmark's recipe: raised whenever the same recipe would give other bytes."""

ROOM_CACHE_BYTES, NOISE_CACHE_BYTES = 64 * 2**20, 64 * 2**20
RT60_BINS, DRR_BINS = 5, 5


@dataclass(frozen=True, slots=True)
class PairRecipe:
    """What is built. `noise` and its companions are "" and `snr_db` is None where no noise is added.

    `rir_measures` identifies the measures and publisher's values of all responses that could be drawn.
    """

    speech: str
    speech_version: str
    speech_license: str
    subsets: tuple[tuple[str, str], ...]
    rirs: str
    rirs_version: str
    rirs_license: str
    rir_measures: str
    pairs: int
    rirs_per_utterance: int
    stratify: str
    rt60_bins: int
    drr_bins: int
    known_rirs_only: bool
    early_only: bool
    snr_db: float | None
    noise: str
    noise_version: str
    noise_license: str
    level: Level
    seed: int
    sample_rate: int = RATE
    recipe_version: str = f"{RECIPE_VERSION}-{RIR_MEGA_VERSION}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON object."""
        return {**asdict(self), "subsets": dict(self.subsets)}

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the sha256 of the canonical JSON."""
        canonical = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]


def _room_bytes(room: PreparedRir) -> int:
    return room.nbytes


def _sound_bytes(samples: Samples) -> int:
    return int(samples.nbytes)


class PairCache:
    """What is kept between utterances: prepared rooms and noises at 16 kHz. It changes no result, and threads may share
    it."""

    def __init__(self) -> None:
        self.rooms: LruCache[str, PreparedRir] = LruCache(ROOM_CACHE_BYTES, _room_bytes)
        self.noises: LruCache[str, Samples] = LruCache(NOISE_CACHE_BYTES, _sound_bytes)

    def __reduce__(self) -> tuple[object, ...]:
        return (PairCache, ())


@dataclass(frozen=True)
class OpenedPairs:
    """A recipe with what it is made from: opened speech, rooms (all of them measured) and noise."""

    recipe: PairRecipe
    source: Source
    bank: RirBank
    measured: tuple[MeasuredRir, ...]
    noise: NoiseBank | None = None
    cache: PairCache = field(default_factory=PairCache, compare=False, repr=False)

    @cached_property
    def plan(self) -> Plan:
        """Who is heard in which room."""
        recipe = self.recipe
        strata = Strata.of(
            self.measured, stratify=recipe.stratify, rt60_bins=recipe.rt60_bins, drr_bins=recipe.drr_bins
        )
        queries: list[Query] = []
        for subset, _ in recipe.subsets:
            queries += self.source.queries(subset)
        return make_plan(
            queries,
            self.measured,
            strata,
            pairs=recipe.pairs,
            rirs_per_utterance=recipe.rirs_per_utterance,
            seed=recipe.seed,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Every process plans for itself: what travels stays small.
        return {key: value for key, value in self.__dict__.items() if key != "plan"}


def open_pairs(
    speech: str | Source = "mini",
    rooms: str = "simulated",
    *,
    pairs: int = 0,
    rirs_per_utterance: int = 1,
    languages: Sequence[str] | None = None,
    subsets: Sequence[str] | None = None,
    stratify: str = "rt60",
    rt60_bins: int = RT60_BINS,
    drr_bins: int = DRR_BINS,
    known_rirs_only: bool = False,
    early_only: bool = False,
    noise_snr: float | None = None,
    noise: str = "synthetic",
    level: str = "whole",
    channel: int | None = None,
    seed: int = 0,
    workers: int = 0,
    progress: Progress | None = None,
) -> OpenedPairs:
    """Open speech, rooms and noise, measure the rooms, check every choice, and fix the recipe.

    `speech` is a source (a name such as `librispeech:test-clean`, `recorded:PATH` or `mini`, or one that is open),
    `rooms` a RIR bank (`rir_mega:train`, `simulated`, a folder). `pairs` is the number of pairs (0: every utterance),
    each utterance being heard in `rirs_per_utterance` rooms. `noise_snr` in dB adds noise from `noise` after the room.
    `channel` (from 0) is taken from responses and noises with several channels. `progress` is told about measuring.

    Raises `UsageError` for a wrong choice, `DataError` or `AudioError` for unusable input.
    """
    if stratify not in STRATIFY:
        raise unknown_name("stratification", stratify, STRATIFY)
    if rt60_bins < 1 or drr_bins < 1:
        raise UsageError(f"there are {rt60_bins} RT60 bins and {drr_bins} DRR bins.", hint="Give at least 1 of each.")
    if noise_snr is not None and not math.isfinite(noise_snr):
        raise UsageError(f"the level {noise_snr} dB is not a number.")
    source = load_source(speech) if isinstance(speech, str) else speech
    chosen = choose_subsets(source, languages, subsets)
    if not chosen:
        raise UsageError(
            f"no subset of {source.name!r} is both in languages {list(languages or [])} and in {list(subsets or [])}.",
            hint="Leave one of the two options out.",
        )
    bank = open_rirs(rooms, channel)
    noises = load_noise_bank(noise, channel) if noise_snr is not None else None
    measured = measure_rirs(bank, workers=workers, progress=progress)
    if known_rirs_only:
        measured = tuple(room for room in measured if is_known(room.rt60_s) and is_known(room.drr_db))
    recipe = PairRecipe(
        speech=source.name,
        speech_version=source.version,
        speech_license=source.license,
        subsets=tuple(chosen.items()),
        rirs=bank.name,
        rirs_version=bank.version,
        rirs_license=bank.license,
        rir_measures=rirs_digest(measured),
        pairs=pairs,
        rirs_per_utterance=rirs_per_utterance,
        stratify=stratify,
        rt60_bins=rt60_bins,
        drr_bins=drr_bins,
        known_rirs_only=known_rirs_only,
        early_only=early_only,
        snr_db=noise_snr,
        noise=noises.name if noises else "",
        noise_version=noises.version if noises else "",
        noise_license=noises.license if noises else "",
        level=check_level(level),
        seed=seed,
    )
    return OpenedPairs(recipe, source, bank, measured, noises)
