"""Before anything is inferred: every component shows that it works, or the runs of its systems fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import SqutrError, StorageError
from ..results.self_check import SelfCheck
from ..self_check.checking import Checker
from .options import Options
from .task import Plan, Run, RunFailure, Task
from .tools import Tools


@dataclass(frozen=True, slots=True)
class Guarded:
    """The plan without the runs that failed, the outcome of every other, and why the rest did."""

    plan: Any
    checks: Mapping[Run, SelfCheck] = field(default_factory=dict)
    failures: tuple[RunFailure, ...] = ()


def guarded(task: Task[Any, Any, Any], plan: Plan, options: Options, tools: Tools) -> Guarded:
    """Check the components of every run; nothing with `Options(self_check=False)`. All processes must call it.

    Only the main process checks. Raises `StorageError`.
    """
    if not options.self_check:
        return Guarded(plan)
    found: dict[Run, SelfCheck | SqutrError] = {}
    refused: StorageError | None = None
    if tools.processes.rank == 0:
        try:
            found = _checked(task, plan, tools)
        except StorageError as error:
            refused = error
    outcome, refused = tools.processes.gather((found, refused))[0]
    if refused is not None:
        raise refused
    failures = [RunFailure(*run, one) for run, one in outcome.items() if isinstance(one, SqutrError)]
    return Guarded(
        plan.without({Run(one.system, one.config) for one in failures}) if failures else plan,
        {run: one for run, one in outcome.items() if isinstance(one, SelfCheck)},
        tuple(failures),
    )


def _checked(task: Task[Any, Any, Any], plan: Plan, tools: Tools) -> dict[Run, SelfCheck | SqutrError]:
    checker = Checker(tools.store, lambda stage, done: tools.tell(stage, done, 1))
    systems = {system.name: system for system in plan.systems}
    known: dict[tuple[str, str, frozenset[str]], SelfCheck | SqutrError] = {}
    found: dict[Run, SelfCheck | SqutrError] = {}
    for run in plan.runs:
        language = plan.language_of(run.config)
        try:
            # Typed queries go to the retriever alone.
            roles = frozenset(task.system_info(plan, run).components)
            key = run.system, language, roles
            if key not in known:
                system = systems[run.system]
                known[key] = checker.refusal(system, language, roles) or checker.system(system, language, roles)
            found[run] = known[key]
        except StorageError:
            raise
        except SqutrError as error:
            found[run] = error
    return found
