"""Ask answerers the questions of ESCUCHA: what do they understand of Spanish sound?

An ANSWERER is written in short (chat:MODEL, 'whisper-base + llm:MODEL', 'text-only + llm:MODEL', replies:FILE), or is a
YAML file. What was answered is kept: a run that was stopped continues. Run in several processes with --num-processes,
or with `accelerate launch -m squtr.harness evaluate escucha …` on several machines.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Extend, note, say, say_json
from .evaluate import cache_folder, showing, without_launch

if TYPE_CHECKING:
    from ..escucha.evaluate import Evaluation, Options
    from ..processes import Processes

EXAMPLE = """example:
  squtr evaluate escucha 'whisper-base + embedder:multilingual-e5-small' --data mini --controls text-only --out runs
  squtr evaluate escucha chat:Qwen/Qwen2-Audio-7B-Instruct --dtype bfloat16 --data escucha --permutations 4 --out runs
  squtr evaluate escucha chat-server:my-model --url http://localhost:8000/v1 --data mini --long-audio chunks --out runs
  squtr report runs
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("answerers", nargs="+", metavar="ANSWERER", help="chat:MODEL, '<transcriber> + <reader>', …")
    parser.add_argument(
        "--data", required=True, metavar="DATA", help="mini, or a folder (of questions and sound, fetched, or built)"
    )
    parser.add_argument("--audio", type=Path, metavar="DIR", help="where the sound lies, if not in the data's folder")
    parser.add_argument(
        "--configs",
        action=Extend,
        nargs="+",
        metavar="CONFIG",
        help="mcqa aif comparative spoken non_normative all (all)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for results")
    asking = parser.add_argument_group("how to ask")
    asking.add_argument("--permutations", type=int, default=1, metavar="N", help="orders of the options to ask in (1)")
    asking.add_argument(
        "--controls",
        action=Extend,
        nargs="+",
        default=[],
        metavar="NAME",
        help="text-only (no sound), shuffled (another order)",
    )
    asking.add_argument("--no-spoken", action="store_true", help="do not ask the spoken versions of questions")
    asking.add_argument("--limit", type=int, default=0, metavar="N", help="questions per config; 0: all (0)")
    asking.add_argument(
        "--judges",
        action=Extend,
        nargs="+",
        default=[],
        metavar="ANSWERER",
        help="mark replies to open-ended questions (none)",
    )
    options = parser.add_argument_group("options of answerers (each goes to every component that has it)")
    options.add_argument("--url", metavar="URL", help="a server's base, for example http://localhost:8000/v1")
    options.add_argument("--key-variable", metavar="NAME", help="environment variable that holds the server's key")
    options.add_argument("--device", metavar="NAME", help="cpu, cuda, … (the best there is)")
    options.add_argument("--device-map", metavar="NAME", help="auto: spread a model over devices")
    options.add_argument("--dtype", metavar="NAME", help="float32, float16, bfloat16")
    options.add_argument("--batch-size", type=int, metavar="N", help="questions that a model answers together")
    options.add_argument("--max-new-tokens", type=int, metavar="N", help="length cap of a reply (512)")
    options.add_argument("--long-audio", metavar="POLICY", help="truncate or chunks: sound that is too long (truncate)")
    options.add_argument("--max-seconds", type=float, metavar="S", help="the longest clip that goes in whole")
    options.add_argument("--total-seconds", type=float, metavar="S", help="the most sound of one question")
    options.add_argument("--trust-remote-code", action="store_true", help="let a model's repository run its own code")
    how = parser.add_argument_group("how to run")
    how.add_argument("--strict", action="store_true", help="a question that fails fails its config (else: scores 0)")
    how.add_argument(
        "--duration-edges", action=Extend, nargs="+", type=float, metavar="S", help="edges of the duration bins, s"
    )
    how.add_argument("--samples", type=int, default=12, metavar="N", help="questions to keep the sound of (12)")
    how.add_argument("--resamples", type=int, default=1000, metavar="N", help="bootstrap resamples (1000)")
    how.add_argument("--seed", type=int, default=0, metavar="N", help="seed of bootstrap and orders (0)")
    how.add_argument(
        "--num-processes", type=int, metavar="N", help="processes on this machine, a GPU each if it has any"
    )
    how.add_argument("--cache", type=Path, metavar="DIR", help="where replies are kept ($SQUTR_HOME)")
    how.add_argument("--no-cache", action="store_true", help="do not keep or reuse replies")
    how.add_argument("--json-log", type=Path, metavar="FILE", help="append progress as JSON lines")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON array")


_COMPONENT_OPTIONS = (
    "url",
    "key_variable",
    "device",
    "device_map",
    "dtype",
    "batch_size",
    "max_new_tokens",
    "long_audio",
    "max_seconds",
    "total_seconds",
)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write results, print the tables."""
    from ..processes import current_processes, launch, launched_size

    if arguments.num_processes not in {None, 1} and launched_size() == 1:
        return launch(arguments.num_processes, without_launch(sys.argv[1:]))
    processes = current_processes()
    evaluation = _evaluation(arguments, processes)
    # Not after an error: the others may be waiting, and whoever started the processes ends them.
    processes.close()
    return report(evaluation, arguments.out, as_json=arguments.json) if processes.rank == 0 else 0


def _evaluation(arguments: argparse.Namespace, processes: Processes) -> Evaluation:
    from ...loaders.questions.data import QuestionData
    from ..escucha.answerers import load_answerers
    from ..escucha.evaluate import run_evaluation

    given: dict[str, Any] = {name: getattr(arguments, name) for name in _COMPONENT_OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    written = [*arguments.answerers, *arguments.judges]
    loaded = load_answerers(written, options=options, trust_remote_code=arguments.trust_remote_code)
    answerers = loaded[: len(loaded) - len(arguments.judges)]
    with showing(arguments.json_log if processes.rank == 0 else None) as progress:
        return run_evaluation(
            answerers,
            QuestionData(arguments.data, audio=arguments.audio or ""),
            configs=arguments.configs,
            out=arguments.out,
            cache=cache_folder(arguments),
            options=_options(arguments),
            judges=loaded[len(answerers) :],
            progress=progress,
            processes=processes,
        )


def _options(arguments: argparse.Namespace) -> Options:
    from ..escucha.evaluate import Options

    edges = {"duration_edges_s": tuple(arguments.duration_edges)} if arguments.duration_edges else {}
    return Options(
        permutations=arguments.permutations,
        controls=tuple(dict.fromkeys(arguments.controls)),
        spoken=not arguments.no_spoken,
        limit=arguments.limit,
        strict=arguments.strict,
        samples=arguments.samples,
        seed=arguments.seed,
        resamples=arguments.resamples,
        **edges,
    )


def report(evaluation: Evaluation, out: Path, *, as_json: bool) -> int:
    """Print the tables (or the results as JSON) and what failed; the exit status."""
    from ...errors import EXIT_FAILED
    from ..report import summary_table as summary_tables

    for failure in evaluation.failures:
        where = f" on {failure.config}" if failure.config else ""
        note(f"squtr: {failure.answerer}{where} failed: {failure.error}")
    if as_json:
        say_json([record.result.model_dump(mode="json") for record in evaluation.records])
    elif evaluation.records:
        say(summary_tables([record.result for record in evaluation.records]))
        say(f"Results: {(evaluation.out or out) / 'results'}")
        say(f"Report: squtr report {evaluation.out or out}")
    if evaluation.failures:
        note("squtr: something failed. Run the same command again to continue.")
    return EXIT_FAILED if evaluation.failures else 0
