"""Where the numbers come from: data, recipes, environments and result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..results.envelope import Result
from ..results.files import file_name
from .formats import UNDEFINED, plural
from .sections import Section
from .tables import Cell, Head, Row, Rows, Table


@dataclass(frozen=True, slots=True)
class Origin:
    """The last part of the page; `blocks` are JSON texts under a summary."""

    environments: str
    data: Table
    blocks: Sequence[tuple[str, Sequence[str]]]
    files: Sequence[str]

    @classmethod
    def of(cls, sections: Sequence[Section]) -> Origin:
        results = [run.result for section in sections for run in section.runs]
        lines = dict.fromkeys(
            ", ".join(
                part
                for part in (
                    f"squtr {r.squtr_version}",
                    f"Python {r.environment.python}",
                    f"{r.environment.hardware} ({r.environment.instruction_set})".removesuffix(" ()"),
                    plural(r.environment.threads, "thread"),
                    r.environment.accelerator,
                )
                if part
            )
            for r in results
        )
        full = [{"squtr": r.squtr_version, **r.environment.model_dump(mode="json")} for r in results]
        names = sorted({f"results/{file_name(r.system.name)}/{r.key[1]}.json" for r in results})
        blocks = [
            ("Recipes", _distinct(_known(r.data.recipe) for r in results if r.data.recipe)),
            ("Task details", _distinct(_prompts(r) for r in results)),
            ("Packages and hardware in full", _distinct(full)),
        ]
        return cls("; ".join(lines), _data_table(results), [block for block in blocks if block[1]], names)


def _data_table(results: Sequence[Result]) -> Table:
    rows = dict.fromkeys(
        (
            r.data.language,
            ", ".join(r.data.subsets),
            f"{r.data.source} {r.data.source_version}".strip(),
            r.data.revision,
            r.data.license,
            r.data.manifest_sha256,
            f"{r.benchmark} {r.benchmark_version}",
            f"{r.system.normalizer} {r.system.normalizer_version}".strip(),
            str(r.seed),
            str(r.resamples) if r.resamples else "",
        )
        for r in results
    )
    names = ("Subsets", "Source", "Revision", "License", "Manifest sha256", "Benchmark", "Normalizer", "Seed")
    columns = [(name, "") for name in (*names, "Resamples")]
    body = [Row(Head(row[0]), [Cell(text or UNDEFINED, css="id", is_text=True) for text in row[1:]]) for row in rows]
    return Table("Data and scoring", "Language", columns, [Rows(body)], caption="Data and scoring", css="wide")


def _prompts(result: Result) -> dict[str, Any]:
    """The prompts that a task put, {} without any."""
    prompts = result.details.get("prompts")
    return {"prompts": prompts} if prompts else {}


def _distinct(values: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(json.dumps(v, ensure_ascii=False, indent=2, sort_keys=True) for v in values if v))


def _known(value: dict[str, Any]) -> dict[str, Any]:
    return {key: entry for key, entry in value.items() if entry is not None}
