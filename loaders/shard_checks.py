"""Whether the files of a built folder are those that its manifest lists."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .finished import recorded_shards
from .manifest import Manifest, Shard, file_sha256
from .shards import is_temporary

CARD_NAME = "README.md"
DATA_FOLDERS = Manifest.data_folders

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a data set: what kind, in which file (relative), for which id ("" if none), in a sentence.

    Kinds: `unfinished`, `leftover`, `path`, `missing`, `truncated`, `changed`, `extra`, `unreadable`, `columns`,
    `rows`, `null`, `ids`, `pairing`, `value`, `qrels`, `audio`, `snr`.
    """

    kind: str
    path: str
    message: str
    id: str = ""


def is_shard_path(path: str, folders: Collection[str] = DATA_FOLDERS) -> bool:
    """Whether a manifest may list this path: a parquet file in one of its data `folders`, inside the folder.

    >>> is_shard_path("qrels/fiqa/test-00000-of-00001.parquet"), is_shard_path("qrels/../../secret.parquet")
    (True, False)
    """
    parts = PurePosixPath(path).parts
    return (
        len(parts) > 1
        and parts[0] in folders
        and ".." not in parts
        and "\\" not in path
        and path == "/".join(parts)
        and path.endswith(".parquet")
    )


def check_shards(
    folder: Path, manifest: Manifest, progress: Progress | None = None
) -> tuple[list[Finding], Collection[Shard]]:
    """What is wrong with the files of `folder`, and the shards that are as the manifest says. Reads every byte."""
    report = progress or (lambda *_: None)
    findings: list[Finding] = []
    if not manifest.complete:
        findings.append(Finding("unfinished", "manifest.json", "the build is not finished"))
    findings += [
        Finding("missing", name, f"{name} is missing") for name in manifest.side_files if not (folder / name).is_file()
    ]
    total, done = sum(shard.bytes for shard in manifest.shards), 0
    whole: list[Shard] = []
    for shard in manifest.shards:
        finding = _check_shard(folder, shard, manifest.data_folders)
        if finding is None:
            whole.append(shard)
        else:
            findings.append(finding)
        done += shard.bytes
        report("reading files", done, total)
    return findings + _others(folder, manifest), whole


def _others(folder: Path, manifest: Manifest) -> list[Finding]:
    """Files among the data that the manifest does not list: of builds that ended early, and foreign ones."""
    listed = {shard.path for shard in manifest.shards}
    recorded = recorded_shards(folder)
    findings: list[Finding] = []
    growing: list[str] = []
    left = [path.name for path in sorted(folder.glob(".*")) if is_temporary(path.name)]
    for data_folder in manifest.data_folders:
        for path in sorted((folder / data_folder).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if name in listed or not path.is_file():
                continue
            if is_temporary(path.name):
                left.append(name)
            elif name in recorded:
                growing.append(name)
            else:
                findings.append(Finding("extra", name, f"{name} is not in the manifest"))
    if growing and manifest.complete:
        message = (
            f"a build that adds {len(growing)} files, first {growing[0]}, is not finished (the rest is complete): run "
            "it again, or the one before it to remove them"
        )
        findings.append(Finding("unfinished", growing[0], message))
    if left:
        message = (
            f"{len(left)} temporary files of a build that was killed, first {left[0]}: they do no harm, and the same "
            "build removes them"
        )
        findings.append(Finding("leftover", left[0], message))
    return findings


def _check_shard(folder: Path, shard: Shard, data_folders: Collection[str]) -> Finding | None:
    if not is_shard_path(shard.path, data_folders):
        return Finding("path", shard.path, f"the manifest lists {shard.path!r}, which is no shard of this folder")
    path = folder / shard.path
    if not path.is_file():
        return Finding("missing", shard.path, f"{shard.path} is missing")
    size = path.stat().st_size
    if size < shard.bytes:
        return Finding("truncated", shard.path, f"{shard.path} has {size:,} of its {shard.bytes:,} bytes")
    if size > shard.bytes or (digest := file_sha256(path)) != shard.sha256:
        now = f"{size:,} bytes instead of {shard.bytes:,}" if size > shard.bytes else f"sha256 {digest[:12]}…"
        return Finding("changed", shard.path, f"{shard.path} is not what was built ({now})")
    return None
