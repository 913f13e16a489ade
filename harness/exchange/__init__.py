"""Results and data in the files of other tools, and back: a table of formats, each in a module of its own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of a format: what is written or read, and the function `module:name` that returns `Exchanged`."""

    summary: str
    path: str

    @property
    def about(self) -> str:
        """The page of the module."""
        return importlib.import_module(self.path.partition(":")[0], __package__).__doc__ or ""

    def function(self) -> Callable[..., Exchanged]:
        module, _, name = self.path.partition(":")
        return cast("Callable[..., Exchanged]", getattr(importlib.import_module(module, __package__), name))


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table. Without `imports`, `instead` says what reads the files as they are."""

    name: str
    exports: Way
    imports: Way | None = None
    instead: str = ""


FORMATS: Mapping[str, Format] = {
    row.name: row
    for row in (
        Format(
            "trec",
            Way("rankings, as trec_eval reads them", ".trec:export_trec"),
            instead="Evaluate it as it is: squtr evaluate 'trec:FOLDER/{config}.trec' --data DATA.",
        ),
        Format(
            "transcripts",
            Way("transcripts: JSON lines, or TRN for sclite", ".transcripts:export_transcripts"),
            Way(
                "transcripts of TRN, CTM, Kaldi, TSV or Parquet, as JSON lines for `transcripts:`",
                ".transcripts:import_transcripts",
            ),
        ),
        Format(
            "beir",
            Way("a data set's corpus, queries and judgments, as BEIR lays them out", ".beir:export_named"),
            instead="Name it as a source: squtr build --source 'beir:FOLDER?language=en' …",
        ),
        Format(
            "mteb",
            Way("scores, as mteb.ResultCache reads them", ".mteb:export_scores"),
            Way("results of mteb, as aggregates", ".mteb:import_scores"),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What was written: the files, one sentence about them, remarks on what they lack, more facts for JSON."""

    files: tuple[Path, ...]
    sentence: str
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
