"""The whole way once, on the embedded collection: build, recognize, retrieve, score, report.

It takes as many queries per language as its time allows; --queries fixes the number. A stopped demo continues.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .common import bars, counting, note, say

if TYPE_CHECKING:
    from ...loaders.recipe import Kitchen
    from ..protocols import Transcriber

EXAMPLE = """example:
  squtr demo
  squtr demo --languages zh --queries 68 --out full-zh
  squtr demo --benchmark rir_mega
  squtr demo --benchmark escucha
"""

CONDITIONS = ("clean", "medium_noise", "high_noise", "snr_-5", "reverb", "reverb_high_noise")
LANGUAGES = ("en", "zh", "es")
TRANSCRIBER = "faster-whisper:whisper-base"
RETRIEVERS = {
    "bm25": LANGUAGES,
    "dense:all-minilm-l6-v2": ("en",),
    "dense:multilingual-e5-small": LANGUAGES,
}
"""Retrievers and the languages they were made for."""
FEWEST_QUERIES = 8
TIMED_CLIPS = 8
SETUP_SECONDS = 60.0
"""What building, dense retrieval, scoring and the report take together, allowed for before queries are counted."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--benchmark",
        choices=("squtr", "rir_mega", "escucha"),
        default="squtr",
        help="spoken queries, the same speech clean and in rooms, or questions about speech",
    )
    parser.add_argument("--out", type=Path, default=Path("squtr-demo"), metavar="DIR", help="folder (squtr-demo)")
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), metavar="LANG", help="en zh es (all three)")
    parser.add_argument(
        "--queries",
        type=int,
        default=0,
        metavar="N",
        help="queries per language (what the time allows), pairs, or questions",
    )
    parser.add_argument("--minutes", type=float, default=4.5, metavar="M", help="minutes to fill with queries (4.5)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every keyed draw (0)")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo."""
    if arguments.benchmark == "rir_mega":
        from . import demo_rir_mega

        return demo_rir_mega.run_demo(
            arguments.out / "rir_mega", pairs=arguments.queries, minutes=arguments.minutes, seed=arguments.seed
        )
    if arguments.benchmark == "escucha":
        from .demo_escucha import run_demo

        return run_demo(arguments.out / "escucha", limit=arguments.queries, seed=arguments.seed)
    from ...loaders.build import build, count_clips
    from ...loaders.home import squtr_home
    from ...loaders.manifest import MANIFEST_NAME, read_manifest
    from ...loaders.paired import BuiltData
    from ...loaders.recipe import open_kitchen
    from ..components import load_transcriber
    from ..evaluation.evaluate import evaluate_runs
    from ..evaluation.system import Cascade, cached_retriever
    from ..report import write_report
    from ..report.terminal import summary_table

    started = time.perf_counter()
    data_folder, out = arguments.out / "data", arguments.out
    transcriber = load_transcriber(TRANSCRIBER)
    # Checks languages before anything takes time.
    probe = open_kitchen("mini", conditions=["clean"], languages=arguments.languages, seed=arguments.seed)
    limit = arguments.queries
    if not limit and (data_folder / MANIFEST_NAME).exists():
        limit = int(read_manifest(data_folder).recipe["limit"])
    if not limit:
        note("Timing the recognizer on a few clips …")
        limit = affordable_queries(
            seconds_per_clip(transcriber, probe), len(probe.recipe.subsets), arguments.minutes * 60
        )
    kitchen = open_kitchen(
        "mini", conditions=CONDITIONS, languages=arguments.languages, limit=limit, seed=arguments.seed
    )
    total = count_clips(kitchen)
    note(f"{limit} queries per language, {total} clips: building them …")
    with bars() as show:
        build(kitchen, data_folder, progress=counting(show, "building clips", total))
    note("Recognizing and retrieving …")
    with bars() as show:
        records = evaluate_runs(
            [
                Cascade(transcriber, cached_retriever(name, squtr_home()))
                for name, languages in RETRIEVERS.items()
                if set(languages) & set(arguments.languages)
            ],
            BuiltData(data_folder),
            out=out,
            cache=squtr_home(),
            seed=arguments.seed,
            progress=show,
        )
    report = write_report(out, out / "report.html", title="squtr demo")
    say(summary_table(records))
    say(f"Took {(time.perf_counter() - started) / 60:.1f} minutes. Written:")
    say(f"  {report}  the report: open it in a browser")
    say(f"  {out / 'results'}  results as JSON, per-query records as parquet")
    say(f"  {data_folder}  the data set: datasets.load_dataset('{data_folder}', 'zh_high_noise', split='test')")
    say("")
    say("Next:")
    say("  squtr build --source mini --conditions clean snr_5 reverb_snr_5 --noise FOLDER_OF_RECORDINGS --out data")
    say(f"  squtr evaluate '{TRANSCRIBER} + bm25' --data data --out run")
    say("  squtr report run")
    return 0


def seconds_per_clip(transcriber: Transcriber, kitchen: Kitchen) -> float:
    """The time in s that one clip takes to transcribe, in a batch, measured after a batch that warms up."""
    from ...loaders.audio import resample
    from ...loaders.records import SAMPLE_RATE

    subset, language = kitchen.recipe.subsets[0]
    queries = kitchen.queries(subset)[: 2 * TIMED_CLIPS]
    clips = [resample(kitchen.source.speech(q).samples, SAMPLE_RATE, transcriber.sample_rate) for q in queries]
    transcriber.transcribe(clips[:TIMED_CLIPS], language=language)
    started = time.perf_counter()
    transcriber.transcribe(clips[TIMED_CLIPS:], language=language)
    return (time.perf_counter() - started) / len(clips[TIMED_CLIPS:])


def affordable_queries(clip_s: float, languages: int, budget_s: float) -> int:
    """How many queries per language fit into `budget_s`, a multiple of 4 (the collection has four domains).

    >>> affordable_queries(0.5, 3, 300.0)
    24
    """
    clips = max(0.0, budget_s - SETUP_SECONDS) / clip_s
    fitting = math.floor(clips / (languages * len(CONDITIONS)) / 4) * 4
    return max(FEWEST_QUERIES, fitting)
