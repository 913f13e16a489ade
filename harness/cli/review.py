"""Write one HTML page to review synthesized queries, or the questions of a set and their key; or apply what it saved.

SOURCE is a folder that `squtr synthesize` wrote, or a set of questions: a folder, mini, or the name of a published set
that was fetched. On the page of questions people answer from the audio; their replies are scored as a system's.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from .common import check_options, note, say, say_json

if TYPE_CHECKING:
    from ...loaders.questions.data import QuestionData

EXAMPLE = """example:
  squtr review clips --show rejected
  squtr review clips --marks ~/Downloads/marks.json
  squtr review mini --out page.html
  squtr review my-set --marks questions-review.json --replies people.jsonl --corrected questions.jsonl
"""

SPEECH, QUESTIONS = "synthesized speech", "questions"
OPTIONS = {SPEECH: ("show",), QUESTIONS: ("config", "replies", "corrected")}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a folder of synthesized speech, or a set of questions")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the page to write (review.html, that of speech in its folder)"
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the most clips or questions; 0: all (0)")
    parser.add_argument("--marks", type=Path, metavar="FILE", help="apply the marks that the page saved")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    speech = parser.add_argument_group(SPEECH, argument_default=argparse.SUPPRESS)
    speech.add_argument("--show", metavar="STATUS", help="all, accepted, rejected or flagged clips (all)")
    questions = parser.add_argument_group(QUESTIONS, argument_default=argparse.SUPPRESS)
    questions.add_argument("--config", metavar="NAME", help="mcqa, aif, comparative, spoken, … (all)")
    questions.add_argument("--replies", type=Path, metavar="FILE", help="where the people's replies go (replies.jsonl)")
    questions.add_argument("--corrected", type=Path, metavar="FILE", help="where the corrected table goes (none)")


def run(arguments: argparse.Namespace) -> int:
    from ...errors import DataError, UsageError
    from ...loaders.questions.data import find_set, open_questions
    from ...loaders.synthesis.speech_folder import is_speech_folder

    if arguments.limit < 0:
        raise UsageError(f"the limit is {arguments.limit}.", hint="Give the most clips or questions, or 0 for all.")
    folder = Path(arguments.source).expanduser()
    if folder.is_dir() and not (is_speech_folder(folder) or find_set(folder)):
        raise DataError(
            f"{folder} holds neither synthesized speech nor questions.",
            hint="Give a folder that `squtr synthesize` wrote, or a set of questions.",
        )
    kind = SPEECH if is_speech_folder(folder) else QUESTIONS
    given = check_options(arguments, OPTIONS, kind, f"{arguments.source}, which holds {kind}")
    if kind == SPEECH:
        return _speech(arguments, folder, **given)
    return _questions(arguments, open_questions(arguments.source), **given)


def _speech(arguments: argparse.Namespace, root: Path, show: str = "all") -> int:
    from ...loaders.quality.decisions import QualityLimits, decide, write_decisions
    from ...loaders.quality.report import quality_report
    from ...loaders.quality.review import write_review
    from ...loaders.quality.review_marks import add_marks, read_marks_file
    from ...loaders.sources.selection import REPORT
    from ...loaders.synthesis.speech_folder import SpeechFolder, write_text

    folder = SpeechFolder(root)
    limits = QualityLimits(error_rate=_max_error_rate(root / REPORT))
    if arguments.marks is None:
        page = write_review(
            folder,
            decide(folder, limits=limits),
            arguments.out or root / "review.html",
            show=show,
            limit=arguments.limit,
        )
        if arguments.json:
            say_json({"page": str(page.path), "clips": page.clips, "left_out": page.left_out})
        else:
            say(f"Page: {page.path} ({page.clips:,} clips{f', {page.left_out:,} left out' if page.left_out else ''})")
            say(f"Then: squtr review {root} --marks marks.json")
        return 0
    kept, stale = add_marks(root, read_marks_file(arguments.marks), folder.rows())
    decisions = decide(folder, limits=limits)
    write_decisions(folder, decisions)
    report = quality_report(decisions, limits)
    write_text(root / REPORT, json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    counts = {name: sum(mark.mark == name for mark in kept) for name in ("accept", "reject")}
    if arguments.json:
        say_json({"applied": len(kept), "stale": len(stale), **counts, "total": report["total"]})
    else:
        total = report["total"]
        say(f"Applied {len(kept)} marks: {counts['accept']} accepted, {counts['reject']} rejected by hand.")
        say(f"{root}: {total['accepted']:,} of {total['queries']:,} queries are in the index.")
    for mark in stale:
        note(f"squtr: the mark on {mark.subset}/{mark.id} is for a clip that is no longer there.")
    return 0


def _max_error_rate(report: Path) -> float:
    """The limit that the folder was checked with, so that a review does not change it."""
    from ...errors import DataError
    from ...loaders.quality.decisions import MAX_ERROR_RATE

    if not report.is_file():
        return MAX_ERROR_RATE
    try:
        return float(json.loads(report.read_text(encoding="utf-8"))["limits"]["error_rate"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{report} is no quality report.", hint="Run squtr synthesize again.") from error


def _questions(
    arguments: argparse.Namespace,
    data: QuestionData,
    config: str = "all",
    replies: Path | None = None,
    corrected: Path | None = None,
) -> int:
    from ...loaders.questions.fields import row_of
    from ...loaders.questions.review import corrected_questions, human_replies, read_review, write_review
    from ...loaders.synthesis.speech_folder import write_text

    if arguments.marks is None:
        page = write_review(data, arguments.out or Path("review.html"), config=config, limit=arguments.limit)
        if arguments.json:
            say_json({"page": str(page.path), "items": page.items, "left_out": page.left_out, "missing": page.missing})
        else:
            more = f", {page.left_out:,} left out" if page.left_out else ""
            more += f", {page.missing:,} without audio" if page.missing else ""
            say(f"Page: {page.path} ({page.items:,} questions{more})")
            say(f"Then: squtr review {arguments.source} --marks questions-review.json")
        return 0
    review = read_review(arguments.marks, data)
    answered = human_replies(review)
    target = replies or Path("replies.jsonl")
    write_text(target, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in answered))
    kept = corrected_questions(data.questions(), review)
    changed = sum(bool(item.answer) for item in review.items)
    if corrected is not None:
        write_text(corrected, "".join(json.dumps(row_of(q), ensure_ascii=False) + "\n" for q in kept))
    discarded = len(data.questions()) - len(kept)
    if arguments.json:
        say_json({"replies": len(answered), "corrected": changed, "discarded": discarded, "file": str(target)})
    else:
        say(f"{len(answered):,} replies in {target}; {changed:,} keys corrected, {discarded:,} questions discarded.")
        if corrected is not None:
            say(f"Table: {corrected} ({len(kept):,} questions)")
    return 0
