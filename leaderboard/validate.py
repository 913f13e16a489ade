"""Whether a result may enter the leaderboard: form, hashes, coverage, invariants, and scoring its records again.

`validate_file` looks at one file, `validate_files` also at what several say about each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from ..errors import DataError
from ..harness.metrics.registry import metric_of
from ..harness.results.columns import Columns
from ..harness.results.comparable import aspects
from ..harness.results.envelope import TEXT_CONDITION, Result
from ..harness.tasks import TASKS
from ..harness.tasks.verification import Judgments, judged_problems, load_verifier
from .entry import Who, content_sha256
from .findings import Finding, Findings, close, number
from .invariants import check_result
from .records import file_sha256, read_items
from .rescore import compare_with_records
from .stored import (
    FOLDER,
    StoredResult,
    check_note,
    first_problem,
    is_stored,
    items_path,
    parse_path,
    parse_stored,
    written_items,
)
from .strict_json import read_object, shown, wrong_name

_DEPTH = 4
"""Parts of a stored path: results, benchmark, system, file."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What was found about one file. `result` and `stored` are None where it could not be read so far.

    `who` is `re-scored` if it has records, they give its scores, and nothing refuses it.
    """

    path: Path
    findings: tuple[Finding, ...]
    who: Who
    document: Mapping[str, Any] = field(default_factory=dict)
    result: Result | None = None
    stored: StoredResult | None = None
    items: Path | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What refuses it."""
        return tuple(finding for finding in self.findings if finding.level == "error")

    @property
    def ok(self) -> bool:
        """Whether nothing refuses it."""
        return not self.errors

    def as_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "file": str(self.path),
            "ok": self.ok,
            "who": self.who,
            "findings": [
                {"level": finding.level, "where": finding.where, "message": finding.message}
                for finding in self.findings
            ],
        }


def validate_file(path: Path, *, records: bool = True, qrels: Judgments | None = None) -> Validation:
    """Look at one result: a stored one, or one as an evaluation wrote it, with its table beside it.

    Nothing is raised for what is wrong with the file: it is a finding. `records=False` does not look at the table. With
    `qrels` (by subset) ranking metrics are computed again from the documents in the table.
    """
    findings = Findings()
    try:
        document = read_object(path)
        if is_stored(document):
            return _validate_stored(path, parse_stored(document, str(path)), findings, records=records, qrels=qrels)
    except DataError as error:
        findings.error("", str(error))
        return Validation(path, tuple(findings.found), "self-reported")
    return _validate(path, document, findings, records=records, qrels=qrels)


def _validate_stored(
    path: Path, stored: StoredResult, findings: Findings, *, records: bool, qrels: Judgments | None
) -> Validation:
    result = stored.result
    if content_sha256(result) != stored.content_sha256:
        findings.error("content_sha256", "the result is not the one that was submitted: its sha256 differs")
    try:
        check_note(stored.note)
    except DataError as error:
        findings.error("note", error.message)
    place = "/".join(path.parts[-_DEPTH:])
    try:
        own = stored.path if stored.benchmark and stored.system else ""
    except (ValueError, OverflowError):
        findings.error("submitted", f"{shown(stored.submitted)} is no date")
        own = ""
    if own and FOLDER in path.parts and place != own:
        findings.error("", f"the file is at {shown(place, 160)}, its content belongs at {own}")
    table = items_path(path)
    if stored.items is None and table.exists():
        findings.error("items", f"{table.name} lies beside a result that says it has no records")
    if records and stored.items is not None:
        problem = _wrong_table(table, stored)
        if problem:
            findings.error("items", problem)
            records = False
    own_table = table if stored.items is not None else None
    found = _validate(path, result, findings, records=records, table=own_table, qrels=qrels)
    return Validation(path, found.findings, found.who, result, found.result, stored, found.items)


def _wrong_table(table: Path, stored: StoredResult) -> str:
    wanted = stored.items
    if wanted is None:
        return ""
    if not table.is_file():
        return f"{table.name} is missing, and the result says it has {wanted.rows} records"
    size = table.stat().st_size
    if size != wanted.bytes:
        return f"{table.name} has {size} bytes, the result says {wanted.bytes}"
    return "" if file_sha256(table) == wanted.sha256 else f"{table.name} is not the one that was submitted"


def _validate(
    path: Path,
    document: Mapping[str, Any],
    findings: Findings,
    *,
    records: bool,
    table: Path | None = None,
    qrels: Judgments | None = None,
) -> Validation:
    """Look at what was measured. `table` is where the records are; by default where an evaluation writes them."""

    def found(result: Result | None = None, who: Who = "self-reported", items: Path | None = None) -> Validation:
        return Validation(path, tuple(findings.found), who, document, result, items=items)

    task = document.get("task")
    if not isinstance(task, str) or task not in TASKS:
        findings.error("task", f"{shown(task)} is not one of {', '.join(TASKS)}")
        return found()
    _check_names(document, findings)
    try:
        # Strictly: a number in quotes is no number.
        result = Result.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        findings.error("", f"this is no result: {first_problem(error)}")
        return found()
    check_result(result, findings)
    if table is None and not is_stored_place(path):
        written = written_items(path)
        table = written if written.is_file() else None
    if table is None or result.origin == "imported":
        findings.warn("items", "there are no records, so the numbers stand as reported")
        return found(result)
    if not records:
        return found(result, items=table)
    verifier = load_verifier(task)
    try:
        columns = Columns(read_items(table, verifier.schema(result), nullable=verifier.NULLABLE))
        wanted = verifier.rows(result)
        if wanted is not None and len(columns) != wanted:
            findings.error("items", f"{table.name} has {len(columns)} rows, the result covers {wanted}")
        else:
            compare_with_records(result, verifier.recompute(result, columns), findings)
            for where, message in judged_problems(result, columns, qrels or {}):
                findings.error(where, message)
            if qrels is not None and task == "retrieval":
                for subset in result.data.subsets:
                    if subset not in qrels:
                        findings.warn("items", f"there are no judgments of {subset} to compute its metrics from")
            if not findings.errors:
                return found(result, "re-scored", table)
    except DataError as error:
        findings.error("items", str(error))
    return found(result, items=table)


def records_of(validation: Validation, table: Path, *, columns: Sequence[str]) -> pa.Table:
    """Some columns of the records of a result. Raises `DataError` as `read_items` does."""
    if validation.result is None:
        raise DataError(f"{validation.path} could not be read.", hint="Validate it first.")
    verifier = load_verifier(validation.result.task)
    return read_items(table, verifier.schema(validation.result), columns=columns, nullable=verifier.NULLABLE)


def is_stored_place(path: Path) -> bool:
    """Whether a path ends like that of a stored result."""
    return parse_path("/".join(path.parts[-_DEPTH:])) is not None


def _check_names(document: Mapping[str, Any], findings: Findings) -> None:
    """Names that people will read and click on."""
    block = document.get("system")
    if not isinstance(block, Mapping):
        return
    places: list[tuple[str, object]] = [("system.name", block.get("name"))]
    components = block.get("components")
    for role, spec in components.items() if isinstance(components, Mapping) else ():
        if isinstance(spec, Mapping):
            places += [(f"system.{role}.{key}", spec[key]) for key in ("name", "model", "revision") if spec.get(key)]
    for where, name in places:
        if not isinstance(name, str):
            findings.error(where, f"{shown(name)} is no text")
        elif problem := wrong_name(name):
            findings.error(where, f"{shown(name)} {problem}")
        elif name.startswith(("/", "~", "file:")) or name[1:3] == ":\\":
            findings.warn(where, f"{shown(name)} is a path of the submitter's machine, and tells others nothing")


def validate_files(paths: Iterable[Path], *, records: bool = True, qrels: Judgments | None = None) -> list[Validation]:
    """Look at several results, and at whether their losses are the differences of their scores."""
    return cross_check([validate_file(path, records=records, qrels=qrels) for path in paths])


def cross_check(found: Sequence[Validation], others: Sequence[Validation] = ()) -> list[Validation]:
    """Add to each of `found` what contradicts the results of the same system in `found` and `others`."""
    known: dict[str, dict[str, list[Result]]] = {}
    for validation in (*found, *others):
        if validation.result is not None:
            known.setdefault(_system_key(validation.result), {}).setdefault(validation.result.data.config, []).append(
                validation.result
            )
    checked = []
    for validation in found:
        result = validation.result
        findings = Findings(list(validation.findings))
        if result is not None:
            _check_baselines(result, known[_system_key(result)], findings)
        checked.append(
            Validation(
                validation.path, tuple(findings.found), validation.who, validation.document, result, validation.stored,
                validation.items,
            )
        )  # fmt: skip
    return checked


_SPOKEN_ROLES = ("front_end", "transcriber", "rewriter")


def _system_key(result: Result) -> str:
    """One system on one data set, without what comes before the search: a typed query has none of it."""
    system = result.system
    later = {role: spec for role, spec in system.components.items() if role not in _SPOKEN_ROLES}
    return content_sha256([aspects(result, words=False), system.name, system.kind, later, system.settings.get("depth")])


def _check_baselines(result: Result, siblings: Mapping[str, Sequence[Result]], findings: Findings) -> None:
    """Note losses against other conditions that are not the differences of the scores on the same items."""
    condition, config = result.data.condition, result.data.config
    components = result.system.components
    for baseline, by_metric in result.losses.items():
        others = [
            other
            for other in siblings.get(f"{config.removesuffix(f'_{condition}')}_{baseline}", ())
            if baseline == TEXT_CONDITION
            or all(other.system.components.get(role) == components.get(role) for role in ("transcriber", "rewriter"))
        ]
        for metric, loss in by_metric.items():
            here, n = result.scores.get(metric), loss.absolute.n
            # Where an utterance has several rows, or items failed on one side, means are over other items.
            values = [
                other.scores[metric].value for other in others if metric in other.scores and other.scores[metric].n == n
            ]
            if here is None or here.value is None or loss.absolute.value is None or not values or here.n != n:
                continue
            lost = [metric_of(metric).loss(here.value, value) for value in values if value is not None]
            if not any(close(one, loss.absolute.value) for one in lost):
                shown_lost = number(lost[0]) if lost else "nothing"
                findings.error(
                    f"losses.{baseline}.{metric}",
                    f"the result says a loss of {number(loss.absolute.value)}, the scores of both conditions differ by "
                    f"{shown_lost}",
                )
