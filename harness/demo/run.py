"""The demo of a benchmark: build, evaluate, report, on embedded data with weights that packages carry."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmarks import Benchmark, Demo
from ..progress import Bars, counting

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...loaders.recipe import OpenedRecipe
    from ..evaluation.run import Evaluation
    from ..protocols import Transcriber
    from ..systems import System

TIMED_CLIPS = 8
SETUP_SECONDS = 60.0
"""What building, dense retrieval, scoring and the report take together, allowed for before items are counted."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a demo made: the evaluation, the data (as `--data` takes it), the page."""

    evaluation: Evaluation
    data: str
    report: Path
    seconds: float


def run_demo(
    row: Benchmark,
    demo: Demo,
    out: Path,
    *,
    items: int,
    minutes: float,
    seed: int,
    languages: Sequence[str],
    note: Callable[[str], None],
) -> Finished:
    """Run, or continue, a demo below `out`, on `items` per language (0: as many as `minutes` allow)."""
    from ...loaders.home import squtr_home
    from ..data import open_data
    from ..evaluate import evaluate_records
    from ..evaluation.options import Options
    from ..report import write_report
    from ..systems import load_systems

    started = time.perf_counter()
    cache = squtr_home()
    systems = load_systems(demo.systems, preset=demo.preset, cache=cache)
    data = demo.source
    if demo.conditions:
        data = str(out / "data")
        _build(
            row, demo, out / "data", systems, items=items, minutes=minutes, seed=seed, languages=languages, note=note
        )
    note("Evaluating …")
    with Bars() as show:
        evaluation = evaluate_records(
            systems,
            open_data(data),
            benchmark=row,
            out=out,
            cache=cache,
            options=Options(seed=seed, baselines=demo.baselines, limit=0 if demo.conditions else items),
            progress=show,
        )
    evaluation.raise_failures()
    place = evaluation.out or out
    report = write_report(place, place / "report.html", title=f"squtr demo: {row.title}")
    return Finished(evaluation, data, report, time.perf_counter() - started)


def _build(
    row: Benchmark,
    demo: Demo,
    folder: Path,
    systems: Sequence[System],
    *,
    items: int,
    minutes: float,
    seed: int,
    languages: Sequence[str],
    note: Callable[[str], None],
) -> None:
    from ...loaders.build import build, count_clips
    from ...loaders.manifest import MANIFEST_NAME, read_manifest
    from ...loaders.recipe import open_recipe

    chosen: dict[str, Any] = {"languages": list(languages), "seed": seed, "benchmark": row.name}
    options = {k: v for k, v in {**row.build, **demo.build, **chosen}.items() if k not in {"source", "conditions"}}
    # Checks languages before anything takes time.
    probe = open_recipe(demo.source, conditions=["clean"], languages=languages, seed=seed)
    # A plan deals RIRs to utterances of all subsets together.
    number, subsets = ("utterances", len(probe.recipe.subsets)) if options.get("stratify") else ("limit", 1)
    if not items and (folder / MANIFEST_NAME).exists():
        items = int(read_manifest(folder).recipe[number]) // subsets
    if not items:
        note("Timing the transcribers on a few clips …")
        transcribers = {
            one.spec.fingerprint: one for system in systems if (one := system.model_transcriber) is not None
        }
        clip_s = seconds_per_clip(list(transcribers.values()), probe)
        items = affordable_items(clip_s * demo.clips * len(probe.recipe.subsets), minutes * 60, demo)
    items = min(items, *(len(probe.queries(subset)) for subset, _ in probe.recipe.subsets))
    opened = open_recipe(demo.source, conditions=demo.conditions, **options | {number: items * subsets})
    total = count_clips(opened)
    note(f"{items} utterances per language, {total} clips: building them …")
    with Bars() as show:
        build(opened, folder, progress=counting(show, "building clips", total))


def seconds_per_clip(transcribers: Sequence[Transcriber], opened: OpenedRecipe) -> float:
    """The time in s that one clip takes with all of them, in a batch, measured after a batch that warms up."""
    from ...loaders.audio import resample
    from ...loaders.records import SAMPLE_RATE

    subset, language = opened.recipe.subsets[0]
    speech = [opened.source.speech(query).samples for query in opened.queries(subset)[: 2 * TIMED_CLIPS]]
    taken = 0.0
    for transcriber in transcribers:
        clips = [resample(samples, SAMPLE_RATE, transcriber.sample_rate) for samples in speech]
        transcriber.transcribe(clips[:TIMED_CLIPS], language=language)
        started = time.perf_counter()
        transcriber.transcribe(clips[TIMED_CLIPS:], language=language)
        taken += (time.perf_counter() - started) / len(clips[TIMED_CLIPS:])
    return taken


def affordable_items(item_s: float, budget_s: float, demo: Demo) -> int:
    """How many items per language fit into `budget_s`, a multiple of the demo's step, at least its fewest.

    >>> demo = Demo((), "mini", ("en",), step=4, fewest=8)
    >>> affordable_items(9.0, 300.0, demo), affordable_items(100.0, 300.0, demo)
    (24, 8)
    """
    fitting = max(0.0, budget_s - SETUP_SECONDS) / item_s
    return max(demo.fewest, math.floor(fitting / demo.step) * demo.step)
