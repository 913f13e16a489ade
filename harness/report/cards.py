"""The worst queries and the players, as HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .data import Section
from .differences import marked
from .formats import UNDEFINED, condition_words, escape, level, number
from .players import Heard, Sample
from .tables import swatch
from .worst import Case, View

OPEN = 2
"""How many of the worst cases are unfolded."""


def worst_list(section: Section, cases: Sequence[Case], most: int) -> str:
    """The worst cases as unfolding cards, with filters that appear where scripts run."""
    if not cases:
        return '<p class="note">No query lost anything against its typed text, or no typed run is there to compare.</p>'
    systems = sorted({case.system.index: case.system.name for case in cases}.items())
    conditions = [c for c in section.conditions if any(case.condition == c for case in cases)]
    options_system = "".join(f'<option value="{index}">{escape(name)}</option>' for index, name in systems)
    options_condition = "".join(
        f'<option value="{escape(c)}">{escape(c)} ({escape(condition_words(c))})</option>' for c in conditions
    )
    form = (
        f'<form class="filter" data-list="{section.anchor}-worst" data-most="{most}" hidden>'
        f'<label>System <select name="system"><option value="">all</option>{options_system}</select></label>'
        f'<label>Condition <select name="condition"><option value="">all</option>{options_condition}</select></label>'
        '<output aria-live="polite"></output></form>'
    )
    cards = "".join(_case(section, case, place, hidden=place >= most) for place, case in enumerate(cases))
    return f'{form}<div class="cases" id="{section.anchor}-worst">{cards}</div>'


def _case(section: Section, case: Case, place: int, *, hidden: bool) -> str:
    attributes = f'data-system="{case.system.index}" data-condition="{escape(case.condition)}"'
    summary = (
        f'<summary><span class="lost" title="loss of nDCG@10 against text">{number(case.loss, 2)}</span>'
        f'<span class="what"><span {section.lang} class="query">{escape(case.typed.text or "")}</span>'
        f'<span class="where">{swatch(case.system)}{escape(case.system.name)}, '
        f"{escape(condition_words(case.condition))}; first relevant at rank "
        f"{_rank(case.typed)} typed, {_rank(case.noisy)} here</span></span></summary>"
    )
    rows = [_view_row(section, "typed", case.typed, None)]
    if case.clean is not None and case.condition != "clean":
        rows.append(_view_row(section, "clean", case.clean, case.typed.text))
    rows.append(_view_row(section, case.condition, case.noisy, case.typed.text))
    head = (
        '<thead><tr><th scope="col">Condition</th><th scope="col">What was searched for</th>'
        '<th scope="col" class="num">nDCG@10</th><th scope="col" class="num">Rank</th>'
        '<th scope="col">First document</th></tr></thead>'
    )
    table = f'<div class="scroll plain"><table class="views">{head}<tbody>{"".join(rows)}</tbody></table></div>'
    return (
        f"<details {attributes}{' open' if place < OPEN else ''}{' hidden' if hidden else ''}>"
        f'{summary}{table}<p class="note">{_origin(case)}</p></details>'
    )


def _view_row(section: Section, name: str, view: View, reference: str | None) -> str:
    if view.error:
        text = f'<em class="failed">not decoded: {escape(view.error)}</em>'
    elif view.text is None:
        text = '<em class="none">searched without words</em>'
    elif reference is None:
        text = escape(view.text)
    elif not view.text.strip():
        text = '<em class="failed">nothing heard</em>'
    else:
        text = marked(reference, view.text, by_character=section.by_character)
    lang = "" if view.error or not (view.text or "").strip() else f" {section.lang}"
    return (
        f'<tr><th scope="row">{escape(name)}</th><td{lang} class="heard">{text}</td>'
        f'<td class="num" data-name="nDCG@10">{number(view.score)}</td>'
        f'<td class="num" data-name="rank">{_rank(view)}</td>'
        f'<td class="id" data-name="first">{escape(view.top_document) or UNDEFINED}</td></tr>'
    )


def _rank(view: View) -> str:
    if view.rank is None:
        return UNDEFINED
    return str(view.rank) if view.rank > 0 else "none"


def _origin(case: Case) -> str:
    parts = [f"query {escape(case.query_id)}", f"subset {escape(case.subset)}"]
    if case.noise_id:
        family = f" ({escape(case.noise_family)})" if case.noise_family else ""
        parts.append(f"noise {escape(case.noise_id)}{family}")
    if math.isfinite(case.snr_db):
        parts.append(f"SNR {level(case.snr_db)}")
    if math.isfinite(case.rt60_s):
        parts.append(f"RT60 {number(case.rt60_s, 2)} s")
    if case.voice:
        parts.append(f"voice {escape(case.voice)}")
    return " · ".join(parts)


def sample_list(section: Section, samples: Sequence[Sample], left_out: Sequence[str]) -> str:
    """Players of the same query in every condition, what was heard beneath each."""
    parts = []
    for sample in samples:
        clips = []
        for clip in sample.clips:
            transcripts = "".join(
                f"<p><small>{escape(heard.transcriber or 'transcript')}</small> "
                f"{_heard(section, sample.text, heard)}</p>"
                for heard in clip.heard
            )
            words = condition_words(clip.condition)
            about = f"{sample.key[1]}, {words}"
            clips.append(
                f"<li><h5>{escape(clip.condition)} <small>{escape(words)}</small></h5>"
                f'<audio controls preload="none" src="{clip.uri}" aria-label="{escape(about)}"></audio>'
                f"{transcripts or '<p><small>no run of this condition</small></p>'}</li>"
            )
        parts.append(
            f'<article class="sample"><h4><span {section.lang}>{escape(sample.text)}</span> '
            f"<small>{escape(sample.key[1])}</small></h4><ul>{''.join(clips)}</ul></article>"
        )
    if left_out:
        parts.append(f'<p class="note">Left out: {escape("; ".join(left_out))}.</p>')
    return "".join(parts) or '<p class="note">The folder holds no sample clips.</p>'


def _heard(section: Section, text: str, heard: Heard) -> str:
    if heard.error:
        return f'<em class="failed">not decoded: {escape(heard.error)}</em>'
    if not heard.text.strip():
        return '<em class="failed">nothing heard</em>'
    return f"<span {section.lang}>{marked(text, heard.text, by_character=section.by_character)}</span>"
