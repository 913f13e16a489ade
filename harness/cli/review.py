"""Write one HTML page to listen to synthesized queries and mark them, or apply the marks that it saved."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import note, say, say_json

EXAMPLE = """example:
  squtr review clips --show rejected
  squtr review clips --marks ~/Downloads/marks.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder that `squtr synthesize` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page to write (DIR/review.html)")
    parser.add_argument(
        "--show", default="all", metavar="STATUS", help="all, accepted, rejected or flagged clips (all)"
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the most clips on the page; 0: all (0)")
    parser.add_argument("--marks", type=Path, metavar="FILE", help="apply the marks that the page saved")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Write the page, or apply marks and rewrite index and report."""
    import json

    from ...errors import UsageError
    from ...loaders.quality.decisions import QualityLimits, decide, write_decisions
    from ...loaders.quality.report import REPORT, quality_report
    from ...loaders.quality.review import write_review
    from ...loaders.quality.review_marks import add_marks, read_marks_file
    from ...loaders.synthesis.speech_folder import SpeechFolder, write_text

    if arguments.limit < 0:
        raise UsageError(f"the limit is {arguments.limit}.", hint="Give the number of clips, or 0 for all.")
    folder = SpeechFolder(arguments.folder)
    limits = QualityLimits(error_rate=_max_error_rate(arguments.folder / REPORT))
    if arguments.marks is None:
        page = write_review(
            folder,
            decide(folder, limits=limits),
            arguments.out or arguments.folder / "review.html",
            show=arguments.show,
            limit=arguments.limit,
        )
        if arguments.json:
            say_json({"page": str(page.path), "clips": page.clips, "left_out": page.left_out})
        else:
            say(f"Page: {page.path} ({page.clips:,} clips{f', {page.left_out:,} left out' if page.left_out else ''})")
            say(f"Then: squtr review {arguments.folder} --marks marks.json")
        return 0
    kept, stale = add_marks(arguments.folder, read_marks_file(arguments.marks), folder.rows())
    decisions = decide(folder, limits=limits)
    write_decisions(folder, decisions)
    report = quality_report(decisions, limits)
    write_text(arguments.folder / REPORT, json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    counts = {name: sum(mark.mark == name for mark in kept) for name in ("accept", "reject")}
    if arguments.json:
        say_json({"applied": len(kept), "stale": len(stale), **counts, "total": report["total"]})
    else:
        total = report["total"]
        say(f"Applied {len(kept)} marks: {counts['accept']} accepted, {counts['reject']} rejected by hand.")
        say(f"{arguments.folder}: {total['accepted']:,} of {total['queries']:,} queries are in the index.")
    for mark in stale:
        note(f"squtr: the mark on {mark.subset}/{mark.id} is for a clip that is no longer there.")
    return 0


def _max_error_rate(report: Path) -> float:
    """The limit that the folder was checked with, so that a review does not change it."""
    import json

    from ...errors import DataError
    from ...loaders.quality.decisions import MAX_ERROR_RATE

    if not report.is_file():
        return MAX_ERROR_RATE
    try:
        return float(json.loads(report.read_text(encoding="utf-8"))["limits"]["error_rate"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{report} is no quality report.", hint="Run squtr synthesize again.") from error
