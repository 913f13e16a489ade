"""Print the section of a model card about results: a table with intervals, how they were made, whom to cite."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import DataError
from ..card import card_section, model_index
from ..entry import from_result, merge
from ..submit import find_results
from ..validate import validate_file
from .common import say

EXAMPLE = """example:
  squtr card run >> README.md
  squtr card run --model-index     # the metadata for the card's head, as YAML
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("files", type=Path, nargs="+", metavar="RESULT", help="results, or the folder of an evaluation")
    parser.add_argument("--model-index", action="store_true", help="print the metadata instead, as YAML")
    parser.add_argument(
        "--data-set", default="", metavar="ORG/NAME", help="the benchmark on the Hub, for --model-index"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the section, or the metadata."""
    entries = []
    for path in find_results(arguments.files):
        found = validate_file(path)
        if not found.ok:
            more = f" (and {len(found.errors) - 1} more)" if len(found.errors) > 1 else ""
            raise DataError(
                f"{path} does not hold: {found.errors[0].message}{more}.",
                hint=f"Look at it with `squtr validate {path}`.",
            )
        if found.result is not None:
            entries.append(from_result(found.result, who=found.who, path=str(path)))
    merged = merge(entries)
    text = model_index(merged, data_set=arguments.data_set) if arguments.model_index else card_section(merged)
    say(text.rstrip("\n"))
    return 0
