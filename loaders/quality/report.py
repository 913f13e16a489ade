"""The report of quality control: what was rejected or flagged and why, as JSON and as a table for the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..sources.selection import REPORT
from ..synthesis.speech_folder import JOINT, number_or_none
from .decisions import Decision, QualityLimits
from .prompt import PROMPT_VERSION
from .verdicts import JudgeError, Verdict

SCHEMA = "squtr-quality/1"
STAGES = ("speaking", "gate", "error_rate", "judges", "review")

REASONS: Mapping[str, str] = {
    "not_spoken": "the engine could not speak the text",
    "unreadable": "the clip is missing or broken",
    "silent": "silent",
    "clipped": "clipped",
    "cut_start": "starts in the middle of speech",
    "cut_end": "ends in the middle of speech",
    "silence": "mostly silence",
    "too_slow": "too slow for its text",
    "too_fast": "too fast for its text",
    "dc": "DC offset",
    "narrow_band": "high frequencies missing",
    "not_transcribed": "the transcriber failed",
    "error_rate": "not understood by the transcriber",
    "numbers": "the transcript lacks a number of the text",
    "judge_fatal": "a judge found a fatal error",
    "judge_score": "a judge's score is too low",
    "judge_inconsistent": "a judge contradicts itself: truncated, but scored above 2",
    "judge_error": "a judge gave no verdict",
    "review_rejected": "rejected by a person",
}


def quality_report(decisions: Sequence[Decision], limits: QualityLimits | None = None) -> dict[str, Any]:
    """All counts, rates and judges, and one item per query that is not accepted, as JSON object."""
    limits = limits or QualityLimits()
    groups: dict[str, list[Decision]] = {}
    for decision in decisions:
        groups.setdefault(decision.row.subset, []).append(decision)
    return {
        "schema": SCHEMA,
        "total": _counts(decisions),
        "selection": selection(decisions, limits),
        "subsets": {subset: _counts(members) for subset, members in groups.items()},
        "stages": _stages(decisions),
        "reasons": dict(Counter(reason for d in decisions if d.status != "accepted" for reason in d.reasons)),
        "limits": {**asdict(limits), "clip": {**asdict(limits.clip), "rates": _lists(limits.clip.rates)}},
        "transcribers": selection(decisions, limits)["transcribers"],
        "judges": _judges(decisions),
        "voices": dict(sorted(Counter(d.row.voice for d in decisions if d.status == "accepted").items())),
        "items": [
            {
                "_id": d.row.id,
                "subset": d.row.subset,
                "status": d.status,
                "stage": d.stage,
                "reasons": list(d.reasons),
                "failure": d.row.failure or d.row.transcript_error,
                "text": d.row.text,
                "transcript": d.row.transcript,
                "tts_error_rate": d.row.tts_error_rate,
                "scores": {n: o.final_quality_score for n, o in d.opinions.items() if isinstance(o, Verdict)},
                "measures": d.measures.as_dict() if d.measures else None,
                "comment": d.comment,
            }
            for d in decisions
            if d.status != "accepted"
        ],
    }


def selection(decisions: Sequence[Decision], limits: QualityLimits | None = None) -> dict[str, Any]:
    """How what is kept was chosen, as JSON object: who spoke and judged, and what became of all queries.

    `candidates` is the highest number of takes that were compared for a query; `lost` counts by reason.
    """
    limits = limits or QualityLimits()
    rows = [decision.row for decision in decisions]
    status = Counter(decision.status for decision in decisions)
    return {
        "engine": " + ".join(sorted({row.speaker.partition("/")[0] for row in rows if row.speaker})),
        "voices": sorted({row.voice for row in rows if row.voice}),
        "candidates": max((row.candidates for row in rows), default=0),
        "transcribers": sorted({name for row in rows if row.transcriber for name in row.transcriber.split(JOINT)}),
        "judges": sorted({name for decision in decisions for name in decision.opinions}),
        "max_error_rate": limits.error_rate,
        "queries": len(decisions),
        "accepted": status["accepted"],
        "rejected": status["rejected"],
        "flagged": status["flagged"],
        "lost": dict(Counter(d.reasons[0] for d in decisions if d.status != "accepted" and d.reasons).most_common()),
    }


def _lists(rates: Mapping[str, tuple[float, float]]) -> dict[str, list[float]]:
    return {language: list(bounds) for language, bounds in rates.items()}


def _counts(decisions: Sequence[Decision]) -> dict[str, Any]:
    status = Counter(decision.status for decision in decisions)
    rates = [d.row.tts_error_rate for d in decisions if d.row.tts_error_rate is not None]
    kept = [d.row.tts_error_rate for d in decisions if d.status == "accepted" and d.row.tts_error_rate is not None]
    return {
        "queries": len(decisions),
        "accepted": status["accepted"],
        "rejected": status["rejected"],
        "flagged": status["flagged"],
        "marked": sum(decision.marked for decision in decisions),
        "unmeasured": sum(d.row.tts_error_rate is None for d in decisions),
        "mean_error_rate": _mean(rates),
        "mean_error_rate_accepted": _mean(kept),
        "seconds_accepted": round(sum(d.row.duration_s for d in decisions if d.status == "accepted"), 3),
    }


def _stages(decisions: Sequence[Decision]) -> dict[str, dict[str, int]]:
    return {
        stage: {
            "rejected": sum(d.stage == stage and d.status == "rejected" for d in decisions),
            "flagged": sum(d.stage == stage and d.status == "flagged" for d in decisions),
        }
        for stage in STAGES
    }


def _judges(decisions: Iterable[Decision]) -> dict[str, dict[str, Any]]:
    opinions: dict[str, list[Verdict | JudgeError]] = {}
    for decision in decisions:
        for name, opinion in decision.opinions.items():
            opinions.setdefault(name, []).append(opinion)
    out = {}
    for name, given in opinions.items():
        verdicts = [opinion for opinion in given if isinstance(opinion, Verdict)]
        errors = Counter(opinion.reason for opinion in given if isinstance(opinion, JudgeError))
        out[name] = {
            "asked": len(given),
            "verdicts": len(verdicts),
            "errors": errors.total(),
            "error_reasons": dict(errors.most_common(10)),
            "inconsistent": sum(verdict.inconsistent for verdict in verdicts),
            "fatal": sum(verdict.fatal_error_flag for verdict in verdicts),
            "mean_score": _mean([verdict.final_quality_score for verdict in verdicts]),
            "prompt_version": PROMPT_VERSION,
        }
    return out


def _mean(values: Sequence[float]) -> float | None:
    return number_or_none(math.fsum(values) / len(values)) if values else None


def _selection_lines(chosen: Mapping[str, Any]) -> list[str]:
    if not chosen["transcribers"]:
        return [f"takes of {chosen['engine'] or 'no engine'}, not rated: nothing says that they are understood"]
    return [
        f"selection: the best of up to {chosen['candidates']} takes of {chosen['engine']} by "
        f"{' and '.join(chosen['transcribers'])}, error rate at most {chosen['max_error_rate']:g}: what is kept is "
        "easier for these than for others"
    ]


def quality_table(report: Mapping[str, Any], most: int = 10) -> str:
    """The report for a terminal: counts per subset, reasons, judges, and at most `most` items."""
    lines = [f"{'subset':<20} {'queries':>8} {'accepted':>8} {'rejected':>8} {'flagged':>8} {'mean error rate':>16}"]
    rows = [*report["subsets"].items()]
    if len(rows) > 1:
        rows.append(("all", report["total"]))
    for name, counts in rows:
        rate = counts["mean_error_rate"]
        lines.append(
            f"{name:<20} {counts['queries']:>8,} {counts['accepted']:>8,} {counts['rejected']:>8,} "
            f"{counts['flagged']:>8,} {'not measured' if rate is None else f'{rate:.3f}':>16}"
        )
    lines.extend(_selection_lines(report["selection"]))
    if report["reasons"]:
        lines.append("why:")
        by_number = sorted(report["reasons"].items(), key=lambda pair: -pair[1])
        lines.extend(f"  {count:>6,}  {REASONS.get(reason, reason)} ({reason})" for reason, count in by_number)
    for name, judge in report["judges"].items():
        score = judge["mean_score"]
        lines.append(
            f"judge {name}: {judge['verdicts']} verdicts"
            f"{'' if score is None else f', mean {score:.2f}'}, {judge['errors']} errors, "
            f"{judge['inconsistent']} inconsistent"
        )
    for item in report["items"][:most]:
        rate = item["tts_error_rate"]
        shown = "" if rate is None else f" {rate:.2f}"
        lines.append(f"  {item['status']} {item['subset']}/{item['_id']}{shown}: {', '.join(item['reasons'])}")
    if len(report["items"]) > most:
        lines.append(f"  … and {len(report['items']) - most} more in {REPORT}")
    return "\n".join(lines)
