"""The main job: recognizers × languages → results. Each clip is heard once per recognizer, once per utterance if clean.

What was heard is kept by content as it is heard, by one process or many, so an evaluation that was killed continues;
what fails does not lose the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import DataError, SqutrError, StorageError, UsageError
from ...loaders.rir_mega.data import PairData
from ...loaders.rir_mega.opening import open_pairs
from ..evaluation.environment import environment
from ..evaluation.evaluate import (
    ConfigFailure,
    Evaluation,
    main_only,
    open_store,
    options_of,
    part_folder,
    raise_failures,
)
from ..evaluation.listeners import Ear, Ready, Tools
from ..evaluation.listening import hear_all
from ..evaluation.plan import Cell
from ..evaluation.samples import keep_nothing
from ..metering import Meter
from ..metrics.paired_arms import Draws
from ..processes import Alone, Processes
from ..progress import Progress
from ..protocols import FrontEnd
from .arms import CLEAN, REVERB, PairArms
from .measuring import drawn_clips, measure
from .recognizers import Recognizer, check_recognizers, load_recognizers
from .recording import AUTO, Cost, Made, Settings, config_of, normalizer_for, record
from .results import PairRecord, Result, write_record, write_result
from .samples import chosen_pairs, write_samples


@dataclass(frozen=True, slots=True)
class Options:
    """How to evaluate.

    `normalizer` is a text normalizer, or `auto`: `whisper` for English, `default` elsewhere. `resamples`,
    `permutations` and `seed` are those of intervals and tests. `limit` (pairs; 0: all) and `fraction` take a part of
    every language: such results are marked partial. `samples` is how many pairs per language keep their clips for the
    report. `strict` fails a config in which any clip failed. `latency` is how many clips are timed one at a time, by
    each recognizer in a process of its own (0: none).
    """

    normalizer: str = AUTO
    resamples: int = 1000
    permutations: int = 10_000
    seed: int = 0
    limit: int = 0
    fraction: float = 1.0
    samples: int = 3
    strict: bool = False
    latency: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1 or self.permutations < 1 or self.samples < 0 or self.latency < 0:
            raise UsageError(
                f"{self.resamples} resamples, {self.permutations} permutations, {self.samples} samples, "
                f"{self.latency} latencies.",
                hint="Give at least 1, 1, 0 and 0.",
            )

    @property
    def draws(self) -> Draws:
        """How intervals and tests draw."""
        return Draws(self.seed, self.resamples, self.permutations)

    @property
    def part(self) -> str:
        """The folder of partial results below `out`; "" for full ones."""
        return part_folder(self.limit, self.fraction, self.seed)


def run_evaluation(
    recognizers: Sequence[Recognizer],
    data: PairData,
    *,
    split: str = "test",
    out: Path | None = None,
    cache: Path | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    processes: Processes | None = None,
    trust_remote_code: bool = False,
) -> Evaluation[PairRecord]:
    """Evaluate every recognizer on every language of a split that it was made for.

    With `out`, records are written there; one that lies there already, made from the same inputs, is kept. With
    `cache`, what was heard is kept in that folder; several `processes` need one.

    Raises `UsageError` for wrong names, `DataError` if no recognizer supports any language, `StorageError` if the disk
    refuses. What fails otherwise fails its recognizer on its language only, and is listed in the evaluation.
    """
    chosen, group = options or Options(), processes or Alone()
    if group.size > 1 and cache is None:
        raise UsageError(
            "several processes need a cache: it is where they share their work.", hint="Leave --no-cache out."
        )
    check_recognizers(recognizers)
    arms = PairArms(data, split=split, limit=chosen.limit, fraction=chosen.fraction, seed=chosen.seed)
    for language in arms.languages:
        normalizer_for(chosen.normalizer, language)  # said before anything is heard
    target = out / chosen.part if out is not None and chosen.part else out
    jobs = _jobs(recognizers, arms)
    store = open_store(cache, group)
    tools = Tools(group, store, None, lambda _: keep_nothing, main_only(progress, group))
    with Meter() as meter:
        listened = hear_all(arms, jobs, tools)
    evaluation: Evaluation[PairRecord] = Evaluation([], out=target)
    if group.rank == 0:
        cost = Cost(meter.peak_memory_mb, meter.peak_gpu_memory_mb, meter.energy_j)
        settings = Settings(chosen.draws, chosen.normalizer, environment(), group.size, chosen.strict)
        made = Made(arms, listened, settings, cost)
        tell = main_only(progress, group)
        work = [(one, language) for one in recognizers for language in arms.languages if one.supports(language)]
        for done, (recognizer, language) in enumerate(work):
            tell("scoring", done, len(work))
            try:
                found, kept = record(made, recognizer, language, plain=_has_plain(recognizer, recognizers), out=target)
                if target is not None and not kept:
                    write_record(target, found)
                evaluation.records.append(found)
                if chosen.latency and found.result.measured is None:
                    timed = _measured(found, made, recognizer, chosen, trust_remote_code=trust_remote_code)
                    evaluation.records[-1] = timed
                    if target is not None:
                        write_result(target, timed.result)
            except StorageError:
                raise
            except SqutrError as error:
                evaluation.failures.append(ConfigFailure(recognizer.name, config_of(language, split), error))
        tell("scoring", len(work), len(work))
        if target is not None:
            _keep_samples(target, arms, recognizers, chosen)
    if store is not None:
        group.gather(None)
        store.close()
    return evaluation


def _jobs(recognizers: Sequence[Recognizer], arms: PairArms) -> dict[str, tuple[Ear | Ready, list[Cell]]]:
    """What listens to which cells. Raises `DataError` if nothing listens to anything."""
    jobs: dict[str, tuple[Ear | Ready, list[Cell]]] = {}
    for one in recognizers:
        cells = [(language, arm) for language in arms.languages if one.supports(language) for arm in (CLEAN, REVERB)]
        if cells:
            jobs[one.ear.key] = (one.ear, cells)
    if not jobs:
        raise DataError(
            f"no transcriber supports {', '.join(arms.languages)}.", hint="Choose other transcribers or other data."
        )
    return jobs


def _has_plain(recognizer: Recognizer, others: Sequence[Recognizer]) -> bool:
    """Whether the same transcriber is evaluated without the front end too."""
    if recognizer.front_end is None:
        return False
    return any(one.ear.key == recognizer.plain.ear.key for one in others)


def _measured(
    found: PairRecord, made: Made, recognizer: Recognizer, options: Options, *, trust_remote_code: bool
) -> PairRecord:
    language = found.result.data.language
    clips = drawn_clips(made.arms, language, options.latency, options.seed)
    measured = measure(recognizer, language, clips, trust_remote_code=trust_remote_code)
    if measured is None:
        return found
    timing = found.result.timing.model_copy(update={"latency": measured[0]})
    return replace(found, result=found.result.model_copy(update={"timing": timing, "measured": measured[1]}))


def _keep_samples(target: Path, arms: PairArms, recognizers: Sequence[Recognizer], options: Options) -> None:
    front_ends: dict[str, FrontEnd] = {
        one.front_end.spec.name: one.front_end for one in recognizers if one.front_end is not None
    }
    for language in arms.languages:
        write_samples(target, arms, language, chosen_pairs(arms, language, options.samples, options.seed), front_ends)


def evaluate_rir_mega(
    transcribers: Recognizer | str | Sequence[Recognizer | str],
    *,
    data: PairData | Path | str,
    front_ends: Sequence[str] = (),
    preset: str = "",
    split: str = "test",
    out: Path | str | None = None,
    cache: Path | str | None = None,
    progress: Progress | None = None,
    processes: Processes | None = None,
    **options: int | float | bool | str,
) -> list[Result]:
    """Evaluate transcribers on pairs of clean and reverberant clips, and return their results (see `run_evaluation`).

    A transcriber is written as in `load_recognizers`, which also makes it behind each of `front_ends`, or is a
    `Recognizer`. `data` is what `open_pairs` opens, or anything that is `PairData`; `options` are the fields of
    `Options`, for example `limit=100`.

    Raises `EvaluationFailed` if some failed; the results of the others are written.
    """
    given = [transcribers] if isinstance(transcribers, Recognizer | str) else list(transcribers)
    chosen = options_of(Options, options)
    written = [one for one in given if isinstance(one, str)]
    loaded = load_recognizers(written, front_ends, preset=preset) if written else []
    done = run_evaluation(
        [*loaded, *(one for one in given if isinstance(one, Recognizer))],
        open_pairs(str(data)) if isinstance(data, str | Path) else data,
        split=split,
        out=Path(out) if out is not None else None,
        cache=Path(cache) if cache is not None else None,
        options=chosen,
        progress=progress,
        processes=processes,
    )
    raise_failures(done)
    return [one.result for one in done.records]


__all__ = [
    "Evaluation",
    "Options",
    "Recognizer",
    "evaluate_rir_mega",
    "run_evaluation",
]
