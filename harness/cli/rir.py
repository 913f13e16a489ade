"""Measure a room impulse response: RT60, EDT, DRR, C50, C80 and where the direct path arrives.

What cannot be measured has a reason instead of a number. Measured at 24 kHz as in a data set, unless --rate keep is
given.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .audio_common import about_file, about_rir, add_audio_options, parse_rate, shown
from .common import say, say_json

EXAMPLE = """example:
  squtr rir hall.wav
  squtr rir hall.wav --rate keep --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rir", type=Path, metavar="RIR", help="the impulse response of a room")
    add_audio_options(parser, "response")


def run(arguments: argparse.Namespace) -> int:
    from ...loaders.one_file import read_recording
    from ...loaders.rir_checks import check_is_rir
    from ...loaders.rir_measures import measure_rir

    rir = read_recording(arguments.rir, "impulse response", rate=parse_rate(arguments.rate), channel=arguments.channel)
    samples = check_is_rir(rir.samples, f"the impulse response {rir.path}", rir.rate)
    measures = measure_rir(samples, str(rir.path), rir.rate)
    if arguments.json:
        say_json({"rir": about_file(rir), "measured_at_rate": rir.rate, **about_rir(measures)})
        return 0
    rows = (
        ("rt60_s", f"RT60 {f'({measures.rt60_method})' if measures.rt60_method else ''}", "s"),
        ("edt_s", "EDT", "s"),
        ("drr_db", "DRR", "dB"),
        ("c50_db", "C50", "dB"),
        ("c80_db", "C80", "dB"),
    )
    for name, label, unit in rows:
        reason = measures.reasons.get(name, "")
        say(f"{label.strip():<12}{shown(getattr(measures, name), unit)}{f': {reason}' if reason else ''}")
    onset_ms = 1000.0 * measures.onset_samples / rir.rate
    say(f"{'direct path':<12}sample {measures.onset_samples} at {rir.rate} Hz ({onset_ms:.2f} ms)")
    return 0
