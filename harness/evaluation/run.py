"""The one loop: plan, infer, score, record, for every task.

What is inferred is shared and kept by content, so a killed evaluation continues; a config that fails loses no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import SqutrError, StorageError, UsageError
from ..benchmarks import Benchmark
from ..metering import Meter
from ..processes import Alone, Processes
from ..progress import Progress
from ..results.envelope import Result, RunRecord, write_result, write_run
from ..results.files import shortened
from ..systems.system import System
from .guard import guarded
from .options import Options
from .record import Cost, Recorder
from .samples import keep_samples
from .task import Request, RunFailure, Task
from .tools import open_tools

DOCUMENTS_HELD = 10
"""How many documents of each item stay in memory where the file has all of them."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of an evaluation; where it was written to `out`, `records` name `DOCUMENTS_HELD` documents."""

    records: list[RunRecord]
    failures: list[RunFailure] = field(default_factory=list)
    out: Path | None = None

    @property
    def finished(self) -> int:
        failed = {(failure.system, failure.config) for failure in self.failures}
        return sum((r.result.system.name, r.result.data.config) not in failed for r in self.records)

    def raise_failures(self) -> None:
        """Raise `EvaluationFailed` if something failed; the error itself if nothing else came of the evaluation."""
        if not self.failures:
            return
        first = self.failures[0]
        if not self.records and len({str(failure.error) for failure in self.failures}) == 1:
            raise first.error
        raise EvaluationFailed(
            f"{counted(len(self.failures), 'run')} failed, {self.finished} did not; the first is {first.system} on "
            f"{first.config}: {first.error.message}",
            hint=first.error.hint or "Run the same evaluation again to continue.",
            results=[record.result for record in self.records],
            failures=self.failures,
        )


class EvaluationFailed(SqutrError):  # noqa: N818 - it says what happened
    """Some runs failed. `results` are those of the others, `failures` say why."""

    def __init__(
        self, message: str, *, hint: str = "", results: Sequence[Result] = (), failures: Sequence[RunFailure] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.results = list(results)
        self.failures = list(failures)


def run_evaluation(
    task: Task[Any, Any, Any],
    benchmark: Benchmark,
    systems: Sequence[System],
    data: Any,
    *,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    options: Options | None = None,
    judges: Sequence[System] = (),
    progress: Progress | None = None,
    processes: Processes | None = None,
) -> Evaluation:
    """Evaluate every system on every config that its components support.

    `configs` are names or patterns (None: all that the data has). With `out`, runs are written there; one that is there
    already, made from the same inputs, is read instead of scored. With `cache`, what was inferred is kept in that
    folder; several `processes` need one.

    A system with a component that fails the self-check is not scored: its runs fail, the others go on.

    Raises `UsageError` for wrong names, `DataError` if no system supports any config, `StorageError` if the disk
    refuses. What fails otherwise fails its runs only, and is listed in the evaluation.
    """
    chosen, group = options or Options(), processes or Alone()
    if group.size > 1 and cache is None:
        raise UsageError(
            "several processes need a cache: it is where they share their work.", hint="Leave --no-cache out."
        )
    plan = task.plan(Request(systems, data, benchmark, configs, chosen, judges))
    target = out / chosen.part if out is not None and chosen.part else out
    keeper = None if target is None else keep_samples(target, chosen.samples, chosen.seed)
    tools = open_tools(group, cache, keeper, progress)
    guard = guarded(task, plan, chosen, tools)
    plan = guard.plan
    with Meter() as meter:
        inferred = task.infer(plan, tools)
    evaluation = Evaluation([], list(guard.failures), target)
    if group.rank == 0:
        evaluation.failures.extend(task.extra_failures(plan, inferred))
        cost = Cost(meter.peak_memory_mb, meter.peak_gpu_memory_mb, meter.energy_j)
        recorder = Recorder(task, benchmark, plan, inferred, tools, chosen, cost, target, guard.checks)
        for run, found in recorder.records():
            if isinstance(found, SqutrError):
                evaluation.failures.append(RunFailure(run.system, run.config, found))
                continue
            record, kept = found
            if target is not None and not kept:
                write_run(target, record)
            if chosen.latency:
                timed = recorder.with_latency(run, record)
                if isinstance(timed, SqutrError):
                    evaluation.failures.append(RunFailure(run.system, run.config, timed))
                else:
                    record = timed
                    if target is not None:
                        write_result(target, record.result)
            if target is not None:
                record = replace(record, items=shortened(record.items, DOCUMENTS_HELD))
            evaluation.records.append(record)
        if target is not None:
            try:
                task.write_samples(plan, inferred, target)
            except StorageError:
                raise
            except SqutrError as error:
                evaluation.failures.append(RunFailure("", "samples", error))
    if tools.store is not None:
        group.gather(None)
        tools.store.close()
    return evaluation


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
