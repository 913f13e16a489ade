"""The checked tables of text subsets: what a source of texts shares, however its tables are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from ...errors import DataError, unknown_name
from ..left_out import LeftOut, merged
from ..records import Document, Qrel, Query
from .rules import Collected, OnBad, check_on_bad
from .tables import ID_KEYS, Table, aliased, check_judged, read_qrels, read_queries, repeated_ids, stream_documents

Part = Literal["corpus", "queries", "qrels"]
EMPTIED = "queries of which all judgments were left out"


class CheckedTables(ABC):
    """Queries, documents and judgments by subset, by the rules of `rules`; documents are streamed.

    The first bad row has all tables checked: one error tells all of them. With `on_bad="skip"` they are left out, and
    a subset is read once before its queries are given. `judged_only` are sources whose file of queries is of more
    splits than one: a query without a judgment is then not taken.
    """

    judged_only = True
    split = ""

    def __init__(self, on_bad: str = "refuse") -> None:
        self.on_bad: OnBad = check_on_bad(on_bad)
        self._opened: dict[str, _Subset] = {}

    @property
    @abstractmethod
    def subsets(self) -> Mapping[str, str]: ...

    @abstractmethod
    def table(self, part: Part, subset: str) -> Table: ...

    def judgments_name(self, subset: str) -> str:
        """What the judgments are called in what is published."""
        return "the judgments"

    def examined(self) -> Sequence[str]:
        """The subsets that are checked as soon as one has a bad row."""
        return list(self.subsets)

    def language_of(self, subset: str) -> str:
        if subset not in self.subsets:
            raise unknown_name(f"subset of {getattr(self, 'name', 'the source')}:", subset, self.subsets)
        return self.subsets[subset]

    def examine(self) -> Collected:
        """What is wrong with the tables of all subsets. Streams their documents."""
        found = Collected()
        for subset in self.examined():
            self._of(subset).collect(found)
        return found

    def queries(self, subset: str) -> Sequence[Query]:
        tables = self._of(subset)
        try:
            return tables.cleaned[0] if self.on_bad == "skip" else tables.queries
        except DataError:
            self._refuse()
            raise

    def qrels(self, subset: str) -> Sequence[Qrel]:
        tables = self._of(subset)
        try:
            return tables.cleaned[1] if self.on_bad == "skip" else tables.qrels
        except DataError:
            self._refuse()
            raise

    def stream(self, subset: str) -> Iterator[Document]:
        """All documents, one at a time."""
        return self._stream(self._of(subset))

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Rows that were left out, and queries without a judgment, of the subsets that were read (none yet: of all)."""
        return merged(
            entry for subset in (list(self._opened) or list(self.subsets)) for entry in self._of(subset).left_out
        )

    def _stream(self, tables: _Subset) -> Iterator[Document]:
        try:
            yield from tables.documents()
        except DataError:
            self._refuse()
            raise

    def _refuse(self) -> None:
        if self.on_bad == "refuse":
            self.examine().refuse(getattr(self, "name", "the source"))

    def _of(self, subset: str) -> _Subset:
        language = self.language_of(subset)
        if subset not in self._opened:
            self._opened[subset] = _Subset(self, subset, language)
        return self._opened[subset]


class _Subset:
    def __init__(self, of: CheckedTables, subset: str, language: str) -> None:
        self._of, self._subset, self._language = of, subset, language

    def _table(self, part: Part) -> Table:
        return self._of.table(part, self._subset)

    @cached_property
    def judged(self) -> dict[Qrel, int]:
        return read_qrels(self._table("qrels"))

    def _only(self, judged: Mapping[Qrel, int]) -> set[str] | None:
        return {qrel.query_id for qrel in judged} if self._of.judged_only else None

    @cached_property
    def queries(self) -> list[Query]:
        # Without `judged_only` judgments are read when they are asked for.
        only = self._only(self.judged) if self._of.judged_only else None
        return read_queries(self._table("queries"), self._subset, self._language, only=only)

    @cached_property
    def qrels(self) -> list[Qrel]:
        ids = [query.id for query in self.queries]
        return check_judged(self._table("qrels"), self.judged, ids, self.documents())

    def documents(self) -> Iterator[Document]:
        table = self._table("corpus")
        if self._of.on_bad == "refuse":
            return stream_documents(table)
        return stream_documents(table, lambda _: None, repeated=self._repeated)

    @cached_property
    def _repeated(self) -> frozenset[int]:
        return repeated_ids(self._table("corpus"))

    @cached_property
    def cleaned(self) -> tuple[list[Query], list[Qrel], tuple[LeftOut, ...]]:
        """Queries and judgments without the bad rows, and what was left out."""
        bad = Collected()
        judged = read_qrels(self._table("qrels"), bad)
        table = self._table("queries")
        queries = read_queries(table, self._subset, self._language, only=self._only(judged), bad=bad)
        documents = stream_documents(self._table("corpus"), bad, repeated=self._repeated)
        kept = check_judged(self._table("qrels"), judged, [query.id for query in queries], documents, bad)
        emptied: tuple[LeftOut, ...] = ()
        if self._of.judged_only:
            left = {qrel.query_id for qrel in kept}
            emptied = LeftOut.of(EMPTIED, [query.id for query in queries if query.id not in left])
            queries = [query for query in queries if query.id in left]
        if not queries:
            raise DataError(
                f"{table.name}: no query is left.", hint="Check the ids of queries, documents and judgments."
            )
        return queries, kept, (*bad.left_out, *emptied)

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        rows: tuple[LeftOut, ...] = ()
        judged = self.judged_ids
        if self._of.on_bad == "skip":
            rows = self.cleaned[2]
        if not self._of.judged_only:
            return rows
        ids = (id_ for id_ in self._ids() if id_ not in judged)
        return (*rows, *LeftOut.of(f"queries without a judgment in {self._of.judgments_name(self._subset)}", ids))

    @cached_property
    def judged_ids(self) -> frozenset[str]:
        """The ids of queries that have a judgment, good or bad."""
        if self._of.on_bad == "refuse":
            return frozenset(qrel.query_id for qrel in self.judged)
        bad = Collected()
        return frozenset(qrel.query_id for qrel in read_qrels(self._table("qrels"), bad))

    def _ids(self) -> Iterator[str]:
        for _, row in self._table("queries").rows(lambda _: None):
            yield str(row.get(aliased(row, ID_KEYS)))

    def collect(self, bad: Collected) -> None:
        """Add all that is wrong with the subset to `bad`."""
        judged: dict[Qrel, int] = {}
        known: set[str] = set()
        with bad.table():
            judged = read_qrels(self._table("qrels"), bad)
        with bad.table():
            read_queries(
                self._table("queries"),
                self._subset,
                self._language,
                only=self._only(judged) if judged else None,
                bad=bad,
            )
        with bad.table(quiet=True):
            # A query that is wrong has been told: it is not missing as well.
            known.update(self._ids())
        with bad.table():
            documents = stream_documents(self._table("corpus"), bad)
            check_judged(self._table("qrels"), judged, known, documents, bad)
