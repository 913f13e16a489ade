"""How systems are written, and the systems themselves: short forms, spec files, the Python objects.

`option_table` lists every option of every backend.
"""

from __future__ import annotations

from .building import Builder, Overrides
from .reading import cached_retriever, load_systems, parse_system
from .spec_file import read_systems, write_spec
from .system import Cascade, EndToEnd, RunOnly, System, check_systems

__all__ = [
    "Builder",
    "Cascade",
    "EndToEnd",
    "Overrides",
    "RunOnly",
    "System",
    "cached_retriever",
    "check_systems",
    "load_systems",
    "parse_system",
    "read_systems",
    "write_spec",
]
