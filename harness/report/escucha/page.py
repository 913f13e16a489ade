"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....errors import DataError, UsageError
from ...escucha.results import AskRecord, Result, read_records
from ...escucha.samples import FOLDER
from ...results.old_comparable import partial_folders, runs_folder
from ...results.files import write_atomically
from ..formats import escape, number, percent, plural
from ..page import asset, content_hash
from .data import ordered, refuse_mixture
from .tables import (
    breakdown_tables,
    control_table,
    judge_table,
    label_map,
    position_table,
    score_table,
    verifier_table,
)

DEFAULT_TITLE = "What is understood of Spanish sound"
MOST_AUDIO_BYTES = 6_000_000
_READING = (
    (
        "Accuracy",
        "The share of right choices. A reply that names no option, or several, is unparsed: it scores 0, and is never "
        "guessed. Intervals at 95 %: Wilson's for shares, bootstrap over items elsewhere.",
    ),
    (
        "Chance",
        "The mean of 1 / number of options of the items concerned. Above chance is 0 for drawing lots, 100 % for all "
        "right, and negative for less than lots would get.",
    ),
    ("Labels", "An item counts in each of its labels, and in each pair of them; nothing is weighted."),
    (
        "Text alone",
        "The same reader gets the same question without the sound. What it gets right, the text gives away.",
    ),
    (
        "Instructions",
        "Programs check the reply. Strict: as it is; loose: also without its first or last line, or asterisks. An "
        "empty reply follows nothing.",
    ),
    ("Missing sound", "Items whose sound is not there are coverage: they are in no score."),
    (
        "Map",
        "Accuracy of items with a label of perception (rows) and one of reasoning (columns); the color says how far "
        "it is above or below chance. Cells of fewer than 10 items are in italics: point at one to see its interval.",
    ),
)

_CONFIGS = {
    "all": "All questions",
    "mcqa": "Multiple choice",
    "aif": "Instructions",
    "comparative": "Two sounds compared",
    "spoken": "Spoken questions",
    "non_normative": "Non-normative speech",
}
_WRONG = {"parsed": "another option", "ambiguous": "several options", "absent": "no option"}
"""What is said of a reply that is not right, by its status."""


def write_report(folder: Path, out: Path, *, title: str = "", max_audio_bytes: int = MOST_AUDIO_BYTES) -> Path:
    """Write the report on all results below `folder` to the file `out` and return `out`; `title` "" is `DEFAULT_TITLE`.

    Where `folder` holds no full results, the report is on the partial ones in its one `partial-…` folder. `out` is one
    HTML file without links to anything outside it; the same results give the same bytes. Raises `DataError` if there
    are no results or they contradict each other, `UsageError` for a limit below 0, `StorageError` if the disk refuses.
    """
    if max_audio_bytes < 0:
        raise UsageError(f"max_audio_bytes is {max_audio_bytes}.", hint="Give 0 or more.")
    if out.is_dir():
        raise UsageError(f"{out} is a folder.", hint="Give the path of the HTML file to write.")
    place = runs_folder(folder)
    records = read_records(place)
    refuse_mixture(records)
    aside = [] if place != folder else [path.name for path in partial_folders(folder)]
    write_atomically(out, _page(records, place, aside, title or DEFAULT_TITLE, max_audio_bytes).encode("utf-8"))
    return out


def _page(records: Sequence[AskRecord], place: Path, aside: Sequence[str], title: str, limit: int) -> str:
    style, script = asset("style.css") + asset("escucha.css"), asset("script.js")
    # Replies are untrusted. Were one ever to escape its quoting, the browser still runs and loads nothing but this.
    policy = f"default-src 'none'; style-src {content_hash(style)}; script-src {content_hash(script)}; media-src data:"
    configs = list(dict.fromkeys(record.result.data.config for record in records))
    by_config = {name: [record for record in records if record.result.data.config == name] for name in configs}
    body = "".join(_section(name, own) for name, own in by_config.items())
    links = "".join(f'<a href="#{escape(name)}">{escape(_CONFIGS.get(name, name))}</a>' for name in configs)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<nav aria-label="Parts of the report"><div>{links}<a href="#listen">Listen</a>'
        '<a href="#reading">How to read</a><a href="#origin">Origin</a>'
        '<button type="button" id="theme" hidden>Dark</button></div></nav>\n'
        f"<main>\n<header><h1>{escape(title)}</h1>{_partial(records)}</header>\n{body}\n"
        f'<section id="listen"><h2>Listen</h2>{_players(records, place, limit)}</section>\n'
        f'<section id="reading"><h2>How to read this</h2>{_reading()}</section>\n'
        f'<section id="origin"><h2>Origin of the numbers</h2>{_origin(records, aside)}</section>\n'
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _partial(records: Sequence[AskRecord]) -> str:
    parts = {r.result.data.config: r.result.data for r in records if r.result.data.partial}
    if not parts:
        return ""
    said = "; ".join(f"{escape(name)}: {data.n} of {data.n_total} questions" for name, data in parts.items())
    return (
        f'<p class="warning partial"><strong>Partial.</strong> {said}. Compare these numbers with no full result.</p>'
    )


def _section(config: str, records: Sequence[AskRecord]) -> str:
    results = ordered([record.result for record in records])
    data = results[0].data
    facts = [f"<b>{escape(data.name)}</b>", plural(data.n, "question"), f"{number(data.audio_s / 60, 1)} min of sound"]
    facts.append(f"coverage {percent(data.coverage)}")
    if data.missing_audio:
        facts.append("missing sound: " + ", ".join(f"{escape(k)} {n}" for k, n in data.missing_audio.items()))
    maps = "".join(label_map(result) for result in results)
    judged = judge_table(results)
    open_ended = f'<h3 id="{config}-open">Open-ended replies, by judges</h3>{judged}' if judged else ""
    key = "".join(
        f'<span class="heat-key heat{i}">{words}</span>'
        for i, words in ((0, "far below chance"), (2, "below"), (3, "above"), (5, "far above chance"))
    )
    mapped = f'<h3 id="{config}-map">Perception × reasoning</h3><p class="note">{key}</p>{maps}' if maps else ""
    return (
        f'<section id="{config}" class="language"><h2>{escape(_CONFIGS.get(config, config))}</h2>'
        f'<p class="facts">{" · ".join(facts)}</p>'
        f'<h3 id="{config}-scores">Scores</h3>{score_table(results)}'
        f'<h3 id="{config}-controls">Controls</h3>{control_table(results)}'
        f'{mapped}<h3 id="{config}-labels">By label and kind</h3>{breakdown_tables(results)}'
        f'<h3 id="{config}-places">Places of options</h3>{position_table(results)}'
        f'<h3 id="{config}-verifiers">Instructions</h3>{verifier_table(results)}{open_ended}</section>\n'
    )


def _players(records: Sequence[AskRecord], place: Path, limit: int) -> str:
    """Questions whose sounds were kept, with what everyone replied."""
    results = ordered([record.result for record in records])
    asked: dict[str, dict[str, Any]] = {}
    replies: dict[str, dict[str, Mapping[str, Any]]] = {}
    for record in records:
        for row in record.asks.to_pylist():
            if not row["spoken"] and not row["order"]:
                asked.setdefault(row["id"], row)
                replies.setdefault(row["id"], {})[record.result.answerer.name] = row
    parts, used, left = [], 0, 0
    for id_, row in asked.items():
        paths = [place / FOLDER / f"{audio}.flac" for audio in row["audios"]]
        if not all(path.is_file() for path in paths):
            continue
        size = sum(4 * (-(-path.stat().st_size // 3)) for path in paths)
        if used + size > limit:
            left += 1
            continue
        used += size
        parts.append(_player(row, paths, [(r.answerer.name, replies[id_].get(r.answerer.name)) for r in results]))
    note = f'<p class="note">{plural(left, "question")} more would make this file too large.</p>' if left else ""
    return ("".join(parts) + note) or '<p class="note">No sound was kept beside the results.</p>'


def _player(
    row: Mapping[str, Any], paths: Sequence[Path], replies: Sequence[tuple[str, Mapping[str, Any] | None]]
) -> str:
    clips = []
    for number_, path in enumerate(paths, start=1):
        name = f"Audio {number_}" if len(paths) > 1 else "Audio"
        try:
            content = base64.b64encode(path.read_bytes()).decode("ascii")
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.", hint="Evaluate again.") from error
        clips.append(
            f'<li><h5>{name}</h5><audio controls preload="none" src="data:audio/flac;base64,{content}" '
            f'aria-label="{escape(row["id"])}, {name}"></audio></li>'
        )
    options = "".join(
        f"<li{' class=right' if chr(65 + i) == row['answer'] else ''}>{chr(65 + i)}) {escape(option)}</li>"
        for i, option in enumerate(row["options"])
    )
    listed = f'<ol class="choices" lang="es">{options}</ol>' if options else ""
    checked = f"<p><small>checked: {escape(', '.join(row['verifiers']))}</small></p>" if row["verifiers"] else ""
    said = "".join(_reply(name, reply) for name, reply in dict(replies).items() if reply is not None)
    labels = ", ".join([*row["perception"], *row["reasoning"]]).replace("_", " ")
    return (
        f'<article class="sample"><h4><span lang="es">{escape(row["question"])}</span> '
        f"<small>{escape(row['id'])} · {escape(labels)}</small></h4>"
        f"<ul>{''.join(clips)}</ul>{listed}{checked}{said}</article>"
    )


def _reply(name: str, row: Mapping[str, Any]) -> str:
    if row["error"]:
        shown = f'<em class="failed">failed: {escape(row["error"])}</em>'
    elif not row["reply"].strip():
        shown = '<em class="failed">empty</em>'
    else:
        text = row["reply"] if len(row["reply"]) <= 400 else row["reply"][:400] + "…"
        shown = f'<span class="reply" lang="es">{escape(text)}</span>'
    mark = (
        '<span class="ok">✓</span>' if row["correct"] == 1 else f'<span class="wrong">✗ {escape(row["status"])}</span>'
    )
    return f"<p><small>{escape(name)}</small> {shown} {mark}</p>"


def _reading() -> str:
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in _READING)
    return f'<dl class="definitions">{listed}</dl>'


def _origin(records: Sequence[AskRecord], aside: Sequence[str]) -> str:
    results = list({record.result.answerer.name: record.result for record in records}.values())
    first: Result = results[0]
    lines = [
        f"Questions: {escape(first.data.name)}, revision <code>{escape(first.data.revision)}</code>, license "
        f"{escape(first.data.license)}.",
        f"Prompts <code>{escape(first.asking.prompts_version)}</code>; "
        f"{plural(first.asking.permutations, 'order')} of options; seed {first.seed}, {first.resamples} resamples; "
        f"squtr {escape(first.squtr_version)} on {escape(first.environment.hardware)}.",
    ]
    if aside:
        lines.append(f"Partial results lie apart and are not shown: {escape(', '.join(aside))}.")
    cards = "".join(
        f'<details class="more"><summary>{escape(result.answerer.name)}</summary><pre>'
        f"{escape(json.dumps(result.answerer.spec, ensure_ascii=False, indent=2))}</pre>"
        f'<p class="note">{number(result.timing.answer_s, 1)} s for {number(result.timing.audio_s, 0)} s of sound '
        f"(each question's).</p></details>"
        for result in ordered(results)
    )
    prompts = json.dumps(first.asking.prompts, ensure_ascii=False, indent=2)
    asked = f'<details class="more"><summary>Prompts</summary><pre lang="es">{escape(prompts)}</pre></details>'
    return "".join(f"<p>{line}</p>" for line in lines) + cards + asked
