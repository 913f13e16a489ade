"""What a step of a condition is, and what it works on.

A condition is a list of steps in physical order: room (RIR) → added audio (noise, another talker) → device → codec →
channel. A new kind of step is a `StepKind` in the table `STEPS`, or one that is given to `open_recipe(steps=…)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from ...errors import UsageError
from ..banks.details import read_at
from ..banks.protocols import NoiseBank, RirBank
from ..lru import LruCache
from ..mixing import Level, LeveledSpeech, check_level, level_speech
from ..records import SAMPLE_RATE, Query, Samples
from ..reverb import PreparedRir
from ..rirs.measured import MeasuredRir

ROOM, ADDED, DEVICE, CODEC, CHANNEL = 10, 20, 30, 40, 50
"""Places in the physical order. Numbers between them order steps within a place."""

RIR_BYTES, NOISE_BYTES = 64 * 2**20, 64 * 2**20

WHOLE = "test"
"""The split of all where nothing is divided."""

Value = TypeVar("Value")
Bank = Literal["", "noise", "rirs"]
ColumnType = Literal["string", "float64", "int64"]
NOT_APPLICABLE: Mapping[ColumnType, Any] = {"string": "", "float64": float("nan"), "int64": 0}


@dataclass(frozen=True, slots=True)
class Signal:
    """Audio between two steps: `samples` is (T,) float32 at `rate` Hz.

    `columns` are the row's columns that the steps so far have filled, `gain_db` the gain that was applied to keep the
    peak at or below 0.9.
    """

    samples: Samples
    rate: int
    columns: Mapping[str, Any] = field(default_factory=dict)
    gain_db: float = 0.0
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def leveled(self) -> LeveledSpeech:
        """The samples with their levels, measured once."""
        return self.kept("leveled", lambda: level_speech(self.samples, self.rate))

    def kept(self, key: str, make: Callable[[], Value]) -> Value:
        """What was made of this signal under `key`; made at the first call. Several conditions share it."""
        if key not in self._kept:
            self._kept[key] = make()
        value: Value = self._kept[key]
        return value

    def passed_on(self, samples: Samples, columns: Mapping[str, Any], *, gain_db: float = 0.0) -> Signal:
        """The signal behind a step that gave these samples and fills these columns."""
        return Signal(samples, self.rate, {**self.columns, **columns}, self.gain_db + gain_db)


@dataclass(frozen=True, slots=True)
class Utterance:
    """What the steps are applied to: `dry` is the clean recording without its DC offset, `name` is for messages.

    What is drawn may depend on subset and id of `query` and on nothing else of it. `rir_id` is the RIR that a plan gave
    the utterance, "" where one is to be drawn; `draw` counts the draws of noise from 0.
    """

    query: Query
    dry: Signal
    name: str
    rir_id: str = ""
    draw: int = 0

    def key(self) -> tuple[str, ...]:
        """What draws of noise are keyed by; the first as if there were no others."""
        return (self.query.subset, self.query.id, *([f"draw {self.draw + 1}"] if self.draw else []))


class Step(Protocol):
    """One step with its parameters. Immutable, hashable and picklable."""

    def as_dict(self) -> dict[str, Any]:
        """Its kind as `step`, and its parameters, as JSON object: part of the recipe."""
        ...

    def apply(self, signal: Signal, utterance: Utterance, context: StepContext) -> Signal:
        """The signal behind this step: a pure function. Raises `AudioError` naming the utterance."""
        ...


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step: a row of the table of steps.

    - `name`: its name in recipes; `order`: its place in the physical order. Of one place a condition has one step.
    - `pattern`: a regular expression of its part of a condition's name; `parse` makes the step of that part, and
      raises `UsageError` for a parameter that is out of range or not in its shortest form.
    - `bank`: the bank that it reads.
    - `columns`: the columns of a row that it fills. Those that rows do not have anyway are added to all rows of a data
      set that has such a condition; where the step is not applied they hold NaN, "" or 0.
    - `examples`: parts of names that an error message may suggest.
    """

    name: str
    order: int
    pattern: str
    parse: Callable[[str], Step]
    bank: Bank = ""
    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    def match(self, text: str) -> tuple[Step, str] | None:
        """The step that `text` begins with, and what is left of it; None if it begins with another."""
        found = re.match(rf"({self.pattern})(?:_(?=.)|$)", text)
        return None if found is None else (self.parse(found[1]), text[found.end() :])


NoiseKey = tuple[int, str]


def noise_key(bank: NoiseBank, noise_id: str) -> NoiseKey:
    """What a noise is kept under: banks of several subsets may share a name, and ids. The context keeps the banks."""
    return id(bank), noise_id


class RenderCache:
    """What is kept between utterances, by threads too: prepared RIRs, resampled noises and their levels."""

    def __init__(self, rir_bytes: int = RIR_BYTES) -> None:
        self._rir_bytes = rir_bytes
        self.rirs: LruCache[tuple[str, str], tuple[PreparedRir, MeasuredRir]] = LruCache(
            rir_bytes, lambda kept: kept[0].nbytes
        )
        self.noises: LruCache[NoiseKey, Samples] = LruCache(NOISE_BYTES, lambda samples: int(samples.nbytes))
        self.told: LruCache[str, bool] = LruCache(100, lambda _: 1)
        """What was warned of, so that it is told once."""
        self.noise_power: LruCache[NoiseKey, float] = LruCache(100_000, lambda _: 1)

    def __reduce__(self) -> tuple[object, ...]:
        return (RenderCache, (self._rir_bytes,))


class Divided(Protocol):
    """Which split an utterance goes to, and the noises and RIRs of a split (see `splits.Division`)."""

    def split_of(self, query: Query) -> str: ...

    def noises(self, bank: NoiseBank, split: str) -> NoiseBank: ...

    def rirs(self, bank: RirBank, split: str) -> Sequence[str]: ...


@dataclass(frozen=True)
class StepContext:
    """What steps may use: a noise bank, or one for each subset, and a RIR bank (None where no condition needs one), the
    seed, the level rule.

    With a `division` the noises and RIRs of an utterance are those of its split.

    `level="whole"` sets the noise against the whole clip, `"active"` against the speech without leading and trailing
    silence. `sample_rate` is that of all audio, in Hz. `measured` has the measures and the stratum of each RIR where a
    plan deals them.
    """

    noise: NoiseBank | Mapping[str, NoiseBank] | None
    rirs: RirBank | None
    seed: int = 0
    level: Level = "whole"
    sample_rate: int = SAMPLE_RATE
    measured: Mapping[str, tuple[MeasuredRir, str]] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    division: Divided | None = None
    cache: RenderCache = field(default_factory=RenderCache, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_level(self.level)

    def __reduce__(self) -> tuple[object, ...]:
        values = (self.noise, self.rirs, self.seed, self.level, self.sample_rate, dict(self.measured))
        return (StepContext, (*values, self.division, self.cache))

    def split_of(self, query: Query) -> str:
        return self.division.split_of(query) if self.division else WHOLE

    def noise_bank(self, query: Query) -> NoiseBank:
        """The bank that the noise of this utterance is drawn from."""
        bank = self.noise.get(query.subset) if isinstance(self.noise, Mapping) else self.noise
        if bank is None:
            raise UsageError("a condition with noise needs a noise bank.", hint="Give one.")
        return self.division.noises(bank, self.split_of(query)) if self.division else bank

    def rir_bank(self) -> RirBank:
        if self.rirs is None:
            raise UsageError("a condition with reverberation needs a RIR bank.", hint="Give one.")
        return self.rirs

    def rirs_for(self, query: Query) -> Sequence[str]:
        """The ids of the RIRs that the one of this utterance is drawn from."""
        bank = self.rir_bank()
        return self.division.rirs(bank, self.split_of(query)) if self.division else bank.rirs()

    def read_noise(self, bank: NoiseBank, noise_id: str) -> Samples:
        """A whole noise at the context's rate, (N,) float32."""
        if self.sample_rate == SAMPLE_RATE:
            return bank.read(noise_id)  # banks keep what they made
        return self.cache.noises.get(noise_key(bank, noise_id), lambda: read_at(bank, noise_id, self.sample_rate))

    def read_rir(self, rir_id: str) -> Samples:
        """A RIR at the context's rate, (L,) float32."""
        return read_at(self.rir_bank(), rir_id, self.sample_rate)
