"""`squtr.evaluate`: systems and data by name, the task by what the data is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from .benchmarks import BENCHMARKS, Benchmark, benchmark
from .data import open_data
from .evaluation.computed import ComputedPlan, plan_questions, plan_speech
from .evaluation.options import Options
from .evaluation.run import Evaluation, run_evaluation
from .evaluation.task import Forecast, Request
from .evaluation.tools import open_tools
from .evaluation.workload import speech_load
from .processes import Alone, Processes
from .progress import Progress
from .results.envelope import Result
from .systems import System, load_systems
from .systems.reading import with_preset, written_entries
from .tasks import load_task


def benchmark_of(data: Any) -> Benchmark:
    """The benchmark that data was built for; else the row of the task that fits what the data holds."""
    if data.benchmark in BENCHMARKS:
        return BENCHMARKS[data.benchmark]
    if hasattr(data, "questions"):
        return benchmark("understanding")
    return benchmark("retrieval" if any(map(data.has_corpus, data.subsets)) else "recognition")


def chosen_benchmark(data: Any, chosen: Benchmark | str | None) -> Benchmark:
    """The benchmark that was chosen (a row, or its name), else `benchmark_of(data)`. Raises as `benchmark`."""
    if chosen is None:
        return benchmark_of(data)
    row = benchmark(chosen) if isinstance(chosen, str) else chosen
    if (row.task == "understanding") != hasattr(data, "questions"):
        kind = "questions" if hasattr(data, "questions") else "speech"
        raise UsageError(
            f"the data holds {kind}, and the task of the benchmark {row.name} is {row.task}.",
            hint="Give other data, or leave the benchmark out.",
        )
    return row


def source_of(chosen: Benchmark | str | None) -> str:
    """The name of the data that a benchmark is evaluated on. Raises `UsageError` if it names none, or without one."""
    if chosen is None:
        raise UsageError("no data is given.", hint="Give data, or a benchmark.")
    row = benchmark(chosen) if isinstance(chosen, str) else chosen
    if not row.source:
        raise UsageError(f"the benchmark {row.name} is for data of one's own.", hint="Give the data.")
    return row.source


def evaluate_records(
    systems: Sequence[System | str],
    data: Any,
    *,
    benchmark: Benchmark | str | None = None,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    options: Options | None = None,
    judges: Sequence[System] = (),
    progress: Progress | None = None,
    processes: Processes | None = None,
) -> Evaluation:
    """Evaluate systems (objects, or as they are written) on opened data, by the task that the data is of."""
    row, loaded = chosen_benchmark(data, benchmark), _loaded(systems, cache)
    return run_evaluation(
        load_task(row.task),
        row,
        loaded,
        data,
        configs=configs,
        out=out,
        cache=cache,
        options=options,
        judges=judges,
        progress=progress,
        processes=processes,
    )


def _loaded(systems: Sequence[System | str], cache: Path | None) -> list[System]:
    """The systems in order. What is written side by side is loaded together: equal components are one object."""
    loaded: list[System] = []
    for are_written, group in groupby(systems, key=lambda one: isinstance(one, str)):
        members = list(group)
        loaded += load_systems(cast(list[str], members), cache=cache) if are_written else cast(list[System], members)
    return loaded


def forecast(
    systems: Sequence[System | str],
    data: Any,
    *,
    benchmark: Benchmark | str | None = None,
    configs: Sequence[str] | None = None,
    cache: Path | None = None,
    options: Options | None = None,
    judges: Sequence[System] = (),
) -> list[Forecast]:
    """A dry run of `evaluate_records` in one process. Components without a known rate are timed on a few items."""
    row = chosen_benchmark(data, benchmark)
    task, request = (
        load_task(row.task),
        Request(_loaded(systems, cache), data, row, configs, options or Options(), judges),
    )
    return list(task.forecast(task.plan(request), open_tools(Alone(), cache, write=False)))


def computed_forecast(
    written: Sequence[str],
    data: Any,
    *,
    only: Sequence[str] = (),
    preset: str = "",
    configs: Sequence[str] | None = None,
    options: Options | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> ComputedPlan:
    """What `evaluate_records` would take, by the sizes of models and data alone: nothing is loaded or downloaded.

    `written`, `only` and `preset` are those of `load_systems`, `overrides` options that go before those written;
    `data` may be stand-in data (`open_stand_in`). Raises `UsageError` for configs of questions.
    """
    entries = written_entries(written, only=only)
    if preset:
        entries = [with_preset(entry, preset) for entry in entries]
    if hasattr(data, "questions"):
        if configs:
            raise UsageError("questions have no configs.", hint="Leave them out.")
        return plan_questions(entries, data.questions(), overrides)
    chosen = options or Options()
    return plan_speech(entries, speech_load(data, configs, chosen), chosen, overrides)


def evaluate(
    system: System | str | Sequence[System | str],
    *,
    data: Any = None,
    benchmark: Benchmark | str | None = None,
    configs: Sequence[str] | None = None,
    split: str = "test",
    on_bad: str = "refuse",
    out: Path | str | None = None,
    cache: Path | str | None = None,
    judges: Sequence[System | str] = (),
    progress: Progress | None = None,
    processes: Processes | None = None,
    **options: Any,
) -> list[Result]:
    """Evaluate one or several systems and return their results, those of added baselines (`text`) included.

    A system is a `System`, its short form (`"whisper-base + bm25"`), or the path of a spec file; `data` as for
    `open_data`, or opened data; `benchmark` a name, or a row of one's own (None: what fits the data). `options` are the
    fields of `Options`.

    Raises `EvaluationFailed` if some runs failed; it holds the results of the others.
    """
    if data is None:
        data = source_of(benchmark)
    given = [system] if isinstance(system, str | System) else list(system)
    named = isinstance(data, str | Path)
    opened = open_data(str(data), configs=configs, split=split, on_bad=on_bad) if named else data
    done = evaluate_records(
        cast(Sequence[System | str], given),
        opened,
        benchmark=benchmark,
        configs=configs,
        out=Path(out) if out is not None else None,
        cache=Path(cache) if cache is not None else None,
        options=Options.of(options),
        judges=[load_systems([j])[0] if isinstance(j, str) else j for j in judges],
        progress=progress,
        processes=processes,
    )
    done.raise_failures()
    return [record.result for record in done.records]
