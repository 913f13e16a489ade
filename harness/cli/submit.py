"""Prepare results for a public table, check them, and offer them. Nothing is sent without --yes.

Without a mode, or with --leaderboard, results go to a leaderboard: a data set on the Hub (--to ORG/NAME), to which a
pull request is opened, or a folder (--to DIR). They are checked first, as `squtr validate` does.

--mteb prepares a folder in the layout of mteb's results (embeddings-benchmark/results on GitHub) and the text of the
pull request. To GitHub, squtr sends nothing: it prints the git and gh commands, which you run. To a data set on the
Hugging Face Hub (--to ORG/NAME, with --yes) it opens the pull request itself.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .common import Extend, note, say, say_json

if TYPE_CHECKING:
    from ...loaders.hub.repository import Sent
    from ..mteb.submission import Submission

EXAMPLE = """example:
  squtr evaluate 'whisper-base + bm25' --data mini --out run
  squtr submit run --to my-org/squtr-results                          # checks, and shows what would be sent
  squtr submit run --to my-org/squtr-results --yes                    # opens a pull request on the Hub
  squtr submit --mteb run --out for-mteb                              # prepares and checks, prints the commands
  squtr submit --mteb run --out for-mteb --to my-org/results --yes    # opens a pull request on the Hub
"""


@dataclass(frozen=True, slots=True)
class Mode:
    """A row of the table: the flag `--<name>` calls `run`, or `run(arguments, files)` of a `module`."""

    name: str
    summary: str
    run: Callable[[argparse.Namespace], int] | None = None
    module: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        type=Path,
        nargs="*",
        metavar="RUN",
        help="what `squtr evaluate --out` wrote; single results, for a leaderboard; a folder of mteb's ResultCache",
    )
    modes = parser.add_mutually_exclusive_group()
    for mode in MODES.values():
        modes.add_argument(f"--{mode.name}", dest="mode", action="store_const", const=mode.name, help=mode.summary)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder to prepare")
    parser.add_argument(
        "--system",
        action=Extend,
        nargs="+",
        default=[],
        metavar="NAME",
        help="only this system (several times: only these)",
    )
    parser.add_argument(
        "--allow-partial", action="store_true", help="take results that are not whole; the text then says so"
    )
    parser.add_argument(
        "--to",
        metavar="ORG/NAME|DIR",
        help="the data set on the Hub to offer the files to; of a leaderboard also a folder",
    )
    parser.add_argument(
        "--github", metavar="OWNER/NAME", help="the repository in the printed commands (embeddings-benchmark/results)"
    )
    parser.add_argument("--yes", action="store_true", help="send it (needs --to)")
    parser.add_argument("--json", action="store_true", help="print one JSON object about the submission")
    for mode in MODES.values():
        if mode.module:
            importlib.import_module(mode.module, __package__).configure(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...errors import UsageError

    name = arguments.mode
    if name is None and not arguments.to:
        shown = "; ".join(f"--{mode.name}: {mode.summary}" for mode in MODES.values())
        raise UsageError(
            "it is not clear what to submit to.", hint=f"Name a leaderboard with --to, or choose a mode. {shown}."
        )
    if name is None and arguments.out is not None:
        raise UsageError("--out is not for a leaderboard.", hint="Leave it out, or choose --mteb.")
    mode = MODES[name or DEFAULT_MODE]
    if mode.run is None:
        status: int = importlib.import_module(mode.module, __package__).run(arguments, arguments.results)
        return status
    if len(arguments.results) != 1 or arguments.out is None:
        raise UsageError(
            "the folder with the results, or the one to prepare, is not given.",
            hint=f"Write squtr submit --{mode.name} RUN --out DIR.",
        )
    return mode.run(arguments)


def _mteb(arguments: argparse.Namespace) -> int:
    from ...errors import UsageError
    from ..mteb.submission import prepare_mteb_submission

    if arguments.yes and not arguments.to:
        raise UsageError(
            "--yes sends to a data set on the Hub, and none is named.",
            hint="Add --to ORG/NAME. For GitHub, leave --yes out and run the commands that are printed.",
        )
    if arguments.github and arguments.github.count("/") != 1:
        raise UsageError(f"{arguments.github!r} is no repository on GitHub.", hint="Write OWNER/NAME.")
    submission = prepare_mteb_submission(
        arguments.results[0], arguments.out, systems=arguments.system, allow_partial=arguments.allow_partial
    )
    sent = _send(submission, arguments.to) if arguments.yes else None
    repository = {"repository": arguments.github} if arguments.github else {}
    commands = submission.github_commands(**repository)
    if arguments.json:
        say_json(
            {
                "folder": str(submission.folder),
                "title": submission.title,
                "body": str(submission.body_path),
                "files": list(submission.files),
                "skipped": list(submission.skipped),
                "open": list(submission.open_points),
                "commands": commands,
                "sent": asdict(sent) if sent else None,
            }
        )
        return 0
    _tell(submission)
    if sent is not None:
        _tell_sent(sent)
        return 0
    say("Nothing was sent.")
    if arguments.to:
        size = f"{len(submission.files)} files ({sum(map(len, submission.files.values())) / 1e3:.0f} kB)"
        say(f"With --yes, a pull request with these {size} is opened on the data set {arguments.to} of the Hub.")
        return 0
    say("To open the pull request on GitHub, read the text, then run (git, and gh that is logged in):")
    for command in commands:
        say(f"  {command}")
    again = shlex.join(["squtr", "submit", "--mteb", str(arguments.results[0]), "--out", str(arguments.out)])
    say(f"To open one on a data set of the Hub instead: {again} --to ORG/NAME --yes")
    return 0


def _send(submission: Submission, repository: str) -> Sent:
    from ...loaders.hub.repository import Repository

    return Repository(repository, waiting=note).propose(
        submission.files, title=submission.title, description=submission.body, replacing=True
    )


def _tell(submission: Submission) -> None:
    from ..evaluation.run import counted

    results = counted(submission.tasks, "task result")
    say(f"Prepared {results} of {', '.join(submission.models)} in {submission.folder}; every file was checked.")
    if submission.skipped:
        say(f"Left out, because they are not of this benchmark's tasks: {', '.join(submission.skipped)}.")
    say(f"Title: {submission.title}")
    say(f"Text: {submission.body_path}")
    for point in submission.open_points:
        say(f"Open: {point}")


def _tell_sent(sent: Sent) -> None:
    from ..evaluation.run import counted

    if not sent.url:
        say(f"{sent.repository} has all these files already: no pull request was opened.")
    elif sent.opened:
        say(f"Opened a pull request with {counted(len(sent.added), 'file')}: {sent.url}")
    else:
        say(f"A pull request with these files is open already: {sent.url}")


MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("leaderboard", "a leaderboard, the default", module="...leaderboard.cli.submit"),
        Mode("mteb", "results on the tasks of mteb, for a repository in mteb's layout", _mteb),
    )
}

DEFAULT_MODE = "leaderboard"
