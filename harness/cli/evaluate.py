"""Evaluate systems on a data set. What the data is decides the task: retrieval, speech recognition, or questions.

A SYSTEM is written in short, is a spec file (system.yaml), or the systems of a paper (paper:squtr):
  retrieval     'whisper-base + bm25', 'class:my_module:Encoder', 'trec:run.trec'
  recognition   whisper-base, transcripts:mine.jsonl
  questions     chat:MODEL, 'whisper-base + llm:MODEL', replies:FILE

What was done is kept: a run that was stopped continues. Run in several processes with --num-processes, or with
`accelerate launch -m squtr.harness evaluate …` on several machines.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Extend, duration, note, say, say_json, table_text, trace_of

if TYPE_CHECKING:
    from ..evaluation.computed import ComputedPlan
    from ..evaluation.options import Options
    from ..evaluation.run import Evaluation
    from ..evaluation.task import Forecast
    from ..processes import Processes
    from ..progress import Progress
    from ..systems import Overrides, System

EXAMPLE = """example:
  squtr evaluate 'whisper-base + bm25' --data mini --configs 'zh_*' --out run
  squtr evaluate --system base.yaml robust.yaml --data data --metrics ndcg_at_10 recall_at_100 --out run
  squtr evaluate whisper-base --front-end wpe spectral-gate --data whisper-rir-mega --out run --num-processes 2
  squtr evaluate 'whisper-base + llm:MODEL' --data questions:mini --baselines text-only --out run
  squtr evaluate --system paper:squtr --only '* + BM25' --data stand-in:squtr --dry-run
  squtr report run
"""

_CHOSEN = (
    "metrics", "normalizer", "depth", "resamples", "permutations", "seed", "samples", "limit", "fraction",
    "dev_fraction", "max_failed", "strict", "latency", "option_orders", "baselines", "spoken", "self_check",
)  # fmt: skip
"""Fields of `Options` that are options here; those that were not given keep their defaults."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="for example 'whisper-base + bm25'")
    parser.add_argument(
        "--system",
        action=Extend,
        nargs="+",
        default=[],
        metavar="SPEC",
        help="spec files (.yaml), short forms, or paper:squtr, … (the systems of a paper)",
    )
    parser.add_argument(
        "--only",
        action=Extend,
        nargs="+",
        default=[],
        metavar="NAME",
        help="of these systems, those with such a name: 'Whisper-*', '* + BM25'",
    )
    parser.add_argument(
        "--data",
        metavar="DATA",
        help="a folder that `squtr build` wrote, mini, ORG/NAME on the Hub, release:PATH, questions:mini, … (that of "
        "the benchmark); for --dry-run also stand-in:squtr, … (a benchmark's size without its content)",
    )
    parser.add_argument(
        "--benchmark", metavar="NAME", help="a published benchmark (the one that the data was built for)"
    )
    parser.add_argument(
        "--configs", action=Extend, nargs="+", metavar="CONFIG", help="for example zh_clean 'zh_*' (all)"
    )
    parser.add_argument("--split", default="test", metavar="SPLIT", help="the split of the data (test)")
    parser.add_argument(
        "--on-bad",
        default="refuse",
        metavar="WHAT",
        help="rows and recordings of a source that break a rule: refuse, or skip (left out, counted) (refuse)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder for results (needed, except for --dry-run)")
    _add_scoring(parser.add_argument_group("what is scored (of the benchmark where nothing is given)"))
    part = parser.add_argument_group("a part of the data (results are marked partial, in a folder of their own)")
    _add(part, "--limit", int, "N", "items per subset; 0: all (0)")
    _add(part, "--fraction", float, "F", "share of every subset, as 0.05 (1)")
    _add(part, "--dev-fraction", float, "F", "share of every subset to fit thresholds on, which is not scored (0)")
    add_systems(parser.add_argument_group("systems"))
    _add_questions(parser.add_argument_group("questions"))
    how = parser.add_argument_group("how to run")
    how.add_argument("--dry-run", action="store_true", help="say what would run, what is cached, and how long it takes")
    how.add_argument(
        "--computed",
        action="store_true",
        help="with --dry-run: by the sizes of models and data alone; nothing is downloaded, loaded or timed",
    )
    how.add_argument(
        "--strict",
        action="store_true",
        default=argparse.SUPPRESS,
        help="an item that fails fails its config (else: counted, scores 0)",
    )
    _add(how, "--max-failed", float, "SHARE", "a config in which more of the items fail fails (0.05)")
    how.add_argument(
        "--no-self-check",
        dest="self_check",
        action="store_false",
        default=argparse.SUPPRESS,
        help="score components that were not seen to work (squtr check); results then say 'not checked'",
    )
    _add(how, "--latency", int, "N", "time N items per config, one at a time (0)")
    _add(how, "--samples", int, "N", "items per subset to keep clips of, for the report (2)")
    how.add_argument(
        "--num-processes", type=int, metavar="N", help="processes on this machine, a GPU each if it has any"
    )
    how.add_argument("--cache", type=Path, metavar="DIR", help="where work is kept ($SQUTR_HOME)")
    how.add_argument("--no-cache", action="store_true", help="do not keep or reuse transcripts, embeddings, replies, …")
    how.add_argument("--json-log", type=Path, metavar="FILE", help="append progress as JSON lines")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON array")


def _add(group: argparse._ArgumentGroup, flag: str, kind: type, metavar: str, words: str) -> None:
    """An option that is not there unless it was given."""
    group.add_argument(flag, type=kind, metavar=metavar, default=argparse.SUPPRESS, help=words)


def _add_scoring(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--metrics",
        action=Extend,
        nargs="+",
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="the main one first: ndcg_at_10, recall_at_100, wer, cer, module:ATTRIBUTE, …",
    )
    _add(group, "--normalizer", str, "NAME", "text normalizer of error rates: default, whisper, raw, squtr-compat")
    _add(group, "--depth", int, "K", "documents retrieved per query (100, or what the metrics need)")
    _add(group, "--resamples", int, "N", "bootstrap resamples (1000)")
    _add(group, "--permutations", int, "N", "random sign flips of permutation tests where n is large (10000)")
    _add(group, "--seed", int, "N", "seed of the bootstrap, of tests, and of what is drawn (0)")


def add_systems(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--front-end",
        action=Extend,
        nargs="+",
        default=[],
        metavar="NAME",
        help="evaluate every transcriber behind these too: wpe, spectral-gate, wiener, denoiser:<model>, class:…",
    )
    group.add_argument("--preset", default="", metavar="NAME", help="published decode settings of transcribers")
    group.add_argument(
        "--option",
        action=Extend,
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="for every component that has it, as beam_size=5 or url=http://localhost:8000/v1 (values are YAML)",
    )
    group.add_argument("--threads", type=int, default=0, metavar="N", help="threads of transcribers; 0: all cores (0)")
    group.add_argument("--batch-size", type=int, metavar="N", help="clips that a transcriber takes at once")
    group.add_argument("--device", metavar="NAME", help="cpu, cuda, … (the best there is)")
    group.add_argument("--trust-remote-code", action="store_true", help="let a model's repository run its own code")


def _add_questions(group: argparse._ArgumentGroup) -> None:
    _add(group, "--option-orders", int, "N", "orders of the options to ask each question in (1)")
    group.add_argument(
        "--baselines",
        action=Extend,
        nargs="+",
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="text-only (without audio), shuffled (the options in another order)",
    )
    group.add_argument(
        "--no-spoken",
        dest="spoken",
        action="store_false",
        default=argparse.SUPPRESS,
        help="leave the spoken versions of questions out",
    )
    group.add_argument(
        "--judge",
        action=Extend,
        nargs="+",
        default=[],
        metavar="SYSTEM",
        help="answerers that mark replies to open-ended questions",
    )


def run(arguments: argparse.Namespace) -> int:
    from ...errors import UsageError
    from ..processes import current_processes, launch, launched_size

    if not [*arguments.systems, *arguments.system]:
        raise UsageError("no system is given.", hint="For example: 'whisper-base + bm25', or --system spec.yaml.")
    if arguments.out is None and not arguments.dry_run:
        raise UsageError("no folder for the results is given.", hint="Add --out DIR.")
    if arguments.num_processes not in {None, 1} and launched_size() == 1 and not arguments.dry_run:
        return launch(arguments.num_processes, _without_launch(sys.argv[1:]))
    if arguments.dry_run:
        return _computed_run(arguments) if _is_computed(arguments) else _dry_run(arguments)
    _check_real(arguments)
    processes = current_processes()
    evaluation = _evaluation(arguments, processes)
    # Not after an error: the others may be waiting, and whoever started the processes ends them.
    processes.close()
    return _report(arguments, evaluation) if processes.rank == 0 else 0


def _without_launch(arguments: Sequence[str]) -> list[str]:
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
    from ..evaluation.options import Options

    return Options.of({name: getattr(arguments, name) for name in _CHOSEN if hasattr(arguments, name)})


def cache_of(arguments: argparse.Namespace) -> Path | None:
    """Where work is kept, None for nowhere."""
    from ...loaders.home import squtr_home

    if arguments.no_cache:
        return None
    return arguments.cache or squtr_home()


def overrides_of(arguments: argparse.Namespace) -> Overrides:
    """What `add_systems` says of all components."""
    from ..systems import Overrides

    transcriber = {"threads": arguments.threads} if arguments.threads else {}
    every = options_from(arguments.option)
    if arguments.batch_size is not None:
        every["batch_size"] = arguments.batch_size
    if arguments.device:
        every["device"] = arguments.device
    return Overrides(options=every, transcriber=transcriber, trust_remote_code=arguments.trust_remote_code)


def options_from(written: Sequence[str]) -> dict[str, Any]:
    """Options of components from `NAME=VALUE`, the value read as YAML.

    >>> options_from(["beam_size=5", "compute_type=float32", "long_clips=true"])
    {'beam_size': 5, 'compute_type': 'float32', 'long_clips': True}
    """
    from ...errors import UsageError
    from ..systems.plain_yaml import read_value

    found: dict[str, Any] = {}
    for text in written:
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise UsageError(f"the option {text!r} is not written as NAME=VALUE.", hint="For example: beam_size=5.")
        found[name] = read_value(value, name)
    return found


def _systems(arguments: argparse.Namespace, cache: Path | None) -> tuple[list[System], list[System]]:
    from ..systems import load_systems
    from ..systems.reading import count_entries, written_entries
    from ..systems.selecting import name_of

    only = list(arguments.only)
    if only:
        only += [escape(name_of(judge)) for judge in written_entries(arguments.judge)]
    loaded = load_systems(
        [*arguments.systems, *arguments.system, *arguments.judge],
        front_ends=arguments.front_end,
        preset=arguments.preset,
        cache=cache,
        options=overrides_of(arguments),
        only=only,
    )
    first_judge = len(loaded) - count_entries(arguments.judge)
    return loaded[:first_judge], loaded[first_judge:]


def _data(arguments: argparse.Namespace) -> Any:
    from ...loaders.left_out import left_out_of
    from ..data import open_data
    from ..evaluate import source_of

    name = arguments.data or source_of(arguments.benchmark)
    data = open_data(name, configs=arguments.configs, split=arguments.split, on_bad=arguments.on_bad)
    for entry in left_out_of(data) if arguments.on_bad == "skip" else ():
        note(f"squtr: left out: {entry}.")
    return data


_OPENING = "opening systems and data"


def _evaluation(arguments: argparse.Namespace, processes: Processes) -> Evaluation:
    from ..evaluate import evaluate_records

    cache = cache_of(arguments)
    with _progress(arguments.json_log if processes.rank == 0 else None) as progress:
        progress(_OPENING, 0, 1)
        systems, judges = _systems(arguments, cache)
        data = _data(arguments)
        progress(_OPENING, 1, 1)
        return evaluate_records(
            systems,
            data,
            benchmark=arguments.benchmark,
            configs=arguments.configs,
            out=arguments.out,
            cache=cache,
            options=_options(arguments),
            judges=judges,
            progress=progress,
            processes=processes,
        )


@contextmanager
def _progress(log: Path | None) -> Iterator[Progress]:
    """Bars on a terminal, and lines in `log`."""
    from ..progress import Bars, JsonLog, tee

    with Bars() as shown:
        if log is None:
            yield shown
            return
        with JsonLog(log) as lines:
            yield tee(shown, lines)


def _report(arguments: argparse.Namespace, evaluation: Evaluation) -> int:
    """Print the table of the records and what failed; the exit status."""
    from ...errors import EXIT_FAILED
    from ..evaluation.run import counted
    from ..report import summary_table
    from ..report.systems import self_check_lines
    from .selected import selected_lines

    told: dict[str, None] = {}
    for failure in evaluation.failures:
        where = f" on {failure.config}" if failure.config else ""
        if arguments.debug:
            note(trace_of(failure.error))
        note(f"squtr: {failure.system}{where} failed: {failure.error}")
    if arguments.json:
        say_json([record.result.model_dump(mode="json") for record in evaluation.records])
    elif evaluation.records:
        say(summary_table(evaluation.records))
        for line in self_check_lines([record.result.system for record in evaluation.records]):
            say(line)
        for record in evaluation.records:
            for line in selected_lines(record.result.data.recipe, [record.result.system]):
                told.setdefault(line)
        for line in told:
            note(f"squtr: {line}")
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
    from ..evaluate import forecast

    cache = cache_of(arguments)
    systems, judges = _systems(arguments, cache)
    lines = forecast(
        systems,
        _data(arguments),
        benchmark=arguments.benchmark,
        configs=arguments.configs,
        cache=cache,
        options=_options(arguments),
        judges=judges,
    )
    if arguments.json:
        known = [asdict(line) for line in lines]
        say_json([line | {"seconds": line["seconds"] if math.isfinite(line["seconds"]) else None} for line in known])
        return 0
    say(_forecast_table(lines))
    total = sum(line.seconds for line in lines)
    if math.isfinite(total):
        say(f"About {duration(total)} in one process, searching and scoring not counted. Nothing was evaluated.")
    else:
        say("How long it takes is not known. Nothing was evaluated.")
    return 0


def _is_computed(arguments: argparse.Namespace) -> bool:
    from ..evaluation.stand_in import is_stand_in

    return arguments.computed or is_stand_in(arguments.data or "")


def _check_real(arguments: argparse.Namespace) -> None:
    """Raise before anything is loaded: for data without content, and for extras that are not installed."""
    from ...errors import UsageError
    from ..evaluation.stand_in import is_stand_in, refuse_stand_in
    from ..systems.reading import written_entries
    from ..systems.selecting import check_installed

    if is_stand_in(arguments.data or ""):
        raise refuse_stand_in(arguments.data)
    if arguments.computed:
        raise UsageError("--computed is for a dry run.", hint="Add --dry-run.")
    check_installed(written_entries([*arguments.systems, *arguments.system], only=arguments.only))


def _computed_run(arguments: argparse.Namespace) -> int:
    from ...errors import MissingExtraError
    from ..components.hub_sizes import hub_bytes
    from ..systems.reading import written_entries
    from ..systems.selecting import check_installed
    from .computed_plan import plan_json, plan_text

    plan, download = planned(arguments)
    plan = replace(plan, told=hub_bytes(name for name, held in plan.downloads.items() if held is None))
    if arguments.json:
        say_json(plan_json(plan))
        return 0
    try:
        check_installed(written_entries([*arguments.systems, *arguments.system], only=arguments.only))
    except MissingExtraError as error:
        note(f"squtr: {error}")
    say(plan_text(plan, download))
    return 0


def planned(arguments: argparse.Namespace) -> tuple[ComputedPlan, int]:
    """The computed plan of a command line, and the bytes of its data where they are a download of their own."""
    from ...errors import UsageError
    from ..evaluate import computed_forecast
    from ..evaluation.stand_in import is_stand_in, open_stand_in

    if arguments.front_end:
        raise UsageError("front ends are not in a computed plan.", hint="Leave --front-end out.")
    named = arguments.data or ""
    data = open_stand_in(named) if is_stand_in(named) else _data(arguments)
    overrides = options_from(arguments.option)
    if arguments.batch_size is not None:
        overrides["batch_size"] = arguments.batch_size
    plan = computed_forecast(
        [*arguments.systems, *arguments.system],
        data,
        only=arguments.only,
        preset=arguments.preset,
        configs=arguments.configs,
        options=_options(arguments),
        overrides=overrides,
    )
    return plan, int(getattr(getattr(data, "size", None), "download", 0))


def _forecast_table(lines: Sequence[Forecast]) -> str:
    rows = [("stage", "component", "of", "items", "cached", "left", "rate measured")]
    for line in lines:
        left = "none" if line.cached >= line.items else duration(line.seconds)
        measured = line.measured if line.cached < line.items else "-"
        rows.append((line.stage, line.component, line.scope, str(line.items), str(line.cached), left, measured))
    return table_text(rows)
