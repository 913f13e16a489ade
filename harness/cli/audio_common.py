"""What the commands for one file share."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError

if TYPE_CHECKING:
    from ...loaders.one_file import Recording
    from ...loaders.rir_measures import RirMeasures

KEEP = "keep"


def add_audio_options(parser: argparse.ArgumentParser, keeps: str) -> None:
    """Options about how files are read; `keeps` is the file whose rate `--rate keep` means."""
    parser.add_argument(
        "--rate", default="24000", metavar="HZ", help=f"sample rate in Hz, or keep: that of the {keeps} (24000)"
    )
    parser.add_argument("--channel", type=int, metavar="N", help="channel (from 0) of files that have several")
    parser.add_argument("--json", action="store_true", help="print one JSON object about what was done")


def parse_rate(text: str) -> int:
    """The rate in Hz, 0 for `keep`. Raises `UsageError`."""
    if text == KEEP:
        return 0
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"the rate {text!r} is not a number of Hz.", hint=f"Give for example 16000, or {KEEP}.")
    return int(text)


def about_file(recording: Recording) -> dict[str, Any]:
    return {"file": str(recording.path), "rate": recording.own_rate, "samples": int(recording.samples.size)}


def about_output(path: Path, samples: int, rate: int) -> dict[str, Any]:
    return {"file": str(path), "rate": rate, "samples": samples, "duration_s": round(samples / rate, 6)}


def about_rir(measures: RirMeasures) -> dict[str, Any]:
    """Measures for JSON: null where nothing could be measured, with the reason beside."""
    values = {name: getattr(measures, name) for name in ("rt60_s", "edt_s", "drr_db", "c50_db", "c80_db")}
    return {
        **{name: finite(value) for name, value in values.items()},
        "onset_samples": measures.onset_samples,
        "rt60_method": measures.rt60_method,
        "reasons": dict(measures.reasons),
    }


def finite(value: float) -> float | None:
    """`value`, None if it is NaN or infinite."""
    return value if math.isfinite(value) else None


def shown(value: float, unit: str, digits: int = 2) -> str:
    """A number with its unit, "not measurable" for NaN.

    >>> shown(0.5, "s"), shown(float("nan"), "dB")
    ('0.50 s', 'not measurable')
    """
    return f"{value:.{digits}f} {unit}" if math.isfinite(value) else "not measurable"
