"""Read another tool's results. They are aggregates: without intervals and records, and marked as imported."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import say, say_json

EXAMPLE = """example:
  squtr import mteb ~/.cache/mteb --out run
  squtr import mteb results/org__model/1 --out run --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=["mteb"], help="whose results they are")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder with <Task>.json files somewhere below it")
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="the folder for results")
    parser.add_argument("--json", action="store_true", help="print one JSON object with what was read and skipped")


def run(arguments: argparse.Namespace) -> int:
    from ..evaluation.run import counted
    from ..mteb.exchange import import_mteb

    found = import_mteb(arguments.folder, arguments.out)
    if arguments.json:
        say_json({"files": [str(path) for path in found.paths], "skipped": list(found.skipped)})
        return 0
    results = counted(len(found.paths), "result")
    say(f"Imported {results} into {arguments.out / 'results'}: aggregates only, without intervals.")
    if found.skipped:
        skipped = counted(len(found.skipped), "task")
        say(f"Skipped {skipped}, because this benchmark does not have them: {', '.join(found.skipped)}.")
    return 0
