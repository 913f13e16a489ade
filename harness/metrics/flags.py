"""What else can be wrong with a transcript: loops, words on silence, nothing at all, cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import count

LOOP_COPIES = 4
"""How often in a row a sequence must stand to be a loop …"""
LOOP_TOKENS = 8
"""… and how many tokens the copies must cover (four times "no" is speech)."""
_LONGEST_PERIOD = 40
_LEAST_REPEATED = min(
    (max(LOOP_COPIES, -(-LOOP_TOKENS // period)) - 1) * period for period in range(1, _LONGEST_PERIOD + 1)
)


@dataclass(frozen=True, slots=True)
class UtteranceFlags:
    """Flags of one transcript. They do not change its error counts."""

    loop: bool
    hallucination: bool
    empty: bool
    truncated: bool


def longest_repetition(tokens: Sequence[str]) -> tuple[int, int]:
    """The stretch of adjacent copies that covers most tokens: (copies, tokens covered); (1, 0) if nothing repeats.

    Only whole copies count, with periods up to 40 tokens.

    >>> longest_repetition("so thank you thank you thank you bye".split())
    (3, 6)
    """
    best = (1, 0)
    n = len(tokens)
    for period in range(1, min(_LONGEST_PERIOD, n // 2) + 1):
        run = 0
        for i in range(period, n):
            run = run + 1 if tokens[i] == tokens[i - period] else 0
            copies = run // period + 1
            if copies > 1 and copies * period > best[1]:
                best = (copies, copies * period)
    return best


@lru_cache(maxsize=_LONGEST_PERIOD)
def _copies(longest: int) -> re.Pattern[str]:
    """Finds enough adjacent copies of a sequence of at most `longest` characters."""
    return re.compile(rf"(.{{1,{longest}}}?)\1{{{LOOP_COPIES - 1}}}", re.DOTALL)


def is_loop(hypothesis: Sequence[str], reference: Sequence[str] = ()) -> bool:
    """Whether `hypothesis` repeats itself: at least 4 adjacent copies over at least 8 tokens, beyond the reference.

    >>> is_loop(("thank you " * 5).split()), is_loop(["no"] * 4), is_loop(["ha"] * 9, ["ha"] * 9)
    (True, False, False)
    """
    # So many copies repeat at least this many tokens (two, four times): few transcripts need a closer look.
    if len(hypothesis) - len(set(hypothesis)) < _LEAST_REPEATED:
        return False
    codes = dict(zip(dict.fromkeys(hypothesis), map(chr, count())))  # noqa: B905 - count() does not end
    # Periods that do not fit so often into the transcript need no look.
    copies_in = _copies(max(1, min(_LONGEST_PERIOD, len(hypothesis) // LOOP_COPIES)))
    if copies_in.search("".join(map(codes.__getitem__, hypothesis))) is None:
        return False
    copies, covered = longest_repetition(hypothesis)
    if copies < LOOP_COPIES or covered < LOOP_TOKENS:
        return False
    return covered > longest_repetition(reference)[1] + LOOP_TOKENS // 2


def flag_utterance(
    reference: Sequence[str],
    hypothesis: Sequence[str],
    *,
    silent: bool = False,
    loop: bool = False,
    truncated: bool = False,
) -> UtteranceFlags:
    """Flags from normalized tokens and what the transcriber reported (`loop`, `truncated`).

    `hallucination`: words without speech (an empty reference, or `silent` audio). `empty`: no words for
    a reference that has some.

    >>> flag_utterance([], ["thanks", "for", "watching"])
    UtteranceFlags(loop=False, hallucination=True, empty=False, truncated=False)
    """
    no_speech = silent or not reference
    return UtteranceFlags(
        loop=loop or is_loop(hypothesis, reference),
        hallucination=no_speech and bool(hypothesis),
        empty=not no_speech and not hypothesis,
        truncated=truncated,
    )


def flag_counts(flags: Iterable[UtteranceFlags]) -> dict[str, int]:
    """How many utterances carry each flag, and `n`, the number of utterances.

    >>> flag_counts([UtteranceFlags(True, False, False, False), UtteranceFlags(False, False, True, False)])
    {'loop': 1, 'hallucination': 0, 'empty': 1, 'truncated': 0, 'n': 2}
    """
    table = list(flags)
    counts = {field.name: sum(getattr(f, field.name) for f in table) for field in fields(UtteranceFlags)}
    return counts | {"n": len(table)}
