"""Whether shards can be read to their end: pages against their checksums, and every clip decoded."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from ..errors import AudioError
from .audio import decode_audio
from .in_order import in_order
from .manifest import Shard
from .shard_checks import Finding, Progress

_HEADER = 42
"""Bytes of a FLAC file up to the end of the first block, which ends with the MD5 of the samples."""


def check_content(
    folder: Path, shards: Sequence[Shard], progress: Progress | None = None, *, workers: int = 0
) -> list[Finding]:
    """What is wrong inside of `shards`: pages that cannot be read, and clips that do not decode to what was encoded.

    Reads every page, with its checksum where it has one, and decodes all audio in `workers` threads (0: one per core).
    At most one finding for each shard.
    """
    findings: list[Finding] = []
    done, total = 0, sum(shard.bytes for shard in shards)
    for shard in shards:
        finding = _check_shard(folder / shard.path, shard, workers or os.cpu_count() or 1)
        if finding:
            findings.append(finding)
        done += shard.bytes
        if progress:
            progress("decoding", done, total)
    return findings


def _check_shard(path: Path, shard: Shard, workers: int) -> Finding | None:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for found in in_order(_wrong, _clips(file), workers=workers):
                if found:
                    id_, what = found
                    return Finding("audio", shard.path, f"{shard.path}: {what}", id_)
    except (OSError, pa.ArrowException) as error:
        return Finding("unreadable", shard.path, f"{shard.path} cannot be read: {' '.join(str(error).split())}")
    return None


def _clips(file: pq.ParquetFile) -> Iterator[tuple[str, bytes]]:
    """The id and the content of every clip; all columns are read."""
    for index in range(file.num_row_groups):
        table = file.read_row_group(index)
        for name in _audio_columns(table.schema):
            for id_, cell in zip(table.column("id"), table.column(name), strict=True):
                for clip in _cells(cell.as_py()):
                    yield str(id_), clip


def _audio_columns(schema: pa.Schema) -> list[str]:
    def holds_audio(type_: pa.DataType) -> bool:
        if pa.types.is_list(type_):
            return holds_audio(type_.value_type)
        return bool(pa.types.is_struct(type_)) and type_.get_field_index("bytes") >= 0

    return [field.name for field in schema if holds_audio(field.type)]


def _cells(cell: object) -> Iterable[bytes]:
    if isinstance(cell, dict):
        content = cell.get("bytes")
        return [content] if content is not None else []
    return [clip for each in cell for clip in _cells(each)] if isinstance(cell, list) else []


def _wrong(clip: tuple[str, bytes]) -> tuple[str, str] | None:
    id_, content = clip
    name = repr(id_)
    if content[:4] != b"fLaC":
        try:
            decode_audio(content, name, channel=0)
        except AudioError as error:
            return id_, error.message.rstrip(".")
        return None
    stated = content[_HEADER - 16 : _HEADER]
    try:
        samples, _ = soundfile.read(io.BytesIO(content), dtype="int16", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        return id_, f"{name} cannot be read as audio: {str(error).rstrip('.')}"
    # FLAC of other widths than 16 bit has another digest; all zeros is none.
    wide = _bits(content) != 16
    if not wide and any(stated) and hashlib.md5(samples.tobytes(), usedforsecurity=False).digest() != stated:
        return id_, f"{name} does not decode to the samples that were encoded"
    return None


def _bits(content: bytes) -> int:
    """Bits per sample, from the first block of a FLAC file."""
    return (((content[20] & 1) << 4) | (content[21] >> 4)) + 1 if len(content) > 21 else 0
