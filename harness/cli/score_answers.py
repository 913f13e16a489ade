"""What `squtr score mcqa` and `squtr score aif` add to `squtr score`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Extend, note

if TYPE_CHECKING:
    from ..metrics.summaries import Summary

_FILES = """
  Optional in ITEMS, for slices: perception, reasoning (lists), comparative, missing_audio (true, false), aetiology,
  intelligibility, sex, duration_s. An item with missing_audio in either file is not scored: it lowers the coverage.
  A reply that is null scores 0; so does one that is missing, with --missing count.
"""
MCQA_EXAMPLE = f"""example:
  squtr score mcqa items.jsonl replies.jsonl --json
  squtr score mcqa items.jsonl replies.jsonl --by dialect --per-item items.tsv

files (JSONL or Parquet):
  ITEMS    {{"id": …, "options": ["…", "…"], "answer": …}}, the answer an option's text or its letter
  REPLIES  {{"id": …, "reply": "…"}}; with "order": [2, 0, 1] if the third option was shown as A, and so on; an item
           may have a reply per order
{_FILES}  "spoken_of": id of the written question that a question speaks; such pairs are compared, and counted once.

scores:
  accuracy            right / items; what was not parsed scores 0
  accuracy_parsed     right / parsed
  chance              mean of 1 / number of options
  accuracy_corrected  (accuracy - chance) / (1 - chance)
  unparsed            share of replies that name no option, or several (ambiguous, absent, empty, missing)
  consistency, consistent, accuracy_all_orders: of items with several orders
"""
AIF_EXAMPLE = f"""example:
  squtr score aif items.jsonl replies.jsonl
  squtr score aif items.jsonl replies.jsonl --json --per-item items.jsonl

files (JSONL or Parquet):
  ITEMS    {{"id": …, "verifiers": [{{"id": "words", "count": 50, "relation": "at most"}}, {{"id": "no_commas"}}]}}
  REPLIES  {{"id": …, "reply": "…"}}
{_FILES}  docs/understanding.md lists the verifiers and their arguments; IFEval's names are understood too.

scores:
  prompt_…       share of items all of whose instructions are followed (accuracy is prompt_strict)
  instruction_…  share of instructions that are followed
  …_strict       by the reply as it is
  …_loose        by the reply, or the reply without first line, last line or asterisks
"""
IN_OTHER_TABLES = frozenset(
    ("breakdowns", "position_bias", "spoken", "verifiers", "verifiers_version", "parser_version", "n_instructions")
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("questions", type=Path, metavar="ITEMS", help="the questions")
    parser.add_argument("replies", type=Path, metavar="REPLIES", help="what was answered; the same ids")
    parser.add_argument(
        "--by", action=Extend, nargs="+", default=[], metavar="FIELD", help="more fields of ITEMS to make slices of"
    )
    parser.add_argument(
        "--duration-edges",
        action=Extend,
        nargs="+",
        type=float,
        metavar="S",
        help="edges of the duration bins, s (30 60 300 1200)",
    )


def summarize(arguments: argparse.Namespace, statistics: dict[str, Any]) -> tuple[Summary, str]:
    """The scores, and a line that says what they are of. Raises `UsageError`, `DataError`."""
    from ..score_files.questions import read_aif_items, read_mcqa_items, read_replies
    from ..tasks.understanding.answers.accuracy import summarize_mcqa
    from ..tasks.understanding.answers.following import summarize_aif
    from ..tasks.understanding.answers.labels import DURATION_EDGES_S

    options = {**statistics, "duration_edges_s": arguments.duration_edges or DURATION_EDGES_S}
    if arguments.kind == "mcqa":
        questions = read_mcqa_items(arguments.questions, by=arguments.by, remark=note)
        replies = read_replies(arguments.replies, questions, remark=note)
        _check_missing(arguments, [one.id for one in questions if not one.missing_audio], {one.id for one in replies})
        found = summarize_mcqa(questions, replies, **options)
        return found, f"{found.scores['n']} questions, parser {found.scores['parser_version']}"
    tasks = read_aif_items(arguments.questions, by=arguments.by, remark=note)
    given = read_replies(arguments.replies, tasks, remark=note)
    _check_missing(arguments, [one.id for one in tasks if not one.missing_audio], {one.id for one in given})
    found = summarize_aif(tasks, given, **options)
    return found, (
        f"{found.scores['n']} questions with {found.scores['n_instructions']} instructions, "
        f"verifiers {found.scores['verifiers_version']}"
    )


def _check_missing(arguments: argparse.Namespace, wanted: Sequence[str], replies: Collection[str]) -> None:
    """Raise `DataError` for questions without a line, unless they are counted; a reply of null is a line."""
    from ...errors import DataError

    absent = [id_ for id_ in wanted if id_ not in replies]
    if absent and (arguments.missing == "error" or len(absent) == len(wanted)):
        shown = ", ".join(map(repr, absent[:5])) + (", …" if len(absent) > 5 else "")
        raise DataError(
            f"{len(absent)} of {len(wanted)} questions have no reply in {arguments.replies}: {shown}.",
            hint="Check the ids, or count them as wrong: --missing count.",
        )


def more_tables(scores: dict[str, Any]) -> list[str]:
    """Places, spoken against written, verifiers, and slices, where there are any."""
    lines: list[str] = []
    bias = scores.get("position_bias")
    if bias:
        lines += ["", "  place      right   chosen   recall"]
        for letter, right in bias["right"].items():
            lines.append(f"  {letter:<8} {right:>7} {bias['chosen'][letter]:>8} {_number(bias['recall'][letter])}")
        lines.append(f"  standard deviation of recall {_number(bias['rstd'])}{_interval(bias['rstd_interval'])}")
        if bias["p_value"] is not None:
            lines.append(
                f"  {bias['n_wrong']} wrong choices: chi-square {bias['chi_square']:.2f}, "
                f"{bias['degrees_of_freedom']} degrees of freedom, p {bias['p_value']:.4f}"
            )
    spoken = scores.get("spoken")
    if spoken:
        lines += [
            "",
            f"  {spoken['n']} questions: spoken {spoken['accuracy_spoken']:.4f}, "
            f"written {spoken['accuracy_written']:.4f}",
            f"  difference {spoken['difference']:+.4f}{_interval(spoken['interval'])}, p {spoken['p_value']:.4f}",
        ]
    if scores.get("verifiers"):
        lines += ["", f"  {'verifier':<22} {'n':>5}  strict   loose"]
        for id_, row in scores["verifiers"].items():
            lines.append(f"  {id_:<22} {row['n']:>5} {_number(row['strict'])} {_number(row['loose'])}")
    main = (
        ("accuracy", "accuracy_corrected", "unparsed") if bias is not None else ("prompt_strict", "instruction_strict")
    )
    for breakdown, slices in scores.get("breakdowns", {}).items():
        names = "  ".join(name.removeprefix("accuracy_") for name in (*main[1:], main[0]))
        lines += ["", f"  {breakdown:<32} {'n':>5} {'missing':>8}  {names}"]
        for name, row in slices.items():
            values = " ".join(_number(row[each]) for each in (*main[1:], main[0]))
            low_high = _interval(row["intervals"][main[0]])
            lines.append(f"    {name:<30} {row['n']:>5} {row['missing_audio']:>8} {values}{low_high}")
    return lines


def _number(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:>8.4f}"


def _interval(bounds: dict[str, float] | None) -> str:
    return f"  [{bounds['low']:.4f}, {bounds['high']:.4f}]" if bounds else ""
