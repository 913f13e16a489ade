"""The benchmark rir_mega once, on embedded speech in simulated rooms: build, recognize, score, report."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .common import bars, counting, note, say

if TYPE_CHECKING:
    from ..protocols import Transcriber

TRANSCRIBERS = ("whisper-tiny.en", "whisper-base")
SPEECH, ROOMS, LANGUAGE = "mini", "simulated", "en"
ROOMS_PER_UTTERANCE = 2
TIMED_CLIPS = 4
FEWEST_UTTERANCES = 20
TEST_SHARE = 0.8
SETUP_SECONDS = 60.0
"""What measuring rooms, building, scoring and the report take together, allowed for before utterances are counted."""


def run_demo(out: Path, *, pairs: int, minutes: float, seed: int) -> int:
    """Run the demo: `pairs` of clips (0: as many as `minutes` allow), results and report below `out`."""
    from ...loaders.home import squtr_home
    from ...loaders.manifest import MANIFEST_NAME
    from ...loaders.rir_mega.build import build_pairs, count_pairs
    from ...loaders.rir_mega.data import RirMegaData
    from ...loaders.rir_mega.manifest import read_pair_manifest
    from ...loaders.rir_mega.recipe import open_pair_kitchen
    from ..report.rir_mega import summary_table, write_report
    from ..rir_mega.evaluate import Options, run_evaluation
    from ..rir_mega.recognizers import load_recognizers

    started = time.perf_counter()
    recognizers = load_recognizers(TRANSCRIBERS)
    folder = out / "data"
    if not pairs and (folder / MANIFEST_NAME).exists():
        pairs = int(read_pair_manifest(folder).recipe["pairs"])
    if not pairs:
        note("Timing the recognizers on a few clips …")
        listeners = [one.listener for one in recognizers if one.listener is not None]
        pairs = affordable_pairs(seconds_per_clip(listeners), minutes * 60, utterances())
    pairs = math.ceil(pairs / ROOMS_PER_UTTERANCE) * ROOMS_PER_UTTERANCE
    with bars() as show:
        kitchen = open_pair_kitchen(
            SPEECH,
            ROOMS,
            pairs=pairs,
            rooms_per_utterance=ROOMS_PER_UTTERANCE,
            languages=[LANGUAGE],
            seed=seed,
            progress=lambda done, total: show("measuring rooms", done, total),
        )
        total = count_pairs(kitchen)
        note(f"{total} pairs of clean and reverberant clips: building them …")
        build_pairs(kitchen, folder, progress=counting(show, "building pairs", total))
    note("Recognizing the test split …")
    with bars() as show:
        done = run_evaluation(
            recognizers,
            RirMegaData(folder),
            out=out,
            cache=squtr_home(),
            options=Options(seed=seed),
            progress=show,
        )
    for failure in done.failures:
        raise failure.error
    report = write_report(out, out / "report.html", title="squtr demo: speech recognition, clean and in rooms")
    say(summary_table(done.records))
    say(f"Took {(time.perf_counter() - started) / 60:.1f} minutes. Written:")
    say(f"  {report}  the report: open it in a browser")
    say(f"  {out / 'results'}  results as JSON, per-pair records as parquet")
    say(f"  {folder}  the data set: datasets.load_dataset('{folder}', 'paired', split='test')")
    say("")
    say("Next:")
    say(f"  squtr evaluate rir_mega whisper-base --front-end spectral-gate wpe --data {folder} --out {out}")
    say("  squtr build rir_mega --speech librispeech:test-clean --rooms rir_mega:train --pairs 2000 --out DIR")
    return 0


def utterances() -> int:
    """How many utterances the embedded speech has in the demo's language."""
    from ...loaders.sources import load_source

    source = load_source(SPEECH)
    return sum(len(source.queries(subset)) for subset, language in source.subsets.items() if language == LANGUAGE)


def seconds_per_clip(transcribers: Sequence[Transcriber]) -> float:
    """The time in s that one clip takes with all of them, measured after as many clips that warm up."""
    from ...loaders.audio import resample
    from ...loaders.rir_mega.rooms import RATE
    from ...loaders.rir_mega.speech import speech_of
    from ...loaders.sources import load_source

    source = load_source(SPEECH)
    subset = next(name for name, language in source.subsets.items() if language == LANGUAGE)
    queries = source.queries(subset)[: 2 * TIMED_CLIPS]
    sounds = [speech_of(source, query).samples for query in queries]
    taken = 0.0
    for transcriber in transcribers:
        clips = [resample(sound, RATE, transcriber.sample_rate) for sound in sounds]
        transcriber.transcribe(clips[:TIMED_CLIPS], language=LANGUAGE)
        started = time.perf_counter()
        transcriber.transcribe(clips[TIMED_CLIPS:], language=LANGUAGE)
        taken += (time.perf_counter() - started) / TIMED_CLIPS
    return taken


def affordable_pairs(clip_s: float, budget_s: float, available: int) -> int:
    """How many pairs fit into `budget_s`: of them the test split is recognized, each utterance clean once.

    >>> affordable_pairs(0.8, 300.0, 68), affordable_pairs(30.0, 300.0, 68), affordable_pairs(2.0, 300.0, 68)
    (136, 40, 100)
    """
    tested = max(0.0, budget_s - SETUP_SECONDS) / (clip_s * (1 + ROOMS_PER_UTTERANCE))
    return ROOMS_PER_UTTERANCE * min(available, max(FEWEST_UTTERANCES, math.floor(tested / TEST_SHARE)))
