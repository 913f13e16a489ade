"""Write one self-contained HTML page from a folder of results, whatever tasks they are of."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import say, say_json

EXAMPLE = """example:
  squtr report run --out run/report.html
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder that `squtr evaluate --out` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page to write (DIR/report.html)")
    parser.add_argument("--title", default="", metavar="TEXT", help="the page's title (named after the task)")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object: the page, robustness, loss by group, and the loss that ASR or retriever causes",
    )


def run(arguments: argparse.Namespace) -> int:
    from ..report import make_report

    report = make_report(arguments.folder, arguments.out or arguments.folder / "report.html", title=arguments.title)
    size = report.path.stat().st_size
    if arguments.json:
        say_json({"report": str(report.path), "bytes": size, **report.facts})
    else:
        say(f"Report: {report.path} ({size / 1e6:.1f} MB)")
    return 0
