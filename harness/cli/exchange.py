"""What `squtr export` and `squtr import` share: a subcommand for every format of the table, with its options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from ...errors import UsageError
from ..exchange import FORMATS
from .common import Extend, note, say, say_json

_OWN = ("format_name", "json", "debug")
"""Arguments that are the command line's, not the function's."""


def add_formats(parser: argparse.ArgumentParser, way: Literal["export", "import"]) -> None:
    title = "what to write" if way == "export" else "what to read"
    kinds = parser.add_subparsers(dest="format_name", required=True, metavar="|".join(FORMATS), title=title)
    for row in FORMATS.values():
        direction = row.exports if way == "export" else row.imports
        own = kinds.add_parser(
            row.name,
            help=direction.summary if direction else f"no import is needed. {row.instead}",
            description=direction.about if direction else row.instead,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _OPTIONS.get((way, row.name), _no_options)(own)
        own.add_argument("--json", action="store_true", help="print one JSON object with the files written")


def run_format(arguments: argparse.Namespace, way: Literal["export", "import"]) -> int:
    row = FORMATS[arguments.format_name]
    direction = row.exports if way == "export" else row.imports
    if direction is None:
        raise UsageError(f"{row.name} needs no import.", hint=row.instead)
    done = direction.function()(**{name: value for name, value in vars(arguments).items() if name not in _OWN})
    if arguments.json:
        say_json({"files": [str(path) for path in done.files], "remarks": list(done.remarks), **done.facts})
        return 0
    for remark in done.remarks:
        note(remark)
    say(done.sentence)
    return 0


def _out(parser: argparse.ArgumentParser, metavar: str = "DIR", what: str = "the folder to write into") -> None:
    parser.add_argument("--out", type=Path, required=True, metavar=metavar, help=what)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help="the folder that `squtr evaluate --out` wrote")
    _out(parser)


def _chosen_runs(parser: argparse.ArgumentParser) -> None:
    _run(parser)
    parser.add_argument(
        "--systems", action=Extend, nargs="+", default=(), metavar="NAME", help="only these systems (all)"
    )
    parser.add_argument(
        "--configs", action=Extend, nargs="+", default=(), metavar="CONFIG", help="only these, or patterns (all)"
    )


def _transcripts(parser: argparse.ArgumentParser) -> None:
    _chosen_runs(parser)
    parser.add_argument(
        "--format", dest="format_", default="jsonl", metavar="NAME", help="jsonl, or trn for sclite (jsonl)"
    )
    parser.add_argument(
        "--rewritten", action="store_true", help="what a rewriter made of the transcripts, in place of them"
    )


def _data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="DATA", help="data as `squtr evaluate --data` takes it: a folder, mini, …")
    _out(parser)
    parser.add_argument(
        "--subsets", action=Extend, nargs="+", default=(), metavar="NAME", help="only these subsets (all)"
    )
    parser.add_argument("--split", default="test", metavar="NAME", help="whose queries and judgments (test)")


def _texts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the transcripts")
    _out(parser, "FILE", "the file of JSON lines to write")
    parser.add_argument(
        "--format", dest="format_", default="auto", metavar="NAME",
        help="auto (by suffix or first line), jsonl, tsv, kaldi, trn, ctm or parquet (auto)",
    )  # fmt: skip
    parser.add_argument("--subset", default="", metavar="NAME", help="the subset that all ids belong to")
    parser.add_argument("--condition", default="", metavar="NAME", help="the condition that they are of")


def _results_of_mteb(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder with <Task>.json files somewhere below it")
    _out(parser, "RUN", "the folder for results")


def _no_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="?", help=argparse.SUPPRESS)


_OPTIONS: Mapping[tuple[str, str], Callable[[argparse.ArgumentParser], None]] = {
    ("export", "trec"): _chosen_runs,
    ("export", "transcripts"): _transcripts,
    ("export", "beir"): _data,
    ("export", "mteb"): _run,
    ("import", "transcripts"): _texts,
    ("import", "mteb"): _results_of_mteb,
}
