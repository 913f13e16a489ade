"""How a folder of synthesized speech was selected, as its quality report says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import DataError
from ..jsonl import read_object

REPORT = "quality.json"
_INDEX = "speech.jsonl"


def selection_of(manifest: Path) -> Mapping[str, Any]:
    """The selection of the folder whose table is `manifest`; {} for recordings that were not synthesized.

    Keys: engine, voices, candidates, transcribers, judges, max_error_rate, queries, accepted, rejected, flagged, lost.
    Raises `DataError` for a report that is not one.
    """
    report = manifest.parent / REPORT
    if manifest.name != _INDEX or not report.is_file():
        return {}
    found = read_object(report).get("selection", {})
    if not isinstance(found, dict):
        raise DataError(f"{report}: selection is no object.", hint="Run squtr synthesize again; it keeps the clips.")
    return found


def selection_text(source: object) -> str:
    """The `selection` of `source` as the JSON text that its origin carries; "" where it has none."""
    selection = getattr(source, "selection", None)
    return json.dumps(selection, ensure_ascii=False, sort_keys=True) if selection else ""
