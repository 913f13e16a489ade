"""Time, memory and energy: as much of it as was measured, and what the numbers mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..results.envelope import Timing
from .formats import UNDEFINED, energy_words, memory_words, number, percent
from .sections import Section, System
from .tables import NONE, Cell, Head, Row, Rows, Table, conditioned, named

_Shown = Callable[[System], str]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    unit: str
    shown: _Shown
    meaning: str


@dataclass(frozen=True, slots=True)
class TimingTable:
    table: Table
    columns: Sequence[Column]


def _values(system: System, get: Callable[[Timing], float | None]) -> list[float]:
    return [float(value) for run in system.runs if (value := get(run.result.timing)) is not None]


def _of(
    get: Callable[[Timing], float | None],
    show: Callable[[float], str],
    fold: Callable[[Sequence[float]], float] | None = None,
) -> _Shown:
    """Without `fold` one value where all runs agree, else the lowest and the highest."""

    def shown(system: System) -> str:
        known = _values(system, get)
        ends = [] if not known else [fold(known)] if fold else [min(known), max(known)]
        return " to ".join(dict.fromkeys(map(show, ends))) or UNDEFINED

    return shown


def _sum(get: Callable[[Timing], float | None], digits: int = 1) -> _Shown:
    return _of(get, lambda seconds: number(seconds, digits), math.fsum)


def _most(get: Callable[[Timing], float | None], show: Callable[[float], str]) -> _Shown:
    return _of(get, show, max)


def _stage(name: str) -> Callable[[Timing], float | None]:
    return lambda timing: timing.stages.get(name)


_TIME = (
    Column("Audio", "s", _sum(lambda t: t.audio_s), "Length of all clips, over all conditions."),
    Column("Front end", "s", _sum(_stage("front_end")), "Dereverberation or denoising before the model."),
    Column("Transcription", "s", _sum(_stage("transcribe")), "The transcriber on the audio."),
    Column("Rewriting", "s", _sum(_stage("rewrite")), "The rewriter on all distinct transcripts."),
    Column("Encoding", "s", _sum(_stage("encode")), "The encoder of an end-to-end system on the audio."),
    Column("Answering", "s", _sum(_stage("answer")), "The answerer on all prompts."),
    Column(
        "RTFx",
        "audio / time",
        lambda s: number(s.rtfx, 1),
        "Seconds of audio per second of the stages that take audio.",
    ),
    Column(
        "Indexing", "s", _most(_stage("index"), lambda s: number(s, 2)), "Preparing the corpora, once per retriever."
    ),
    Column("Search", "s", _sum(_stage("search"), 2), "Ranking each distinct query, the parts of a composite included."),
    Column(
        "Waiting",
        "share",
        _of(lambda t: t.waiting_share, percent),
        "The part of the inference time in which the model waited for audio to be read and decoded.",
    ),
)
_MACHINE = (
    Column("Processes", "", _of(lambda t: t.processes, lambda n: number(n, 0)), "How many shared the work."),
    Column(
        "Host memory",
        "peak",
        _most(lambda t: t.peak_memory_mb, memory_words),
        "The most that the main process held at a time.",
    ),
    Column(
        "GPU memory",
        "peak",
        _most(lambda t: t.peak_gpu_memory_mb, memory_words),
        "The most that it held of one GPU at a time.",
    ),
    Column(
        "Energy",
        "",
        _of(lambda t: t.energy_j, energy_words),
        "What the machine's own meters counted, other work on it included.",
    ),
    Column(
        "Loading",
        "s, alone",
        _most(lambda t: t.isolated.load_s if t.isolated else None, lambda s: number(s, 1)),
        "Until the first item was done, the system alone in a process.",
    ),
    Column(
        "Host memory",
        "peak, alone",
        _most(lambda t: t.isolated.peak_memory_mb if t.isolated else None, memory_words),
        "The same of a process that holds this system alone.",
    ),
    Column(
        "GPU memory",
        "peak, alone",
        _most(lambda t: t.isolated.peak_gpu_memory_mb if t.isolated else None, memory_words),
        "The same of a process that holds this system alone.",
    ),
)
_TIME_NOTE = (
    "Over all conditions of audio. Times are summed over processes; cached work counts with the time that it took when "
    "it was done."
)
_MACHINE_NOTE = "Of the whole evaluation that a system's runs were part of, all other systems in it included."
_LATENCY_NOTE = (
    "From an item's audio to the output, one item at a time, nothing cached: how long a user waits. p95: 95 of 100 "
    "items take no longer; with few items (n) the high percentiles rest on one or two of them."
)


def timing_tables(sections: Sequence[Section]) -> list[TimingTable]:
    """The tables that have something to show; [] where nothing was measured."""
    rows = [(section, system) for section in sections for system in section.systems if not section.imported]
    rows = [(section, system) for section, system in rows if system.runs]
    found = [
        _table("Time", _TIME, rows, _TIME_NOTE),
        TimingTable(_latency(sections), ()),
        _table("Machine", _MACHINE, rows, _MACHINE_NOTE),
    ]
    return [one for one in found if one.table]


def _table(title: str, columns: Sequence[Column], rows: Sequence[tuple[Section, System]], note: str) -> TimingTable:
    cells = [[column.shown(system) for column in columns] for _, system in rows]
    kept = [k for k in range(len(columns)) if any(row[k] != UNDEFINED for row in cells)]
    body = [
        Row(Head(system.name, section.title), [_cell(own[k], columns[k].name) for k in kept])
        for (section, system), own in zip(rows, cells, strict=True)
        if any(own[k] != UNDEFINED for k in kept)
    ]
    heads = [(columns[k].name, columns[k].unit) for k in kept]
    groups = [Rows(body)] if body else []
    table = Table(title, "System", heads, groups, caption=title, css="named", note=note)
    return TimingTable(table, [columns[k] for k in kept])


def _cell(text: str, column: str) -> Cell:
    return NONE if text == UNDEFINED else Cell(text, css="main" if column == "RTFx" else "")


def _latency(sections: Sequence[Section]) -> Table:
    groups = []
    for section in sections:
        for system in section.systems:
            rows = [
                Row(
                    conditioned(run.condition),
                    [Cell(str(latency.n)), *(Cell(number(seconds, 2)) for seconds in seconds_)],
                )
                for run in system.runs
                if (latency := run.result.timing.latency) is not None
                for seconds_ in ((latency.p50_s, latency.p90_s, latency.p95_s, latency.p99_s),)
            ]
            if rows:
                groups.append(Rows(rows, named(system, section.title)))
    columns = [(name, "") for name in ("n", "p50", "p90", "p95", "p99")]
    return Table("Latency", "Condition", columns, groups, caption="Latency in s", css="", note=_LATENCY_NOTE)
