"""What the finished shards of an unfinished folder were made from: kept until the folder is complete.

With it a build continues after its source was mended: a shard whose own inputs are the same stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .shards import replace_file

RECORD_NAME = ".finished.json"

Inputs = Mapping[str, str]
"""What decides a shard beside the rest of its recipe: "utterances" to their digest, and banks to their versions."""


class FinishedShards:
    """The record in the folder `out`, for a build of the recipe `fingerprint`."""

    def __init__(self, out: Path, fingerprint: str) -> None:
        self._out, self._fingerprint = out, fingerprint
        self._held = _read(out / RECORD_NAME)

    def is_of_other_recipe(self, path: str) -> bool:
        """Whether a shard was finished under another recipe. One that is not listed is of this one."""
        return path in self._held and self._held[path]["recipe"] != self._fingerprint

    def inputs(self, path: str) -> Inputs:
        return dict(self._held[path]["inputs"])

    def add(self, inputs: Mapping[str, Inputs]) -> None:
        """List shards, path to what each was made from."""
        for path, own in inputs.items():
            self._held[path] = {"recipe": self._fingerprint, "inputs": dict(own)}
        replace_file(self._out / RECORD_NAME, json.dumps(self._held, indent=1, sort_keys=True).encode())

    def remove_others(self, shards: Iterable[Path]) -> None:
        """Remove those of `shards` that are not listed."""
        for path in shards:
            if path.relative_to(self._out).as_posix() not in self._held:
                path.unlink()

    def clear(self, shards: Iterable[str]) -> None:
        """Remove the record, and listed shards that are none of `shards`."""
        for path in self._held.keys() - set(shards):
            (self._out / path).unlink(missing_ok=True)
        (self._out / RECORD_NAME).unlink(missing_ok=True)
        self._held = {}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """The record, empty where there is none that can be read: its shards are then made again."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    rows = held.items() if isinstance(held, dict) else ()
    return {
        name: row
        for name, row in rows
        if isinstance(row, dict) and isinstance(row.get("recipe"), str) and isinstance(row.get("inputs"), dict)
    }
