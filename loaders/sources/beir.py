"""A folder in the layout of BEIR: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`. Texts only.

The qrels have a first line `query-id corpus-id score`, with tabs. `queries.jsonl` usually holds the queries of all
splits; the queries of a split are those that its qrels judge, in the file's order.

Layout: https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from ...errors import DataError, nearest
from .digests import files_version
from .names import SourceName, check_language
from .recorded import delimited_table
from .rules import OnFault, version_suffix
from .tables import DOCUMENT_ID_KEYS, QUERY_ID_KEYS, SCORE_KEYS, Row, Table, jsonl_table, subset_name
from .texts import Part, TextSource


def qrels_table(path: Path) -> Table:
    """A file of judgments with a header, as a table. Raises `DataError` for the TREC format, which has none."""
    table = delimited_table(path)

    def rows(bad: OnFault) -> Iterator[Row]:
        for number, row in table.rows(bad):
            if all(set(row) & set(keys) for keys in (QUERY_ID_KEYS, DOCUMENT_ID_KEYS, SCORE_KEYS)):
                yield number, row
                continue
            error = DataError(
                f"{path}, line {number}: query, document or grade is missing.",
                hint="The first line must be query-id, corpus-id, score, with tabs between.",
            )
            if not set(row) & {*QUERY_ID_KEYS, *DOCUMENT_ID_KEYS}:
                # The first line names other fields: no row can be read.
                raise error
            bad(error)

    return Table(table.name, rows)


class BeirSource(TextSource):
    """A BEIR folder as a source with one subset."""

    def __init__(
        self,
        root: Path,
        *,
        language: str,
        split: str = "test",
        subset: str = "",
        license: str = "unknown",
        on_bad: str = "refuse",
    ) -> None:
        name = subset_name(subset or root.resolve().name)
        super().__init__(f"beir:{name}", {name: check_language(language)}, on_bad)
        self.root, self.license = root, license
        self._choices = (name, language)
        self.split = split
        missing = [name for name in ("corpus.jsonl", "queries.jsonl", "qrels") if not (root / name).exists()]
        if missing:
            raise DataError(
                f"{root} is not a BEIR folder: {', '.join(missing)} is missing.",
                hint="It must hold corpus.jsonl, queries.jsonl and qrels/<split>.tsv.",
            )
        self._qrels_path = root / "qrels" / f"{split}.tsv"
        splits = sorted(path.stem for path in (root / "qrels").glob("*.tsv"))
        if split not in splits:
            guess = nearest(split, splits)
            raise DataError(
                f"{root} has no split {split!r} (qrels/{split}.tsv).",
                hint=f"{f'Did you mean {guess!r}? ' if guess else ''}It has: {', '.join(splits) or 'none'}.",
            )

    @cached_property
    def version(self) -> str:
        names = ("corpus.jsonl", "queries.jsonl", f"qrels/{self.split}.tsv")
        return files_version(self.root, names, choices=" ".join(self._choices)) + version_suffix(self.on_bad)

    def judgments_name(self, subset: str) -> str:
        return f"qrels/{self.split}.tsv"

    def table(self, part: Part, subset: str) -> Table:
        return qrels_table(self._qrels_path) if part == "qrels" else jsonl_table(self.root / f"{part}.jsonl")


def open_beir(name: SourceName) -> BeirSource:
    """The source `beir:PATH?language=…`, with the options `split`, `subset` and `license`."""
    folder = name.folder()
    return BeirSource(
        folder,
        language=name.language(f"the BEIR folder {folder}"),
        split=name.option("split", "test"),
        subset=name.option("subset"),
        license=name.option("license", "unknown"),
        on_bad=name.on_bad,
    )
