"""Transcripts: JSON lines, which `transcripts:` reads again, and NIST's TRN for sclite.

    <out>/<system>/<subset>_<condition>.jsonl     {"id": …, "subset": …, "condition": …, "text": …}
    <out>/<system>/<subset>_<condition>.trn       text (id)

Records have the first hypothesis alone, and no times of words: so there is nothing to write as CTM.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError, unknown_name
from ..results.envelope import TEXT_CONDITION
from ..results.files import write_in_pieces
from ..score_files.texts import read_texts
from ..text.nist import trn_line, unwritable
from . import Exchanged
from .runs import Part, Written, run_parts

EXPORT_FORMATS = ("jsonl", "trn", "ctm")
_REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class _Line:
    id: str
    text: str
    error: str
    truncated: bool


def export_transcripts(
    folder: Path,
    out: Path,
    *,
    format_: str = "jsonl",
    rewritten: bool = False,
    systems: Sequence[str] = (),
    configs: Sequence[str] = (),
) -> Exchanged:
    """Write the transcripts below `folder` (what `squtr evaluate --out` wrote), one file per system, subset, condition.

    With `rewritten` what a rewriter made of them is written in their place. Of a failed item JSON lines have the error;
    TRN leaves it out, and a remark counts. Raises as `run_parts`, `UsageError` for CTM, and `DataError` if no system
    transcribes (or rewrites), and for an id that TRN cannot hold.
    """
    if format_ not in EXPORT_FORMATS:
        raise unknown_name("format", format_, EXPORT_FORMATS)
    if format_ == "ctm":
        raise UsageError(
            "the records have no times of words, and CTM is made of them.",
            hint="Write TRN, which sclite matches by id: --format trn.",
        )
    written = Written(out)
    for part in run_parts(folder, task=["retrieval", "recognition"], systems=systems, configs=configs):
        if part.result.data.condition == TEXT_CONDITION or not _has_texts(part, rewritten=rewritten):
            continue
        lines = list(_lines(part, _REWRITTEN if rewritten else "transcript"))
        content = "".join(f"{line}\n" for line in (_trn(lines) if format_ == "trn" else _jsonl(part, lines)))
        if written.add(part, f".{format_}", content):
            written.remarks += _remarks(part, lines, format_, rewritten=rewritten)
    if not written.files:
        what = "rewrites transcripts" if rewritten else "transcribes"
        raise DataError(f"no system in {folder} {what}.", hint="Choose other systems or configs, or export trec.")
    count = f"{len(written.files)} file{'s' if len(written.files) != 1 else ''} of transcripts"
    return Exchanged(tuple(written.files), f"Wrote {count} into {out}.", tuple(written.remarks))


def _has_texts(part: Part, *, rewritten: bool) -> bool:
    components = part.result.system.components
    return "transcriber" in components and (not rewritten or _REWRITTEN in part.items.column_names)


def _lines(part: Part, column: str) -> Iterator[_Line]:
    items = part.items.select(["id", column, "error", "flags"]).to_pylist()
    for row in items:
        text = row[column]
        # What failed behind the transcript (a rewriter) leaves it as it is.
        yield _Line(row["id"], text, "" if text else row["error"], "truncated" in row["flags"])


def _jsonl(part: Part, lines: Sequence[_Line]) -> Iterator[str]:
    condition = part.result.data.condition
    for line in lines:
        row: dict[str, Any] = {"id": line.id, "subset": part.subset, "condition": condition}
        row |= {"error": line.error} if line.error else {"text": line.text}
        if line.truncated and not line.error:
            row["truncated"] = True
        yield json.dumps(row, ensure_ascii=False)


def _trn(lines: Sequence[_Line]) -> Iterator[str]:
    return (trn_line(line.id, line.text) for line in lines if not line.error)


def _remarks(part: Part, lines: Sequence[_Line], format_: str, *, rewritten: bool) -> Iterator[str]:
    settings = part.result.system.settings
    failed = sum(bool(line.error) for line in lines)
    if format_ == "trn" and failed:
        yield f"{part.label}: {failed} of {len(lines)} failed; TRN has no line for them."
    odd = unwritable({line.id: line.text for line in lines}) if format_ == "trn" else []
    if odd:
        signs = "{, } or ;; at the start"
        yield f"{part.label}: {len(odd)} texts hold {signs}, which sclite reads as its own; the first is {odd[0]!r}."
    if int(settings.get("n_best", 1)) > 1 and not rewritten:
        yield (
            f"{part.label} searched with {settings['n_best']} hypotheses; the records have the first alone, so what is "
            "retrieved with the file differs."
        )
    if settings.get("script_folding", "none") != "none":
        yield f"{part.label}: the texts are in the script of the corpus, as they were searched with."


def import_transcripts(
    file: Path, out: Path, *, format_: str = "auto", subset: str = "", condition: str = ""
) -> Exchanged:
    """Write the texts of a file (see `read_texts`) as JSON lines, of one subset and condition where they are given.

    Raises `DataError` as `read_texts`, `StorageError` if the disk refuses.
    """
    remarks: list[str] = []
    texts = read_texts(file, format_, remark=remarks.append)
    where = {name: value for name, value in (("subset", subset), ("condition", condition)) if value}
    lines = (json.dumps({"id": id_, **where, "text": text}, ensure_ascii=False) + "\n" for id_, text in texts.items())
    write_in_pieces(out, lines)
    count = f"{len(texts)} transcript{'s' if len(texts) != 1 else ''}"
    return Exchanged((out,), f"Wrote {count}: evaluate them as transcripts:{out}.", tuple(remarks))
