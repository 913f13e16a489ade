"""Rendering the utterances of an opened recipe: one, a run of rows, or a block as tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .conditions import Condition
from .faults import Fault
from .in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from .recipe import OpenedRecipe
from .records import CleanSpeech, Row, SpokenQuery, Take
from .render import render_all, render_rows_of
from .rows import query_table


def render_take(opened: OpenedRecipe, conditions: Sequence[Condition], take: Take) -> list[list[SpokenQuery]]:
    """One utterance under several conditions: its speech is read once."""
    return render_all(take, opened.speech(take.query), conditions, opened.context)


@dataclass(frozen=True, slots=True)
class Rendered:
    """One utterance: its rows by condition and the digest of what they were made from, or its faults."""

    rows: list[list[SpokenQuery]]
    digest: str = ""
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Several utterances: a table per condition and a digest per utterance; with faults, no tables."""

    tables: list[pa.Table]
    digests: tuple[str, ...]
    faults: tuple[Fault, ...] = ()

    @classmethod
    def of(cls, rendered: Sequence[Rendered], schema: pa.Schema) -> Block:
        faults = tuple(fault for of_take in rendered for fault in of_take.faults)
        tables = [] if faults else block_tables([of_take.rows for of_take in rendered], schema)
        return cls(tables, tuple(of_take.digest for of_take in rendered), faults)


def rendered_take(opened: OpenedRecipe, conditions: Sequence[Condition], take: Take) -> Rendered:
    """`render_take`, but what is wrong with speech, noise and RIRs of the utterance is returned."""
    try:
        speech = opened.speech(take.query)
    except DataError as error:
        return Rendered([], faults=(Fault.of(error),))
    try:
        return Rendered(render_all(take, speech, conditions, opened.context), take_digest(take, speech))
    except DataError as error:
        first = Fault.of(error)
    faults = [first]
    for condition in conditions:
        # Each condition alone: a noise may be broken, and a RIR too.
        try:
            render_all(take, speech, [condition], opened.context)
        except DataError as error:
            faults.append(Fault.of(error))
    return Rendered([], faults=tuple(dict.fromkeys(faults)))


def take_digest(take: Take, speech: CleanSpeech) -> str:
    """The sha256 of all that the rows of an utterance are made from, but for noise, RIRs and what the recipe says."""
    query = take.query
    texts = [query.id, query.subset, query.language, query.text, *take.rir_ids, *map(str, range(1, take.draws))]
    spoken = [speech.speaker, speech.voice, repr(speech.tts_error_rate), speech.tts_takes, speech.tts_transcriber]
    digest = hashlib.sha256(json.dumps([texts, spoken]).encode())
    digest.update(np.ascontiguousarray(speech.samples).data)
    return digest.hexdigest()


def block_tables(takes: Sequence[Sequence[Sequence[SpokenQuery]]], schema: pa.Schema) -> list[pa.Table]:
    """From rows by utterance and condition to one table per condition."""
    return [query_table([row for rows in column for row in rows], schema) for column in zip(*takes, strict=True)]


def render_rows(
    opened: OpenedRecipe, condition: Condition, rows: Sequence[Row], *, workers: int = 1
) -> Iterator[SpokenQuery]:
    """The rows of one condition (see `OpenedRecipe.rows`), in order; the speech of neighboring rows is read once."""
    import_before_threads(*SIGNAL_PACKAGES)
    utterances = [list(own) for _, own in groupby(rows, key=lambda row: row.query.utterance)]
    work = in_order(lambda own: render_some(opened, condition, own), utterances, workers=workers)
    return (row for of_utterance in work for row in of_utterance)


def render_some(opened: OpenedRecipe, condition: Condition, rows: Sequence[Row]) -> list[SpokenQuery]:
    """Some rows of one utterance under a condition: its speech is read once."""
    query = rows[0].query.of_utterance()
    return render_rows_of(query, opened.speech(query), [(condition, rows)], opened.context)[0]
