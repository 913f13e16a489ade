"""Whether a built set is whole: its files, its questions, its audio on a sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import AudioError, DataError, UsageError
from ..content_checks import check_content
from ..keyed import keyed_seed
from ..shard_checks import Finding, Progress, check_shards
from .build import part_of
from .built import BuiltStore
from .manifest import QUESTIONS, QuestionManifest, read_question_manifest
from .question import check_question
from .rows import COLUMNS, PLAIN, question_of_row
from .validate import check_audio

SAMPLE = 8
"""Clips that are decoded, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class SetDiagnosis:
    """What was looked at, and what is wrong. `decoded` clips were decoded to their end."""

    folder: Path
    fingerprint: str
    shards: int
    bytes: int
    items: int
    decoded: int
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return not self.findings


def examine_set(
    folder: Path, *, sample: int = SAMPLE, everything: bool = False, progress: Progress | None = None
) -> SetDiagnosis:
    """Check `folder` against its manifest and itself; `sample` clips, drawn by a fixed key, are decoded (0: none), with
    `everything` all of them.

    Raises `DataError` if there is no manifest to check against, `UsageError` for a negative sample.
    """
    if sample < 0:
        raise UsageError(f"the sample is {sample}.", hint="Give a number of clips, or 0 for none.")
    manifest = read_question_manifest(folder)
    findings, intact = check_shards(folder, manifest, progress)
    if everything:
        findings += check_content(folder, list(intact), progress)
    decoded = 0
    if len(intact) == len(manifest.shards) and manifest.complete:
        findings += _check_questions(folder, manifest)
        if not findings:
            more, decoded = _check_sample(folder, sample, progress)
            findings += more
    return SetDiagnosis(
        folder=folder,
        fingerprint=manifest.recipe_fingerprint,
        shards=len(manifest.shards),
        bytes=sum(shard.bytes for shard in manifest.shards),
        items=manifest.items,
        decoded=decoded,
        findings=tuple(findings),
    )


def _check_questions(folder: Path, manifest: QuestionManifest) -> list[Finding]:
    findings: list[Finding] = []
    positions: list[int] = []
    ids: list[str] = []
    for shard in manifest.shards:
        try:
            with pq.ParquetFile(folder / shard.path) as file:
                if tuple(file.schema_arrow.names) != COLUMNS:
                    findings.append(Finding("columns", shard.path, f"{shard.path} has other columns"))
                    continue
                rows = file.read(columns=list(PLAIN)).to_pylist()
        except (OSError, pa.ArrowException) as error:
            findings.append(Finding("unreadable", shard.path, f"{shard.path} cannot be read: {error}"))
            continue
        for row in rows:
            positions.append(row["position"])
            ids.append(row["id"])
            try:
                question = check_question(question_of_row(row, shard.path))
            except DataError as error:
                findings.append(Finding("value", shard.path, error.message.rstrip("."), row["id"]))
                continue
            if not shard.path.startswith(f"{QUESTIONS}/{part_of(question)}/"):
                findings.append(Finding("rows", shard.path, f"item {question.id!r} is in {shard.path}", question.id))
    if sorted(positions) != list(range(manifest.items)) or len(set(ids)) != len(ids):
        findings.append(
            Finding("ids", QUESTIONS, f"the items are not {manifest.items:,} different ones in their order")
        )
    return findings


def _check_sample(folder: Path, sample: int, progress: Progress | None) -> tuple[list[Finding], int]:
    store = BuiltStore(folder)
    chosen = sorted(store.present(), key=lambda id_: keyed_seed(0, "questions doctor", id_))[:sample]
    findings: list[Finding] = []
    for number, id_ in enumerate(chosen, start=1):
        try:
            check_audio(store.audio(id_), f"the audio {id_!r}")
        except AudioError as error:
            findings.append(Finding("audio", QUESTIONS, error.message.rstrip("."), id_))
        if progress is not None:
            progress("decoding audio", number, len(chosen))
    return findings, len(chosen)
