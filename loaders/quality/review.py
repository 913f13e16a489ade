"""One self-contained HTML page to listen to synthesized queries and mark them. It needs no network.

A file page cannot write to disk, so it saves its marks as a download, which `add_marks` reads back.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import AudioError, unknown_name
from ..synthesis.speech_folder import SpeechFolder, write_text
from .decisions import Decision
from .report import REASONS
from .review_marks import SCHEMA, read_marks
from .verdicts import Verdict

SHOWN = ("all", "accepted", "rejected", "flagged")
MAX_BYTES = 150_000_000
"""Sound on one page, as stored: browsers grow slow above."""
_ORDER = {"flagged": 0, "rejected": 1, "accepted": 2}
_ASSETS = Path(__file__).resolve().parent / "assets"


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """What was written: the path, the number of clips on it, and of those that it could not hold."""

    path: Path
    clips: int
    left_out: int


def write_review(
    folder: SpeechFolder,
    decisions: Sequence[Decision],
    out: Path,
    *,
    show: str = "all",
    limit: int = 0,
    max_bytes: int = MAX_BYTES,
) -> ReviewPage:
    """Write the page: first what is flagged, then what is rejected, then the rest, each in the order of the queries.

    `show` chooses a status, `limit` the most clips (0: no limit), `max_bytes` the most bytes of sound. Queries without
    a clip cannot be heard and are not shown. Raises `UnknownNameError` for another `show`.
    """
    if show not in SHOWN:
        raise unknown_name("value of --show", show, SHOWN)
    wanted = [d for d in decisions if d.row.sha256 and show in {"all", d.status}]
    wanted.sort(key=lambda decision: _ORDER[decision.status])
    cards: list[str] = []
    size = 0
    for decision in wanted[: limit or None]:
        try:
            sound = folder.clip(decision.row).read_bytes()
        except AudioError:
            sound = b""
        if size + len(sound) > max_bytes:
            break
        size += len(sound)
        cards.append(_card(decision, sound))
    write_text(out, _page(folder, cards, wanted, len(wanted) - len(cards)))
    return ReviewPage(out, len(cards), len(wanted) - len(cards))


def _page(folder: SpeechFolder, cards: Sequence[str], wanted: Sequence[Decision], left_out: int) -> str:
    style, script = _asset("review.css"), _asset("review.js")
    # Texts are untrusted. Were one ever to escape its quoting, the browser still runs and loads nothing but this.
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; media-src data:"
    present = {decision.row.key: decision.row.sha256 for decision in wanted}
    marks = {
        _key(*place): {"mark": mark.mark, "comment": mark.comment}
        for place, mark in read_marks(folder.root).items()
        if present.get(place) == mark.sha256
    }
    # The same clips give the same page name, under which the browser keeps marks.
    name = hashlib.sha256("".join(sorted(present.values())).encode()).hexdigest()[:16]
    data = json.dumps({"schema": SCHEMA, "page": name, "marks": marks}, ensure_ascii=False).replace("<", "\\u003c")
    title = f"Review of {_escape(folder.root.resolve().name)}"
    note = f"<p>{left_out:,} more clips are not on this page; choose with --show and --limit.</p>" if left_out else ""
    options = "".join(f'<option value="{name}">{name}</option>' for name in ("all", "unmarked", *SHOWN[1:]))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div id="bar"><span id="count" role="status"></span>'
        f'<label>Show <select id="filter">{options}</select></label>'
        '<button type="button" id="save">Save marks</button></div>\n'
        f"<main>\n<h1>{title}</h1>\n{note}"
        "<p>Listen and mark; then save the marks and run <code>squtr review DIR --marks marks.json</code>.</p>\n"
        '<p class="soft"><kbd>j</kbd> next <kbd>k</kbd> back <kbd>space</kbd> play <kbd>a</kbd> accept <kbd>r</kbd> '
        "reject <kbd>c</kbd> comment</p>\n"
        '<p id="unkept" hidden>This browser keeps no marks: save them before you close the page.</p>\n'
        f"{''.join(cards)}</main>\n"
        f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _card(decision: Decision, sound: bytes) -> str:
    row = decision.row
    rate = "not measured" if row.tts_error_rate is None else f"{row.tts_error_rate:.3f}"
    facts: list[tuple[str, str, str]] = (
        [("Said as", row.spoken_text, row.language)] if row.spoken_text != row.text else []
    )
    if row.transcriber:
        facts.append(("Heard", row.heard or row.hearing_error or "nothing", row.language))
        facts.append(("Error rate", f"{rate} ({row.transcriber})", ""))
    for name, opinion in decision.opinions.items():
        if isinstance(opinion, Verdict):
            said = f"{opinion.final_quality_score:g}: {opinion.reasoning_summary}"
            facts.append((name, f"{said} {', '.join(opinion.artifacts)}".strip(), ""))
        else:
            facts.append((name, f"no verdict: {opinion.reason}", ""))
    facts.append(("Voice", f"{row.voice}, {row.duration_s:.1f} s", ""))
    reasons = "; ".join(REASONS.get(reason, reason) for reason in decision.reasons)
    facts.append(("Status", decision.status + (f": {reasons}" if reasons else ""), ""))
    pairs = "".join(
        f"<dt>{_escape(name)}</dt><dd{_lang(language)}>{_escape(value)}</dd>" for name, value, language in facts
    )
    player = (
        '<audio controls preload="none" src="data:audio/flac;base64,'
        f'{base64.b64encode(sound).decode("ascii")}"></audio>'
        if sound
        else "<p>The clip is missing.</p>"
    )
    label = _escape(f"{row.subset} {row.id}")
    return (
        f'<article tabindex="0" aria-label="{label}" data-key="{_escape(_key(row.subset, row.id))}" '
        f'data-id="{_escape(row.id)}" data-subset="{_escape(row.subset)}" data-sha256="{_escape(row.sha256)}" '
        f'data-status="{decision.status}">\n<p class="text"{_lang(row.language)}>{_escape(row.text)}</p>\n'
        f'<p class="soft">{label}</p>\n{player}\n<dl>{pairs}</dl>\n<div class="controls">'
        '<button type="button" value="accept" aria-pressed="false">Accept</button>'
        '<button type="button" value="reject" aria-pressed="false">Reject</button>'
        f'<input type="text" aria-label="Comment on {label}" placeholder="Comment"></div>\n</article>\n'
    )


def _key(subset: str, id_: str) -> str:
    return json.dumps([subset, id_], ensure_ascii=False)


def _lang(language: str) -> str:
    return f' lang="{_escape(language)}"' if language else ""


def _escape(value: Any) -> str:
    clean = "".join(c if c >= " " or c in "\t\n" else "\ufffd" for c in str(value))
    return html.escape(clean, quote=True)


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode('utf-8')).digest()).decode('ascii')}'"
