"""The systems under the name that they had before `harness.systems` held them."""

from __future__ import annotations

from ..systems import (
    Cascade,
    EndToEnd,
    RunOnly,
    System,
    cached_retriever,
    check_systems,
    parse_system,
)

__all__ = ["Cascade", "EndToEnd", "RunOnly", "System", "cached_retriever", "check_systems", "parse_system"]
