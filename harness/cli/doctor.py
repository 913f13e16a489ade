"""Check a built data set: files, tables, pairing across conditions, and SNR measured again on a sample."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path

from .common import bars, say, say_json

EXAMPLE = """example:
  squtr doctor data
  squtr doctor data --sample 100 --json
"""

SHOWN = 50
"""Findings printed; `--json` has all of them."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that `squtr build` wrote")
    parser.add_argument(
        "--sample",
        type=int,
        default=8,
        metavar="N",
        help="queries per subset to decode and measure under every condition; 0: none (8)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with all findings")


def run(arguments: argparse.Namespace) -> int:
    """Examine the folder; 0 if nothing is wrong with it, 1 with the list otherwise."""
    from ...loaders.doctor import examine

    with bars() as show:
        diagnosis = examine(arguments.folder, sample=arguments.sample, progress=show)
    largest = diagnosis.largest_error_db
    if arguments.json:
        told = asdict(diagnosis)
        told |= {"folder": str(diagnosis.folder), "healthy": diagnosis.healthy}
        told["largest_error_db"] = None if math.isnan(largest) else round(largest, 4)
        say_json(told)
        return 0 if diagnosis.healthy else 1
    for finding in diagnosis.findings[:SHOWN]:
        say(f"{finding.kind:<10} {finding.message}.")
    if len(diagnosis.findings) > SHOWN:
        say(f"… and {len(diagnosis.findings) - SHOWN} more: --json lists all.")
    if not diagnosis.healthy:
        count = len(diagnosis.findings)
        say(f"{arguments.folder}: {count} finding{'s' if count > 1 else ''}. Run the same `squtr build` again.")
        return 1
    say(
        f"{arguments.folder} is whole: {diagnosis.shards} files ({diagnosis.bytes / 1e6:.1f} MB),"
        f" {diagnosis.clips:,} clips, {diagnosis.decoded:,} of them decoded."
    )
    if diagnosis.measured:
        say(f"SNR measured again on {diagnosis.measured:,} clips: off by at most {largest:.4f} dB.")
    if diagnosis.unmeasured:
        say(
            f"SNR not measured on {diagnosis.unmeasured:,} clips: their partner without noise (clean or reverb) was not"
            " built, or the noise is weaker than 16 bits resolve."
        )
    return 0
