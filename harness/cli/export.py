"""Write results for another tool. `--format mteb` is the layout of mteb's own results, for `mteb.ResultCache`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import say, say_json

EXAMPLE = """example:
  squtr evaluate 'whisper-base + bm25' --data data --out run
  squtr export --format mteb run --out for-mteb
  python -c "import mteb; print(mteb.ResultCache('for-mteb').load_results())"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help="the folder that `squtr evaluate --out` wrote")
    parser.add_argument("--format", required=True, choices=["mteb"], help="the layout to write")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write into")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the files written")


def run(arguments: argparse.Namespace) -> int:
    from ..evaluation.run import counted
    from ..mteb.exchange import META_NAME, export_mteb

    written = export_mteb(arguments.folder, arguments.out)
    if arguments.json:
        say_json({"files": [str(path) for path in written]})
        return 0
    models = sum(path.name == META_NAME for path in written)
    results = counted(len(written) - models, "task result")
    say(f"Wrote {results} of {counted(models, 'system')} into {arguments.out / 'results'}.")
    return 0
