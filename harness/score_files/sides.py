"""What `squtr compare` compares: a per-item file, one result, or the results of one system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataError, UsageError
from ..metrics.registry import metric_of
from ..results.comparable import coverage_words, difference, runs_folder
from ..results.envelope import TEXT_CONDITION, Result, RunRecord, read_record, read_runs
from ..results.item_numbers import ItemNumbers, item_numbers, with_changes
from .items import read_items
from .lines import Remark, no_remark

_RECORDS = ".items.parquet"
_BASELINE = "clean"


@dataclass(frozen=True, slots=True)
class Side:
    """Items by id ("subset/id" of a run), their subsets (None for a per-item file), and the result behind them.

    `clusters` are what is drawn together where items share it (the utterance of several RIRs); `texts` the references.
    """

    items: Mapping[str, Mapping[str, float]]
    subsets: Mapping[str, str] | None = None
    result: Result | None = None
    texts: Mapping[str, str] | None = None
    clusters: Mapping[str, str] | None = None


def read_side(path: Path, *, remark: Remark = no_remark) -> dict[str, Side]:
    """What lies at `path`, by config ("" for a per-item file).

    A per-item file (.jsonl, .tsv, .parquet), a result (.json), a folder that `squtr evaluate --out` wrote with one
    system in it, or the folder of one system below its `results`. Raises `UsageError` for several systems, `DataError`
    if there is nothing to read, or no items. Error rates also have `delta_<unit>_errors` against `clean`.
    """
    if (
        path.name.endswith(_RECORDS)
        and (result := path.with_name(f"{path.name.removesuffix(_RECORDS)}.json")).is_file()
    ):
        path = result
    if path.is_dir():
        path = runs_folder(path)
        records = read_runs(path, documents=0) if (path / "results").is_dir() else _system(path)
        systems = {record.result.system.name for record in records}
        if len(systems) > 1:
            folders = ", ".join(str(p) for p in sorted((path / "results").iterdir()) if p.is_dir())
            raise UsageError(f"{path} holds {len(systems)} systems.", hint=f"Name one of {folders}.")
        return _sides(records, records)
    if path.suffix.lower() == ".json":
        record = read_record(path, documents=0)
        return _sides([record], _system(path.parent) if _has_changes(record.result) else [])
    return {"": Side(read_items(path, remark=remark))}


def _system(folder: Path) -> list[RunRecord]:
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise DataError(f"{folder} holds no results.", hint="Give a folder that `squtr evaluate --out` wrote.")
    return [read_record(path, documents=0) for path in paths]


def _has_changes(result: Result) -> bool:
    return metric_of(result.main_metric).better == "lower" and result.data.condition not in (_BASELINE, TEXT_CONDITION)


def _sides(records: list[RunRecord], beside: list[RunRecord]) -> dict[str, Side]:
    baselines = {
        (one.result.data.language, one.result.data.split): one
        for one in beside
        if one.result.data.condition == _BASELINE and one.result.origin == "measured"
    }
    found = {}
    for record in records:
        result = record.result
        if result.origin == "imported":
            raise DataError(
                f"{result.system.name!r} on {result.data.config!r} is imported: aggregates only, no items to pair.",
                hint="Evaluate the system here to compare it.",
            )
        numbers = item_numbers(record.items)
        baseline = baselines.get((result.data.language, result.data.split))
        if baseline is not None and _has_changes(result):
            numbers = with_changes(numbers, item_numbers(baseline.items))
        found[result.key[1]] = _side(result, numbers)
    return found


def _side(result: Result, numbers: ItemNumbers) -> Side:
    clusters = numbers.clusters if numbers.has_clusters else None
    return Side(numbers.items, numbers.subsets, result, numbers.texts, clusters)


def pair_sides(
    a: Mapping[str, Side], b: Mapping[str, Side], *, intersection: bool = False
) -> list[tuple[str, Side, Side]]:
    """Name and both sides of each comparison: config by config, or the only one of each side, whatever their names.

    Configs that only one side has, and other numbers of items, raise `DataError`, unless `intersection`; full with
    partial results, and those of other data, benchmark versions or normalizers, do in any case.
    """
    if len(a) == len(b) == 1:
        (one,), (other,) = a, b
        pairs = [(one if one == other else f"{one or 'items'} against {other or 'items'}", a[one], b[other])]
    else:
        common = [name for name in a if name in b]
        odd = [name for name in (*a, *b) if name not in common]
        if not common or (odd and not intersection):
            raise DataError(
                f"only one side has {', '.join(repr(name or 'a per-item file') for name in odd)}.",
                hint="Give two results or two per-item files, or compare on the intersection.",
            )
        pairs = [(name, a[name], b[name]) for name in common]
    for name, left, right in pairs:
        _check(name, left, right, intersection=intersection)
    return pairs


def _check(name: str, a: Side, b: Side, *, intersection: bool) -> None:
    if a.result is None or b.result is None:
        return
    left, right = a.result.data, b.result.data
    if left.partial != right.partial:
        part, side = (left, "the first") if left.partial else (right, "the second")
        raise DataError(
            f"{name}: {side} side is partial ({coverage_words(part.n, part.n_total)}), the other is not.",
            hint="Evaluate both on all items, or both on the same part.",
        )
    if clause := difference(a.result, b.result):
        raise DataError(f"{name}: {clause}.", hint="Evaluate both in the same way.")
    if left.n != right.n and not intersection:
        raise DataError(
            f"{name}: one side has {left.n} items, the other {right.n}.",
            hint="Evaluate both on the same items, or compare on the intersection.",
        )
    texts, others = a.texts or {}, b.texts or {}
    odd = next((key for key, text in texts.items() if others.get(key, text) != text), None)
    if odd is not None:
        raise DataError(
            f"{name}: the text of {odd!r} is {texts[odd]!r} on one side and {others[odd]!r} on the other.",
            hint="Evaluate both on the same data.",
        )
