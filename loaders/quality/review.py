"""One HTML page, without network, to review and mark synthesized queries. It saves its marks as a download."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import AudioError, unknown_name
from ..pages import MAX_AUDIO_BYTES, TEMPLATES, asset, audio_url, json_data, render, write_page
from ..synthesis.speech_folder import SpeechFolder
from .decisions import Decision
from .report import REASONS
from .review_marks import SCHEMA, read_marks
from .verdicts import Verdict

SHOWN = ("all", "accepted", "rejected", "flagged")
_ORDER = {"flagged": 0, "rejected": 1, "accepted": 2}
_PAGE = TEMPLATES / "speech_review"


@dataclass(frozen=True, slots=True)
class ReviewPage:
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
    max_bytes: int = MAX_AUDIO_BYTES,
) -> ReviewPage:
    """Write the page: flagged, rejected, then accepted clips, each in the order of the queries.

    `show` chooses a status, `limit` the most clips (0: all), `max_bytes` the most audio. Raises `UnknownNameError`.
    """
    if show not in SHOWN:
        raise unknown_name("value of --show", show, SHOWN)
    wanted = [d for d in decisions if d.row.sha256 and show in {"all", d.status}]
    wanted.sort(key=lambda decision: _ORDER[decision.status])
    cards: list[dict[str, Any]] = []
    size = 0
    for decision in wanted[: limit or None]:
        try:
            content = folder.clip(decision.row).read_bytes()
        except AudioError:
            content = b""
        if size + len(content) > max_bytes:
            break
        size += len(content)
        cards.append(_card(decision, content))
    left_out = len(wanted) - len(cards)
    present = {decision.row.key: decision.row.sha256 for decision in wanted}
    marks = {
        _key(*place): {"mark": mark.mark, "comment": mark.comment}
        for place, mark in read_marks(folder.root).items()
        if present.get(place) == mark.sha256
    }
    # The same clips give the same page name, under which the browser keeps marks.
    name = hashlib.sha256("".join(sorted(present.values())).encode()).hexdigest()[:16]
    page = render(
        _PAGE,
        "page.html",
        title=f"Review of {folder.root.resolve().name}",
        style=asset(TEMPLATES / "common", "review.css"),
        script=asset(_PAGE, "script.js"),
        filters=("all", "unmarked", *SHOWN[1:]),
        left_out=left_out,
        cards=cards,
        data=json_data({"schema": SCHEMA, "page": name, "marks": marks}),
    )
    return ReviewPage(write_page(out, page), len(cards), left_out)


def _card(decision: Decision, content: bytes) -> dict[str, Any]:
    row = decision.row
    rate = "not measured" if row.tts_error_rate is None else f"{row.tts_error_rate:.3f}"
    facts = [("Spoken form", row.spoken_text, row.language)] if row.spoken_text != row.text else []
    if row.transcriber:
        facts.append(("Transcript", row.transcript or row.transcript_error or "nothing", row.language))
        facts.append(("Error rate", f"{rate} ({row.transcriber})", ""))
    for name, opinion in decision.opinions.items():
        if isinstance(opinion, Verdict):
            verdict = f"{opinion.final_quality_score:g}: {opinion.reasoning_summary}"
            facts.append((name, f"{verdict} {', '.join(opinion.artifacts)}".strip(), ""))
        else:
            facts.append((name, f"no verdict: {opinion.reason}", ""))
    facts.append(("Voice", f"{row.voice}, {row.duration_s:.1f} s", ""))
    reasons = "; ".join(REASONS.get(reason, reason) for reason in decision.reasons)
    facts.append(("Status", decision.status + (f": {reasons}" if reasons else ""), ""))
    return {
        "row": row,
        "key": _key(row.subset, row.id),
        "status": decision.status,
        "facts": facts,
        "audio": audio_url(content) if content else "",
    }


def _key(subset: str, id_: str) -> str:
    return json.dumps([subset, id_], ensure_ascii=False)
