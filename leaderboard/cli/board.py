"""Make a page of a leaderboard's results, publish it, and keep it up to date.

build writes a folder of static files: open index.html, or put the folder on any web host. push publishes such a folder
as a static Space on the Hub. watch builds and publishes again whenever the results change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError
from .common import note, say, say_json

if TYPE_CHECKING:
    from ..site.publish import Options

EXAMPLE = """example:
  squtr leaderboard build --results my-org/squtr-results --out site
  squtr leaderboard push my-org/squtr-leaderboard --site site --yes
  squtr leaderboard watch --results my-org/squtr-results --to my-org/squtr-leaderboard --once
"""
_MOST_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="build|push|watch")
    build = actions.add_parser("build", help="write the page into a folder", allow_abbrev=False)
    _add_results(build, required=True)
    build.add_argument("--out", type=Path, default=Path("site"), metavar="DIR", help="the folder to write (site)")
    _add_options(build)
    push = actions.add_parser("push", help="publish a built page as a static Space", allow_abbrev=False)
    push.add_argument("space", metavar="ORG/NAME", help="the Space; created if it does not exist")
    push.add_argument("--site", type=Path, default=Path("site"), metavar="DIR", help="the folder that was built (site)")
    push.add_argument("--private", action="store_true", help="create it private")
    push.add_argument("--yes", action="store_true", help="send; without it, only say what would be sent")
    push.add_argument("--json", action="store_true", help="print one JSON object")
    watch = actions.add_parser("watch", help="rebuild whenever the results change", allow_abbrev=False)
    _add_results(watch, required=True)
    watch.add_argument("--to", required=True, metavar="PLACE", help="a Space as ORG/NAME, or a folder")
    watch.add_argument("--once", action="store_true", help="look once, for a scheduler")
    watch.add_argument("--every", type=float, default=10.0, metavar="MIN", help="minutes between two looks (10)")
    _add_options(watch)


def _add_results(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--results", required=required, metavar="PLACE", help="a folder of results, or a data set as ORG/NAME"
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    from ..site.page import DEFAULT_TITLE
    from ..site.pairs import FIRST

    parser.add_argument("--title", default=DEFAULT_TITLE, metavar="TEXT", help=f"the page's title ({DEFAULT_TITLE})")
    parser.add_argument("--no-published", action="store_true", help="leave out the numbers from papers")
    parser.add_argument(
        "--compare", type=int, default=FIRST, metavar="N",
        help=f"compare the first N systems of each table with each other by a paired test ({FIRST})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Do the action."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {"build": _build, "push": _push, "watch": _watch}
    return actions[arguments.action](arguments)


def _build(arguments: argparse.Namespace) -> int:
    from ..site.build import PAGE
    from ..site.publish import build_from

    built = build_from(arguments.results, arguments.out, _options(arguments))
    if arguments.json:
        about = asdict(built.site) | {"folder": str(built.site.folder)}
        say_json({"site": about, "state": built.state, "left_out": list(built.problems)})
        return 0
    for problem in built.problems[:_MOST_SHOWN]:
        note(f"left out: {problem}")
    if len(built.problems) > _MOST_SHOWN:
        note(f"and {len(built.problems) - _MOST_SHOWN} more")
    site = built.site
    say(
        f"{arguments.out / PAGE}: {site.entries} systems, {site.tables} tables, {site.tests} paired tests,"
        f" {site.page_bytes / 1e6:.1f} MB."
    )
    return 0


def _push(arguments: argparse.Namespace) -> int:
    from ...loaders.hub.repository import is_repository
    from ..site.publish import publish, site_files

    if not is_repository(arguments.space):
        raise UsageError(f"{arguments.space!r} is not the name of a Space.", hint="Write ORG/NAME.")
    files = site_files(arguments.site)
    sizes = {name: len(content) for name, content in files.items()}
    done = publish(arguments.site, arguments.space, private=arguments.private) if arguments.yes else None
    if arguments.json:
        say_json({"space": arguments.space, "files": sizes, "sent": asdict(done) if done else None})
    elif done is None:
        for name, size in sizes.items():
            say(f"{name}: {size / 1e6:.2f} MB")
        say(f"To the Space {arguments.space}. Nothing was sent. Add --yes to send it.")
    else:
        changed = len(done.changed)
        say(f"{done.address}: {f'{changed} files sent in one commit' if changed else 'everything was there already'}.")
    return 0


def _watch(arguments: argparse.Namespace) -> int:
    from ..site.publish import watch

    done = watch(
        arguments.results, arguments.to, _options(arguments), once=arguments.once, every_s=60 * arguments.every
    )
    if arguments.json:
        say_json({"to": arguments.to, "rebuilt": done})
    return 0


def _options(arguments: argparse.Namespace) -> Options:
    from ..site.publish import Options

    return Options(
        title=arguments.title,
        published=not arguments.no_published,
        first=arguments.compare,
        say=note,
        progress=_progress if sys.stderr.isatty() else None,
    )


def _progress(done: int, total: int) -> None:
    end = "\n" if done + 1 == total else ""
    print(f"\rpaired tests: {done + 1} of {total} places", end=end, file=sys.stderr, flush=True)  # noqa: T201
