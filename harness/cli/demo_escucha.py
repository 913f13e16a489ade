"""What the embedded ESCUCHA set shows: a cascade without language model against the same reader without the sound."""

from __future__ import annotations

import time
from pathlib import Path

from .common import bars, note, say

ANSWERERS = ("faster-whisper:whisper-base + embedder:multilingual-e5-small",)


def run_demo(out: Path, *, limit: int = 0, seed: int = 0) -> int:
    """Ask the cascade and the text-only control all questions (`limit` 0), print the tables, write the report."""
    from ...loaders.home import squtr_home
    from ...loaders.questions.data import QuestionData
    from ..escucha.answerers import load_answerers
    from ..escucha.evaluate import Options, run_evaluation
    from ..report.escucha.page import write_report
    from .evaluate_escucha import report

    started = time.perf_counter()
    data = QuestionData("mini")
    note(f"{len(data.questions())} questions about {data.coverage().seconds / 60:.1f} minutes of sound …")
    with bars() as progress:
        evaluation = run_evaluation(
            load_answerers(ANSWERERS),
            data,
            out=out,
            cache=squtr_home(),
            options=Options(controls=("text-only", "shuffled"), limit=limit, seed=seed),
            progress=progress,
        )
    status = report(evaluation, out, as_json=False)
    if evaluation.records:
        folder = evaluation.out or out
        say(f"Page: {write_report(folder, folder / 'report.html', title='squtr demo: ESCUCHA')}")
    say(f"Took {(time.perf_counter() - started) / 60:.1f} minutes.")
    say("")
    say("The reader only compares texts. A model that hears is evaluated alike:")
    say("  squtr evaluate escucha chat:MODEL --data mini --controls text-only --out run")
    return status
