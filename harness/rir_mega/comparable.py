"""Which results may share a table, and in words what sets those apart that may not."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...errors import DataError
from ..results.old_comparable import share_words
from .results import Result


def aspects(result: Result) -> dict[str, str]:
    """What must be equal for two results to share a table, by its name in a sentence."""
    data, system = result.data, result.system
    return {
        "benchmark version": result.benchmark_version,
        "language": data.language,
        "split": data.split,
        **{
            f"data's {key.replace('_', ' ')}": value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for key, value in sorted(data.recipe.items())
        },
        "data's revision": data.revision,
        "normalizer": f"{system.normalizer} {system.normalizer_version}",
    }


def difference(a: Result, b: Result) -> str:
    """The first aspect in which two results differ, as a clause; "" if they may share a table."""
    left, right = aspects(a), aspects(b)
    for name in dict.fromkeys((*left, *right)):
        if left.get(name) != right.get(name):
            return f"the {name} is {left.get(name, '')!r} on one side and {right.get(name, '')!r} on the other"
    return ""


def refuse_mixture(results: Iterable[Result]) -> None:
    """Raise `DataError` naming two results if some cover all pairs and others a part, or parts of other sizes."""
    found: dict[str, Result] = {}
    for result in results:
        other = found.setdefault(result.data.config, result)
        ours, theirs = result.data, other.data
        if (ours.partial, ours.n, ours.n_total) != (theirs.partial, theirs.n, theirs.n_total):
            raise DataError(
                f"{other.system.name!r} covers {theirs.n} of {theirs.n_total} pairs of {theirs.config}, "
                f"{result.system.name!r} {ours.n} of {ours.n_total}.",
                hint="Keep results on all pairs and on parts of other sizes in folders of their own.",
            )


def part_words(result: Result) -> str:
    """How much of the pairs a partial result covers, "" if it covers all."""
    if not result.data.partial:
        return ""
    return share_words(result.data.n, result.data.n_total).replace("of the queries", "of the pairs")
