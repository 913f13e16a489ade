"""Texts by id: JSONL, TSV, Kaldi's `text`, NIST's TRN and CTM, Parquet."""

from __future__ import annotations

from pathlib import Path

from ...errors import DataError, unknown_name
from ..text.nist import parse_trn, read_ctm
from .lines import Remark, id_field, no_remark, place, read_lines, read_rows

TEXT_FORMATS = ("auto", "jsonl", "tsv", "kaldi", "trn", "ctm", "parquet")
_BY_SUFFIX = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    ".tsv": "tsv",
    ".trn": "trn",
    ".ctm": "ctm",
    ".parquet": "parquet",
}
_HEADER = "id\ttext"


def read_texts(path: Path, format_: str = "auto", *, remark: Remark = no_remark) -> dict[str, str]:
    r"""Texts by id, in the order of the file.

    - "jsonl": one `{"id": …, "text": …}` per line ("_id" is accepted too), ids texts or whole numbers;
    - "tsv": id, tab, text; a first line "id", tab, "text" is a header;
    - "kaldi": id, blanks or tabs, text; an id alone is an empty text;
    - "trn": text, then the id in parentheses;
    - "ctm": NIST's: the words of each file in the order of their starts, joined;
    - "parquet": columns `id` and `text`;
    - "auto": by the file's suffix, or else by its first line: a brace is JSONL, an id in parentheses at the end is TRN,
      a tab TSV, anything else Kaldi.

    Raises `DataError` naming file and line for bad encoding, a line of another form, an id that stands twice, and for a
    file without texts; `UnknownNameError` for a format.
    """
    if format_ not in TEXT_FORMATS:
        raise unknown_name("format", format_, TEXT_FORMATS)
    lines: list[tuple[int, str]] | None = None
    if format_ == "auto":
        format_ = _BY_SUFFIX.get(path.suffix.lower(), "")
    if not format_:
        lines = read_lines(path, remark)
        format_ = _guess(lines[0][1]) if lines else "kaldi"
    if format_ == "ctm":
        texts = read_ctm(read_lines(path, remark) if lines is None else lines, str(path))
        found = [(str(path), id_, text) for id_, text in texts.items()]
    elif format_ in ("jsonl", "parquet"):
        # The remarks of a file that is read again have been made.
        rows = read_rows(path, format_, no_remark if lines is not None else remark)
        found = [(where, id_field(row, ("id", "_id"), where), _text(row.get("text"), where)) for where, row in rows]
    else:
        found = _entries(path, format_, read_lines(path, remark) if lines is None else lines)
    return _unique(path, found)


def _guess(line: str) -> str:
    if line.lstrip().startswith("{"):
        return "jsonl"
    if parse_trn(line):
        return "trn"
    return "tsv" if "\t" in line else "kaldi"


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{where}: the field 'text' is {value!r} where a text is expected.", hint="Mend the line.")
    return value


def _entries(path: Path, format_: str, lines: list[tuple[int, str]]) -> list[tuple[str, str, str]]:
    if format_ == "tsv" and lines and lines[0][1].strip().lower() == _HEADER:
        lines = lines[1:]
    return [(place(path, number), *_entry(place(path, number), format_, line)) for number, line in lines]


def _entry(where: str, format_: str, line: str) -> tuple[str, str]:
    if format_ == "trn":
        found = parse_trn(line)
        if found is None:
            raise DataError(f"{where}: no id in parentheses at the end.", hint="TRN lines are: text (id)")
        return found
    if format_ == "kaldi":
        id_, *rest = line.split(maxsplit=1)
        return id_, rest[0].strip() if rest else ""
    fields = line.split("\t")
    if len(fields) != 2:
        what = "no tab" if len(fields) == 1 else f"{len(fields)} fields with tabs between"
        raise DataError(
            f"{where}: {what}; id, tab, text is expected.",
            hint="Put one tab behind the id, also of an empty text, and none into the text; or give --format kaldi.",
        )
    if not fields[0].strip():
        raise DataError(f"{where}: the id is empty.", hint="Begin the line with an id.")
    return fields[0].strip(), fields[1].strip()


def _unique(path: Path, found: list[tuple[str, str, str]]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for where, id_, text in found:
        if id_ in texts:
            first = next(w for w, other, _ in found if other == id_)
            raise DataError(f"{where}: id {id_!r} stands in {first} too.", hint="Give each id once.")
        texts[id_] = text
    if not texts:
        raise DataError(f"{path} holds no texts.", hint="Give one text per line, each with its id.")
    return texts
