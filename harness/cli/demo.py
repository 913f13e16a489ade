"""Run a benchmark once, on the embedded collection: build, evaluate, report.

The speech is synthetic (see the README), the weights come from packages. It takes as many items per language as its
time allows; --items fixes the number. A stopped demo continues.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..benchmarks import BENCHMARKS
from .common import Extend, note, say

EXAMPLE = """example:
  squtr demo
  squtr demo --languages zh --items 68 --out full-zh
  squtr demo --benchmark rir_mega
  squtr demo --benchmark escucha
"""
DEMOS = {name: row.demo for name, row in BENCHMARKS.items() if row.demo is not None}


def configure(parser: argparse.ArgumentParser) -> None:
    first = next(iter(DEMOS))
    parser.add_argument("--benchmark", choices=tuple(DEMOS), default=first, help=f"the benchmark ({first})")
    parser.add_argument("--out", type=Path, default=Path("squtr-demo"), metavar="DIR", help="folder (squtr-demo)")
    parser.add_argument("--languages", action=Extend, nargs="+", metavar="LANG", help="languages (all of the demo's)")
    parser.add_argument(
        "--items", type=int, default=0, metavar="N", help="queries, utterances or questions (what the time allows)"
    )
    parser.add_argument("--minutes", type=float, default=4.5, metavar="M", help="minutes to fill with items (4.5)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every keyed draw (0)")


def run(arguments: argparse.Namespace) -> int:
    from ..demo.run import run_demo
    from ..report import summary_table

    row, demo = BENCHMARKS[arguments.benchmark], DEMOS[arguments.benchmark]
    out = arguments.out if arguments.benchmark == next(iter(DEMOS)) else arguments.out / arguments.benchmark
    done = run_demo(
        row,
        demo,
        out,
        items=arguments.items,
        minutes=arguments.minutes,
        seed=arguments.seed,
        languages=arguments.languages or demo.languages,
        note=note,
    )
    say(summary_table(done.evaluation.records))
    say(f"Took {done.seconds / 60:.1f} minutes. Written:")
    say(f"  {done.report}  the report: open it in a browser")
    say(f"  {(done.evaluation.out or out) / 'results'}  results as JSON, per-item records as parquet")
    if demo.conditions:
        config = f"{demo.languages[0]}_{demo.conditions[-1]}"
        say(f"  {done.data}  the data set: datasets.load_dataset('{done.data}', '{config}', split='test')")
    say("")
    say("Next:")
    for step in demo.next_steps:
        say(f"  {step.format(data=done.data, out=out)}")
    return 0
