"""Publish a built data set on the Hugging Face Hub.

What is there is not sent again, and stays if it is of the same recipe: a part that is pushed is added to it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from .common import Bars, note, say, say_json

EXAMPLE = """example:
  hf auth login
  squtr push data my-org/spoken-fiqa --private --tag v1.0
  python -c "from datasets import load_dataset; print(load_dataset('my-org/spoken-fiqa', 'fiqa_clean', split='test'))"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that `squtr build` wrote")
    parser.add_argument("repository", metavar="ORG/NAME", help="the data set on the Hub; created if it does not exist")
    parser.add_argument("--private", action="store_true", help="create it private")
    parser.add_argument("--create-pr", action="store_true", help="open a pull request instead of committing")
    parser.add_argument("--tag", metavar="TAG", help="name the commit, for example v1.0")
    parser.add_argument("--revision", metavar="BRANCH", help="the branch to push to; created if missing (main)")
    parser.add_argument(
        "--replace", action="store_true", help="remove subsets and conditions that the folder does not hold"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object about what was pushed")


def run(arguments: argparse.Namespace) -> int:
    from ...loaders.hub.push import push

    with Bars() as show, _quiet_client():
        report = push(
            arguments.folder,
            arguments.repository,
            private=arguments.private,
            create_pr=arguments.create_pr,
            tag=arguments.tag,
            revision=arguments.revision,
            replace=arguments.replace,
            progress=show,
            waiting=note,
        )
    if arguments.json:
        say_json(asdict(report))
        return 0
    if report.commits:
        removed = f", {len(report.deleted)} removed" if report.deleted else ""
        say(
            f"Pushed {len(report.uploaded)} files ({report.bytes / 1e6:.1f} MB){removed}; {report.unchanged} were"
            " there already."
        )
    else:
        say(f"Nothing to push: all {report.unchanged} files are there already.")
    if report.pull_request:
        say(f"Pull request: {report.pull_request}")
    say(f"{report.url} at {report.revision}, commit {report.commit[:8]}" + (f", tag {report.tag}" * bool(report.tag)))
    return 0


@contextmanager
def _quiet_client() -> Iterator[None]:
    """The client's own upload bars only on a terminal."""
    # The package exports these lazily, which mypy does not see.
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars  # type: ignore[attr-defined]

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
