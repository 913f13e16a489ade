"""What a task is to the evaluation: what it infers, how it scores, and what it writes of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import pyarrow as pa

from ...errors import SqutrError
from ..benchmarks import Benchmark
from ..results.envelope import DataInfo, Group, Isolated, Latency, Loss, Score, SystemInfo, Timing
from ..systems.system import System
from .options import Options
from .tools import Tools


class Run(NamedTuple):
    system: str
    config: str


@dataclass(frozen=True, slots=True)
class Request:
    systems: Sequence[System]
    data: Any
    benchmark: Benchmark
    configs: Sequence[str] | None
    options: Options
    judges: Sequence[System] = ()


class Plan(Protocol):
    @property
    def systems(self) -> Sequence[System]:
        """All systems, those included that the task added as baselines."""
        ...

    @property
    def runs(self) -> Sequence[Run]:
        """Every system with every config that it can be evaluated on, baselines before what is compared with them."""
        ...

    def baselines(self, run: Run) -> Mapping[str, Run]:
        """What a run is compared with (`clean`, `text`, `text-only`, …), as far as that is evaluated too."""
        ...

    def language_of(self, config: str) -> str: ...

    def without(self, left_out: Collection[Run]) -> Self:
        """The same without these runs, of which nothing is inferred."""
        ...


@dataclass(frozen=True, slots=True)
class Output:
    """What a system gave for the items of one config, before scoring; `content` is the task's own.

    `digest` is the sha256 of all that was asked and answered, `failed` maps the ids of failed items to why they failed.
    """

    digest: str
    n: int
    failed: Mapping[str, str]
    content: Any


@dataclass(frozen=True, slots=True)
class Summary:
    main_metric: str
    scores: Mapping[str, Score]
    items: pa.Table
    by_group: Mapping[str, Sequence[Group]] = field(default_factory=dict)
    losses: Mapping[str, Mapping[str, Loss]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFailure:
    system: str
    config: str
    error: SqutrError


@dataclass(frozen=True, slots=True)
class Forecast:
    """One line of a dry run: `items` clips, documents or prompts, of which `cached` need no work any more.

    `seconds` is what the others take by the rate that was `measured` ("before", "now"); NaN where no rate is known.
    """

    stage: str
    component: str
    scope: str
    items: int
    cached: int
    seconds: float
    measured: str


P = TypeVar("P", bound=Plan)
I = TypeVar("I")  # noqa: E741 - what the task infers
S = TypeVar("S")


class Task(Protocol[P, I, S]):
    """A task: `P` is its plan, `I` what it infers from the audio, `S` the per-item scores of a run."""

    name: str
    version: str

    def plan(self, request: Request) -> P:
        """Check names and plan. Raises `UsageError` for wrong ones, `DataError` if nothing can be evaluated."""
        ...

    def infer(self, plan: P, tools: Tools) -> I:
        """Everything that needs a model, in all processes. What fails for a config is raised by `output`."""
        ...

    def extra_failures(self, plan: P, inferred: I) -> Sequence[RunFailure]:
        """What failed beside the runs (a judge)."""
        ...

    def forecast(self, plan: P, tools: Tools) -> Sequence[Forecast]:
        """What `infer` would do, for a dry run in one process."""
        ...

    def output(self, plan: P, inferred: I, run: Run) -> Output:
        """What the system gave for a config. Raises why it failed on it."""
        ...

    def score(self, plan: P, run: Run, output: Output) -> S: ...

    def without_items(self, scored: S) -> S:
        """The same without what only the run's own records need: baselines are held in memory."""
        ...

    def summarize(self, plan: P, inferred: I, run: Run, scored: S, baselines: Mapping[str, S]) -> Summary:
        """Scores with intervals, losses against the baselines, groups, failures, and the records."""
        ...

    def data_info(self, plan: P, run: Run) -> DataInfo: ...

    def system_info(self, plan: P, run: Run) -> SystemInfo: ...

    def settings(self, plan: P, run: Run) -> Mapping[str, Any]:
        """All else that the scores follow from, as JSON: qrels, references, options, bins."""
        ...

    def timing(self, plan: P, inferred: I, run: Run, tools: Tools) -> tuple[Timing, pa.Table | None]:
        """Seconds per stage, and those of every item (`SECONDS_SCHEMA`), None where nothing was timed."""
        ...

    def latency(self, plan: P, inferred: I, run: Run, tools: Tools) -> tuple[Latency | None, Isolated | None]:
        """Times drawn items one at a time, nothing cached; None for what cannot be timed."""
        ...

    def write_samples(self, plan: P, inferred: I, target: Path) -> None:
        """Keep some clips below `target`/samples for the report's players, as far as `infer` did not."""
        ...
