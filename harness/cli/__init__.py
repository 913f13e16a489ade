"""The command line: a table of commands, each in a module that is imported only when it runs."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ... import __version__
from ...errors import EXIT_FAILED, EXIT_USAGE, SqutrError, nearest
from ..processes import end_with_launcher, launched_size
from ..stopping import leave_requests, signal_of, stopped_by_signals
from .common import note, told_warnings, trace_of

DEBUG = "--debug"
EXIT_SIGNAL = 128
"""What a shell expects of a program that a signal ended: this and the signal's number, 130 after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A row of the table. The module has `configure(parser)` and `run(arguments) -> exit status`."""

    name: str
    module: str
    summary: str


GROUPS: Mapping[str, tuple[CommandSpec, ...]] = {
    "a first look": (
        CommandSpec("demo", ".demo", "build, transcribe, retrieve and report once, on synthetic speech in minutes"),
    ),
    "data": (
        CommandSpec("build", ".build", "build a data set: paired clean, noisy and reverberant speech, or questions"),
        CommandSpec("doctor", ".doctor", "check a built data set: files, ids, pairing, SNR measured on a sample"),
        CommandSpec("push", ".push", "publish a built data set on the Hugging Face Hub"),
        CommandSpec("fetch", ".fetch", "fetch recorded noise, room impulse responses, or questions with their audio"),
        CommandSpec("synthesize", ".synthesize", "synthesize speech for all queries of a source and check its quality"),
        CommandSpec(
            "review", ".review", "write a page to review synthesized queries or questions, and apply its marks"
        ),
    ),
    "evaluate": (
        CommandSpec("evaluate", ".evaluate", "evaluate systems on a data set"),
        CommandSpec("check", ".check", "see whether systems work at all, on a few known clips and texts"),
        CommandSpec("score", ".score", "score files of transcripts, rankings or answers"),
    ),
    "report and compare": (
        CommandSpec("report", ".report", "write one self-contained HTML page from results"),
        CommandSpec("compare", ".compare", "compare two systems on the same items: tests, intervals, n"),
        CommandSpec(
            "export", ".export", "write rankings, transcripts, texts or scores for other tools (trec, trn, beir, mteb)"
        ),
        CommandSpec("import", ".import_", "read what another tool wrote (transcripts, results of mteb)"),
        CommandSpec("card", "...leaderboard.cli.card", "print the section of a model card about results"),
    ),
    "leaderboard": (
        CommandSpec("submit", ".submit", "check results, and offer them to a leaderboard or a public table (mteb)"),
        CommandSpec("validate", "...leaderboard.cli.validate", "check results as a leaderboard does"),
        CommandSpec("leaderboard", "...leaderboard.cli.board", "make, publish and update a page of ranked results"),
    ),
    "one file or text at a time": (
        CommandSpec("mix", ".mix", "add noise to one recording at an exact level"),
        CommandSpec("reverb", ".reverb", "convolve one recording with a room impulse response"),
        CommandSpec("rir", ".rir", "measure a room impulse response: RT60, EDT, DRR, C50, C80"),
        CommandSpec("speak", ".speak", "synthesize one text into an audio file"),
        CommandSpec("normalize", ".normalize", "normalize lines of text as the scores do"),
    ),
}

COMMANDS: Mapping[str, CommandSpec] = {spec.name: spec for group in GROUPS.values() for spec in group}


def _help() -> str:
    groups = (
        f"{title}:\n" + "\n".join(f"  {spec.name:<11} {spec.summary}" for spec in specs)
        for title, specs in GROUPS.items()
    )
    commands = "\n\n".join(groups)
    return f"""usage: squtr COMMAND [options]

squtr {__version__}: build paired clean, noisy and reverberant speech data, evaluate systems on it, rank the results.

{commands}

options:
  --help     show this help; `squtr COMMAND --help` shows a command's options and an example
  --version  show the version

example:
  squtr demo
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"squtr: {message}. Run `{self.prog} --help`.", file=sys.stderr)  # noqa: T201
        raise SystemExit(EXIT_USAGE)


def parser_of(spec: CommandSpec) -> argparse.ArgumentParser:
    module = importlib.import_module(spec.module, __name__)
    parser = _Parser(
        prog=f"squtr {spec.name}",
        description=module.__doc__,
        epilog=module.EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    parser.add_argument("--debug", action="store_true", help="show the whole trace of what fails")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0, 1 (failed), 2 (bad usage) or 128 + a signal.

    `--debug` may stand anywhere.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in given
    if debug:
        given = [argument for argument in given if argument != DEBUG]
    if not given or given[0] in {"--help", "-h", "help"}:
        print(_help(), end="")  # noqa: T201
        return 0 if given else EXIT_USAGE
    if given[0] in {"--version", "-V"}:
        print(f"squtr {__version__}")  # noqa: T201
        return 0
    spec = COMMANDS.get(given[0])
    if spec is None:
        guess = nearest(given[0], COMMANDS)
        hint = f"Did you mean {guess!r}? " if guess else ""
        return _fail(f"unknown command {given[0]!r}. {hint}Known: {', '.join(COMMANDS)}.", EXIT_USAGE)
    end_with_launcher()
    try:
        with stopped_by_signals(), told_warnings():
            parser = parser_of(spec)
            # First: behind a subcommand it would be that one's.
            parsed = parser.parse_args([DEBUG, *given[1:]] if debug else given[1:])
            status: int = importlib.import_module(spec.module, __name__).run(parsed)
    except SqutrError as error:
        if debug:
            note(trace_of(error))
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt as error:
        number = signal_of(error)
        # Of several processes the one that started them says so.
        if launched_size() == 1:
            how = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
            _fail(f"{how}. What was finished is kept: run the same command again to continue.", EXIT_SIGNAL + number)
        leave_requests(EXIT_SIGNAL + number)
        return EXIT_SIGNAL + number
    except BrokenPipeError:
        # The reader of our output (`| head`) went away: not an error of ours.
        sys.stderr.close()
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - told as one of ours
        # No error is meant to get here: it is told as one of ours, and the rest only where it is asked for.
        if debug:
            note(trace_of(error))
        return _fail(_unexpected(error), EXIT_FAILED)
    return status


def _unexpected(error: Exception) -> str:
    from ..components.raised import place_of

    words = " ".join(str(error).split())[:300] or "no words"
    place = place_of(error)
    if place:
        return f"{type(error).__name__}: {words} ({place}). Mend it there; --debug shows the whole trace."
    return (
        f"unexpected {type(error).__name__}: {words} (squtr {__version__}). This is a fault of squtr, not of yours. "
        "Run again with --debug, and report what it shows."
    )


def _fail(message: str, status: int) -> int:
    print(f"squtr: {message}", file=sys.stderr)  # noqa: T201
    return status
