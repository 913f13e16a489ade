"""The main job: systems × configs → results.

A sound is heard once per listener for all retrievers, a corpus embedded once per encoder for all conditions and
transcribers, a text searched once per retriever. All of it is kept by content as it is made, by one process or many, so
an evaluation that was killed continues; a config that fails does not lose the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from ...errors import SqutrError, StorageError, UsageError
from ...loaders.paired import PairedData
from ...loaders.partial import PartialData, check_part, part_name
from ..components.encoders.cache import DirectoryEmbeddingCache, EmbeddingCache
from ..data import open_data
from ..metering import Meter
from ..processes import Alone, Processes
from ..progress import Progress
from ..results.old import Result, RunRecord, write_result, write_run
from ..systems.reading import load_systems
from ..systems.system import Cascade, EndToEnd, RunOnly, System
from .environment import environment
from .latency import with_latency
from .listeners import Tools
from .listening import listen_all
from .plan import make_plan
from .recording import Cost, Made, Recorded, Settings, record_system
from .samples import keep_samples
from .searching import search_all
from .store import Store

LEAST_DEPTH = 10


@dataclass(frozen=True, slots=True)
class Options:
    """How to evaluate.

    `depth` is how many documents are retrieved (at least 10), `resamples` and `seed` those of the bootstrap. `samples`
    is how many queries per subset keep their clips for the report's players. `limit` (0: all) and `fraction` take a
    part of every subset: such runs are marked partial. `strict` fails a config in which any query failed. `latency` is
    how many queries of every config are timed one at a time from sound to ranking (0: none).
    """

    depth: int = 100
    resamples: int = 1000
    seed: int = 0
    samples: int = 2
    limit: int = 0
    fraction: float = 1.0
    strict: bool = False
    latency: int = 0

    def __post_init__(self) -> None:
        if self.depth < LEAST_DEPTH:
            raise UsageError(f"the depth is {self.depth}.", hint=f"The metrics need at least {LEAST_DEPTH} documents.")
        if self.resamples < 1 or self.samples < 0 or self.latency < 0:
            raise UsageError(
                f"{self.resamples} resamples, {self.samples} samples, {self.latency} latencies.",
                hint="Give at least 1, 0 and 0.",
            )
        check_part(self.limit, self.fraction)

    @property
    def partial(self) -> bool:
        """Whether only a part is taken."""
        return self.limit > 0 or self.fraction < 1

    @property
    def part(self) -> str:
        """The folder of partial runs below `out`: they stand beside no full ones, nor other parts. "" for full ones."""
        return part_folder(self.limit, self.fraction, self.seed)


def part_folder(limit: int, fraction: float, seed: int) -> str:
    """The folder of a part's results below `out`; "" for those of the whole."""
    name = part_name(limit, fraction, seed)
    return f"partial-{name}" if name else ""


@dataclass(frozen=True, slots=True)
class ConfigFailure:
    """A config that a system could not be evaluated on, and why."""

    system: str
    config: str
    error: SqutrError


class KeyedResult(Protocol):
    """A result that says what it is of."""

    @property
    def key(self) -> tuple[str, str]:
        """System and config."""
        ...


class ResultRecord(Protocol):
    """A result with its tables."""

    @property
    def result(self) -> KeyedResult:
        """The result."""
        ...


Record = TypeVar("Record", bound=ResultRecord)


@dataclass(frozen=True, slots=True)
class Evaluation(Generic[Record]):
    """What an evaluation gave. Processes other than the main one hold no records. `out` is where runs were written."""

    records: list[Record]
    failures: list[ConfigFailure] = field(default_factory=list)
    out: Path | None = None

    @property
    def finished(self) -> int:
        """How many runs did not fail. One whose latency could not be measured failed, but has a record."""
        failed = {(failure.system, failure.config) for failure in self.failures}
        return sum(record.result.key not in failed for record in self.records)


class EvaluationFailed(SqutrError):  # noqa: N818 - it says what happened
    """Some configs failed. `results` are those of the others, `failures` say why."""

    def __init__(
        self, message: str, *, hint: str = "", results: Sequence[Any] = (), failures: Sequence[ConfigFailure] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.results = list(results)
        self.failures = list(failures)


def run_evaluation(
    systems: Sequence[System],
    data: PairedData,
    *,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    processes: Processes | None = None,
) -> Evaluation[RunRecord]:
    """Evaluate every system on every config that its parts were made for; `text` is added by itself.

    `configs` are names or patterns such as `zh_high_noise`, `zh_*`, `fiqa_clean` (None: every language under every
    condition at hand). With `out`, runs are written there. With `cache`, what was heard, embedded and found is kept in
    that folder; several `processes` need one.

    Raises `UsageError` for wrong names, `DataError` if no system supports any language of the configs, `StorageError`
    if the disk refuses. What fails otherwise fails its configs only, and is listed in the evaluation.
    """
    chosen = options or Options()
    group = processes or Alone()
    if group.size > 1 and cache is None:
        raise UsageError(
            "several processes need a cache: it is where they share their work.", hint="Leave --no-cache out."
        )
    target = out / chosen.part if out is not None and chosen.part else out
    taken = (
        PartialData(data, limit=chosen.limit, fraction=chosen.fraction, seed=chosen.seed) if chosen.partial else data
    )
    plan = make_plan(systems, taken, configs)
    store = open_store(cache, group)
    tools = Tools(group, store, _embeddings(cache), _keeper(target, chosen), main_only(progress, group))
    with Meter() as meter:
        listened = listen_all(plan, tools)
        searched = search_all(plan, listened, chosen.depth, tools)
    evaluation: Evaluation[RunRecord] = Evaluation([], out=target)
    if group.rank == 0:
        made = Made(plan, listened, searched, tools)
        cost = Cost(meter.peak_memory_mb, meter.peak_gpu_memory_mb, meter.energy_j)
        settings = Settings(
            chosen.depth, chosen.resamples, chosen.seed, environment(), partial=chosen.partial, strict=chosen.strict
        )
        for system in systems:
            recorded = record_system(made, system, settings, cost, target)
            if target is not None:
                _write(target, recorded)
            records, failed = recorded.records, recorded.failed
            if chosen.latency:
                records, untimed = with_latency(made, system, records, chosen.latency, chosen.seed)
                failed = {**failed, **untimed}
                if target is not None:
                    _write_latencies(target, recorded.records, records)
            evaluation.records.extend(records)
            evaluation.failures.extend(ConfigFailure(system.name, c, e) for c, e in failed.items())
    if store is not None:
        group.gather(None)
        store.close()
    return evaluation


def _write(target: Path, recorded: Recorded) -> None:
    """Write what is new."""
    for record in recorded.records:
        if record.result.data.config not in recorded.kept:
            write_run(target, record)


def _write_latencies(target: Path, before: Sequence[RunRecord], after: Sequence[RunRecord]) -> None:
    """Write the results that were timed; their tables stay as they are."""
    for old, new in zip(before, after, strict=True):
        if new.result is not old.result:
            write_result(target, new.result)


def open_store(cache: Path | None, group: Processes) -> Store | None:
    """The store of this process; what killed processes left is taken in first."""
    if cache is None:
        return None
    failure: StorageError | None = None
    store: Store | None = None
    try:
        store = Store(cache, rank=group.rank)
        if group.rank == 0:
            store.merge()
    except StorageError as error:
        failure = error
    for other in group.gather(failure):
        if other is not None:
            raise other
    return store


def _embeddings(cache: Path | None) -> EmbeddingCache | None:
    return DirectoryEmbeddingCache(cache / "embeddings") if cache is not None else None


def _keeper(target: Path | None, options: Options) -> Callable[..., Callable[..., None]]:
    if target is None:
        return lambda _: lambda _: None
    return keep_samples(target, options.samples, options.seed)


def main_only(progress: Progress | None, group: Processes) -> Progress:
    """What tells the progress: only the main process does."""
    if progress is None or group.rank != 0:
        return silent
    return progress


def silent(stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
    """A `Progress` that tells nobody."""


def evaluate_runs(
    systems: Sequence[System],
    data: PairedData,
    *,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
    processes: Processes | None = None,
    **options: int | float | bool,
) -> list[RunRecord]:
    """As `run_evaluation` with the fields of `Options` as keywords, for callers to whom any failure is one.

    Raises `EvaluationFailed` if a config failed; what did not is written all the same.
    """
    chosen = options_of(Options, options)
    done = run_evaluation(
        systems, data, configs=configs, out=out, cache=cache, options=chosen, progress=progress, processes=processes
    )
    raise_failures(done)
    return done.records


Kind = TypeVar("Kind")


def options_of(kind: Callable[..., Kind], given: Mapping[str, Any]) -> Kind:
    """The options of that class with these fields. Raises `UsageError` that lists the fields for another."""
    try:
        return kind(**given)
    except TypeError as error:
        known = ", ".join(getattr(kind, "__slots__", ()))
        raise UsageError(f"{error}.".replace("Options.__init__() ", ""), hint=f"Known: {known}.") from error


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def raise_failures(done: Evaluation[Any]) -> None:
    """Raise `EvaluationFailed` if something failed; the error itself if nothing else came of the evaluation."""
    if not done.failures:
        return
    first = done.failures[0]
    if not done.records and len({str(failure.error) for failure in done.failures}) == 1:
        raise first.error
    raise EvaluationFailed(
        f"{counted(len(done.failures), 'run')} failed, {done.finished} did not; the first is {first.system} on "
        f"{first.config}: {first.error.message}",
        hint=first.error.hint or "Run the same evaluation again to continue.",
        results=[record.result for record in done.records],
        failures=done.failures,
    )


def evaluate(
    system: System | str | Sequence[System | str],
    *,
    data: PairedData | Path | str,
    configs: Sequence[str] | None = None,
    out: Path | str | None = None,
    cache: Path | str | None = None,
    progress: Progress | None = None,
    processes: Processes | None = None,
    **options: int | float | bool,
) -> list[Result]:
    """Evaluate one or several systems and return their results, `text` included (see `run_evaluation`).

    A system is a `Cascade`, an `EndToEnd`, a `RunOnly`, its written form, for example
    `"faster-whisper:whisper-base + bm25"`, or the path of a spec file; `data` a folder that `squtr build` wrote,
    `mini`, `ORG/NAME` on the Hub, `release:PATH`, or anything that is `PairedData`. `options` are the fields of
    `Options`, for example `limit=100`.

    Raises `EvaluationFailed` if some configs failed; it holds the results of the others.
    """
    store = Path(cache) if cache is not None else None
    given = [system] if isinstance(system, str | Cascade | EndToEnd | RunOnly) else list(system)
    systems: list[System] = []
    for written, group in groupby(given, key=lambda s: isinstance(s, str)):
        # Together: what is written alike is one component, loaded once.
        members = list(group)
        systems += load_systems([str(s) for s in members], cache=store) if written else cast(list[System], members)
    opened = open_data(str(data), configs=configs) if isinstance(data, str | Path) else data
    records = evaluate_runs(
        systems,
        opened,
        configs=configs,
        out=Path(out) if out is not None else None,
        cache=store,
        progress=progress,
        processes=processes,
        **options,
    )
    return [record.result for record in records]


__all__ = [
    "ConfigFailure",
    "Evaluation",
    "EvaluationFailed",
    "Options",
    "evaluate",
    "evaluate_runs",
    "run_evaluation",
]
