"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ...errors import UsageError
from ..results.old_comparable import partial_folders, runs_folder
from ..results.old import read_runs
from ..results.files import write_atomically
from .attribution import RunAttribution, attribution_tables, attributions
from .breakdown import breakdowns
from .cards import sample_list, worst_list
from .curves import axis_top, curve_panels
from .data import Section, sections
from .formats import escape, plural
from .headline import IMPORTED, chains, facts, lede, part_words, size_words, warnings
from .players import Samples, choose_samples
from .reading import how_to_read, provenance
from .scatter import scatter
from .speed import speed, speed_table
from .systems import system_cards
from .tables import breakdown_table, score_table, swatch
from .timing import timing_block
from .variants import variant_tables, variants
from .worst import worst_cases

DEFAULT_TITLE = "Retrieval from spoken queries, in noise and in rooms"
MOST_AUDIO_BYTES = 6_000_000


def write_report(
    folder: Path,
    out: Path,
    *,
    title: str = DEFAULT_TITLE,
    max_worst: int = 20,
    max_audio_bytes: int = MOST_AUDIO_BYTES,
) -> Path:
    """Write the report on all runs below `folder` to the file `out` and return `out`.

    Where `folder` holds no full runs, the report is on the partial ones in its one `partial-…` folder.
    `out` is one HTML file without links to anything outside it; the same runs give the same bytes. `max_worst` is how
    many of the worst queries are shown at a time, `max_audio_bytes` how many bytes of base64 the players may take.
    Raises `DataError` if there are no results, they contradict each other, or full and partial ones are mixed;
    `UsageError` for limits below 0 and several folders of partial runs; `StorageError` if the disk refuses.
    """
    return make_report(folder, out, title=title, max_worst=max_worst, max_audio_bytes=max_audio_bytes).path


@dataclass(frozen=True, slots=True)
class Report:
    """Where the page is, and whose loss it says each run's is."""

    path: Path
    attributions: tuple[RunAttribution, ...]


def make_report(
    folder: Path,
    out: Path,
    *,
    title: str = DEFAULT_TITLE,
    max_worst: int = 20,
    max_audio_bytes: int = MOST_AUDIO_BYTES,
) -> Report:
    """`write_report`, and what it found out."""
    for name, value in (("max_worst", max_worst), ("max_audio_bytes", max_audio_bytes)):
        if value < 0:
            raise UsageError(f"{name} is {value}.", hint="Give 0 or more.")
    if out.is_dir():
        raise UsageError(f"{out} is a folder.", hint="Give the path of the HTML file to write.")
    place = runs_folder(folder)
    found = sections(read_runs(place))
    samples = choose_samples(place, found, max_audio_bytes)
    whose = {section.anchor: attributions(section) for section in found}
    aside = [] if place != folder else [path.name for path in partial_folders(folder)]
    write_atomically(out, _page(_Contents(found, samples, whose, max_worst, aside), title).encode("utf-8"))
    return Report(out, tuple(one for own in whose.values() for one in own))


@dataclass(frozen=True, slots=True)
class _Contents:
    """What the page shows. `aside` are folders of partial runs beside full ones."""

    sections: list[Section]
    samples: Samples
    whose: Mapping[str, list[RunAttribution]]
    max_worst: int
    aside: Sequence[str]


def _page(contents: _Contents, title: str) -> str:
    found, samples = contents.sections, contents.samples
    style, script = asset("style.css"), asset("script.js")
    # Transcripts are untrusted. Were one ever to escape its quoting, the browser still runs and loads nothing but this.
    policy = f"default-src 'none'; style-src {content_hash(style)}; script-src {content_hash(script)}; media-src data:"
    top = axis_top(found)
    body = "".join(_section(contents, section, top) for section in found)
    links = "".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in found)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<nav aria-label="Parts of the report"><div>{links}<a href="#systems">Systems</a>'
        '<a href="#timing">Time</a><a href="#reading">How to read</a>'
        '<a href="#origin">Origin</a><button type="button" id="theme" hidden>Dark</button></div></nav>\n'
        f"<main>\n<header><h1>{escape(title)}</h1>{_partial(found)}{_overview(found)}</header>\n{body}\n"
        f'<section id="systems"><h2>Systems</h2>{system_cards(found)}</section>\n'
        f'<section id="timing"><h2>Time, memory and energy</h2>{timing_block(found)}</section>\n'
        f'<section id="reading"><h2>How to read this</h2>{how_to_read()}</section>\n'
        f'<section id="origin"><h2>Origin of the numbers</h2>{provenance(found)}{_audio_note(samples)}'
        f"{_aside(contents.aside)}</section>\n"
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _partial(found: list[Section]) -> str:
    """On top of everything: that these are not the benchmark's numbers."""
    parts = {section.title: words for section in found if (words := part_words(section))}
    if not parts:
        return ""
    # Once where all sections have the same part.
    said = set(parts.values())
    words = said.pop() if len(said) == 1 else "; ".join(f"{title}: {one}" for title, one in parts.items())
    return (
        f'<p class="warning partial"><strong>Partial.</strong> {escape(words)}. '
        "Compare these numbers with no full run.</p>"
    )


def _aside(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f'<p class="note">Partial runs lie apart and are not shown: {escape(", ".join(names))}.</p>'


def _overview(found: list[Section]) -> str:
    parts = "".join(
        f'<article><h3><a href="#{section.anchor}">{escape(section.title)}</a> '
        f"<small>{size_words(section)}{_imported_words(section)}</small></h3>{chains(section)}</article>"
        for section in found
    )
    aim = "What is lost between typing a query and saying it, with 95 % intervals."
    return f'<p class="sub-title">{aim}</p><div class="overview">{parts}</div>'


def _imported_words(section: Section) -> str:
    return f" · {IMPORTED}" if section.imported else ""


def _section(contents: _Contents, section: Section, top: float) -> str:
    anchor = section.anchor
    if section.imported:
        return (
            f'<section id="{anchor}" class="language"><h2>{escape(section.title)}</h2>'
            f"{facts(section)}{warnings(section)}"
            f'<h3 id="{anchor}-scores">Scores</h3>{score_table(section)}</section>\n'
        )
    samples, whose, max_worst = contents.samples, contents.whose[anchor], contents.max_worst
    cases = worst_cases(section, max_worst)
    return (
        f'<section id="{anchor}" class="language"><h2>{escape(section.title)}</h2>'
        f"{lede(section)}{facts(section)}{warnings(section)}"
        f'<h3 id="{anchor}-scores">Scores</h3>{score_table(section)}'
        f'<h3 id="{anchor}-curves">Degradation with noise</h3>{_curves(section, top)}'
        f'<h3 id="{anchor}-errors">Recognition errors and retrieval</h3>{_errors(section, top)}'
        f'<h3 id="{anchor}-attribution">Whose loss it is</h3>{attribution_tables(section, whose)}'
        f"{variant_tables(section, variants(section))}{_speed(section, top)}"
        f'<h3 id="{anchor}-queries">Worst queries</h3>'
        f"<p>The queries that lose most nDCG@10 against their typed text, at most {max_worst} at a time.</p>"
        f"{worst_list(section, cases, max_worst)}"
        f'<h3 id="{anchor}-clips">Listen</h3>'
        f"{sample_list(section, samples.by_section[anchor], samples.left_out[anchor])}</section>\n"
    )


def _legend(section: Section, left_out: Sequence[str] = ()) -> str:
    shown = [system for system in section.systems if system.name not in left_out]
    items = "".join(f"<li>{swatch(system)}{escape(system.name)}</li>" for system in shown)
    return f'<ul class="legend">{items}</ul>'


def _curves(section: Section, top: float) -> str:
    panels = "".join(
        f"<figure><figcaption>{escape(caption)}</figcaption>{drawing}</figure>"
        for caption, drawing in curve_panels(section, top)
    )
    note = (
        "Bands and bars are 95 % intervals over queries. The axis is linear in dB behind the break; hollow markers and "
        "dashed lines are in a room. Dotted lines lead from the typed query, the upper bound."
    )
    return f'{_legend(section)}<div class="panels">{panels}</div><p class="note">{note}</p>'


def _errors(section: Section, top: float) -> str:
    parts = []
    drawn = scatter(section, top)
    if drawn is not None:
        note = (
            "Numbers beside the points are SNR in dB, R is a room; dotted lines are the typed query of each system, at "
            "no recognition error."
        )
        if drawn.unlabeled:
            note += f" {drawn.unlabeled} of {plural(drawn.points, 'label')} would overlap and are left out."
        if drawn.left_out:
            note += f" Left out without error rates: {escape(', '.join(drawn.left_out))}."
        parts.append(
            f"<figure><figcaption>nDCG@10 against corpus {section.error_metric.upper()}</figcaption>"
            f'{drawn.drawing}{_legend(section, drawn.left_out)}<p class="note">{note}</p></figure>'
        )
    tables = [f"<div>{breakdown_table(section, breakdown)}</div>" for breakdown in breakdowns(section)]
    if not parts and not tables:
        return '<p class="note">No error rates were measured.</p>'
    columns = ("".join(parts), "".join(tables))
    return f'<div class="panels">{"".join(f"<div>{column}</div>" for column in columns if column)}</div>'


def _speed(section: Section, top: float) -> str:
    drawn = speed(section, top)
    if drawn is None:
        return ""
    words = ", ".join(drawn.conditions)
    note = f"Mean nDCG@10 over the conditions that all share: {escape(words)}. The time of the search is not in RTFx."
    if drawn.left_out:
        note += f" Left out without RTFx or score: {plural(len(drawn.left_out), 'system')}"
        note += f" ({escape(', '.join(drawn.left_out))})."
    return (
        f'<h3 id="{section.anchor}-quick">Speed and quality</h3><div class="panels"><figure>{drawn.drawing}</figure>'
        f'<div>{speed_table(drawn)}<p class="note">{note}</p></div></div>'
    )


def _audio_note(samples: Samples) -> str:
    clips = sum(len(sample.clips) for chosen in samples.by_section.values() for sample in chosen)
    if not clips:
        return ""
    return (
        f'<p class="note">{plural(clips, "clip")} of sound take {samples.embedded_bytes / 1e6:.1f} MB of this file.</p>'
    )


def asset(name: str) -> str:
    """A file of the page: its style or its script."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def content_hash(content: str) -> str:
    """How the policy names an inline style or script."""
    digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
