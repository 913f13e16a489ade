"""One clip at a time: the arithmetic of a data set's build for a single file, and what was done in numbers."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

import soundfile

from ..errors import StorageError, UsageError
from .audio import check_samples, decode_audio, encode_flac, resample, to_pcm16
from .conditions.noise import draw_offset
from .mixing import Level, level_noise, level_speech, limit_peak, mean_square, mix, noise_segment, remove_dc
from .records import SAMPLE_RATE, Samples
from .reverb import prepare_rir, reverberate
from .rir_checks import check_is_rir
from .rir_measures import RirMeasures, measure_rir

FORMATS = (".wav", ".flac")
"""Suffixes of files that are written: 16-bit PCM, one channel."""
LOWEST_RATE, HIGHEST_RATE = 4_000, 192_000
_NO_KEY = ("", "")


@dataclass(frozen=True, slots=True)
class Recording:
    """A file as it is used: `samples` (T,) float32 at `rate` Hz; `own_rate` is the file's, `path` its name."""

    path: Path
    samples: Samples
    rate: int
    own_rate: int


@dataclass(frozen=True, slots=True)
class Mixed:
    """Speech in noise, (T,) float32 at `rate` Hz with a peak of at most 0.9, and what was done.

    Levels are measured over the clip and its active part (`active_start_s` to `active_stop_s`). `noise_gain` is before
    the joint gain; `noise_wraps`: the noise, from `noise_offset_s` on, was too short and starts again.
    """

    samples: Samples
    rate: int
    snr_db: float
    snr_active_db: float
    noise_gain: float
    gain_db: float
    noise_offset_s: float
    noise_wraps: bool
    active_start_s: float
    active_stop_s: float


@dataclass(frozen=True, slots=True)
class Reverberated:
    """Reverberant speech, (T,) float32 at `rate` Hz with a peak of at most 0.9, aligned with the dry speech."""

    samples: Samples
    rate: int
    gain_db: float
    measures: RirMeasures


def read_recording(path: Path, kind: str, *, rate: int = SAMPLE_RATE, channel: int | None = None) -> Recording:
    """The audio file at `path`, resampled to `rate` Hz (0: its own); `channel` as in `decode_audio`.

    Raises `AudioError` naming `kind` and path, `UsageError` for a rate that no audio has.
    """
    if rate and not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise UsageError(
            f"the rate {rate} Hz is out of range.", hint=f"Give {LOWEST_RATE} to {HIGHEST_RATE} Hz, or keep."
        )
    name = f"the {kind} {path}"
    samples, own_rate = decode_audio(path, name, channel=channel)
    target = rate or own_rate
    samples = check_samples(resample(check_samples(samples, name), own_rate, target), name)
    return Recording(path, samples, target, own_rate)


def mix_recordings(
    speech: Recording,
    noise: Recording,
    snr_db: float,
    *,
    level: Level = "whole",
    seed: int = 0,
    offset_s: float | None = None,
) -> Mixed:
    """Add `noise`, from `offset_s` or where the keyed rule puts it for `seed`, to `speech` of the same rate.

    Raises `AudioError` naming a file that is silent or too weak for 16 bits, `UsageError` for an offset outside.
    """
    if speech.rate != noise.rate:
        raise UsageError(f"the speech has {speech.rate} Hz, the noise {noise.rate} Hz.", hint="Read both at one rate.")
    noise_name = f"the noise {noise.path}"
    leveled = level_speech(remove_dc(speech.samples), speech.rate)
    long = remove_dc(noise.samples)
    if offset_s is None:
        offset = draw_offset(_NO_KEY, long, mean_square(long), leveled, seed)
    else:
        offset = round(offset_s * noise.rate)
        if not 0 <= offset < long.size:
            raise UsageError(
                f"the offset {offset_s:g} s lies outside of {noise_name}, which lasts {long.size / noise.rate:.3f} s."
            )
    size = leveled.samples.size
    made = mix(
        leveled,
        level_noise(noise_segment(long, offset, size), leveled),
        snr_db,
        level=level,
        speech_name=f"the speech {speech.path}",
        noise_name=f"{noise_name} from {offset / noise.rate:.3f} s",
    )
    return Mixed(
        samples=made.samples,
        rate=speech.rate,
        snr_db=made.snr_db,
        snr_active_db=made.snr_active_db,
        noise_gain=made.noise_gain,
        gain_db=made.gain_db,
        noise_offset_s=offset / noise.rate,
        noise_wraps=offset + size > long.size,
        active_start_s=leveled.start / speech.rate,
        active_stop_s=leveled.stop / speech.rate,
    )


def reverberate_recording(speech: Recording, rir: Recording, *, keep_tail: bool = True) -> Reverberated:
    """Convolve `speech` with `rir` at the same rate, with its tail or as long as dry speech. Raises `AudioError`."""
    if speech.rate != rir.rate:
        raise UsageError(f"the speech has {speech.rate} Hz, the RIR {rir.rate} Hz.", hint="Read both at one rate.")
    name = f"the impulse response {rir.path}"
    prepared = prepare_rir(check_is_rir(rir.samples, name, rir.rate), str(rir.path))
    wet = reverberate(remove_dc(speech.samples), prepared, keep_tail=keep_tail)
    name = f"the speech {speech.path} with the RIR {rir.path}"
    samples, gain_db = limit_peak(check_samples(wet, name))
    return Reverberated(samples, speech.rate, gain_db, measure_rir(rir.samples, str(rir.path), rir.rate))


def check_output(path: Path, *inputs: Path) -> Path:
    """`path`, if its suffix is one of `FORMATS` and it is none of the inputs. Raises `UsageError`."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path} has no known suffix.", hint=f"Give a file that ends in {' or '.join(FORMATS)}.")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise UsageError(f"{path} is one of the inputs.", hint="Give another file.")
    return path


def write_recording(path: Path, samples: Samples, rate: int) -> None:
    """Write (T,) float32 as 16-bit WAV or FLAC by suffix. Raises `AudioError` where it would clip, `StorageError`."""
    name = str(check_output(path))
    if path.suffix.lower() == ".flac":
        content = encode_flac(samples, name, rate)
    else:
        buffer = io.BytesIO()
        soundfile.write(buffer, to_pcm16(samples, name), rate, format="WAV", subtype="PCM_16")
        content = buffer.getvalue()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"{path} cannot be written: {error}.", hint="Check space and permissions.") from error
