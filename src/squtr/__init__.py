"""squtr: from a spoken query to ranked documents, in noise and in rooms.

Importing squtr also teaches `datasets.load_dataset` the bare name "squtr" (see `squtr.loaders.hook`); nothing heavy is
imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from .loaders import hook as _hook

if TYPE_CHECKING:
    from .harness.benchmarks import Benchmark
    from .harness.components import (
        load_audio_text_encoder,
        load_front_end,
        load_retriever,
        load_text_encoder,
        load_transcriber,
    )
    from .harness.data import open_data
    from .harness.evaluate import evaluate
    from .harness.mteb.models import mteb_model
    from .harness.mteb.tasks import mteb_benchmark, mteb_tasks
    from .harness.systems import System, load_system, load_systems
    from .loaders.augment import NoisyTransform
    from .loaders.loading import config_names_of as config_names
    from .loaders.loading import load_dataset

__all__ = [
    "Benchmark", "NoisyTransform", "System", "__version__", "config_names", "evaluate", "load_audio_text_encoder",
    "load_dataset", "load_front_end", "load_retriever", "load_system", "load_systems", "load_text_encoder",
    "load_transcriber", "mteb_benchmark", "mteb_model", "mteb_tasks", "open_data",
]  # fmt: skip

_LAZY = {
    "Benchmark": ("harness.benchmarks", "Benchmark"),
    "NoisyTransform": ("loaders.augment", "NoisyTransform"),
    "System": ("harness.systems", "System"),
    "config_names": ("loaders.loading", "config_names_of"),
    "evaluate": ("harness.evaluate", "evaluate"),
    "load_audio_text_encoder": ("harness.components", "load_audio_text_encoder"),
    "load_dataset": ("loaders.loading", "load_dataset"),
    "load_front_end": ("harness.components", "load_front_end"),
    "load_retriever": ("harness.components", "load_retriever"),
    "load_system": ("harness.systems", "load_system"),
    "load_systems": ("harness.systems", "load_systems"),
    "load_text_encoder": ("harness.components", "load_text_encoder"),
    "load_transcriber": ("harness.components", "load_transcriber"),
    "mteb_benchmark": ("harness.mteb.tasks", "mteb_benchmark"),
    "mteb_model": ("harness.mteb.models", "mteb_model"),
    "mteb_tasks": ("harness.mteb.tasks", "mteb_tasks"),
    "open_data": ("harness.data", "open_data"),
}

_hook.install()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'squtr' has no attribute {name!r}")
    import importlib

    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(f".{module}", __name__), attribute)
