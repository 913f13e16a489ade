"""What `squtr compare` compares: a per-item file, one result, or the results of one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import DataError, UsageError
from ..results.old_comparable import difference, runs_folder, share_words
from ..results.old import Result, RunRecord, read_record, read_runs
from ..rir_mega import results as rir_mega
from ..rir_mega.comparable import difference as rir_mega_difference
from .items import read_items
from .lines import Remark, no_remark

FIELDS = (
    *("word_errors", "word_reference_length", "char_errors", "char_reference_length"),
    *("ndcg_at_10", "mrr_at_10", "recall_at_10"),
)
"""The fields of a run's records that can be compared."""
PAIR_FIELDS = tuple(
    name
    for unit in ("word", "char")
    for name in (*(f"{arm}_{unit}_errors" for arm in ("delta", "reverb", "clean")), f"{unit}_reference_length")
)
"""The fields of a record of `rir_mega` that can be compared."""
_PAIRS = ".pairs.parquet"


@dataclass(frozen=True, slots=True)
class Side:
    """Items by id ("subset/id" of a run), their subsets (None for a per-item file), and the result behind them.

    `texts` are a run's queries as they were meant. `clusters` are what is drawn together where the record says so: the
    utterances of `rir_mega`.
    """

    items: dict[str, dict[str, float]]
    subsets: dict[str, str] | None
    result: Result | rir_mega.Result | None
    texts: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] | None = None


def read_side(path: Path, *, remark: Remark = no_remark) -> dict[str, Side]:
    """What lies at `path`, by config ("" for a per-item file).

    A per-item file (.jsonl, .tsv, .parquet), a result (.json), a folder that `squtr evaluate --out` wrote with one
    system in it, or the folder of one system below its `results`; results of any benchmark. Raises `UsageError` if a
    folder holds several systems, `DataError` if there is nothing to read, or a result is imported and so has no items.
    """
    if path.name.endswith(_PAIRS) and (result := path.with_name(f"{path.name.removesuffix(_PAIRS)}.json")).is_file():
        path = result
    if path.is_dir():
        path = runs_folder(path)
        paths = sorted(path.glob("results/*/*.json")) or sorted(path.glob("*.json"))
        if paths and rir_mega.is_rir_mega(paths[0]):
            return _pair_sides(path, paths)
        records = read_runs(path) if (path / "results").is_dir() else _system(path)
        names = sorted({record.result.system.name for record in records})
        if len(names) > 1:
            folders = ", ".join(str(p) for p in sorted((path / "results").iterdir()) if p.is_dir())
            raise UsageError(f"{path} holds {len(names)} systems.", hint=f"Name one of {folders}.")
        return {record.result.data.config: _run(record) for record in records}
    if path.suffix.lower() == ".json":
        if rir_mega.is_rir_mega(path):
            return _pair_sides(path, [path])
        record = read_record(path)
        return {record.result.data.config: _run(record)}
    return {"": Side(read_items(path, remark=remark), None, None)}


def _pair_sides(folder: Path, paths: Sequence[Path]) -> dict[str, Side]:
    """The records of one recognizer of `rir_mega`."""
    records = [rir_mega.read_record(path) for path in paths]
    if len({record.result.system.name for record in records}) > 1:
        folders = ", ".join(sorted({str(path.parent) for path in paths}))
        raise UsageError(f"{folder} holds several recognizers.", hint=f"Name one of {folders}.")
    return {record.result.data.config: _pair_side(record) for record in records}


def _pair_side(record: rir_mega.PairRecord) -> Side:
    columns = {name: record.pairs.column(name).to_pylist() for name in ("id", "utterance_id", "text", *PAIR_FIELDS)}
    ids = columns["id"]
    items = {
        id_: {name: float("nan") if columns[name][row] is None else float(columns[name][row]) for name in PAIR_FIELDS}
        for row, id_ in enumerate(ids)
    }
    texts = dict(zip(ids, columns["text"], strict=True))
    return Side(items, None, record.result, texts, dict(zip(ids, columns["utterance_id"], strict=True)))


def _system(folder: Path) -> list[RunRecord]:
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise DataError(f"{folder} holds no results.", hint="Give a folder that `squtr evaluate --out` wrote.")
    return [read_record(path) for path in paths]


def _run(record: RunRecord) -> Side:
    result = record.result
    if result.origin == "imported":
        raise DataError(
            f"{result.system.name!r} on {result.data.config!r} is imported: aggregates only, no items to pair.",
            hint="Evaluate the system here to compare it.",
        )
    columns = {name: record.items.column(name).to_pylist() for name in ("subset", "id", "text", *FIELDS)}
    keys = [f"{subset}/{id_}" for subset, id_ in zip(columns["subset"], columns["id"], strict=True)]
    items = {
        key: {name: float("nan") if columns[name][row] is None else float(columns[name][row]) for name in FIELDS}
        for row, key in enumerate(keys)
    }
    texts = {key: text or "" for key, text in zip(keys, columns["text"], strict=True)}
    return Side(items, dict(zip(keys, columns["subset"], strict=True)), result, texts)


def pair_sides(
    a: Mapping[str, Side], b: Mapping[str, Side], *, intersection: bool = False
) -> list[tuple[str, Side, Side]]:
    """Name and both sides of each comparison: config by config, or the only one of each side, whatever their names.

    Configs that only one side has raise `DataError`, or are left out with `intersection`; so do other numbers of
    queries. Results that must not share a table raise it in any case: full and partial ones, and those of other data,
    benchmark versions or normalizers.
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
    what = "pairs" if isinstance(a.result, rir_mega.Result) else "queries"
    left, right = a.result.data, b.result.data
    if left.partial != right.partial:
        part, side = (left, "the first") if left.partial else (right, "the second")
        raise DataError(
            f"{name}: {side} side is partial ({share_words(part.n, part.n_total)}), the other is not.",
            hint="Evaluate both on all queries, or both on the same part.",
        )
    if said := _difference(a.result, b.result):
        raise DataError(f"{name}: {said}.", hint="Evaluate both in the same way.")
    if left.n != right.n and not intersection:
        raise DataError(
            f"{name}: one side has {left.n} {what}, the other {right.n}.",
            hint=f"Evaluate both on the same {what}, or compare on the intersection.",
        )
    odd = next((key for key, text in a.texts.items() if b.texts.get(key, text) != text), None)
    if odd is not None:
        raise DataError(
            f"{name}: query {odd!r} is {a.texts[odd]!r} on one side and {b.texts[odd]!r} on the other.",
            hint="Evaluate both on the same data.",
        )


def _difference(a: Result | rir_mega.Result, b: Result | rir_mega.Result) -> str:
    """In what two results differ that may not, as a clause."""
    if isinstance(a, rir_mega.Result) and isinstance(b, rir_mega.Result):
        return rir_mega_difference(a, b)
    if isinstance(a, rir_mega.Result) or isinstance(b, rir_mega.Result):
        return f"the benchmark is {a.benchmark!r} on one side and {b.benchmark!r} on the other"
    return difference(a, b)
