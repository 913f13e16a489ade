"""Check a built data set: files, tables, pairing across conditions, and SNR measured again on a sample.

Of data of rir_mega, splits, strata, rooms and the pairing of the arms are checked; of a set of questions (escucha), its
items and sound. A published release (release:PATH) has its known defects counted instead; they are handled when it is
read.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .common import bars, say, say_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...loaders.shard_checks import Finding
    from ...loaders.sources.release import ReleaseSource

EXAMPLE = """example:
  squtr doctor data
  squtr doctor data --sample 100 --json
  squtr doctor release:SQuTR.zip
"""

SHOWN = 50
"""Findings printed; `--json` has all of them."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("folder", metavar="DATA", help="a folder that `squtr build` wrote, or release:PATH")
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
    from ...loaders.questions.manifest import ESCUCHA
    from ...loaders.manifest import benchmark_of
    from ...loaders.rir_mega.manifest import RIR_MEGA
    from ...loaders.sources import load_source
    from ...loaders.sources.release import ReleaseSource
    from ..data import is_release

    if is_release(arguments.folder):
        source = load_source(arguments.folder)
        if isinstance(source, ReleaseSource):
            return _report_release(source, as_json=arguments.json)
    benchmark = benchmark_of(Path(arguments.folder))
    if benchmark == RIR_MEGA:
        return _report_pairs(Path(arguments.folder), sample=arguments.sample, as_json=arguments.json)
    if benchmark == ESCUCHA:
        return _report_set(Path(arguments.folder), sample=arguments.sample, as_json=arguments.json)
    with bars() as show:
        diagnosis = examine(Path(arguments.folder), sample=arguments.sample, progress=show)
    largest = diagnosis.largest_error_db
    if arguments.json:
        told = asdict(diagnosis)
        told |= {"folder": str(diagnosis.folder), "healthy": diagnosis.healthy}
        told["largest_error_db"] = None if math.isnan(largest) else round(largest, 4)
        say_json(told)
        return 0 if diagnosis.healthy else 1
    if not diagnosis.healthy:
        _say_findings(arguments.folder, diagnosis.findings)
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


def _say_findings(folder: str, findings: Sequence[Finding]) -> None:
    for finding in findings[:SHOWN]:
        say(f"{finding.kind:<10} {finding.message}.")
    if len(findings) > SHOWN:
        say(f"… and {len(findings) - SHOWN} more: --json lists all.")
    count = len(findings)
    say(f"{folder}: {count} finding{'s' if count > 1 else ''}. Run the same `squtr build` again.")


def _report_pairs(folder: Path, *, sample: int, as_json: bool) -> int:
    from ...loaders.rir_mega.checks import examine_pairs

    with bars() as show:
        diagnosis = examine_pairs(folder, sample=sample, progress=show)
    if as_json:
        say_json(asdict(diagnosis) | {"folder": str(folder), "healthy": diagnosis.healthy})
    elif diagnosis.healthy:
        say(
            f"{folder} is whole: {diagnosis.shards} files ({diagnosis.bytes / 1e6:.1f} MB), {diagnosis.pairs:,} pairs,"
            f" {diagnosis.decoded:,} of them decoded."
        )
    else:
        _say_findings(str(folder), diagnosis.findings)
    return 0 if diagnosis.healthy else 1


def _report_set(folder: Path, *, sample: int, as_json: bool) -> int:
    from ...loaders.questions.checks import examine_set

    with bars() as show:
        diagnosis = examine_set(folder, sample=sample, progress=show)
    if as_json:
        say_json(asdict(diagnosis) | {"folder": str(folder), "healthy": diagnosis.healthy})
    elif diagnosis.healthy:
        say(
            f"{folder} is whole: {diagnosis.shards} files ({diagnosis.bytes / 1e6:.1f} MB), {diagnosis.items:,}"
            f" questions, {diagnosis.decoded:,} sounds decoded."
        )
    else:
        _say_findings(str(folder), diagnosis.findings)
    return 0 if diagnosis.healthy else 1


def _report_release(source: ReleaseSource, *, as_json: bool) -> int:
    reports = [source.report(subset) for subset in source.subsets]
    if as_json:
        say_json([report.as_dict() for report in reports])
    else:
        for report in reports:
            say(str(report))
    return 0
