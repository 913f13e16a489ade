"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ...results.old_comparable import partial_folders, runs_folder
from ...results.files import write_atomically
from ...rir_mega.results import Result, read_records
from ..formats import escape, number, percent, plural
from ..page import asset, content_hash
from ..systems import component_html
from ..tables import scrollable
from .data import Entry, Section, bounds, difference_words, named, sections, signed_percent
from .effects import effects_part
from .players import Samples, choose_samples, sample_list
from .plots import bin_plot, size_plot, speed_plot
from .reading import how_to_read
from .tables import (
    bins_table,
    cost_table,
    kinds_table,
    map_tables,
    onset_table,
    rates_table,
    spread_table,
)

DEFAULT_TITLE = "Speech recognition, clean and in rooms"
MOST_AUDIO_BYTES = 6_000_000
FEW_PAIRS = 30


def write_report(
    folder: Path, out: Path, *, title: str = DEFAULT_TITLE, max_audio_bytes: int = MOST_AUDIO_BYTES
) -> Path:
    """Write the report on all results below `folder` to the file `out` and return `out`.

    Where `folder` holds no full results, the report is on the partial ones in its one `partial-…` folder. `out` is one
    HTML file without links to anything outside it; the same results give the same bytes. Raises `DataError` if there
    are no results or they contradict each other, `UsageError` for a limit below 0, `StorageError` if the disk refuses.
    """
    if max_audio_bytes < 0:
        raise UsageError(f"max_audio_bytes is {max_audio_bytes}.", hint="Give 0 or more.")
    if out.is_dir():
        raise UsageError(f"{out} is a folder.", hint="Give the path of the HTML file to write.")
    place = runs_folder(folder)
    found = sections(read_records(place))
    samples = choose_samples(place, found, max_audio_bytes)
    aside = [] if place != folder else [path.name for path in partial_folders(folder)]
    write_atomically(out, _page(found, samples, aside, title).encode("utf-8"))
    return out


def _page(found: Sequence[Section], samples: Samples, aside: Sequence[str], title: str) -> str:
    style, script = asset("style.css") + asset("rir_mega.css"), asset("script.js")
    # Transcripts are untrusted. Were one ever to escape its quoting, the browser still runs and loads nothing but this.
    policy = f"default-src 'none'; style-src {content_hash(style)}; script-src {content_hash(script)}; media-src data:"
    body = "".join(_section(section, samples) for section in found)
    links = "".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in found)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<nav aria-label="Parts of the report"><div>{links}<a href="#systems">Recognizers</a>'
        '<a href="#reading">How to read</a><a href="#origin">Origin</a>'
        '<button type="button" id="theme" hidden>Dark</button></div></nav>\n'
        f"<main>\n<header><h1>{escape(title)}</h1>{_partial(found)}{_overview(found)}</header>\n{body}\n"
        f'<section id="systems"><h2>Recognizers</h2>{_cards(found)}</section>\n'
        f'<section id="reading"><h2>How to read this</h2>{how_to_read()}</section>\n'
        f'<section id="origin"><h2>Origin of the numbers</h2>{_origin(found, samples, aside)}</section>\n'
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _partial(found: Sequence[Section]) -> str:
    said = dict.fromkeys(section.part for section in found if section.part)
    if not said:
        return ""
    return (
        f'<p class="warning partial"><strong>Partial.</strong> {escape("; ".join(said))}. '
        "Compare these numbers with no full result.</p>"
    )


def _overview(found: Sequence[Section]) -> str:
    parts = []
    for section in found:
        lines = "".join(
            f"<li><span class='system'>{named(entry)}</span><span class='steps'>"
            f"<span class='metric'>{section.metric}</span> "
            f'<span class="step"><b>{percent(entry.main.clean.value)}</b> clean</span>'
            f'<span class="step"><span class="arrow">→</span><b>{percent(entry.main.reverb.value)}</b> in a room '
            f"<small>Δ {difference_words(entry.main.delta)}</small></span></span></li>"
            for entry in section.entries
        )
        parts.append(
            f'<article><h3><a href="#{section.anchor}">{escape(section.title)}</a> '
            f'<small>n = {section.first.data.n}</small></h3><ul class="chains">{lines}</ul></article>'
        )
    aim = (
        "The same utterances clean and in a room: what the room costs, in percentage points with 95&#8239;% intervals."
    )
    return f'<p class="sub-title">{aim}</p><div class="overview">{"".join(parts)}</div>'


def _section(section: Section, samples: Samples) -> str:
    anchor = section.anchor
    return (
        f'<section id="{anchor}" class="language"><h2>{escape(section.title)}</h2>'
        f"{_lede(section)}{_facts(section)}{_warnings(section)}"
        f'<h3 id="{anchor}-rates">Error rates</h3>{rates_table(section)}'
        f'<h3 id="{anchor}-kinds">What kind of error a room makes</h3>{_kinds(section)}'
        f'<h3 id="{anchor}-bins">By reverberation time and direct sound</h3>{_binned(section)}'
        f'<h3 id="{anchor}-onset">From which reverberation time on</h3>{onset_table(section)}'
        f'<h3 id="{anchor}-map">Reverberation time and direct sound together</h3>{map_tables(section)}'
        f'<h3 id="{anchor}-rooms">From room to room</h3>{spread_table(section)}'
        f'<h3 id="{anchor}-cost">Size, speed and memory</h3>{_cost(section)}'
        f"{effects_part(section)}"
        f'<h3 id="{anchor}-clips">Listen</h3>{sample_list(section, samples.by_section[anchor])}</section>\n'
    )


def _kinds(section: Section) -> str:
    note = "Change in percentage points of the reference length, with its interval; below it both rates."
    return f'{kinds_table(section)}<p class="note">{note}</p>'


def _lede(section: Section) -> str:
    """What the room costs the best recognizer on clean speech, and from which RT60 on."""
    scored = [entry for entry in section.plain or section.entries if entry.main.clean.value is not None]
    if not scored:
        return '<p class="lede">No pair could be scored.</p>'
    best = min(scored, key=lambda entry: (entry.main.clean.value or 0.0, entry.index))
    rates, onset = best.main, best.result.onset
    relative = rates.delta.relative.value
    said = [
        f"<strong>{escape(best.name)}</strong> has a {section.metric} of {percent(rates.clean.value)} "
        f"{bounds(rates.clean)} on clean speech and of {percent(rates.reverb.value)} {bounds(rates.reverb)} in a room: "
        f"<strong>Δ{section.metric} {difference_words(rates.delta)}</strong> percentage points"
        + (f", {signed_percent(relative)} against clean speech." if relative is not None else ".")
    ]
    if onset.threshold_s == 0:
        said.append("The loss grows from the driest room on.")
    elif onset.threshold_s is not None:
        high = "open" if onset.high_s is None else f"{number(onset.high_s, 2)}"
        said.append(f"It begins at an RT60 of {number(onset.threshold_s, 2)} s [{number(onset.low_s, 2)}, {high}].")
    else:
        said.append("No reverberation time was found at which a loss begins.")
    return f'<p class="lede">{" ".join(said)}</p>'


def _facts(section: Section) -> str:
    first = section.first
    data = first.data
    parts = [
        f"<b>n = {data.n}</b> pairs of {plural(data.utterances, 'utterance')} in {plural(data.rooms_used, 'room')}",
        f"speech {escape(data.speech)} {escape(data.speech_version[:12])}".rstrip(),
        f"rooms {escape(data.rooms)} {escape(data.rooms_version[:12])}".rstrip(),
        f"normalizer {escape(first.system.normalizer)} {escape(first.system.normalizer_version)}",
        f"seed {first.seed}",
        f"{escape(first.benchmark)} benchmark {escape(first.benchmark_version)}",
    ]
    return f'<p class="facts">{" · ".join(parts)}</p>'


def _warnings(section: Section) -> str:
    found = []
    data = section.first.data
    if data.utterances < FEW_PAIRS:
        found.append(
            f"Only {plural(data.utterances, 'utterance')}: the intervals are wide, and differences of less than their "
            "width may be chance."
        )
    if any(name.startswith("source_") for name in data.edges):
        found.append("RT60 and DRR are the publisher's: there are no impulse responses to measure.")
    skipped = {entry.name: data.n - entry.main.delta.absolute.n for entry in section.entries}
    said = ", ".join(f"{escape(name)} {count}" for name, count in skipped.items() if count)
    if said:
        found.append(f"Pairs left out because an arm could not be decoded: {said}.")
    return "".join(f'<p class="warning"><strong>Note.</strong> {text}</p>' for text in found)


def _binned(section: Section) -> str:
    parts = []
    for measure, words in (("rt60_s", "RT60"), ("drr_db", "DRR")):
        drawing = bin_plot(section, measure)
        figure = (
            f"<figure><figcaption>Δ{section.metric} by {words}</figcaption>{drawing}{_legend(section.entries)}</figure>"
            if drawing
            else ""
        )
        parts.append(f"<div>{figure}{bins_table(section, measure)}</div>")
    note = (
        "Bins are quantiles of the room bank, fixed in the data set. Points stand at the median of their bin, bars are "
        "95 % intervals (cut where they leave the plot), hollow markers have a front end, dotted upright lines are "
        "change points."
    )
    return f'<div class="panels">{"".join(parts)}</div><p class="note">{note}</p>'


def _legend(entries: Iterable[Entry]) -> str:
    return f'<ul class="legend">{"".join(f"<li>{named(entry)}</li>" for entry in entries)}</ul>'


def _cost(section: Section) -> str:
    drawn = [
        f"<figure><figcaption>{caption}</figcaption>{drawing}{_legend(section.entries)}</figure>"
        for caption, drawing in (
            (f"Δ{section.metric} by size", size_plot(section)),
            (f"Δ{section.metric} by speed", speed_plot(section)),
        )
        if drawing
    ]
    panels = f'<div class="panels">{"".join(drawn)}</div>' if drawn else ""
    note = (
        "RTFx: seconds of sound per second of front end and transcriber, over all clips. Latency and memory: clips "
        "heard one at a time by a process that holds this recognizer alone; a dash: not measured (--latency). The "
        "dotted line joins those that no other beats in both speed and loss."
    )
    return f'{panels}{cost_table(section)}<p class="note">{note}</p>'


def _cards(found: Sequence[Section]) -> str:
    seen: dict[str, tuple[Result, list[str]]] = {}
    for section in found:
        for entry in section.entries:
            key = json.dumps(entry.result.system.model_dump(mode="json"), sort_keys=True)
            seen.setdefault(key, (entry.result, []))[1].append(section.title)
    cards = []
    for result, titles in seen.values():
        system = result.system
        rows = "".join(
            f'<li><span class="role">{words}</span>{component_html(spec)}</li>'
            for words, spec in (("Front end", system.front_end), ("Transcriber", system.transcriber))
            if spec is not None
        )
        notes = [f"Normalizer: {system.normalizer} {system.normalizer_version}."]
        if system.preset:
            notes.append(f"Decoded as published: {system.preset}.")
        if system.parameters is not None:
            notes.append(f"{system.parameters:,} parameters.")
        cards.append(
            f'<article class="card"><h3>{escape(system.name)} <small>{escape(", ".join(titles))}</small></h3>'
            f'<ul class="tree">{rows}</ul><p class="note">{escape(" ".join(notes))}</p></article>'
        )
    return f'<div class="cards">{"".join(cards)}</div>'


def _origin(found: Sequence[Section], samples: Samples, aside: Sequence[str]) -> str:
    results = [entry.result for section in found for entry in section.entries]
    lines = dict.fromkeys(
        f"squtr {r.squtr_version}, Python {r.environment.python}, {r.environment.hardware}, "
        f"{plural(r.environment.threads, 'thread')}"
        for r in results
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(r.system.name)}</th><td>{escape(r.data.config)}</td>'
        f'<td class="id">{escape(r.inputs_sha256[:16])}</td></tr>'
        for r in results
    )
    table = scrollable(
        '<table class="wide"><thead><tr><th scope="col">Recognizer</th><th scope="col">Config</th>'
        f'<th scope="col">Digest of the inputs</th></tr></thead><tbody>{rows}</tbody></table>',
        "Results",
    )
    parts = [f'<p class="note">Made with {escape("; ".join(lines))}.</p>', table]
    for summary, values in (
        ("Data", [r.data.model_dump(mode="json") for r in results]),
        ("Environment", [{"squtr": r.squtr_version, **r.environment.model_dump(mode="json")} for r in results]),
    ):
        parts.append(f'<details class="more"><summary>{summary}</summary>{_distinct(values)}</details>')
    clips = sum(len(sample.clips) for own in samples.by_section.values() for sample in own)
    if clips:
        size = f"{samples.embedded_bytes / 1e6:.1f} MB"
        parts.append(f'<p class="note">{plural(clips, "clip")} of sound take {size} of this file.</p>')
    if samples.left_out:
        parts.append(f'<p class="note">Left out for their size: {escape(", ".join(samples.left_out))}.</p>')
    if aside:
        parts.append(f'<p class="note">Partial results lie apart and are not shown: {escape(", ".join(aside))}.</p>')
    return "".join(parts)


def _distinct(values: Iterable[dict[str, Any]]) -> str:
    texts = dict.fromkeys(json.dumps(_known(v), ensure_ascii=False, indent=2, sort_keys=True) for v in values)
    return "".join(f'<pre tabindex="0">{escape(text)}</pre>' for text in texts)


def _known(value: Any) -> Any:
    """A JSON value without what is null."""
    if isinstance(value, dict):
        return {key: _known(entry) for key, entry in value.items() if entry is not None}
    return value
