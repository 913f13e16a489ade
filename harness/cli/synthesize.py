"""Synthesize speech for all queries of a source into a folder, check its quality, and write the index that sources
read.

A stopped run continues: run the same command again. What fails quality control stays out of the index and is listed
with its reasons.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import Bars, Extend, note, say, say_json
from .rating import NONE, add_engine_options, engine_from, ratings_from

EXAMPLE = """example:
  squtr synthesize --source 'beir:data/fiqa?language=en' --engine espeak --out clips
  squtr build --source 'beir:data/fiqa?language=en&speech=clips&missing=skip' --out data
  squtr synthesize --source mini --engine cosyvoice --out clips --on ray --actors 4 --gpus-per-actor 0.5
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="NAME", help="a source of texts, for example beir:PATH")
    parser.add_argument("--languages", action=Extend, nargs="+", metavar="LANG", help="languages to take (all)")
    parser.add_argument(
        "--on-bad", default="refuse", metavar="WHAT", help="rows that break a rule: refuse, or skip (left out) (refuse)"
    )
    parser.add_argument("--subsets", action=Extend, nargs="+", metavar="SUBSET", help="subsets to take (all)")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="queries per subset, stratified; 0: all (0)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
    add_engine_options(parser)
    parser.add_argument(
        "--voices", action=Extend, nargs="+", default=[], metavar="NAME", help="voices to draw from (all)"
    )
    parser.add_argument(
        "--candidates", type=int, metavar="N", help="takes per query to compare (3 for neural engines, else 1)"
    )
    parser.add_argument(
        "--transcriber",
        action=Extend,
        nargs="+",
        metavar="NAME",
        help="rates the takes; of two, of different families, the worse rate counts; none: no rating (whisper-base)",
    )
    parser.add_argument(
        "--max-error-rate", type=float, default=0.30, metavar="R", help="higher error rates are rejected (0.30)"
    )
    parser.add_argument(
        "--judges",
        action=Extend,
        nargs="+",
        default=[],
        metavar="MODEL[,URL[,VARIABLE]]",
        help="models with audio input at OpenAI-compatible APIs; VARIABLE is the environment variable with the key",
    )
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="clips judged at a time (4)")
    parser.add_argument("--on", default="here", metavar="PLACE", help="speak here, or on a ray cluster (here)")
    parser.add_argument("--actors", type=int, default=0, metavar="N", help="synthesizers on ray; 0: all it holds (0)")
    parser.add_argument(
        "--gpus-per-actor", type=float, default=0.0, metavar="F", help="GPUs of each, also a share as 0.5 (0)"
    )
    parser.add_argument("--ray-address", metavar="ADDR", help="the Ray cluster (the running one, or a local one)")
    parser.add_argument("--json", action="store_true", help="print the quality report as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    import json

    from ...errors import UsageError
    from ...loaders.home import squtr_home
    from ...loaders.left_out import left_out_of
    from ...loaders.quality.decisions import QualityLimits, decide, write_decisions
    from ...loaders.quality.report import quality_report, quality_table
    from ...loaders.recipe import choose_queries, choose_subsets
    from ...loaders.sources import load_source
    from ...loaders.sources.selection import REPORT
    from ...loaders.sources.usable import UsableSource
    from ...loaders.synthesis.backends import SYNTHESIZERS, quality_of
    from ...loaders.synthesis.ray_speaking import load_speech_engine
    from ...loaders.synthesis.speech_folder import SpeechFolder, write_text
    from ...loaders.synthesis.synthesizing import Speaking, choose_voices, synthesize
    from ..components.speech_judge import ChatJudge, parse_judge
    from ..evaluation.run import counted

    if arguments.limit < 0:
        raise UsageError(f"the limit is {arguments.limit}.", hint="Give the number of queries per subset, or 0.")
    if not arguments.max_error_rate >= 0:
        raise UsageError(f"the highest error rate is {arguments.max_error_rate}.", hint="Give 0 or more.")
    engine = engine_from(arguments)
    backend = SYNTHESIZERS[arguments.engine]
    candidates = backend.candidates if arguments.candidates is None else arguments.candidates
    if candidates < 1:
        raise UsageError(f"the number of candidates is {candidates}.", hint="Give 1 or more.")
    transcribers = arguments.transcriber or ["whisper-base"]
    if arguments.candidates is not None and candidates > 1 and transcribers == [NONE]:
        raise UsageError("several takes cannot be compared without a transcriber.", hint="Choose one.")
    place = load_speech_engine(
        arguments.on,
        ray_address=arguments.ray_address,
        actors=arguments.actors,
        gpus_per_actor=arguments.gpus_per_actor,
    )
    judges = [ChatJudge(parse_judge(text), cache=squtr_home() / "judges") for text in arguments.judges]
    source = load_source(arguments.source, on_bad=arguments.on_bad)
    if isinstance(source, UsableSource):
        # Its texts are spoken anew, whatever its recordings are.
        source = source.source
    for entry in left_out_of(source) if arguments.on_bad == "skip" else ():
        note(f"squtr: left out: {entry}.")
    subsets = choose_subsets(source, arguments.languages, arguments.subsets)
    queries = [
        query for subset in subsets for query in choose_queries(source.queries(subset), arguments.limit, arguments.seed)
    ]
    if not queries:
        raise UsageError(f"no query of {arguments.source!r} is chosen.", hint="Leave an option out.")
    languages = list(dict.fromkeys(subsets.values()))
    chosen = choose_voices(engine, arguments.voices, languages)
    for language in languages:
        if quality := quality_of(arguments.engine, language):
            note(f"squtr: {language}: {quality}.")
    speaking = Speaking(
        engine,
        ratings_from(transcribers, arguments.threads, languages),
        chosen,
        candidates,
        backend.vary,
        not arguments.no_spoken_form,
        arguments.seed,
    )
    folder = SpeechFolder(arguments.out)
    limits = QualityLimits(error_rate=arguments.max_error_rate)
    with Bars() as show:
        spoken = 0

        def tell_spoken(n: int) -> None:
            nonlocal spoken
            spoken += n
            show("speaking", spoken, len(queries))

        synthesize(queries, folder, speaking, tell_spoken, engine=place)
        # All that the folder holds, also from runs over other subsets: the index is of the folder.
        total, checked = len(folder.rows()), 0

        def tell_checked(n: int) -> None:
            nonlocal checked
            checked += n
            show("checking", checked, total)

        decisions = decide(folder, judges=judges, limits=limits, workers=arguments.workers, progress=tell_checked)
    write_decisions(folder, decisions)
    report = quality_report(decisions, limits)
    write_text(arguments.out / REPORT, json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    accepted = report["total"]["accepted"]
    if arguments.json:
        say_json({"folder": str(arguments.out), **report})
    else:
        say(quality_table(report))
        joint = "&" if "?" in arguments.source else "?"
        say(f"Wrote {accepted:,} of {total:,} queries into {arguments.out}.")
        say(f"Build: squtr build --source '{arguments.source}{joint}speech={arguments.out}&missing=skip'")
        say(f"Review: squtr review {arguments.out}")
    untranscribed = [one.row for one in decisions if one.row.transcript_error]
    if untranscribed:
        note(
            f"squtr: {counted(len(untranscribed), 'clip')} could not be transcribed, first {untranscribed[0].id!r}: "
            f"{untranscribed[0].transcript_error.rstrip('.')}. Run the same command again to try again."
        )
    if not accepted:
        note("squtr: no query was accepted; the reasons are in rejected.jsonl.")
    return 0 if accepted else 1
