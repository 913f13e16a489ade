"""TREC run files: what every system retrieved, as trec_eval reads it.

    <out>/<system>/<subset>_<condition>.trec      query Q0 document rank score tag

trec_eval orders by score and breaks ties by document id, and it holds scores in 32 bits. Where that would give another
order than the one that was scored (two scores that differ only beyond 32 bits), the later of two gets the next smaller
number, and the number of such queries is told.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import DataError
from ..metrics.ranking import order_hits
from . import Exchanged
from .runs import Part, Written, run_parts


def export_trec(folder: Path, out: Path, *, systems: Sequence[str] = (), configs: Sequence[str] = ()) -> Exchanged:
    """Write the rankings below `folder` (what `squtr evaluate --out` wrote), one file per system, subset and condition.

    Queries that failed or found nothing are left out, as the format has no word for them, and counted in a remark.
    Raises as `run_parts`, and `DataError` for an id with a blank and for records that name a part of what was
    retrieved.
    """
    written = Written(out)
    for part in run_parts(folder, task=["retrieval"], systems=systems, configs=configs):
        lines, moved = _lines(part)
        if written.add(part, ".trec", "".join(lines)):
            written.remarks += _remarks(part, moved)
    count = f"{len(written.files)} run{'s' if len(written.files) != 1 else ''}"
    return Exchanged(tuple(written.files), f"Wrote {count} into {out}.", tuple(written.remarks))


def _lines(part: Part) -> tuple[list[str], int]:
    """The lines of a part, and in how many queries scores were moved."""
    items = part.items
    columns = (items[name].to_pylist() for name in ("id", "documents", "scores", "first_relevant_rank"))
    lines: list[str] = []
    moved = 0
    for query, documents, scores, first in zip(*columns, strict=True):
        if first > len(documents):
            raise DataError(
                f"the records of {part.label} name {len(documents)} of the documents that query {query!r} retrieved.",
                hint="Evaluate again: records of this version name all.",
            )
        ids = order_hits(query, list(zip(documents, scores, strict=True)))
        by_id = dict(zip(reversed(documents), reversed(scores), strict=True))
        values, changed = single_precision(ids, [by_id[id_] for id_ in ids])
        moved += changed
        for name in (query, *ids):
            if name.split() != [name]:
                raise DataError(
                    f"the id {name!r} of {part.label} holds a blank, which a TREC run cannot hold.",
                    hint="Rename it in the data.",
                )
        lines += [
            f"{query} Q0 {id_} {rank} {value!r} {part.folder}\n"
            for rank, (id_, value) in enumerate(zip(ids, values, strict=True), start=1)
        ]
    return lines, moved


def single_precision(ids: Sequence[str], scores: Sequence[float]) -> tuple[list[float], bool]:
    """Scores of documents (best first, ties by id descending) that give this order also as float32; whether any moved.

    >>> single_precision(["b", "a"], [2.0, 2.0]), single_precision(["a", "b"], [2.0, 1.9])
    (([2.0, 2.0], False), ([2.0, 1.9], False))
    >>> single_precision(["a", "b"], [2.0, 2.0 - 1e-12])
    ([2.0, 1.9999998807907104], True)
    """
    with np.errstate(over="ignore"):
        single = np.asarray(scores, dtype=np.float32)
    keys = list(zip(single.tolist(), ids, strict=True))
    if np.isfinite(single).all() and all(map(operator.gt, keys, keys[1:])):
        return list(scores), False
    lowered: list[np.float32] = []
    for place, value in enumerate(single):
        falls = not lowered or (value, ids[place]) < (lowered[-1], ids[place - 1])
        lowered.append(value if falls else np.nextafter(lowered[-1], np.float32(-np.inf)))
    if not np.isfinite(lowered).all():
        # Beyond what 32 bits hold: only the order is left to tell.
        return [float(value) for value in range(len(ids), 0, -1)], True
    return [float(value) for value in lowered], True


def _remarks(part: Part, moved: int) -> list[str]:
    items, found = part.items, []
    errors, documents = items["error"].to_pylist(), items["documents"].to_pylist()
    failed = sum(bool(error) and not own for error, own in zip(errors, documents, strict=True))
    nothing = sum(not error and not own for error, own in zip(errors, documents, strict=True))
    if failed or nothing:
        words = [f"{failed} failed"] * bool(failed) + [f"{nothing} found nothing"] * bool(nothing)
        found.append(
            f"{part.label}: of {items.num_rows} queries {' and '.join(words)}; a run has no line for them "
            "(trec_eval -c scores them 0)."
        )
    if moved:
        found.append(f"{part.label}: scores of {moved} queries were moved, as 32 bits would tie them in another order.")
    if items["id"].to_pylist() != items["cluster"].to_pylist():
        found.append(f"{part.label}: utterances have several rows, which are queries <utterance>@<rir> of their own.")
    return found
