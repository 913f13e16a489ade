"""Evaluate systems on a data set: transcribe, retrieve, score. The typed queries are evaluated too, as upper bound."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import bars, say, say_json

EXAMPLE = """example:
  squtr evaluate 'faster-whisper:whisper-base + bm25' --data data --configs zh_clean zh_high_noise --out run
  squtr report run
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "systems", nargs="+", metavar="SYSTEM", help="'<transcriber> + <retriever>', for example 'whisper-base + bm25'"
    )
    parser.add_argument(
        "--data", required=True, metavar="DATA", help="a folder that `squtr build` wrote, or release:PATH"
    )
    parser.add_argument("--configs", nargs="+", metavar="CONFIG", help="for example zh_clean zh_high_noise (all)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for results")
    parser.add_argument("--depth", type=int, default=100, metavar="K", help="documents retrieved per query (100)")
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="bootstrap resamples (1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of bootstrap and sample clips (0)")
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="queries per subset to keep clips of (2)")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="recogniser threads; 0: all cores (0)")
    parser.add_argument("--no-cache", action="store_true", help="do not keep or reuse transcripts and embeddings")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write results, print the table."""
    from ...loaders.home import squtr_home
    from ..data import open_data
    from ..pipeline.evaluate import evaluate_runs
    from ..pipeline.system import parse_system
    from ..report.terminal import summary_table

    data = open_data(arguments.data)
    options: dict[str, object] = {"threads": arguments.threads} if arguments.threads else {}
    cache = None if arguments.no_cache else squtr_home()
    systems = [parse_system(text, cache=cache, transcriber_options=options) for text in arguments.systems]
    with bars() as show:
        records = evaluate_runs(
            systems,
            data,
            configs=arguments.configs,
            out=arguments.out,
            cache=cache,
            depth=arguments.depth,
            resamples=arguments.resamples,
            seed=arguments.seed,
            samples=arguments.samples,
            progress=show,
        )
    if arguments.json:
        say_json([record.result.model_dump(mode="json") for record in records])
        return 0
    say(summary_table(records))
    say(f"Results: {arguments.out / 'results'}")
    say(f"Report: squtr report {arguments.out}")
    return 0
