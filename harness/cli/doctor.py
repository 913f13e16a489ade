"""Check a built data set: files, tables, the pairing of conditions, SNR measured again on a sample; of a set of
questions its items and audio.

A published release (release:PATH) has its known defects counted instead; they are handled when it is read. Any other
source is checked before anything is built: what is wrong fails, what is odd is remarked on.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError
from .common import Bars, say, say_json

if TYPE_CHECKING:
    from ...loaders.doctor import Diagnosis
    from ...loaders.questions.checks import SetDiagnosis
    from ...loaders.records import Source
    from ...loaders.sources.release import ReleaseSource

EXAMPLE = """example:
  squtr doctor data
  squtr doctor data --sample 100 --all --json
  squtr doctor release:SQuTR.zip
  squtr doctor 'beir:my-texts?language=en&speech=my-voice'
"""

SHOWN = 50
SAMPLE = 8


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DATA", help="a folder that `squtr build` wrote, or a source")
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="queries per subset to decode and measure under every condition, or clips of questions; 0: none (8)",
    )
    parser.add_argument("--all", action="store_true", help="decode every clip, and read every page of every table")
    parser.add_argument("--on-bad", metavar="WHAT", help="a source's bad rows: refuse, or skip (counted) (refuse)")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all findings")


def run(arguments: argparse.Namespace) -> int:
    from ...loaders.doctor import examine
    from ...loaders.questions.checks import examine_set
    from ...loaders.questions.manifest import is_built_set
    from ...loaders.sources import load_source
    from ...loaders.sources.release import ReleaseSource

    folder, sample = Path(arguments.folder), SAMPLE if arguments.sample is None else arguments.sample
    if _names_source(arguments.folder):
        if arguments.sample is not None:
            raise UsageError("--sample is of what was built; a source is decoded whole.", hint="Leave it out.")
        source = load_source(arguments.folder, on_bad=arguments.on_bad or "refuse")
        if isinstance(source, ReleaseSource):
            return _report_release(source, as_json=arguments.json)
        return _report_source(source, as_json=arguments.json)
    if arguments.on_bad is not None:
        raise UsageError(
            f"--on-bad is of sources, and {folder} is none.", hint="Leave it out, or name the source as in build."
        )
    diagnosis: Diagnosis | SetDiagnosis
    with Bars() as show:
        if is_built_set(folder):
            diagnosis = examine_set(folder, sample=sample, everything=arguments.all, progress=show)
            summary = [f"{diagnosis.items:,} questions, {diagnosis.decoded:,} clips decoded."]
        else:
            diagnosis = examine(folder, sample=sample, everything=arguments.all, progress=show)
            summary = _summary(diagnosis)
    if arguments.json:
        told = asdict(diagnosis) | {"folder": str(diagnosis.folder), "healthy": diagnosis.healthy}
        if math.isnan(told.get("largest_error_db", 0.0)):
            told["largest_error_db"] = None
        say_json(told)
    elif diagnosis.healthy:
        size = f"{diagnosis.shards} files ({diagnosis.bytes / 1e6:.1f} MB)"
        say("\n".join([f"{folder} is whole: {size}, {summary[0]}", *summary[1:]]))
    else:
        for finding in diagnosis.findings[:SHOWN]:
            say(f"{finding.kind:<10} {finding.message}.")
        count = len(diagnosis.findings)
        if count > SHOWN:
            say(f"… and {count - SHOWN} more: --json lists all.")
        say(f"{folder}: {count} finding{'s' if count > 1 else ''}. Run the same `squtr build` again.")
    return 0 if diagnosis.healthy else 1


def _names_source(name: str) -> bool:
    """Whether `name` is a source; a folder that was built is none, whatever it is called."""
    from ...loaders.manifest import MANIFEST_NAME
    from ..data import names_source

    folder = Path(name)
    if (folder / MANIFEST_NAME).is_file():
        return False
    return names_source(name) or (Path(name.partition("?")[0]) / "about.json").is_file()


def _summary(diagnosis: Diagnosis) -> list[str]:
    lines = [f"{diagnosis.clips:,} clips, {diagnosis.decoded:,} of them decoded."]
    if diagnosis.measured:
        lines.append(
            f"SNR measured again on {diagnosis.measured:,} clips: off by at most {diagnosis.largest_error_db:.4f} dB."
        )
    if diagnosis.unmeasured:
        lines.append(
            f"SNR not measured on {diagnosis.unmeasured:,} clips: their partner without noise (clean or reverb) was not"
            " built, or the noise is weaker than 16 bits resolve."
        )
    return lines


def _report_release(source: ReleaseSource, *, as_json: bool) -> int:
    reports = [source.report(subset) for subset in source.subsets]
    if as_json:
        say_json([report.as_dict() for report in reports])
    else:
        for report in reports:
            say(str(report))
    return 0


def _report_source(source: Source, *, as_json: bool) -> int:
    from ...loaders.source_checks import examine_source

    with Bars() as show:
        found = examine_source(source, show)
    if as_json:
        say_json(asdict(found) | {"healthy": found.healthy})
        return 0 if found.healthy else 1
    for error in found.errors:
        say(f"error   {error}")
    if found.error_count > len(found.errors):
        say(f"… and {found.error_count - len(found.errors):,} more.")
    for remark in found.remarks:
        say(f"remark  {remark}.")
    for entry in found.left_out:
        say(f"not taken: {entry}.")
    if found.healthy:
        split = f", split {found.split}" if found.split else ""
        size = f"{found.queries:,} queries, {found.documents:,} documents, {found.clips:,} clips decoded"
        say(f"{found.name}{split} can be built: {size}.")
        return 0
    say(f"{found.name}: {found.error_count:,} errors. Mend them, or leave them out with --on-bad skip.")
    return 1
