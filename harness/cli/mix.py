"""Add noise to one recording of speech at an exact level, as a build does it.

The noise is cropped from where the seed puts it, or looped if it is too short, and its level is set over the very
samples used. One gain for both keeps the peak at or below 0.9.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .audio_common import about_file, about_output, add_audio_options, parse_rate
from .common import say, say_json

EXAMPLE = """example:
  squtr mix speech.wav cafe.wav --snr 0 --out noisy.wav
  squtr mix speech.wav cafe.wav --snr -5 --level active --seed 7 --out noisy.flac --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("speech", type=Path, metavar="SPEECH", help="a recording of speech")
    parser.add_argument("noise", type=Path, metavar="NOISE", help="a recording of noise")
    parser.add_argument("--snr", type=float, required=True, metavar="DB", help="signal-to-noise ratio in dB")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write, .wav or .flac")
    parser.add_argument(
        "--level", default="whole", metavar="LEVEL", help="SNR over the whole clip or active speech (whole)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--seed", type=int, default=0, metavar="N", help="decides where the noise begins (0)")
    where.add_argument("--offset", type=float, metavar="S", help="where the noise begins, in s")
    add_audio_options(parser, "speech")


def run(arguments: argparse.Namespace) -> int:
    from ...errors import UsageError
    from ...loaders.conditions.noise import HIGHEST_SNR_DB, LOWEST_SNR_DB
    from ...loaders.mixing import check_level
    from ...loaders.one_file import check_output, mix_recordings, read_recording, write_recording

    level = check_level(arguments.level)
    if not LOWEST_SNR_DB <= arguments.snr <= HIGHEST_SNR_DB:
        raise UsageError(
            f"the level {arguments.snr:g} dB is out of range.", hint=f"Give {LOWEST_SNR_DB:g} to {HIGHEST_SNR_DB:g} dB."
        )
    out = check_output(arguments.out, arguments.speech, arguments.noise)
    speech = read_recording(arguments.speech, "speech", rate=parse_rate(arguments.rate), channel=arguments.channel)
    noise = read_recording(arguments.noise, "noise", rate=speech.rate, channel=arguments.channel)
    made = mix_recordings(speech, noise, arguments.snr, level=level, seed=arguments.seed, offset_s=arguments.offset)
    write_recording(out, made.samples, made.rate)
    if arguments.json:
        say_json(
            {
                "out": about_output(out, made.samples.size, made.rate),
                "speech": about_file(speech),
                "noise": about_file(noise),
                "level": level,
                "asked_snr_db": arguments.snr,
                "snr_db": round(made.snr_db, 6),
                "snr_active_db": round(made.snr_active_db, 6),
                "noise_gain": made.noise_gain,
                "gain_db": round(made.gain_db, 6),
                "noise_offset_s": round(made.noise_offset_s, 6),
                "noise_wraps": made.noise_wraps,
                "active_start_s": round(made.active_start_s, 6),
                "active_stop_s": round(made.active_stop_s, 6),
                "seed": None if arguments.offset is not None else arguments.seed,
            }
        )
        return 0
    say(f"{out}: {made.samples.size / made.rate:.2f} s at {made.rate} Hz")
    say(f"SNR {made.snr_db:.2f} dB over the whole clip, {made.snr_active_db:.2f} dB over active speech (measured)")
    say(f"noise from {made.noise_offset_s:.3f} s{', looped' if made.noise_wraps else ''}; gain {made.gain_db:.2f} dB")
    return 0
