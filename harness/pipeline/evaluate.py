"""The main job: systems × configs → results.

A sound is transcribed once per transcriber for all retrievers, a corpus indexed once per retriever for all conditions
and transcribers. Transcripts are cached as they are made, so an evaluation that was killed continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import UsageError
from ...loaders.paired import PairedData
from ..data import open_data
from ..results import Result, RunRecord, write_run
from ..transcript_cache import TranscriptCache
from .environment import environment
from .plan import make_plan
from .recording import Settings, record_system
from .stages import Progress, Samples, search_all, transcribe_all
from .system import Cascade, parse_system

LEAST_DEPTH = 10


def evaluate_runs(
    systems: Sequence[Cascade],
    data: PairedData,
    *,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    depth: int = 100,
    resamples: int = 1000,
    seed: int = 0,
    samples: int = 2,
    progress: Progress | None = None,
) -> list[RunRecord]:
    """Evaluate every system on every config that both of its parts were made for; `text` is added by itself.

    `configs` are names such as `zh_high_noise` or `fiqa_clean` (None: every language under every condition at hand).
    `depth` is how many documents are retrieved (at least 10). With `out`, runs are written there, with the clips of
    `samples` queries per subset for the report's players. With `cache`, transcripts are kept in that folder.

    Raises `UsageError` for wrong names and `DataError` if no system supports any language of the configs.
    """
    if depth < LEAST_DEPTH:
        raise UsageError(f"the depth is {depth}.", hint=f"The metrics need at least {LEAST_DEPTH} documents.")
    if resamples < 1 or samples < 0:
        raise UsageError(f"{resamples} resamples, {samples} samples.", hint="Give at least 1 and 0.")
    tell = progress or _silent
    plan = make_plan(systems, data, configs)
    store = TranscriptCache(cache) if cache is not None else None
    heard = transcribe_all(plan, store, Samples(out, samples, seed), tell)
    searches = search_all(plan, heard, depth, tell)
    settings = Settings(depth, resamples, seed, environment())
    records = [r for system in systems for r in record_system(plan, system, heard, searches, settings)]
    if out is not None:
        for record in records:
            write_run(out, record)
    return records


def _silent(stage: str, done: int, total: int) -> None:
    pass


def evaluate(
    system: Cascade | str | Sequence[Cascade | str],
    *,
    data: PairedData | Path | str,
    configs: Sequence[str] | None = None,
    out: Path | str | None = None,
    cache: Path | str | None = None,
    depth: int = 100,
    resamples: int = 1000,
    seed: int = 0,
    samples: int = 2,
    progress: Progress | None = None,
) -> list[Result]:
    """Evaluate one or several systems and return their results, `text` included (see `evaluate_runs`).

    A system is a `Cascade` or its written form, for example `"faster-whisper:whisper-base + bm25"`; `data` a folder
    that `squtr build` wrote, `release:PATH`, or anything that is `PairedData`.
    """
    store = Path(cache) if cache is not None else None
    given = [system] if isinstance(system, str | Cascade) else list(system)
    records = evaluate_runs(
        [parse_system(s, cache=store) if isinstance(s, str) else s for s in given],
        open_data(str(data)) if isinstance(data, str | Path) else data,
        configs=configs,
        out=Path(out) if out is not None else None,
        cache=store,
        depth=depth,
        resamples=resamples,
        seed=seed,
        samples=samples,
        progress=progress,
    )
    return [record.result for record in records]
