"""The command line: a table of commands, each in a module that is imported only when it runs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from ... import __version__
from ...errors import EXIT_FAILED, EXIT_USAGE, SqutrError, nearest
from ..processes import launched_size

EXIT_INTERRUPTED = 130
"""128 + SIGINT, what a shell expects after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A row of the table. The module has `configure(parser)` and `run(arguments) -> exit status`."""

    name: str
    module: str
    summary: str


COMMANDS = {
    spec.name: spec
    for spec in (
        CommandSpec("demo", ".demo", "the whole way once, on real speech: build, recognize, retrieve, report"),
        CommandSpec("build", ".build", "build a paired clean/noisy/reverberant data set into a folder"),
        CommandSpec("doctor", ".doctor", "check a built data set: files, ids, pairing, and SNR on a sample"),
        CommandSpec("push", ".push", "publish a built data set on the Hugging Face Hub"),
        CommandSpec("evaluate", ".evaluate", "evaluate systems on a data set"),
        CommandSpec("report", ".report", "write one self-contained HTML page from results"),
        CommandSpec("compare", ".compare", "compare two systems on the same items: tests, intervals, n"),
        CommandSpec("score", ".score", "score transcripts, rankings or answers that lie in files"),
        CommandSpec("export", ".export", "write results as another tool reads them (mteb)"),
        CommandSpec("import", ".import_", "read results that another tool wrote (mteb)"),
        CommandSpec("submit", ".submit", "check results, and offer them to a leaderboard or a public table (mteb)"),
        CommandSpec("validate", "...leaderboard.cli.validate", "check results as a leaderboard does"),
        CommandSpec("card", "...leaderboard.cli.card", "print the section of a model card about results"),
        CommandSpec("leaderboard", "...leaderboard.cli.board", "make, publish and update a page of ranked results"),
        CommandSpec("normalize", ".normalize", "normalize lines of text as the scores do"),
        CommandSpec("speak", ".speak", "speak one text into a sound file"),
        CommandSpec("synthesize", ".synthesize", "speak all queries of a source and check their quality"),
        CommandSpec("review", ".review", "listen to synthesized queries on a page, and apply the marks"),
        CommandSpec("fetch", ".fetch", "fetch recorded noise or rooms, or say where to get them"),
        CommandSpec("mix", ".mix", "add noise to one recording at an exact level"),
        CommandSpec("reverb", ".reverb", "put one recording into a room"),
        CommandSpec("room", ".room", "measure a room from its impulse response"),
    )
}

BENCHMARKS = {
    ("build", "rir_mega"): CommandSpec(
        "build rir_mega", ".build_rir_mega", "build the data of another benchmark: utterances clean and in a room"
    ),
    ("evaluate", "rir_mega"): CommandSpec(
        "evaluate rir_mega", ".evaluate_rir_mega", "evaluate transcribers on utterances clean and in a room"
    ),
    ("evaluate", "escucha"): CommandSpec(
        "evaluate escucha", ".evaluate_escucha", "ask models questions about speech, and score what they answer"
    ),
    ("build", "escucha"): CommandSpec(
        "build escucha", ".build_escucha", "check and build a set of questions about speech"
    ),
    ("fetch", "escucha"): CommandSpec(
        "fetch escucha", ".fetch_escucha", "fetch ESCUCHA's questions and their sound, as far as it is there"
    ),
    ("review", "escucha"): CommandSpec(
        "review escucha", ".review_escucha", "answer a set's questions by ear on a page, and correct its key"
    ),
}
"""Commands that a benchmark's name after them turns into its own."""

_HELP = f"""usage: squtr COMMAND [options]

squtr {__version__}: how much does retrieval lose when queries are spoken, in noise and in rooms?

commands:
{chr(10).join(f"  {spec.name:<11} {spec.summary}" for spec in COMMANDS.values())}

commands of other benchmarks:
{chr(10).join(f"  {spec.name:<17} {spec.summary}" for spec in BENCHMARKS.values())}

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0, 1 (failed), 2 (bad usage) or 130 (interrupted)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in {"--help", "-h", "help"}:
        print(_HELP, end="")  # noqa: T201
        return 0 if given else EXIT_USAGE
    if given[0] in {"--version", "-V"}:
        print(f"squtr {__version__}")  # noqa: T201
        return 0
    spec = COMMANDS.get(given[0])
    if spec is None:
        guess = nearest(given[0], COMMANDS)
        hint = f"Did you mean {guess!r}? " if guess else ""
        return _fail(f"unknown command {given[0]!r}. {hint}Known: {', '.join(COMMANDS)}.", EXIT_USAGE)
    rest = given[1:]
    if rest and (spec.name, rest[0]) in BENCHMARKS:
        spec, rest = BENCHMARKS[spec.name, rest[0]], rest[1:]
    try:
        module = importlib.import_module(spec.module, __name__)
        parser = _Parser(
            prog=f"squtr {spec.name}",
            description=module.__doc__,
            epilog=module.EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.configure(parser)
        status: int = module.run(parser.parse_args(rest))
    except SqutrError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        if launched_size() > 1:
            return EXIT_INTERRUPTED  # The process that started this one says so.
        return _fail(
            "interrupted. What was finished is kept: run the same command again to continue.", EXIT_INTERRUPTED
        )
    except BrokenPipeError:
        # The reader of our output (`| head`) went away: not an error of ours.
        sys.stderr.close()
        return EXIT_FAILED
    return status


def _fail(message: str, status: int) -> int:
    print(f"squtr: {message}", file=sys.stderr)  # noqa: T201
    return status
