"""The rows of a file of transcripts, whatever its format: JSON lines, NIST's TRN (`.trn`) and CTM (`.ctm`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ....errors import DataError
from ....loaders.jsonl import read_jsonl
from ...text.nist import COMMENT, parse_trn, read_ctm


def transcript_rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and fields of every row; of CTM, rows are numbered as its texts are.

    A line of TRN without words, `(id)`, is the empty transcript. Raises `DataError` naming file and line.
    """
    suffix = file.suffix.lower()
    if suffix not in (".trn", ".ctm"):
        yield from read_jsonl(file)
        return
    lines = _lines(file)
    if suffix == ".ctm":
        texts = read_ctm(lines, str(file))
        yield from ((n, {"id": id_, "text": text}) for n, (id_, text) in enumerate(texts.items(), start=1))
        return
    for number, line in lines:
        found = parse_trn(line)
        if found is None:
            raise DataError(
                f"{file}, line {number}: no id in parentheses at the end.", hint="A line of TRN is: text (id)."
            )
        yield number, {"id": found[0], "text": found[1]}


def _lines(file: Path) -> list[tuple[int, str]]:
    try:
        content = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise DataError(f"{file} does not exist.", hint="Check the path.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}.", hint="It must be a file in UTF-8.") from error
    # Only these break lines: a text may hold U+2028.
    return [
        (n, line)
        for n, line in enumerate(content.split("\n"), start=1)
        if line.strip() and not line.startswith(COMMENT)
    ]
