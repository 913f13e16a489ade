"""How systems are written, and the class of a system: short forms, spec files, Python."""

from __future__ import annotations

from .building import Builder, Overrides
from .reading import cached_retriever, load_system, load_systems
from .spec_file import write_spec
from .system import System, check_systems, with_text_only_baselines

__all__ = [
    "Builder", "Overrides", "System", "cached_retriever", "check_systems", "load_system", "load_systems",
    "with_text_only_baselines", "write_spec",
]  # fmt: skip
