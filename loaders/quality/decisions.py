"""From measures, error rate, verdicts and marks to what is kept of a folder of synthesized queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import AudioError, DataError, UsageError
from ..audio import decode_audio
from ..in_order import SIGNAL_PACKAGES, import_before_threads
from ..jsonl import read_jsonl
from ..records import SAMPLE_RATE
from ..synthesis.speech_folder import INDEX, REJECTED, SpeechFolder, SpeechRow, write_text
from .judges import Clip, Judge
from .measures import ClipLimits, ClipMeasures, gate, measure_clip
from .review_marks import Mark, read_marks
from .verdicts import ACCEPTED_SCORE, JudgeError, Opinion, Status, Verdict, judged

MAX_ERROR_RATE = 0.30
"""Stage 1 as published: above it a clip is rejected, 0.30 itself passes."""
_TOGETHER = 64
VERDICTS = "verdicts.jsonl"


@dataclass(frozen=True, slots=True)
class QualityLimits:
    """What is kept: the gate's limits, the highest error rate, the lowest score of the judges."""

    clip: ClipLimits = field(default_factory=ClipLimits)
    error_rate: float = MAX_ERROR_RATE
    score: float = ACCEPTED_SCORE


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one query, with all that led to it. `stage` is where it ended: "" if it was accepted."""

    row: SpeechRow
    status: Status
    stage: str = ""
    reasons: tuple[str, ...] = ()
    measures: ClipMeasures | None = None
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    comment: str = ""
    marked: bool = False


def passes_error_rate(rate: float, limit: float = MAX_ERROR_RATE) -> bool:
    """Whether stage 1 lets a clip pass; NaN does not.

    >>> passes_error_rate(0.30), passes_error_rate(3 / 10), passes_error_rate(0.300001)
    (True, True, False)
    """
    return rate <= limit


def decide(
    folder: SpeechFolder,
    *,
    judges: Sequence[Judge] = (),
    limits: QualityLimits | None = None,
    workers: int = 4,
    progress: Callable[[int], None] | None = None,
) -> list[Decision]:
    """A decision for every query of the folder, in the order in which they were first spoken.

    First the gate, then stage 1, then the judges, who get only what passed both, `workers` clips at a time. Without a
    transcriber or judges their stage is left out; without `judges`, verdicts that were stored for the same clip count.
    A person's mark for the same clip overrules all. Raises `ModelError` where a judge's API refuses.
    """
    names = [judge.name for judge in judges]
    if len(set(names)) < len(names):
        raise UsageError(f"two judges have the same name: {', '.join(names)}.", hint="Choose different models.")
    limits = limits or QualityLimits()
    chosen = list(folder.rows().values())
    marks = read_marks(folder.root)
    stored = {} if judges else _stored_opinions(folder.root)
    tell = progress or (lambda _: None)
    decisions: list[Decision] = []
    import_before_threads(*SIGNAL_PACKAGES)
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        for start in range(0, len(chosen), _TOGETHER):
            part = chosen[start : start + _TOGETHER]
            futures = [pool.submit(_decide, row, folder, judges, stored, limits) for row in part]
            try:
                decisions.extend(_marked(future.result(), marks) for future in futures)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            tell(len(part))
    return decisions


def _decide(
    row: SpeechRow,
    folder: SpeechFolder,
    judges: Sequence[Judge],
    stored: Mapping[str, Mapping[str, Opinion]],
    limits: QualityLimits,
) -> Decision:
    if row.failure:
        return Decision(row, "rejected", "speaking", ("not_spoken",))
    name = f"the clip {row.file} of query {row.id!r}"
    try:
        samples, rate = decode_audio(folder.clip(row), name)
    except AudioError:
        return Decision(row, "rejected", "gate", ("unreadable",))
    if rate != SAMPLE_RATE:
        raise AudioError(f"{name} has {rate} Hz.", hint="Delete it; squtr synthesize speaks it again.")
    measures = measure_clip(samples, row.spoken_text)
    reasons = gate(measures, row.language, limits.clip, engine=row.speaker.partition("/")[0])
    if reasons:
        return Decision(row, "rejected", "gate", reasons, measures)
    if row.transcriber:
        if row.tts_error_rate is None:
            return Decision(row, "rejected", "error_rate", ("not_transcribed",), measures)
        if not passes_error_rate(row.tts_error_rate, limits.error_rate):
            return Decision(row, "rejected", "error_rate", ("error_rate",), measures)
        # From a limit of 1 on, nothing is asked of the transcript.
        if row.numbers_missed and limits.error_rate < 1:
            return Decision(row, "rejected", "error_rate", ("numbers",), measures)
    if judges:
        clip = Clip(samples, row.sha256, row.text, row.spoken_text, row.language)
        opinions: Mapping[str, Opinion] = {judge.name: judge.judge(clip) for judge in judges}
    else:
        opinions = stored.get(row.sha256, {})
    status, reasons = judged(list(opinions.values()), limits.score)
    return Decision(row, status, "" if status == "accepted" else "judges", reasons, measures, opinions)


def _marked(decision: Decision, marks: Mapping[tuple[str, str], Mark]) -> Decision:
    mark = marks.get(decision.row.key)
    # A mark is for one clip; one that was synthesized again is judged anew.
    if mark is None or mark.sha256 != decision.row.sha256 or decision.row.failure:
        return decision
    if mark.mark == "accept":
        return replace(decision, status="accepted", stage="", comment=mark.comment, marked=True)
    if mark.mark == "reject":
        reasons = ("review_rejected", *decision.reasons)
        return replace(decision, status="rejected", stage="review", reasons=reasons, comment=mark.comment, marked=True)
    return replace(decision, comment=mark.comment)


def write_decisions(folder: SpeechFolder, decisions: Sequence[Decision]) -> None:
    """Write the index of what is accepted, the list of the rest, and the verdicts."""
    kept = "".join(d.row.line() for d in decisions if d.status == "accepted")
    rest = "".join(
        d.row.line(status=d.status, stage=d.stage, reasons=list(d.reasons), comment=d.comment)
        for d in decisions
        if d.status != "accepted"
    )
    write_text(folder.root / INDEX, kept)
    write_text(folder.root / REJECTED, rest)
    lines = [
        json.dumps(
            {"_id": d.row.id, "subset": d.row.subset, "sha256": d.row.sha256, "judge": name, **opinion_json(opinion)},
            ensure_ascii=False,
        )
        for d in decisions
        for name, opinion in d.opinions.items()
    ]
    if lines:
        write_text(folder.root / VERDICTS, "\n".join(lines) + "\n")


def opinion_json(opinion: Opinion) -> dict[str, Any]:
    """{"verdict": …} or {"error": …}."""
    if isinstance(opinion, JudgeError):
        return {"error": opinion.reason}
    return {"verdict": opinion.model_dump(mode="json")}


def _stored_opinions(root: Path) -> dict[str, dict[str, Opinion]]:
    found: dict[str, dict[str, Opinion]] = {}
    path = root / VERDICTS
    if not path.is_file():
        return found
    for number, row in read_jsonl(path):
        opinion: Opinion
        try:
            opinion = (
                JudgeError(str(row["error"]))
                if "error" in row
                else Verdict.model_validate_json(json.dumps(row["verdict"]))
            )
            found.setdefault(str(row["sha256"]), {})[str(row["judge"])] = opinion
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{path}, line {number}: this is no verdict.", hint="Remove the line, and ask the judges again."
            ) from error
    return found
