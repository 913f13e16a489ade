"""Convolve one recording of speech with a room impulse response, as a build does it.

The response is scaled to unit energy and convolved in full; the result is cut at the direct path, so that it stays
aligned with the dry speech. The tail is kept unless --no-tail is given.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .audio_common import about_file, about_output, about_rir, add_audio_options, parse_rate, shown
from .common import say, say_json

EXAMPLE = """example:
  squtr reverb speech.wav hall.wav --out wet.wav
  squtr reverb speech.wav hall.wav --no-tail --rate keep --out wet.flac --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("speech", type=Path, metavar="SPEECH", help="a recording of speech")
    parser.add_argument("rir", type=Path, metavar="RIR", help="the impulse response of a room")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write, .wav or .flac")
    tail = parser.add_mutually_exclusive_group()
    tail.add_argument(
        "--keep-tail",
        action="store_true",
        dest="keep_tail",
        default=True,
        help="keep the reverberation's tail (the default)",
    )
    tail.add_argument("--no-tail", action="store_false", dest="keep_tail", help="end where the dry speech ends")
    add_audio_options(parser, "speech")


def run(arguments: argparse.Namespace) -> int:
    from ...loaders.one_file import check_output, read_recording, reverberate_recording, write_recording

    out = check_output(arguments.out, arguments.speech, arguments.rir)
    speech = read_recording(arguments.speech, "speech", rate=parse_rate(arguments.rate), channel=arguments.channel)
    rir = read_recording(arguments.rir, "impulse response", rate=speech.rate, channel=arguments.channel)
    made = reverberate_recording(speech, rir, keep_tail=arguments.keep_tail)
    write_recording(out, made.samples, made.rate)
    if arguments.json:
        say_json(
            {
                "out": about_output(out, made.samples.size, made.rate),
                "speech": about_file(speech),
                "rir": about_file(rir),
                "keep_tail": arguments.keep_tail,
                "gain_db": round(made.gain_db, 6),
                **about_rir(made.measures),
            }
        )
        return 0
    measures = made.measures
    say(f"{out}: {made.samples.size / made.rate:.2f} s at {made.rate} Hz, gain {made.gain_db:.2f} dB")
    say(
        f"RT60 {shown(measures.rt60_s, 's')}, DRR {shown(measures.drr_db, 'dB')}, C50 {shown(measures.c50_db, 'dB')}; "
        f"cut at the direct path, sample {measures.onset_samples}"
    )
    return 0
