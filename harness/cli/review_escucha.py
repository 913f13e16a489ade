"""Write one HTML page on which people answer questions about speech by ear and check their key, or apply its notes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .common import say, say_json

EXAMPLE = """examples:
  squtr review escucha escucha_mini --out page.html
  squtr review escucha my-set --notes escucha-review.json --replies people.jsonl --corrected questions.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("source", metavar="SET", help="escucha_mini, or the folder of a set")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page to write (escucha-review.html)")
    parser.add_argument("--config", default="all", metavar="NAME", help="mcqa, aif, comparative, spoken, … (all)")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the most questions on the page; 0: all (0)")
    parser.add_argument("--notes", type=Path, metavar="FILE", help="apply the notes that the page saved")
    parser.add_argument("--replies", type=Path, metavar="FILE", help="where the people's replies go (replies.jsonl)")
    parser.add_argument("--corrected", type=Path, metavar="FILE", help="where the corrected table goes (none)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Write the page, or the replies and the corrected table."""
    from ...errors import UsageError
    from ...loaders.questions.data import open_data
    from ...loaders.questions.fields import row_of
    from ...loaders.questions.review import corrected, human_replies, read_review, write_review
    from ...loaders.synthesis.speech_folder import write_text

    if arguments.limit < 0:
        raise UsageError(f"the limit is {arguments.limit}.", hint="Give the number of questions, or 0 for all.")
    data = open_data(arguments.source)
    if arguments.notes is None:
        out = arguments.out or Path("escucha-review.html")
        page = write_review(data, out, config=arguments.config, limit=arguments.limit)
        if arguments.json:
            say_json({"page": str(page.path), "items": page.items, "left_out": page.left_out, "missing": page.missing})
        else:
            more = f", {page.left_out:,} left out" if page.left_out else ""
            more += f", {page.missing:,} without sound" if page.missing else ""
            say(f"Page: {page.path} ({page.items:,} questions{more})")
            say(f"Then: squtr review escucha {arguments.source} --notes escucha-review.json")
        return 0
    review = read_review(arguments.notes, data)
    replies = human_replies(review)
    target = arguments.replies or Path("replies.jsonl")
    write_text(target, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in replies))
    kept = corrected(data.questions(), review)
    changed = sum(bool(item.answer) for item in review.items)
    if arguments.corrected is not None:
        write_text(arguments.corrected, "".join(json.dumps(row_of(q), ensure_ascii=False) + "\n" for q in kept))
    discarded = len(data.questions()) - len(kept)
    if arguments.json:
        say_json({"replies": len(replies), "corrected": changed, "discarded": discarded, "file": str(target)})
    else:
        say(f"{len(replies):,} replies in {target}; {changed:,} keys corrected, {discarded:,} questions discarded.")
        if arguments.corrected is not None:
            say(f"Table: {arguments.corrected} ({len(kept):,} questions)")
    return 0
