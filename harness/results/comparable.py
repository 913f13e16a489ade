"""Which results may share a table, in words what sets those apart that may not, and where partial ones are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from .envelope import Result

_CHOICE = frozenset({"conditions", "subsets", "limit", "benchmark"})
"""What of a recipe says which items were taken, not what an item is."""

_BANKS = ("noise", "rirs")


def has_words(result: Result) -> bool:
    """Whether transcripts were compared with references, so that there are error rates."""
    return bool(result.system.normalizer)


def aspects(result: Result, *, words: bool = True) -> dict[str, str]:
    """What must be equal for two results to share a table, by its name in a sentence; `words`: the normalizer too."""
    data, system = result.data, result.system
    found = {
        "origin": result.origin,
        "task": f"{result.task} {result.task_version}",
        "benchmark": result.benchmark,
        "benchmark version": result.benchmark_version,
        "metrics version": result.metrics_version,
        "source": data.source,
        "source version": data.source_version,
        "split": data.split,
        **_data(data.recipe, data.revision, data.subsets),
    }
    if words:
        found |= {"normalizer": system.normalizer, "normalizer version": system.normalizer_version}
    return found


def _data(recipe: Mapping[str, Any], revision: str, subsets: Sequence[str]) -> dict[str, str]:
    """The data: of data that is made from a recipe all that decides an item, of others the revision."""
    written = {
        f"data's {key.replace('_', ' ')}": value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in sorted(recipe.items())
        if key not in _CHOICE and key not in ("sources", *_BANKS)
    }
    for kind in _BANKS:
        # Which other subsets a bank serves as well does not matter here.
        rows = [row for row in recipe.get(kind) or () if not row["subsets"] or set(row["subsets"]) & set(subsets)]
        written[f"data's {kind}"] = ", ".join(f"{row['name']} {row['version']}".strip() for row in rows)
    canonical = json.dumps(recipe, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # A recipe's own fingerprint says no more than the recipe; a commit or a digest of files does.
    made = revision == hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]
    return written if made else {**written, "data's revision": revision}


def difference(a: Result, b: Result) -> str:
    """The first aspect in which two results differ, as a clause; "" if they may share a table.

    The normalizer counts where both have error rates.
    """
    words = has_words(a) and has_words(b)
    left, right = aspects(a, words=words), aspects(b, words=words)
    for name in dict.fromkeys((*left, *right)):
        if left.get(name) != right.get(name):
            return f"the {name} is {left.get(name, '')!r} on one side and {right.get(name, '')!r} on the other"
    return ""


def coverage_words(n: int, n_total: int) -> str:
    """How much of the items a partial run covers.

    >>> coverage_words(34, 680), coverage_words(3, 7000)
    ('5 % of the items: 34 of 680', '0.04 % of the items: 3 of 7000')
    """
    share = 100 * n / n_total if n_total else 0.0
    return f"{share:.{3 if share >= 1 else 1}g} % of the items: {n} of {n_total}"


def refuse_mixture(results: Iterable[Result]) -> None:
    """Raise `DataError` naming two results if some cover all items and others a part, or parts of other sizes."""
    full: Result | None = None
    partial: Result | None = None
    parts: dict[tuple[str, str], Result] = {}
    for result in results:
        if not result.data.partial:
            full = full or result
            continue
        partial = partial or result
        other = parts.setdefault((result.data.config, result.data.split), result)
        if (other.data.n, other.data.n_total) != (result.data.n, result.data.n_total):
            raise DataError(
                f"{_named(other)} covers {_size(other)} items, {_named(result)} {_size(result)}.",
                hint="Keep parts of different size in folders of their own.",
            )
    if full is not None and partial is not None:
        raise DataError(
            f"{_named(partial)} is partial ({coverage_words(partial.data.n, partial.data.n_total)}), "
            f"{_named(full)} is not.",
            hint="Full and partial results never share a page: keep them in folders of their own.",
        )


def _named(result: Result) -> str:
    return f"{result.system.name!r} on {result.data.config!r}"


def _size(result: Result) -> str:
    return f"{result.data.n} of {result.data.n_total}"


def runs_folder(folder: Path) -> Path:
    """`folder`, or the folder of partial runs below it where it holds no full ones.

    Raises `UsageError` if there are several.
    """
    if any((folder / "results").glob("*/*.json")):
        return folder
    found = partial_folders(folder)
    if len(found) > 1:
        names = ", ".join(str(path) for path in found)
        raise UsageError(f"{folder} holds {len(found)} folders of partial runs.", hint=f"Name one of {names}.")
    return found[0] if found else folder


def partial_folders(folder: Path) -> list[Path]:
    """The folders below `folder` into which `squtr evaluate` wrote runs on a part of the items."""
    return [path for path in sorted(folder.glob("partial-*")) if any((path / "results").glob("*/*.json"))]
