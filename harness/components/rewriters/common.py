"""What an LLM's output becomes: the text to search with, or a failure that is counted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...protocols import Rewritten, Setting
from .prompts import RewritePrompt

OUTPUT_RULE = "1"
"""The number of the rule in `read_output`, raised when it changes."""
LONGEST_FACTOR, LONGEST_MORE = 3, 40
"""A text may have this many times the characters of the longest transcript, and so many more."""

_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_LABEL = re.compile(
    r"(?:the )?(?:corrected|rewritten)(?: (?:transcript|transcription|query|text))?(?: is)?\s*[:：]\s*"
    r"|(?:transcript|query|output|correction)\s*[:：]\s*",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』"}


def prompt_settings(prompt: RewritePrompt, n_best: int) -> dict[str, Setting]:
    """What of a spec says what is asked and how the output is read."""
    return {"n_best": n_best, "output_rule": OUTPUT_RULE, "prompt": prompt.name, "prompt_text": prompt.template}


def read_output(text: str, transcripts: Sequence[str], *, truncated: bool, seconds: float) -> Rewritten:
    """The text that a model made of transcripts.

    Of its output go a block `<think>…</think>` at the beginning, blanks around it, then one label ("Corrected
    transcript:", "Query:", …) and one pair of quotation marks around all of it, unless the best transcript has such,
    too. A failure is an output that was cut at the length cap, has no letter or digit, has several lines, or is longer
    than three times the longest transcript and 40 characters more: it is no correction.

    >>> read_output('Corrected: "a b"', ["a p"], truncated=False, seconds=0.0).text
    'a b'
    >>> read_output("a b\\nI replaced p.", ["a p"], truncated=False, seconds=0.0).error
    'it gave 2 lines instead of one'
    """
    if truncated:
        return Rewritten("", "its output was cut at the length cap", seconds)
    kept = _THOUGHT.sub("", text, count=1).strip() if _THOUGHT.match(text) else text.strip()
    best = transcripts[0].strip()
    if (label := _LABEL.match(kept)) and not _LABEL.match(best):
        kept = kept[label.end() :].strip()
    if _quoted(kept) and not _quoted(best):
        kept = kept[1:-1].strip()
    lines = [line for line in kept.splitlines() if line.strip()]
    longest = LONGEST_FACTOR * max(map(len, transcripts)) + LONGEST_MORE
    error = ""
    if not any(character.isalnum() for character in kept):
        error = "it gave no text"
    elif kept.startswith("<think>"):
        error = "it gave a thought without its end"
    elif len(lines) > 1:
        error = f"it gave {len(lines)} lines instead of one"
    elif len(kept) > longest:
        error = f"it gave {len(kept)} characters, more than the {longest} that a correction may have"
    return Rewritten("", error, seconds) if error else Rewritten(kept, seconds=seconds)


def _quoted(text: str) -> bool:
    return len(text) > 1 and _QUOTES.get(text[0]) == text[-1]
