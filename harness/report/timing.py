"""Time, memory and energy: as much of it as was measured, and what the numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..results.old import Timing
from .data import Section, System
from .formats import UNDEFINED, condition_words, escape, number, percent
from .tables import breakable, scrollable, swatch

_Shown = Callable[[System], str]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column, and what it means (HTML)."""

    name: str
    unit: str
    shown: _Shown
    meaning: str


def _timings(system: System) -> list[Timing]:
    return [run.result.timing for run in system.runs]


def _sum(field: str, digits: int = 1) -> _Shown:
    def shown(system: System) -> str:
        known = [value for t in _timings(system) if (value := getattr(t, field)) is not None]
        return number(sum(known), digits) if known else UNDEFINED

    return shown


def _range(field: str, show: Callable[[float], str]) -> _Shown:
    """One value where all runs agree, else the lowest and the highest."""

    def shown(system: System) -> str:
        known = [float(value) for t in _timings(system) if (value := getattr(t, field)) is not None]
        if not known:
            return UNDEFINED
        low, high = show(min(known)), show(max(known))
        return low if low == high else f"{low} to {high}"

    return shown


def _most(field: str, show: Callable[[float], str]) -> _Shown:
    def shown(system: System) -> str:
        known = [float(value) for t in _timings(system) if (value := getattr(t, field)) is not None]
        return show(max(known)) if known else UNDEFINED

    return shown


def _rtfx(system: System) -> str:
    return number(system.rtfx, 1)


def _energy(joules: float) -> str:
    """Energy in the unit that suits it.

    >>> _energy(54321.0), _energy(12.0)
    ('54.3 kJ', '12.0 J')
    """
    for factor, unit in ((1e6, "MJ"), (1e3, "kJ")):
        if joules >= factor:
            return f"{number(joules / factor, 1)} {unit}"
    return f"{number(joules, 1)} J"


def memory_words(megabytes: float) -> str:
    """Memory in GB, small amounts in MB.

    >>> memory_words(812.0), memory_words(6144.0)
    ('812 MB', '6.1 GB')
    """
    return f"{number(megabytes / 1e3, 1)} GB" if megabytes >= 1e3 else f"{number(megabytes, 0)} MB"


_TIME = (
    _Column("Sound", "s", _sum("audio_s"), "What was heard, over all spoken conditions."),
    _Column("Front end", "s", _sum("front_end_s"), "Dereverberation or denoising before recognition."),
    _Column(
        "Hearing", "s", _sum("transcribe_s"), "The transcriber, or the encoder of an end-to-end system, on the sound."
    ),
    _Column("RTFx", "sound / time", _rtfx, "Seconds of sound per second of front end and hearing: higher is faster."),
    _Column("Indexing", "s", _most("index_s", lambda s: number(s, 2)), "Preparing the corpora, once per retriever."),
    _Column("Search", "s", _sum("search_s", 2), "Ranking each distinct text (or sound), a composite's parts included."),
    _Column(
        "Waiting",
        "share",
        _range("waiting_share", percent),
        "The part of the listening time in which the model waited for sound to be read and decoded.",
    ),
)
_MACHINE = (
    _Column("Processes", "", _range("processes", lambda n: number(n, 0)), "How many shared the work."),
    _Column(
        "Host memory", "peak", _most("peak_memory_mb", memory_words), "The most that the main process held at a time."
    ),
    _Column(
        "GPU memory", "peak", _most("peak_gpu_memory_mb", memory_words), "The most that it held of one GPU at a time."
    ),
    _Column(
        "Energy",
        "",
        _range("energy_j", _energy),
        "What the machine's own meters counted, other work on it included.",
    ),
)


def timing_block(sections: Sequence[Section]) -> str:
    """The tables, with a definition of every column that is there; a sentence where nothing was measured."""
    rows = [
        (section, system) for section in sections for system in section.systems if system.runs and not section.imported
    ]
    time_note = (
        "Over all spoken conditions. Times are summed over processes; cached work counts with the time that it took "
        "when it was done."
    )
    machine_note = "Of the whole evaluation that a system's runs were part of, with all other systems in it."
    parts = [
        _table("Time", _TIME, rows, time_note),
        latency_table(sections),
        _table("Machine", _MACHINE, rows, machine_note),
    ]
    return "".join(parts) or '<p class="note">No times were measured.</p>'


def _table(title: str, columns: Sequence[_Column], rows: Sequence[tuple[Section, System]], note: str) -> str:
    cells = {column.name: [column.shown(system) for _, system in rows] for column in columns}
    columns = [column for column in columns if any(cell != UNDEFINED for cell in cells[column.name])]
    if not columns:
        return ""
    shown = [k for k in range(len(rows)) if any(cells[column.name][k] != UNDEFINED for column in columns)]
    head = "".join(
        f'<th scope="col" class="num">{column.name}{f"<small>{column.unit}</small>" if column.unit else ""}</th>'
        for column in columns
    )
    body = []
    for k in shown:
        section, system = rows[k]
        values = "".join(
            f'<td class="num{" main" if column.name == "RTFx" else ""}">{cells[column.name][k]}</td>'
            for column in columns
        )
        body.append(
            f'<tr><th scope="row">{escape(system.name)}<small>{escape(section.title)}</small></th>{values}</tr>'
        )
    table = (
        f'<table class="named"><caption>{title}</caption><thead><tr><th scope="col">System</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )
    return f'{scrollable(table, title)}<p class="note">{note}</p>{_definitions(columns)}'


def _definitions(columns: Iterable[_Column]) -> str:
    items = "".join(f"<div><dt>{column.name}</dt><dd>{column.meaning}</dd></div>" for column in columns)
    return f'<dl class="definitions small">{items}</dl>'


def latency_table(sections: Sequence[Section]) -> str:
    """How long single queries took, by system and condition; "" if that was not measured."""
    bodies = []
    for section in sections:
        for system in section.systems:
            own = [(run, latency) for run in system.runs if (latency := run.result.timing.latency) is not None]
            if not own:
                continue
            name = f"{swatch(system)}{escape(system.name)} <small>{escape(section.title)}</small>"
            rows = [f'<tr class="group"><th scope="rowgroup" colspan="6"><span>{name}</span></th></tr>']
            for run, latency in own:
                values = (latency.p50_s, latency.p90_s, latency.p95_s, latency.p99_s)
                shown = "".join(f'<td class="num">{number(value, 2)}</td>' for value in values)
                rows.append(
                    f'<tr><th scope="row">{breakable(run.condition)}<small>{condition_words(run.condition)}</small>'
                    f'</th><td class="num">{latency.n}</td>{shown}</tr>'
                )
            bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    if not bodies:
        return ""
    head = "".join(f'<th scope="col" class="num">{name}</th>' for name in ("n", "p50", "p90", "p95", "p99"))
    table = (
        "<table><caption>Latency in s</caption>"
        f'<thead><tr><th scope="col">Condition</th>{head}</tr></thead>{"".join(bodies)}</table>'
    )
    note = (
        "From a query's sound to its ranking, one query at a time, nothing cached: what a user waits. p95: 95 of 100 "
        "queries take no longer; with few queries (n) the high percentiles rest on one or two of them."
    )
    return f'{scrollable(table, "Latency")}<p class="note">{note}</p>'
