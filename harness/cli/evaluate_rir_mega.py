"""Evaluate transcribers on the same utterances clean and in a room: error rates, what the room costs, and where.

A TRANSCRIBER is written as in a system: whisper-base, openai-whisper:base, class:my_module:Mine, or
transcripts:mine.jsonl; NAME=TRANSCRIBER gives it a name. With --front-end, each is evaluated without a front end and
behind every one that is named. What was heard is kept: a run that was stopped continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Extend
from .evaluate import add_running_options, cache_folder, showing, tell, without_launch

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..processes import Processes
    from ..rir_mega.results import PairRecord
    from ..systems import Overrides

EXAMPLE = """example:
  squtr evaluate rir_mega whisper-tiny.en whisper-base --data rooms-en --out runs
  squtr evaluate rir_mega whisper-base --front-end wpe spectral-gate --data rooms-en --out runs --limit 100
  squtr evaluate rir_mega openai-whisper:tiny --preset whisper-rir-mega --data published --out runs
  squtr report runs
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("transcribers", nargs="+", metavar="TRANSCRIBER", help="for example whisper-base")
    parser.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="a folder that `squtr build rir_mega` wrote, ORG/NAME on the Hub, published, or published:FOLDER",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for results")
    parser.add_argument("--split", default="test", metavar="SPLIT", help="validation or test (test)")
    parser.add_argument(
        "--front-end",
        action=Extend,
        nargs="+",
        default=[],
        metavar="NAME",
        help="wpe, spectral-gate, wiener, denoiser:<model>, class:…",
    )
    parser.add_argument("--preset", default="", metavar="NAME", help="published decode settings: whisper-rir-mega")
    parser.add_argument(
        "--option",
        action=Extend,
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="options of every transcriber and front end that has them, as beam_size=5",
    )
    parser.add_argument(
        "--normalizer",
        default="auto",
        metavar="NAME",
        help="text normalizer: whisper, default, raw, squtr-compat; auto: whisper for English, else default (auto)",
    )
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="bootstrap resamples (1000)")
    parser.add_argument(
        "--permutations", type=int, default=10_000, metavar="N", help="random sign flips where n is large (10000)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of intervals, tests, drawn pairs (0)")
    parser.add_argument(
        "--samples", type=int, default=3, metavar="N", help="pairs to keep clips of, for the report (3)"
    )
    part = parser.add_argument_group("a part of the data (results are marked partial, and lie apart)")
    part.add_argument("--limit", type=int, default=0, metavar="N", help="pairs per language; 0: all (0)")
    part.add_argument("--fraction", type=float, default=1.0, metavar="F", help="share of every language, as 0.05 (1)")
    how = parser.add_argument_group("how to run")
    how.add_argument("--strict", action="store_true", help="a clip that fails fails its recognizer (else: counted)")
    how.add_argument(
        "--latency",
        type=int,
        default=0,
        metavar="N",
        help="time N clips one at a time, each recognizer in a process of its own, which also tells its memory (0)",
    )
    add_running_options(how)
    parser.add_argument("--json", action="store_true", help="print the results as one JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write results, print the table."""
    from ..processes import current_processes, launch, launched_size

    if arguments.num_processes not in {None, 1} and launched_size() == 1:
        return launch(arguments.num_processes, without_launch(sys.argv[1:]))
    processes = current_processes()
    evaluation = _evaluation(arguments, processes)
    # Not after an error: the others may be waiting, and whoever started the processes ends them.
    processes.close()
    if processes.rank != 0:
        return 0
    from ..report import summary_table

    return tell(arguments, evaluation, summary_table)


def options_from(written: list[str]) -> dict[str, Any]:
    """Options from `NAME=VALUE`; a value that is JSON is that, any other a text.

    >>> options_from(["beam_size=5", "compute_type=float32"])
    {'beam_size': 5, 'compute_type': 'float32'}
    """
    from ...errors import UsageError

    found: dict[str, Any] = {}
    for text in written:
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise UsageError(f"the option {text!r} is not written as NAME=VALUE.", hint="For example: beam_size=5.")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _overrides(arguments: argparse.Namespace) -> Overrides:
    from ..systems import Overrides

    transcriber = {"threads": arguments.threads} if arguments.threads else {}
    if arguments.batch_size is not None:
        transcriber["batch_size"] = arguments.batch_size
    every = options_from(arguments.option) | ({"device": arguments.device} if arguments.device else {})
    return Overrides(options=every, transcriber=transcriber, trust_remote_code=arguments.trust_remote_code)


def _evaluation(arguments: argparse.Namespace, processes: Processes) -> Evaluation[PairRecord]:
    from ...loaders.rir_mega.opening import open_pairs
    from ..rir_mega.evaluate import Options, run_evaluation
    from ..rir_mega.recognizers import load_recognizers

    recognizers = load_recognizers(
        arguments.transcribers, arguments.front_end, preset=arguments.preset, options=_overrides(arguments)
    )
    options = Options(
        normalizer=arguments.normalizer,
        resamples=arguments.resamples,
        permutations=arguments.permutations,
        seed=arguments.seed,
        limit=arguments.limit,
        fraction=arguments.fraction,
        samples=arguments.samples,
        strict=arguments.strict,
        latency=arguments.latency,
    )
    with showing(arguments.json_log if processes.rank == 0 else None) as progress:
        return run_evaluation(
            recognizers,
            open_pairs(arguments.data),
            split=arguments.split,
            out=arguments.out,
            cache=cache_folder(arguments),
            options=options,
            progress=progress,
            processes=processes,
            trust_remote_code=arguments.trust_remote_code,
        )
