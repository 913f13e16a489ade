"""Which shards of a folder are finished: those whose bytes have the hash that was taken when they were written.

A complete folder lists its shards in the manifest. One that is being built, or that grows, has a record beside it, with
what each shard was made from: so a build continues after its source was mended, and leaves what is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .manifest import Manifest, Shard, file_sha256, libraries
from .shards import replace_file

RECORD_NAME = ".finished.json"


@dataclass(frozen=True, slots=True)
class Made:
    """What decides a shard: the digest of its part of the recipe without versions, and its inputs by name: versions of
    source and banks, and what else was read."""

    recipe: str
    inputs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finished:
    """A shard that is whole, with the versions of the libraries that wrote it; `made` is None where the manifest lists
    it, whose recipe was compared already."""

    shard: Shard
    made: Made | None
    libraries: Mapping[str, str]


class FinishedShards:
    """The finished shards of the folder `out`, beside those that `held`, its manifest, lists if it is complete."""

    def __init__(self, out: Path, held: Manifest) -> None:
        self._out = out
        self.listed = {shard.path: shard for shard in held.shards} if held.complete else {}
        self._listed_libraries = held.libraries
        self._recorded = _read(out / RECORD_NAME)
        self._looked: dict[str, Finished | None] = {}
        self.damaged: dict[str, str] = {}
        """Path to what is wrong with a shard that was finished once."""

    def find(self, path: str) -> Finished | None:
        """The shard, None where there is none or its bytes are not those that were written. They are read once."""
        if path not in self._looked:
            self._looked[path] = self._find(path)
        return self._looked[path]

    def _find(self, path: str) -> Finished | None:
        known = [row for row in (self._recorded.get(path), self._in_manifest(path)) if row]
        file = self._out / path
        if not known or not file.is_file():
            return None
        size = file.stat().st_size
        digest = file_sha256(file) if any(row.shard.bytes == size for row in known) else ""
        for row in known:
            if row.shard.sha256 == digest:
                return row
        expected = known[-1].shard
        self.damaged[path] = (
            f"sha256 {digest[:12]}… instead of {expected.sha256[:12]}…"
            if digest
            else f"{size:,} bytes instead of {expected.bytes:,}"
        )
        return None

    def _in_manifest(self, path: str) -> Finished | None:
        return Finished(self.listed[path], None, self._listed_libraries) if path in self.listed else None

    def kept(self, path: str, made: Made, *, but: Collection[str] = ()) -> Shard | None:
        """The shard, None unless it is whole and made from the same, its inputs `but` not compared."""
        found = self.find(path)
        if found is None:
            return None
        if found.made is not None:
            inputs = [{k: v for k, v in each.inputs.items() if k not in but} for each in (found.made, made)]
            if found.made.recipe != made.recipe or inputs[0] != inputs[1]:
                return None
        return found.shard

    def libraries(self, path: str) -> Mapping[str, str]:
        """The versions of the libraries that wrote a finished shard."""
        found = self.find(path)
        return found.libraries if found else {}

    def numbered(self, place: str) -> list[str]:
        """The paths of a table's shards directly below `place`, [] unless all of them are known by one count."""
        names = sorted(p for p in {*self._recorded, *self.listed} if p.rpartition("/")[0] == place)
        counts = {name.rpartition("-of-")[2] for name in names}
        return names if len(counts) == 1 and counts == {f"{len(names):05d}.parquet"} else []

    def add(self, shards: Iterable[Shard], made: Made | Mapping[str, Made]) -> None:
        """Record shards that are written now, with what they were made from (one for all, or by path)."""
        self._add(shards, made, lambda _: libraries())

    def keep(self, shards: Iterable[Shard], made: Mapping[str, Made]) -> None:
        """Record that shards would now be made from something else, with the same bytes."""
        self._add(shards, made, self.libraries)

    def _add(
        self, shards: Iterable[Shard], made: Made | Mapping[str, Made], versions: Callable[[str], Mapping[str, str]]
    ) -> None:
        for shard in shards:
            own = made if isinstance(made, Made) else made[shard.path]
            row = Finished(shard, own, dict(versions(shard.path)))
            self._recorded[shard.path] = self._looked[shard.path] = row
        content = {
            path: {**row.shard.model_dump(), "made": asdict(row.made), "libraries": row.libraries}
            for path, row in self._recorded.items()
            if row.made
        }
        replace_file(self._out / RECORD_NAME, json.dumps(content, indent=1, sort_keys=True).encode())

    def remove_others(self, shards: Iterable[Path]) -> None:
        """Remove those of `shards` that are not recorded."""
        for path in shards:
            if path.relative_to(self._out).as_posix() not in self._recorded:
                path.unlink()

    def remove_stale(self, shards: Iterable[str]) -> None:
        """Remove recorded shards that are none of `shards`."""
        for path in self._recorded.keys() - set(shards):
            (self._out / path).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the record: the manifest lists everything."""
        (self._out / RECORD_NAME).unlink(missing_ok=True)


def recorded_shards(out: Path) -> set[str]:
    """The paths of the shards in the record of a folder that is being built."""
    return set(_read(out / RECORD_NAME))


def _read(path: Path) -> dict[str, Finished]:
    """The record, empty where there is none that can be read: its shards are then made again."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    found: dict[str, Finished] = {}
    for name, row in held.items() if isinstance(held, dict) else ():
        finished = _row(row)
        if finished is not None and finished.shard.path == name and ".." not in Path(name).parts:
            found[name] = finished
    return found


def _row(row: Any) -> Finished | None:
    """A row of the record, None for one of an earlier version."""
    try:
        made = Made(str(row["made"]["recipe"]), {str(k): str(v) for k, v in row["made"]["inputs"].items()})
        versions = {str(k): str(v) for k, v in row["libraries"].items()}
        return Finished(Shard(**{name: row[name] for name in Shard.model_fields}), made, versions)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
