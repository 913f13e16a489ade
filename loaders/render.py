"""The one pure function through which every query goes into the context, whatever builds, streams or mixes it.

What is drawn for a query depends on the seed, its subset and its id alone:

- the noise: first a family, uniformly, then one of its noises, uniformly, so that a family's size does not matter;
- where in the noise to begin: the same at every level, with and without a room. The clean length decides where a whole
  segment still fits; a reverberant tail runs on in the noise and wraps round at its end. If the noise is next to silent
  there (40 dB below its own level, over the active part of the speech), the draw is repeated;
- the room: uniformly.

Level policy, the same for all conditions: an audible DC offset is subtracted from the speech, a room's response has
unit energy, noise is set against the speech as it is (reverberant, if there is a room), and one joint gain brings the
peak down to 0.9 where it would pass it. Nothing is normalized beyond that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ..errors import UsageError
from .audio import check_samples, encode_flac
from .banks.protocols import NoiseBank, NoiseInfo, RirBank
from .conditions import Condition
from .keyed import keyed_index
from .lru import LruCache
from .mixing import (
    Level,
    LeveledNoise,
    LeveledSpeech,
    check_level,
    level_noise,
    level_recording,
    level_speech,
    limit_peak,
    mean_square,
    mix,
    noise_segment,
)
from .records import NAN, SAMPLE_RATE, CleanSpeech, Query, Samples, SpokenQuery
from .reverb import PreparedRir, prepare_rir, reverberate
from .rir_measures import RirMeasures, measure_rir

QUIET_RANGE_DB = 40.0
"""A stretch of noise further than this below the noise's own level counts as silent."""
DRAWS = 32
"""How often a beginning is drawn before the loudest place of the noise is taken."""
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class _Room:
    prepared: PreparedRir
    measures: RirMeasures


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The noise of one query, whole, and where in it the query's segment begins."""

    info: NoiseInfo
    samples: Samples
    offset: int


def _room_size(room: _Room) -> int:
    return room.prepared.nbytes


def _one(_: float) -> int:
    return 1


class RenderCache:
    """What is kept between queries: prepared RIRs and the level of each noise.

    It changes no result. Threads may share it; pickled, it is empty.
    """

    def __init__(self, room_bytes: int = 64 * 2**20) -> None:
        self._room_bytes = room_bytes
        self.rirs: LruCache[str, _Room] = LruCache(room_bytes, _room_size)
        self.noise_power: LruCache[str, float] = LruCache(100_000, _one)

    def __reduce__(self) -> tuple[object, ...]:
        return (RenderCache, (self._room_bytes,))


@dataclass(frozen=True)
class StepContext:
    """What speech goes through: a noise bank, a RIR bank (None where no condition needs one), the seed, the level
    rule.

    `level="whole"` sets the noise against the whole clip, `"active"` against the speech without leading and trailing
    silence.
    """

    noise: NoiseBank | None
    rirs: RirBank | None
    seed: int = 0
    level: Level = "whole"
    cache: RenderCache = field(default_factory=RenderCache, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_level(self.level)


def render(query: Query, speech: CleanSpeech, condition: Condition, context: StepContext) -> SpokenQuery:
    """The row of `query` under `condition`, with its FLAC bytes. The same arguments always give the same bytes.

    Raises `UsageError` if the condition needs a bank that `context` lacks, and `AudioError` naming query, noise or room if
    one of them cannot be used, or if 16 bits could not hold both speech and noise.
    """
    return _Rendering(query, speech, context).row(condition)


def render_all(query: Query, speech: CleanSpeech, conditions: Iterable[Condition], context: StepContext) -> list[SpokenQuery]:
    """`render` under each condition: the same rows, but speech, room and noise are prepared once for all of them."""
    rendering = _Rendering(query, speech, context)
    return [rendering.row(condition) for condition in conditions]


class _Rendering:
    """One query: its speech dry and in its room, and its noise, each made when a condition first needs it."""

    def __init__(self, query: Query, speech: CleanSpeech, context: StepContext) -> None:
        self._query, self._speech, self._air = query, speech, context
        self._name = f"the speech of query {query.id!r} ({query.subset})"
        self._leveled: dict[str, LeveledSpeech] = {}
        self._noises: dict[str, LeveledNoise] = {}
        self._drawn: _Drawn | None = None

    def row(self, condition: Condition) -> SpokenQuery:
        query, context = self._query, self._air
        rir_id, room = _draw_room(query, condition, context)
        heard = self._heard(rir_id, room)
        snr_active_db, noise_id, family, offset_s = NAN, "", "", NAN
        if condition.snr_db is None:
            samples, gain_db = limit_peak(heard.samples)
        else:
            drawn = self._draw()
            noise_id, family, offset_s = drawn.info.id, drawn.info.family, drawn.offset / SAMPLE_RATE
            mixture = mix(
                heard,
                self._noise(rir_id, heard),
                condition.snr_db,
                level=context.level,
                speech_name=self._name,
                noise_name=f"the noise {noise_id!r} from {offset_s:.3f} s",
            )
            samples, gain_db, snr_active_db = mixture.samples, mixture.gain_db, mixture.snr_active_db
        return SpokenQuery(
            id=query.id,
            subset=query.subset,
            language=query.language,
            text=query.text,
            audio=encode_flac(samples, f"{self._name} under {condition.name}"),
            duration_s=samples.size / SAMPLE_RATE,
            condition=condition.name,
            snr_db=NAN if condition.snr_db is None else condition.snr_db,
            snr_active_db=round(snr_active_db, _DECIMALS),
            noise_id=noise_id,
            noise_family=family,
            noise_offset_s=offset_s,
            rir_id=rir_id,
            rt60_s=room.measures.rt60_s if room else NAN,
            drr_db=room.measures.drr_db if room else NAN,
            c50_db=room.measures.c50_db if room else NAN,
            onset_samples=room.prepared.onset_samples if room else 0,
            gain_db=round(gain_db, _DECIMALS),
            speaker=self._speech.speaker,
            voice=self._speech.voice,
            tts_error_rate=self._speech.tts_error_rate,
            seed=context.seed,
        )

    def _heard(self, rir_id: str, room: _Room | None) -> LeveledSpeech:
        """The speech as it is mixed: dry, or in its room."""
        if rir_id not in self._leveled:
            if room is None:
                self._leveled[rir_id] = level_recording(check_samples(self._speech.samples, self._name))
            else:
                wet = reverberate(self._heard("", None).samples, room.prepared)
                self._leveled[rir_id] = level_speech(check_samples(wet, f"{self._name} in the room {rir_id!r}"))
        return self._leveled[rir_id]

    def _draw(self) -> _Drawn:
        """The noise and where it begins: the dry speech decides, so that both are the same in and out of a room."""
        if self._drawn is None:
            query, context = self._query, self._air
            if context.noise is None:
                raise UsageError("a condition with noise needs a noise bank.", hint="Give one.")
            info = draw_noise(query, context.noise, context.seed)
            noise = context.noise.read(info.id)
            power = context.cache.noise_power.get(
                info.id, lambda: mean_square(check_samples(noise, f"the noise {info.id!r}"))
            )
            self._drawn = _Drawn(info, noise, draw_offset(query, noise, power, self._heard("", None), context.seed))
        return self._drawn

    def _noise(self, rir_id: str, heard: LeveledSpeech) -> LeveledNoise:
        if rir_id not in self._noises:
            drawn = self._draw()
            self._noises[rir_id] = level_noise(noise_segment(drawn.samples, drawn.offset, heard.samples.size), heard)
        return self._noises[rir_id]


def draw_noise(query: Query, bank: NoiseBank, seed: int) -> NoiseInfo:
    """The noise of `query`: first a family, then one of its noises, both uniformly and keyed."""
    families: dict[str, list[NoiseInfo]] = {}
    for info in bank.noises():
        families.setdefault(info.family, []).append(info)
    names = sorted(families)
    family = names[keyed_index(len(names), seed, "noise", query.subset, query.id, "family")]
    members = families[family]
    return members[keyed_index(len(members), seed, "noise", query.subset, query.id, "member")]


def draw_offset(query: Query, noise: Samples, power: float, speech: LeveledSpeech, seed: int) -> int:
    """Where in (N,) `noise` of mean square `power` the segment for clean `speech` begins, in samples.

    Uniform over the places where the clip fits without wrapping (over all if the noise is shorter than the clip).
    """
    length = speech.samples.size
    places = noise.size - length + 1 if noise.size > length else noise.size
    least = power * 10.0 ** (-QUIET_RANGE_DB / 10.0)
    for draw in range(DRAWS):
        offset = keyed_index(places, seed, "noise", query.subset, query.id, "offset", str(draw))
        segment = noise_segment(noise, offset, length)
        if mean_square(segment[speech.start : speech.stop]) >= least:
            return offset
    # A noise that is silent nearly everywhere: its loudest sample goes to the middle of the speech.
    loudest = int(np.argmax(np.abs(noise)))
    return (loudest - (speech.start + speech.stop) // 2) % int(noise.size)


def _draw_room(query: Query, condition: Condition, context: StepContext) -> tuple[str, _Room | None]:
    if not condition.reverb:
        return "", None
    if context.rirs is None:
        raise UsageError(f"the condition {condition.name!r} needs a RIR bank.", hint="Give one.")
    bank = context.rirs
    ids = bank.rirs()
    rir_id = ids[keyed_index(len(ids), context.seed, "room", query.subset, query.id)]

    def prepare() -> _Room:
        rir = bank.read(rir_id)
        return _Room(prepare_rir(rir, rir_id), measure_rir(rir, rir_id))

    return rir_id, context.cache.rirs.get(rir_id, prepare)
