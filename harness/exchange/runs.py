"""The records of an evaluation, system by system, and files that are made of them."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DataError, unknown_name
from ..results.comparable import coverage_words, runs_folder
from ..results.envelope import Result, read_record, read_result
from ..results.files import result_paths, write_atomically


@dataclass(frozen=True, slots=True)
class Part:
    """The records of one system on one subset under one condition.

    `folder` names the system in paths, without the `+` that stands between two components where systems are written.
    """

    path: Path
    result: Result
    subset: str
    items: pa.Table

    @property
    def folder(self) -> str:
        return self.path.parent.name.replace("+", "_")

    @property
    def config(self) -> str:
        """`<subset>_<condition>`, with the split where it is not `test`: what `{config}` in a path stands for."""
        split = "" if self.result.data.split == "test" else f".{self.result.data.split}"
        return f"{self.subset}_{self.result.data.condition}{split}"

    @property
    def label(self) -> str:
        return f"{self.result.system.name} on {self.config}"


def run_parts(
    folder: Path, *, task: Sequence[str], systems: Sequence[str] = (), configs: Sequence[str] = ()
) -> Iterator[Part]:
    """The measured records below `folder` of these tasks, a config of several subsets in parts.

    `systems` chooses by name, `configs` by name or pattern. Raises `DataError` if there are none, or one was imported;
    `UnknownNameError` for a system or config that is not there.
    """
    found = [(path, result) for path in result_paths(runs_folder(folder)) if (result := read_result(path)).task in task]
    if not found:
        raise DataError(f"{folder} holds no results of {' or '.join(task)}.", hint="Evaluate a system first.")
    names = list(dict.fromkeys(result.system.name for _, result in found))
    for name in systems:
        if name not in names:
            raise unknown_name("system", name, names)
    known = list(dict.fromkeys(result.data.config for _, result in found))
    for pattern in configs:
        if not fnmatch.filter(known, pattern):
            raise unknown_name("config", pattern, known)
    for path, result in found:
        if systems and result.system.name not in systems:
            continue
        if configs and not any(fnmatch.fnmatchcase(result.data.config, pattern) for pattern in configs):
            continue
        if result.origin == "imported":
            raise DataError(
                f"{path} was imported: it has no records.", hint="Evaluate the system here, or leave it out: --systems."
            )
        items = read_record(path).items
        for subset in result.data.subsets:
            own = items.filter(pc.equal(items["subset"], subset)) if len(result.data.subsets) > 1 else items
            yield Part(path, result, subset, own)


@dataclass(slots=True)
class Written:
    """Files below `out`, each written once: a subset's records may lie in the results of several configs."""

    out: Path
    files: list[Path] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _digests: dict[Path, str] = field(default_factory=dict)

    def add(self, part: Part, suffix: str, content: str) -> bool:
        """Write a part's file; False if it was there from another config, with the same content.

        Raises `DataError` if its content differs, `StorageError` if the disk refuses.
        """
        path = self.out / part.folder / f"{part.config}{suffix}"
        data = content.encode("utf-8")
        digest = hashlib.sha256(data).hexdigest()
        if path in self._digests:
            if self._digests[path] != digest:
                raise DataError(
                    f"{part.result.system.name} has two different results on {part.config}; the second is {part.path}.",
                    hint="Remove one of them, or choose with --configs.",
                )
            return False
        write_atomically(path, data)
        self._digests[path] = digest
        self.files.append(path)
        data_info = part.result.data
        if data_info.partial:
            self.remarks.append(f"{part.label} covers {coverage_words(data_info.n, data_info.n_total)}.")
        return True
