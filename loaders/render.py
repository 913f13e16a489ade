"""The one pure function through which every query goes into the air, whatever builds, streams or mixes it.

What is drawn for a query depends on the seed, its subset and its id alone:

- the noise: first a family, uniformly, then one of its noises, uniformly, so that a family's size does not matter;
- where in the noise to begin: the same at every level, with and without a room. The clean length decides where a whole
  segment still fits; a reverberant tail runs on in the noise and wraps round at its end. If the noise is next to silent
  there (40 dB below its own level, over the active part of the speech), the draw is repeated;
- the room: uniformly.

Level policy, the same for all conditions: an audible DC offset is subtracted from the speech, a room's response has
unit energy, noise is set against the speech as it is (reverberant, if there is a room), and one joint gain brings the
peak down to 0.9 where it would pass it. Nothing is normalised beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..errors import UsageError
from .audio import check_samples, encode_flac
from .banks.protocols import NoiseBank, NoiseInfo, RoomBank
from .conditions import Condition
from .keyed import keyed_index
from .lru import LruCache
from .mixing import (
    Level,
    LevelledNoise,
    LevelledSpeech,
    check_level,
    level_noise,
    level_speech,
    limit_peak,
    mean_square,
    mix,
    noise_segment,
    remove_dc,
)
from .records import NAN, SAMPLE_RATE, CleanSpeech, Query, Samples, SpokenQuery
from .reverb import PreparedRoom, prepare_room, reverberate
from .room_measures import RoomMeasures, measure_room

QUIET_RANGE_DB = 40.0
"""A stretch of noise further than this below the noise's own level counts as silent."""
DRAWS = 32
"""How often a beginning is drawn before the loudest place of the noise is taken."""
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class _Room:
    prepared: PreparedRoom
    measures: RoomMeasures


@dataclass(frozen=True, slots=True)
class _Arm:
    """The speech of one query as it is mixed, and a copy of what it was made from."""

    source: Samples
    speech: LevelledSpeech


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The noise of one query, cut for `heard` from where `clean` made it begin."""

    info: NoiseInfo
    offset: int
    noise: LevelledNoise
    heard: LevelledSpeech
    clean: LevelledSpeech


def _drawn_size(drawn: _Drawn) -> int:
    return int(drawn.noise.samples.nbytes + drawn.heard.samples.nbytes + drawn.clean.samples.nbytes)


def _room_size(room: _Room) -> int:
    return room.prepared.nbytes


def _arm_size(arm: _Arm) -> int:
    return int(arm.source.nbytes + arm.speech.samples.nbytes)


def _one(_: float) -> int:
    return 1


class RenderCache:
    """What `render` keeps between calls: prepared rooms, speech and noise of the last queries, the level of each noise.

    It changes no result. Threads may share it; pickled, it is empty.
    """

    def __init__(self, room_bytes: int = 64 * 2**20, speech_bytes: int = 16 * 2**20) -> None:
        self._sizes = (room_bytes, speech_bytes)
        self.rooms: LruCache[str, _Room] = LruCache(room_bytes, _room_size)
        self.arms: LruCache[tuple[str, str, str], _Arm] = LruCache(speech_bytes, _arm_size)
        self.drawn: LruCache[tuple[str, str, str], _Drawn] = LruCache(speech_bytes, _drawn_size)
        self.noise_power: LruCache[str, float] = LruCache(100_000, _one)

    def __reduce__(self) -> tuple[object, ...]:
        return (RenderCache, self._sizes)


@dataclass(frozen=True)
class Air:
    """What speech goes through: a noise bank, a room bank (None where no condition needs one), the seed, the level
    rule.

    `level="whole"` sets the noise against the whole clip, `"active"` against the speech without leading and trailing
    silence.
    """

    noise: NoiseBank | None
    rooms: RoomBank | None
    seed: int = 0
    level: Level = "whole"
    cache: RenderCache = field(default_factory=RenderCache, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_level(self.level)


def render(query: Query, speech: CleanSpeech, condition: Condition, air: Air) -> SpokenQuery:
    """The row of `query` under `condition`, with its FLAC bytes. The same arguments always give the same bytes.

    Raises `UsageError` if the condition needs a bank that `air` lacks, and `AudioError` naming query, noise or room if
    one of them cannot be used, or if 16 bits could not hold both speech and noise.
    """
    name = f"the speech of query {query.id!r} ({query.subset})"
    rir_id, room = _draw_room(query, condition, air)
    arm = _arm(query, speech, rir_id, room, name=name, air=air)
    common = {
        "id": query.id,
        "subset": query.subset,
        "language": query.language,
        "text": query.text,
        "condition": condition.name,
        "speaker": speech.speaker,
        "voice": speech.voice,
    }
    snr_active_db, noise_id, family, offset_s = NAN, "", "", NAN
    if condition.snr_db is None:
        samples, gain_db = limit_peak(arm.speech.samples)
    else:
        clean = _arm(query, speech, "", None, name=name, air=air) if room else arm
        drawn = _draw(query, rir_id, arm.speech, clean.speech, air)
        noise_id, family, offset_s = drawn.info.id, drawn.info.family, drawn.offset / SAMPLE_RATE
        mixture = mix(
            arm.speech,
            drawn.noise,
            condition.snr_db,
            level=air.level,
            speech_name=name,
            noise_name=f"the noise {noise_id!r} from {offset_s:.3f} s",
        )
        samples, gain_db, snr_active_db = mixture.samples, mixture.gain_db, mixture.snr_active_db
    return SpokenQuery(
        **common,
        audio=encode_flac(samples, f"{name} under {condition.name}"),
        duration_s=samples.size / SAMPLE_RATE,
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
        tts_error_rate=speech.tts_error_rate,
        seed=air.seed,
    )


def draw_noise(query: Query, bank: NoiseBank, seed: int) -> NoiseInfo:
    """The noise of `query`: first a family, then one of its noises, both uniformly and keyed."""
    families: dict[str, list[NoiseInfo]] = {}
    for info in bank.noises():
        families.setdefault(info.family, []).append(info)
    names = sorted(families)
    family = names[keyed_index(len(names), seed, "noise", query.subset, query.id, "family")]
    members = families[family]
    return members[keyed_index(len(members), seed, "noise", query.subset, query.id, "member")]


def draw_offset(query: Query, noise: Samples, power: float, speech: LevelledSpeech, seed: int) -> int:
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


def _draw(query: Query, rir_id: str, heard: LevelledSpeech, clean: LevelledSpeech, air: Air) -> _Drawn:
    """The noise for `heard`; `clean` decides where it begins, so that it is the same in and out of a room."""
    if air.noise is None:
        raise UsageError("a condition with noise needs a noise bank.", hint="Give one.")
    bank = air.noise

    def prepare() -> _Drawn:
        info = draw_noise(query, bank, air.seed)
        noise = bank.read(info.id)
        power = air.cache.noise_power.get(info.id, lambda: mean_square(check_samples(noise, f"the noise {info.id!r}")))
        offset = draw_offset(query, noise, power, clean, air.seed)
        segment = noise_segment(noise, offset, heard.samples.size)
        return _Drawn(info, offset, level_noise(segment, heard), heard, clean)

    def valid(drawn: _Drawn) -> bool:
        return drawn.heard is heard and drawn.clean is clean

    return air.cache.drawn.get((query.subset, query.id, rir_id), prepare, valid)


def _draw_room(query: Query, condition: Condition, air: Air) -> tuple[str, _Room | None]:
    if not condition.reverb:
        return "", None
    if air.rooms is None:
        raise UsageError(f"the condition {condition.name!r} needs a room bank.", hint="Give one.")
    bank = air.rooms
    ids = bank.rooms()
    rir_id = ids[keyed_index(len(ids), air.seed, "room", query.subset, query.id)]

    def prepare() -> _Room:
        rir = bank.read(rir_id)
        return _Room(prepare_room(rir, rir_id), measure_room(rir, rir_id))

    return rir_id, air.cache.rooms.get(rir_id, prepare)


def _arm(query: Query, speech: CleanSpeech, rir_id: str, room: _Room | None, *, name: str, air: Air) -> _Arm:
    def prepare() -> _Arm:
        if room is None:
            samples = check_samples(speech.samples, name)
            return _Arm(samples.copy(), level_speech(remove_dc(samples)))
        clean = _arm(query, speech, "", None, name=name, air=air)
        wet = reverberate(clean.speech.samples, room.prepared)
        return _Arm(clean.source, level_speech(check_samples(wet, f"{name} in the room {rir_id!r}")))

    def valid(arm: _Arm) -> bool:
        # The key does not name the recording; another one, or one changed in place, must not find this.
        return np.array_equal(arm.source, speech.samples)

    return air.cache.arms.get((query.subset, query.id, rir_id), prepare, valid)
