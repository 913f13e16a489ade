"""Build a data set into a folder that `datasets.load_dataset` reads. A stopped build continues.

Speech gives paired clips: every utterance under every condition. A table of questions about audio gives a set of
questions, which is checked first. --benchmark takes the source and the options of a published benchmark; options that
are given as well replace them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...loaders.conditions import STANDARD_CONDITIONS
from .build_questions import build_questions
from .build_speech import CONDITIONS, build_speech
from .common import Extend, check_options

if TYPE_CHECKING:
    from ..benchmarks import Benchmark

EXAMPLE = """example:
  squtr build --source mini --languages en zh --conditions clean high_noise reverb_medium_noise --out data
  python -c "from datasets import load_dataset; print(load_dataset('data', 'zh_high_noise', split='test'))"
  squtr build --benchmark rir_mega --source mini --languages en --rirs simulated --out rooms-en

  squtr build --source questions.jsonl --audio audio --license CC-BY-4.0 --out my-set
  squtr build --source questions.tsv --audio audio --field notas=- --speak 100 --out my-set

A table of questions is .jsonl, .json, .tsv or .csv, with one row per question:
  {"id": "q1", "audios": ["clip-7"], "question": "¿Qué pide?", "options": ["Un té", "Un café"], "answer": "Un café",
   "perception": ["lexical"], "reasoning": ["factual"]}
  {"id": "q2", "audios": ["clip-7"], "question": "Resúmelo en una frase.", "perception": ["lexical"],
   "reasoning": ["abstraction"], "verifiers": [{"id": "sentences", "count": 1, "relation": "exactly"}]}
"""

SPEECH, QUESTIONS = "speech", "questions"
ENGINE_OPTIONS = ("workers", "engine", "ray_address")
OPTIONS = {
    SPEECH: (
        "add", "languages", "subsets", "limit", "utterances", "splits", "divided", "shared_speakers",
        "conditions",
        "noise", "rirs", "channel", "speech_channel",
        "level", "on_bad",
        "sample_rate", "draws", "rirs_per_utterance", "stratify", "rt60_bins", "drr_bins", "known_rirs_only", "seed",
        *ENGINE_OPTIONS,
    ),
    QUESTIONS: (
        "audio", "name", "license", "language", "field", "allow_missing", "speak", "synthesizer", "voices",
        "voice_files", "check", "seed",
    ),
}  # fmt: skip
TASK_DATA = {"understanding": QUESTIONS}
"""Task to the kind of data that it needs; speech where it is not listed."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--benchmark", default="", metavar="NAME", help="a published benchmark, for its options (none)")
    parser.add_argument(
        "--source",
        action=Extend,
        nargs="+",
        metavar="NAME",
        help="speech: mini, a collection folder, beir:PATH?language=en, mteb:ORG/NAME@COMMIT, release:PATH,"
        " librispeech:PART, recorded:PATH; ?speech=DIR adds recordings to texts; several make one set."
        " Questions: a table, or a published set"
        " that was fetched (mini, or that of the benchmark)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder to write ($SQUTR_HOME/BENCHMARK)")
    parser.add_argument("--json", action="store_true", help="print one JSON object about what was built")
    parser.add_argument("--seed", type=int, default=argparse.SUPPRESS, metavar="N", help="seed of every keyed draw (0)")
    speech = parser.add_argument_group(SPEECH, argument_default=argparse.SUPPRESS)
    speech.add_argument(
        "--add", action="store_true", help="add subsets or conditions to what --out holds, with its options"
    )
    speech.add_argument(
        "--languages", action=Extend, nargs="+", metavar="LANG", help="languages to take, for example en zh (all)"
    )
    speech.add_argument(
        "--on-bad",
        metavar="WHAT",
        help="rows and recordings that break a rule: refuse, or skip (left out, counted) (refuse)",
    )
    speech.add_argument("--subsets", action=Extend, nargs="+", metavar="SUBSET", help="subsets to take (all)")
    speech.add_argument(
        "--conditions",
        action=Extend,
        nargs="+",
        metavar="COND",
        help=f"{', '.join(STANDARD_CONDITIONS)}, or any level as snr_-5, reverb_snr_5 ({' '.join(CONDITIONS)})",
    )
    speech.add_argument(
        "--noise",
        action=Extend,
        nargs="+",
        metavar="BANK",
        help="noise bank or folder; PLACE=BANK for a subset or language alone; ?family=NAME,NAME (synthetic)",
    )
    speech.add_argument("--rirs", metavar="BANK", help="bank or folder of room impulse responses (simulated)")
    speech.add_argument(
        "--channel", type=int, metavar="N", help="channel (from 0) of noises and RIRs that have several"
    )
    speech.add_argument(
        "--speech-channel", metavar="N", help="channel (from 0) of speech that has several, or mean for their mean"
    )
    speech.add_argument("--level", metavar="LEVEL", help="SNR over the whole clip or active speech (whole)")
    speech.add_argument("--limit", type=int, metavar="N", help="queries per subset, stratified; 0: all (0)")
    speech.add_argument("--utterances", type=int, metavar="N", help="utterances in total; 0: all (0)")
    speech.add_argument(
        "--splits",
        action=argparse.BooleanOptionalAction,
        help="splits validation and test, which share no room (of the benchmark; with --no-splits all is test)",
    )
    speech.add_argument(
        "--divide",
        action="store_true",
        dest="divided",
        help="splits train, validation and test, which share no utterance, speaker, noise and room",
    )
    speech.add_argument(
        "--shared-speakers", action="store_true", help="with --divide: a speaker may be in several splits"
    )
    speech.add_argument("--sample-rate", type=int, metavar="HZ", help="of the clips (24000)")
    speech.add_argument(
        "--draws", type=int, metavar="N", help="draws of noise that each utterance gets, a row each (1)"
    )
    speech.add_argument("--rirs-per-utterance", type=int, metavar="N", help="RIRs that each utterance gets (1)")
    speech.add_argument("--stratify", metavar="HOW", help="rt60, or rt60+drr: draw RIRs evenly from bins of these (no)")
    speech.add_argument("--rt60-bins", type=int, metavar="N", help="bins of RT60, by quantiles (5)")
    speech.add_argument("--drr-bins", type=int, metavar="N", help="bins of DRR, by quantiles (5)")
    speech.add_argument(
        "--known-rirs-only", action="store_true", help="leave out RIRs of which RT60 or DRR cannot be measured"
    )
    speech.add_argument("--workers", type=int, metavar="N", help="threads; 0: one per core (0)")
    speech.add_argument("--engine", metavar="NAME", help="threads, or ray for a cluster (threads)")
    speech.add_argument("--ray-address", metavar="ADDR", help="the Ray cluster (the running one, or a local one)")
    questions = parser.add_argument_group(QUESTIONS, argument_default=argparse.SUPPRESS)
    questions.add_argument(
        "--audio", type=Path, metavar="DIR", help="the folder of audio, by id (audio, beside the table)"
    )
    questions.add_argument("--name", metavar="NAME", help="the set's name (that of the table)")
    questions.add_argument("--license", metavar="TEXT", help="license of text and audio, SPDX identifiers (unknown)")
    questions.add_argument("--language", metavar="LANG", help="language of questions and audio (es)")
    questions.add_argument(
        "--field", action=Extend, nargs="+", metavar="SPELLING=FIELD", help="what a column means; - leaves it out"
    )
    questions.add_argument("--allow-missing", action="store_true", help="keep items whose audio is not there")
    questions.add_argument("--speak", type=int, metavar="N", help="questions to speak, drawn by rare labels (0)")
    questions.add_argument("--synthesizer", metavar="NAME", help="what speaks them (espeak)")
    questions.add_argument("--voices", action=Extend, nargs="+", metavar="VOICE", help="voices to draw from (all)")
    questions.add_argument("--voice-files", type=Path, metavar="DIR", help="Kokoro: a folder of voices (*.bin)")
    questions.add_argument("--check", action="store_true", help="check and report only, write nothing")


def run(arguments: argparse.Namespace) -> int:
    from ...loaders.questions.data import names_questions
    from ..benchmarks import benchmark

    row: Benchmark | None = benchmark(arguments.benchmark) if arguments.benchmark else None
    defaults: dict[str, Any] = dict(row.build) if row else {}
    default_source = defaults.pop("source", "") or (row.source if row else "") or "mini"
    sources: list[str] = arguments.source or [default_source]
    questions = [source for source in sources if names_questions(source)]
    kind = TASK_DATA.get(row.task, SPEECH) if row else QUESTIONS if questions else SPEECH
    given = defaults | check_options(arguments, OPTIONS, kind, f"the source {sources[0]}, which has {kind}")
    if kind == SPEECH:
        return build_speech(arguments, sources, **given)
    if len(sources) > 1:
        raise UsageError("a set of questions has one source.", hint="Join the tables, or build a set of each.")
    return build_questions(arguments, sources[0], **given)
