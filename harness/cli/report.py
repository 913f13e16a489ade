"""Write one self-contained HTML page from a folder of results: it needs no network and opens anywhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import say, say_json

EXAMPLE = """example:
  squtr report run --out run/report.html
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder that `squtr evaluate --out` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page to write (DIR/report.html)")
    parser.add_argument("--title", default="", metavar="TEXT", help="the page's title (squtr report)")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object: the page, and whose loss each run's is"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    from ..escucha.results import holds_escucha
    from ..report import attribution_json, make_report
    from ..results.old_comparable import runs_folder
    from ..rir_mega.results import holds_rir_mega

    out = arguments.out or arguments.folder / "report.html"
    if holds_rir_mega(runs_folder(arguments.folder)):
        return _rir_mega(arguments, out)
    if holds_escucha(runs_folder(arguments.folder)):
        return _escucha(arguments, out)
    report = make_report(arguments.folder, out, title=arguments.title or "squtr report")
    path, size = report.path, report.path.stat().st_size
    if arguments.json:
        say_json({"report": str(path), "bytes": size, "attribution": attribution_json(report.attributions)})
    else:
        say(f"Report: {path} ({size / 1e6:.1f} MB)")
    return 0


def _rir_mega(arguments: argparse.Namespace, out: Path) -> int:
    """The page of the benchmark `rir_mega`."""
    from ..report.rir_mega import DEFAULT_TITLE, write_report

    path = write_report(arguments.folder, out, title=arguments.title or DEFAULT_TITLE)
    size = path.stat().st_size
    if arguments.json:
        say_json({"report": str(path), "bytes": size, "benchmark": "rir_mega"})
    else:
        say(f"Report: {path} ({size / 1e6:.1f} MB)")
    return 0


def _escucha(arguments: argparse.Namespace, out: Path) -> int:
    """The page of the benchmark `escucha`."""
    from ..report.escucha.page import write_report

    path = write_report(arguments.folder, out, title=arguments.title)
    size = path.stat().st_size
    if arguments.json:
        say_json({"report": str(path), "bytes": size, "benchmark": "escucha"})
    else:
        say(f"Report: {path} ({size / 1e6:.1f} MB)")
    return 0
