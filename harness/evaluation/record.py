"""From what was inferred to a run's record; what is there already from the same inputs is read, not scored again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ... import __version__
from ...errors import DataError, SqutrError, StorageError
from ..benchmarks import Benchmark
from ..metrics.registry import METRICS_VERSION
from ..results.envelope import Result, RunRecord, read_record, run_path, write_result
from ..results.self_check import SelfCheck
from .environment import environment
from .options import Options
from .outage import refuse_failures
from .task import Plan, Run, Task
from .tools import Tools

_RECORDS = 2
"""Raised when records or scores hold more than before: what was written until then is scored again, and not kept."""


@dataclass(frozen=True, slots=True)
class Cost:
    peak_memory_mb: float | None
    peak_gpu_memory_mb: float | None
    energy_j: float | None


@dataclass(frozen=True, slots=True)
class Recorder:
    task: Task[Any, Any, Any]
    benchmark: Benchmark
    plan: Plan
    inferred: Any
    tools: Tools
    options: Options
    cost: Cost
    target: Path | None
    checks: Mapping[Run, SelfCheck] = field(default_factory=dict)

    def records(self) -> Iterator[tuple[Run, tuple[RunRecord, bool] | SqutrError]]:
        """Every run's record, and whether `target` held it already from the same inputs; or why the run failed."""
        task, plan, tell = self.task, self.plan, self.tools.tell
        digests: dict[Run, str] = {}
        failed: dict[Run, SqutrError] = {}
        for run in plan.runs:
            try:
                output = task.output(plan, self.inferred, run)
                refuse_failures(output, run, self.options)
                digests[run] = output.digest
            except StorageError:
                raise
            except SqutrError as error:
                failed[run] = error
        bare: dict[Run, Any] = {}
        needed = {baseline for run in plan.runs for baseline in plan.baselines(run).values()}

        def scored(run: Run) -> Any:
            found = task.score(plan, run, task.output(plan, self.inferred, run))
            if run in needed:
                bare[run] = task.without_items(found)
            return found

        for done, run in enumerate(plan.runs):
            tell("scoring", done, len(plan.runs))
            if run in failed:
                yield run, failed[run]
                continue
            try:
                baselines = {name: other for name, other in plan.baselines(run).items() if other in digests}
                inputs = self._inputs_sha256(run, {name: digests[one] for name, one in {"": run, **baselines}.items()})
                kept = self._kept(run, inputs)
                if kept is not None:
                    yield run, (self._with_check(run, kept), True)
                    continue
                compared = {name: bare[one] if one in bare else scored(one) for name, one in baselines.items()}
                yield run, (self._record(run, scored(run), compared, inputs), False)
            except StorageError:
                raise
            except SqutrError as error:
                yield run, error
        tell("scoring", len(plan.runs), len(plan.runs))

    def _record(self, run: Run, scored: Any, baselines: Mapping[str, Any], inputs: str) -> RunRecord:
        task, plan = self.task, self.plan
        summary = task.summarize(plan, self.inferred, run, scored, baselines)
        timing, seconds = task.timing(plan, self.inferred, run, self.tools)
        result = Result(
            task=task.name,
            task_version=task.version,
            benchmark=self.benchmark.name,
            benchmark_version=self.benchmark.version,
            metrics_version=METRICS_VERSION,
            squtr_version=__version__,
            inputs_sha256=inputs,
            data=task.data_info(plan, run),
            system=task.system_info(plan, run).model_copy(update={"self_check": self.checks.get(run, SelfCheck())}),
            main_metric=summary.main_metric,
            scores=dict(summary.scores),
            by_group={name: list(groups) for name, groups in summary.by_group.items()},
            losses={name: dict(losses) for name, losses in summary.losses.items()},
            failures=dict(summary.failures),
            details=dict(summary.details),
            timing=timing.model_copy(update={**asdict(self.cost), "processes": self.tools.processes.size}),
            environment=environment(),
            seed=self.options.seed,
            resamples=self.options.resamples,
        )
        return RunRecord(result, summary.items, seconds)

    def _with_check(self, run: Run, kept: RunRecord) -> RunRecord:
        """A kept record, with this evaluation's self-check, if it made another one."""
        check, system = self.checks.get(run), kept.result.system
        if check is None or check == system.self_check or self.target is None:
            return kept
        system = system.model_copy(update={"self_check": check})
        result = kept.result.model_copy(update={"system": system})
        write_result(self.target, result)
        return replace(kept, result=result)

    def with_latency(self, run: Run, record: RunRecord) -> RunRecord | SqutrError:
        """The record with the latency of drawn items, measured now; or why it could not be measured."""
        try:
            latency, isolated = self.task.latency(self.plan, self.inferred, run, self.tools)
        except StorageError:
            raise
        except SqutrError as error:
            return error
        timing = record.result.timing.model_copy(update={"latency": latency, "isolated": isolated})
        return replace(record, result=record.result.model_copy(update={"timing": timing}))

    def _kept(self, run: Run, inputs: str) -> RunRecord | None:
        """The record that `target` holds of the same inputs, None if there is none."""
        if self.target is None:
            return None
        split = self.task.data_info(self.plan, run).split
        config = run.config if split == "test" else f"{run.config}.{split}"
        try:
            record = read_record(run_path(self.target, run.system, config))
        except DataError:
            # Missing, damaged or of another version: it is scored and written again.
            return None
        return record if record.result.inputs_sha256 == inputs else None

    def _inputs_sha256(self, run: Run, outputs: dict[str, str]) -> str:
        """The digest of all that a run's scores follow from; `outputs` are its own digest ("") and its baselines'."""
        task, options = self.task, self.options
        return sha256_of(
            [
                __version__,
                task.name,
                task.version,
                self.benchmark.name,
                self.benchmark.version,
                METRICS_VERSION,
                _RECORDS,
            ],
            task.data_info(self.plan, run).model_dump(mode="json"),
            task.system_info(self.plan, run).model_dump(mode="json"),
            task.settings(self.plan, run),
            [options.resamples, options.permutations, options.seed, options.partial],
            outputs,
        )


def sha256_of(*values: object) -> str:
    return hashlib.sha256(b"".join(map(json_bytes, values))).hexdigest()


def json_bytes(value: object) -> bytes:
    """A value as canonical JSON: keys sorted, no escapes."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
