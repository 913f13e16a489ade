"""The one pure function through which every pair is made, whatever builds, streams or loads it.

Level policy, the same for both arms: an audible DC offset is subtracted from the speech, a response has unit energy,
and each clip's peak is brought down to 0.9 where it would pass it. Nothing is normalized beyond that, so the arms
differ in level as far as the room changes it, and the gains are recorded. Noise comes after the room, set against the
reverberant speech; for an utterance it is the same noise from the same place in every room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...errors import UsageError
from ..audio import check_samples, encode_flac
from ..banks.details import read_at
from ..banks.protocols import NoiseInfo
from ..mixing import (
    LeveledSpeech,
    level_noise,
    level_recording,
    level_speech,
    limit_peak,
    mean_square,
    mix,
    noise_segment,
)
from ..records import NAN, Samples
from ..render import draw_noise, draw_offset
from ..reverb import PreparedRir, find_onset, prepare_rir, reverberate
from ..rows import in_order
from .plan import PlannedUtterance
from .recipe import OpenedPairs
from .rooms import RATE, early_part
from .rows import PairRow
from .speech import speech_of

_DECIMALS = 6


def render_utterance(opened: OpenedPairs, planned: PlannedUtterance) -> list[PairRow]:
    """The rows of one utterance, one per room: its speech is read and its clean clip encoded once.

    Raises `AudioError` naming utterance, response or noise if one of them cannot be used, or if 16 bits could not hold
    both speech and noise.
    """
    query, recipe = planned.query, opened.recipe
    name = f"the speech of utterance {planned.id!r}"
    speech = speech_of(opened.source, query)
    dry = level_recording(speech.samples, RATE)
    clean, clean_gain_db = limit_peak(dry.samples)
    clean_audio = encode_flac(clean, name, RATE)
    noise = _draw_noise(opened, planned, dry) if recipe.snr_db is not None else None
    rows = []
    for rir_id in planned.rir_ids:
        room, measured = _prepared(opened, rir_id), opened.plan.rooms[rir_id]
        place = f"{name} in the room {rir_id!r}"
        wet = check_samples(reverberate(dry.samples, room), place)
        if noise is None or recipe.snr_db is None:
            samples, gain_db = limit_peak(wet)
        else:
            info, sound, offset = noise
            heard = level_speech(wet, RATE)
            mixture = mix(
                heard,
                level_noise(noise_segment(sound, offset, wet.size), heard),
                recipe.snr_db,
                level=recipe.level,
                speech_name=place,
                noise_name=f"the noise {info.id!r} from {offset / RATE:.3f} s",
            )
            samples, gain_db = mixture.samples, mixture.gain_db
        rows.append(
            PairRow(
                sample_id=f"{planned.id}@{rir_id}",
                utterance_id=planned.id,
                subset=query.subset,
                language=query.language,
                speaker=speech.speaker,
                text=query.text,
                clean_audio=clean_audio,
                reverb_audio=encode_flac(samples, place, RATE),
                duration_s=clean.size / RATE,
                reverb_duration_s=samples.size / RATE,
                rir_id=rir_id,
                room_id=measured.room_id,
                rt60_s=measured.rt60_s,
                rt60_method=measured.rt60_method,
                edt_s=measured.edt_s,
                drr_db=measured.drr_db,
                c50_db=measured.c50_db,
                c80_db=measured.c80_db,
                source_rt60_s=measured.source_rt60_s,
                source_drr_db=measured.source_drr_db,
                source_c50_db=measured.source_c50_db,
                onset_samples=room.onset_samples,
                gain_db=round(gain_db, _DECIMALS),
                clean_gain_db=round(clean_gain_db, _DECIMALS),
                noise_id=noise[0].id if noise else "",
                noise_family=noise[0].family if noise else "",
                noise_offset_s=noise[2] / RATE if noise else NAN,
                snr_db=NAN if recipe.snr_db is None else recipe.snr_db,
                stratum=opened.plan.stratum_of[rir_id],
            )
        )
    return rows


def render_pairs(
    opened: OpenedPairs, utterances: Iterable[PlannedUtterance], *, workers: int = 1
) -> Iterator[list[PairRow]]:
    """`render_utterance` for each, in order, in threads."""
    # Planned before the threads start: it is done once.
    _ = opened.plan
    return in_order(lambda planned: render_utterance(opened, planned), utterances, workers=workers)


def _prepared(opened: OpenedPairs, rir_id: str) -> PreparedRir:
    def prepare() -> PreparedRir:
        response = read_at(opened.bank, rir_id, RATE)
        if opened.recipe.early_only:
            response = response[early_part(find_onset(response), response.size)]
        return prepare_rir(response, rir_id)

    return opened.cache.rooms.get(rir_id, prepare)


def _draw_noise(opened: OpenedPairs, planned: PlannedUtterance, dry: LeveledSpeech) -> tuple[NoiseInfo, Samples, int]:
    """The noise of an utterance, whole and at 16 kHz, and where in it the utterance's segment begins."""
    bank, seed = opened.noise, opened.recipe.seed
    if bank is None:
        raise UsageError("a level of noise is given, but no noise bank.", hint="Give one.")
    info = draw_noise(planned.query, bank, seed)
    sound = opened.cache.noises.get(info.id, lambda: read_at(bank, info.id, RATE))
    power = mean_square(check_samples(sound, f"the noise {info.id!r}"))
    return info, sound, draw_offset(planned.query, sound, power, dry, seed)
