"""What is wrong with published data, counted, with examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Defect:
    """How often something is wrong, and where, for the first few."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The counts of a subset, and its defects by kind (empty if none was found)."""

    subset: str
    queries: int
    documents: int
    qrels: int
    defects: Mapping[str, Defect]

    def as_dict(self) -> dict[str, Any]:
        return {
            "subset": self.subset,
            "queries": self.queries,
            "documents": self.documents,
            "qrels": self.qrels,
            "defects": {k: {"count": d.count, "examples": list(d.examples)} for k, d in self.defects.items()},
        }

    def __str__(self) -> str:
        lines = [f"{self.subset}: {self.queries:,} queries, {self.documents:,} documents, {self.qrels:,} judgments"]
        for kind, defect in self.defects.items():
            more = ", …" if defect.count > len(defect.examples) else ""
            lines.append(f"  {kind.replace('_', ' ')}: {defect.count:,} ({', '.join(defect.examples)}{more})")
        return "\n".join(lines)


class DefectCounter:
    def __init__(self) -> None:
        self._examples: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, example: str) -> None:
        self._examples[kind].append(example)

    def found(self) -> dict[str, Defect]:
        return {kind: Defect(len(all_), tuple(all_[:EXAMPLES])) for kind, all_ in sorted(self._examples.items())}
