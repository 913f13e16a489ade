"""Tasks: what goes in, what comes out and how it is scored. Each is one folder; the table names them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...errors import unknown_name

if TYPE_CHECKING:
    from ..evaluation.task import Task

TASKS: Mapping[str, str] = {
    "retrieval": "retrieval.task:RetrievalTask",
    "recognition": "recognition.task:RecognitionTask",
    "understanding": "understanding.task:UnderstandingTask",
}
"""Name to dotted path below this package."""


def load_task(name: str) -> Task[Any, Any, Any]:
    """The task called `name`. Raises `UnknownNameError` that lists the choices."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    module, _, attribute = TASKS[name].partition(":")
    task: Task[Any, Any, Any] = getattr(import_module(f".{module}", __name__), attribute)()
    return task
