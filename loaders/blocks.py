"""Rendering the utterances of an opened recipe: one, a run of rows, or a block as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from .conditions import Condition
from .in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from .recipe import OpenedRecipe
from .records import Query, SpokenQuery, Take
from .render import render_all
from .rows import query_table


def render_take(opened: OpenedRecipe, conditions: Sequence[Condition], take: Take) -> list[list[SpokenQuery]]:
    """One utterance under several conditions: its speech is read once."""
    return render_all(take, opened.speech(take.query), conditions, opened.context)


def block_tables(takes: Sequence[Sequence[Sequence[SpokenQuery]]], schema: pa.Schema) -> list[pa.Table]:
    """From rows by utterance and condition to one table per condition."""
    return [query_table([row for rows in column for row in rows], schema) for column in zip(*takes, strict=True)]


def render_rows(
    opened: OpenedRecipe, condition: Condition, rows: Sequence[tuple[Query, str]], *, workers: int = 1
) -> Iterator[SpokenQuery]:
    """The rows of one condition (see `OpenedRecipe.rows`), in order; the speech of neighboring rows is read once."""
    takes: list[Take] = []
    for query, rir_id in rows:
        if takes and rir_id and takes[-1].query.id == query.utterance:
            takes[-1] = Take(takes[-1].query, (*takes[-1].rir_ids, rir_id))
        else:
            takes.append(Take(query.of_utterance(), (rir_id,)))
    import_before_threads(*SIGNAL_PACKAGES)
    work = in_order(lambda take: render_take(opened, [condition], take), takes, workers=workers)
    return (row for of_take in work for row in of_take[0])
