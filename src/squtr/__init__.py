"""squtr: from a spoken query to ranked documents, in noise and in rooms.

Importing squtr also teaches `datasets.load_dataset` the bare name "squtr" (see `squtr.loaders.hook`); nothing heavy is
imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from .loaders import hook as _hook

if TYPE_CHECKING:
    from .harness.mteb.models import mteb_model
    from .harness.mteb.tasks import mteb_benchmark, mteb_tasks
    from .harness.pipeline.evaluate import evaluate
    from .harness.pipeline.system import Cascade
    from .loaders.loading import config_names_of as config_names
    from .loaders.loading import load_dataset

__all__ = [
    "Cascade",
    "__version__",
    "config_names",
    "evaluate",
    "load_dataset",
    "mteb_benchmark",
    "mteb_model",
    "mteb_tasks",
]

_LAZY = {
    "Cascade": ("harness.pipeline.system", "Cascade"),
    "evaluate": ("harness.pipeline.evaluate", "evaluate"),
    "mteb_benchmark": ("harness.mteb.tasks", "mteb_benchmark"),
    "mteb_model": ("harness.mteb.models", "mteb_model"),
    "mteb_tasks": ("harness.mteb.tasks", "mteb_tasks"),
    "config_names": ("loaders.loading", "config_names_of"),
    "load_dataset": ("loaders.loading", "load_dataset"),
}

_hook.install()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'squtr' has no attribute {name!r}")
    import importlib

    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(f".{module}", __name__), attribute)
