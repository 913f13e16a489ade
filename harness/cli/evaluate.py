"""Evaluate systems on a data set: listen, embed, search, score. The typed queries are evaluated too, as upper bound.

A SYSTEM is written in short ('whisper-base + bm25') or is a spec file (system.yaml). What was done is kept: a run that
was stopped continues. Run in several processes with --num-processes, or with `accelerate launch -m squtr.harness
evaluate …` on several machines.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Extend, note, say, say_json

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation, Options
    from ..evaluation.forecast import Forecast
    from ..processes import Processes
    from ..progress import Progress
    from ..results.old import RunRecord
    from ..systems import Overrides

EXAMPLE = """example:
  squtr evaluate 'whisper-base + bm25' --data mini --configs 'zh_*' --out run
  squtr evaluate --system base.yaml robust.yaml --data data --out run --num-processes 2
  squtr report run
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "systems", nargs="*", metavar="SYSTEM", help="'<transcriber> + <retriever>', for example 'whisper-base + bm25'"
    )
    parser.add_argument(
        "--system", action=Extend, nargs="+", default=[], metavar="SPEC", help="spec files (.yaml), or short forms"
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="a folder that `squtr build` wrote, mini, ORG/NAME on the Hub, or release:PATH",
    )
    parser.add_argument(
        "--configs", action=Extend, nargs="+", metavar="CONFIG", help="for example zh_clean 'zh_*' (all)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder for results (needed, except for --dry-run)")
    parser.add_argument("--depth", type=int, default=100, metavar="K", help="documents retrieved per query (100)")
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="bootstrap resamples (1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of bootstrap and drawn queries (0)")
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="queries per subset to keep clips of (2)")
    part = parser.add_argument_group("a part of the data (results are marked partial, and lie apart)")
    part.add_argument("--limit", type=int, default=0, metavar="N", help="queries per subset; 0: all (0)")
    part.add_argument("--fraction", type=float, default=1.0, metavar="F", help="share of every subset, as 0.05 (1)")
    how = parser.add_argument_group("how to run")
    how.add_argument("--dry-run", action="store_true", help="say what would run, what is cached, and how long it takes")
    how.add_argument(
        "--strict", action="store_true", help="a query that fails fails its config (else: counted, scores 0)"
    )
    how.add_argument("--latency", type=int, default=0, metavar="N", help="time N queries per config, one at a time (0)")
    add_running_options(how)
    parser.add_argument("--json", action="store_true", help="print the results as one JSON array")


def add_running_options(how: argparse._ArgumentGroup) -> None:
    """The options of any evaluation that say where and how it runs."""
    how.add_argument(
        "--num-processes", type=int, metavar="N", help="processes on this machine, a GPU each if it has any"
    )
    how.add_argument("--threads", type=int, default=0, metavar="N", help="recognizer threads; 0: all cores (0)")
    how.add_argument("--batch-size", type=int, metavar="N", help="clips that a recognizer hears together")
    how.add_argument("--device", metavar="NAME", help="cpu, cuda, … (the best there is)")
    how.add_argument("--trust-remote-code", action="store_true", help="let a model's repository run its own code")
    how.add_argument("--cache", type=Path, metavar="DIR", help="where work is kept ($SQUTR_HOME)")
    how.add_argument("--no-cache", action="store_true", help="do not keep or reuse transcripts, embeddings, rankings")
    how.add_argument("--json-log", type=Path, metavar="FILE", help="append progress as JSON lines")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write results, print the table."""
    from ...errors import UsageError
    from ..processes import current_processes, launch, launched_size

    if not [*arguments.systems, *arguments.system]:
        raise UsageError("no system is given.", hint="For example: 'whisper-base + bm25', or --system spec.yaml.")
    if arguments.out is None and not arguments.dry_run:
        raise UsageError("no folder for the results is given.", hint="Add --out DIR.")
    if arguments.num_processes not in {None, 1} and launched_size() == 1 and not arguments.dry_run:
        return launch(arguments.num_processes, without_launch(sys.argv[1:]))
    if arguments.dry_run:
        return _dry_run(arguments)
    processes = current_processes()
    evaluation = _evaluation(arguments, processes)
    # Not after an error: the others may be waiting, and whoever started the processes ends them.
    processes.close()
    if processes.rank != 0:
        return 0
    from ..report import summary_table

    return tell(arguments, evaluation, summary_table)


def without_launch(arguments: Sequence[str]) -> list[str]:
    """The command line without `--num-processes N`."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip or argument.startswith("--num-processes="):
            skip = False
        elif argument == "--num-processes":
            skip = True
        else:
            kept.append(argument)
    return kept


def _options(arguments: argparse.Namespace) -> Options:
    from ..evaluation.evaluate import Options

    return Options(
        depth=arguments.depth,
        resamples=arguments.resamples,
        seed=arguments.seed,
        samples=arguments.samples,
        limit=arguments.limit,
        fraction=arguments.fraction,
        strict=arguments.strict,
        latency=arguments.latency,
    )


def cache_folder(arguments: argparse.Namespace) -> Path | None:
    """Where work is kept, None with --no-cache."""
    from ...loaders.home import squtr_home

    if arguments.no_cache:
        return None
    return arguments.cache or squtr_home()


def _overrides(arguments: argparse.Namespace) -> Overrides:
    from ..systems import Overrides

    transcriber = {"threads": arguments.threads} if arguments.threads else {}
    if arguments.batch_size is not None:
        transcriber["batch_size"] = arguments.batch_size
    every = {"device": arguments.device} if arguments.device else {}
    return Overrides(options=every, transcriber=transcriber, trust_remote_code=arguments.trust_remote_code)


def _evaluation(arguments: argparse.Namespace, processes: Processes) -> Evaluation[RunRecord]:
    from ..data import open_data
    from ..evaluation.evaluate import run_evaluation
    from ..systems import load_systems

    cache = cache_folder(arguments)
    systems = load_systems([*arguments.systems, *arguments.system], cache=cache, options=_overrides(arguments))
    with showing(arguments.json_log if processes.rank == 0 else None) as progress:
        return run_evaluation(
            systems,
            open_data(arguments.data, configs=arguments.configs),
            configs=arguments.configs,
            out=arguments.out,
            cache=cache,
            options=_options(arguments),
            progress=progress,
            processes=processes,
        )


@contextmanager
def showing(log: Path | None) -> Iterator[Progress]:
    """Bars on a terminal, and lines in `log`."""
    from ..progress import JsonLog, bars, tee

    with bars() as shown:
        if log is None:
            yield shown
            return
        with JsonLog(log) as lines:
            yield tee(shown, lines)


def tell(arguments: argparse.Namespace, evaluation: Evaluation[Any], table: Callable[[Sequence[Any]], str]) -> int:
    """Say what came of an evaluation, with the `table` of its records, and return the exit status."""
    from ...errors import EXIT_FAILED
    from ..evaluation.evaluate import counted

    for failure in evaluation.failures:
        note(f"squtr: {failure.system} on {failure.config} failed: {failure.error}")
    if arguments.json:
        say_json([record.result.model_dump(mode="json") for record in evaluation.records])
    elif evaluation.records:
        say(table(evaluation.records))
        out = evaluation.out or arguments.out
        say(f"Results: {out / 'results'}")
        say(f"Report: squtr report {out}")
    if evaluation.failures:
        note(
            f"squtr: {counted(len(evaluation.failures), 'run')} failed, {evaluation.finished} did not. "
            "Run the same command again to continue."
        )
    return EXIT_FAILED if evaluation.failures else 0


def _dry_run(arguments: argparse.Namespace) -> int:
    from ..data import open_data
    from ..evaluation.forecast import forecast
    from ..systems import load_systems

    cache = cache_folder(arguments)
    lines = forecast(
        load_systems([*arguments.systems, *arguments.system], cache=cache, options=_overrides(arguments)),
        open_data(arguments.data, configs=arguments.configs),
        configs=arguments.configs,
        cache=cache,
        options=_options(arguments),
    )
    if arguments.json:
        from dataclasses import asdict

        say_json([asdict(line) for line in lines])
        return 0
    say(_forecast_table(lines))
    total = sum(line.seconds for line in lines)
    say(f"About {_duration(total)} in one process, searching and scoring not counted. Nothing was evaluated.")
    return 0


def _forecast_table(lines: Sequence[Forecast]) -> str:
    rows = [("stage", "component", "of", "items", "cached", "left", "rate measured")]
    for line in lines:
        left = "none" if line.cached >= line.items else _duration(line.seconds)
        measured = line.measured if line.cached < line.items else "-"
        rows.append((line.stage, line.component, line.scope, str(line.items), str(line.cached), left, measured))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _duration(seconds: float) -> str:
    """A duration to read.

    >>> _duration(0.4), _duration(75), _duration(9000), _duration(400000)
    ('1 s', '75 s', '2.5 h', '4.6 days')
    """
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86400 else f"{seconds / 86400:.1f} days"
