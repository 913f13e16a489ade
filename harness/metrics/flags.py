"""What else can be wrong with a transcript: loops, words that nobody spoke, no words, cut short, lost characters."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count

from rapidfuzz.fuzz import partial_ratio

from .error_counts import count_errors

LOOP_COPIES = 4
"""How often in a row a sequence must stand to be a loop …"""
LOOP_TOKENS = 8
"""… and how many tokens the copies must cover (four times "no" is speech)."""
LOOP_COMPRESSION = 2.4
"""Above this ratio of UTF-8 bytes to zlib bytes a text repeats itself (Whisper, arXiv 2212.04356, section 4.5)."""
_COMPRESSION_SLACK = 1.1
"""How much more a transcript may be compressed than a reference that repeats itself: a word may be misheard."""
_LONGEST_PERIOD = 40
_LEAST_REPEATED = min(
    (max(LOOP_COPIES, -(-LOOP_TOKENS // period)) - 1) * period for period in range(1, _LONGEST_PERIOD + 1)
)

UNRELATED_HITS = 0.3
"""A transcript is unrelated if at most this share of the shorter of it and its reference is right …"""
UNRELATED_LETTERS = 0.55
"""… and no part of the longer spells more than this much of the shorter …"""
UNRELATED_CHARACTERS = 0.35
"""… or this much where the tokens are characters (Chinese), which match by chance less often than letters."""
UNRELATED_WORDS = 3
"""Fewer words than this tell nothing: "you", "I" and "okay." may be a short word misheard …"""
UNRELATED_LENGTH = 4
"""… as may fewer characters than this where the tokens are characters."""

# A unit is a word, or one character of a script that is written without blanks (kana, Han).
_UNIT = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+(?:['’]\w+)*"
)


@dataclass(frozen=True, slots=True)
class UtteranceFlags:
    """Flags of one transcript. They do not change its error counts."""

    loop: bool = False
    hallucination: bool = False
    empty: bool = False
    truncated: bool = False
    invalid_text: bool = False


NO_FLAGS = UtteranceFlags()


def longest_repetition(tokens: Sequence[str]) -> tuple[int, int]:
    """The stretch of adjacent copies that covers most tokens: (copies, tokens covered); (1, 0) if nothing repeats.

    Only whole copies count, with periods up to 40 tokens; numbers alone do not (10000, "0 0 0 0").

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
            if copies > 1 and copies * period > best[1] and not _are_numbers(tokens[i - period + 1 : i + 1]):
                best = (copies, copies * period)
    return best


@lru_cache(maxsize=_LONGEST_PERIOD)
def _copies(longest: int) -> re.Pattern[str]:
    """Finds enough adjacent copies of a sequence of at most `longest` characters."""
    return re.compile(rf"(.{{1,{longest}}}?)\1{{{LOOP_COPIES - 1}}}", re.DOTALL)


def repeats_itself(text: str) -> bool:
    """Whether a text alone looks like a loop: a suspicion, which `is_loop` judges by the reference.

    It does if its UTF-8 bytes are more than `LOOP_COMPRESSION` times those that zlib makes of them, or if one sequence
    of units (words; single characters in Chinese and Japanese) of any length stands `LOOP_COPIES` times in a row. A
    sequence of numbers alone does not count, nor does punctuation.

    >>> repeats_itself("thank you. thank you. thank you. Thank you."), repeats_itself("谢谢谢谢谢谢谢谢")
    (True, True)
    >>> repeats_itself("call 555 555 555 555 now, it is very very important"), repeats_itself("")
    (False, False)
    """
    if _compression(text.strip()) > LOOP_COMPRESSION:
        return True
    units = _UNIT.findall(text.casefold())
    if len(units) - len(set(units)) < LOOP_COPIES - 1:
        return False
    for n in range(1, len(units) // LOOP_COPIES + 1):
        run = 0
        for i in range(n, len(units)):
            run = run + 1 if units[i] == units[i - n] else 0
            if run >= n * (LOOP_COPIES - 1) and not _are_numbers(units[i - n + 1 : i + 1]):
                return True
    return False


def is_loop(hypothesis: Sequence[str], reference: Sequence[str] = (), *, marked: bool = False) -> bool:
    """Whether `hypothesis` repeats itself beyond what the reference repeats.

    It does with at least 4 adjacent copies over at least 8 tokens, which must be at least 5 tokens more than the
    reference's own copies cover. `marked` says that the text looked like a loop without a reference
    (`repeats_itself`, or by the transcriber's own account); then it is one unless the reference repeats itself as much.

    >>> is_loop(("thank you " * 5).split()), is_loop(["no"] * 4), is_loop(["ha"] * 9, ["ha"] * 9)
    (True, False, False)
    >>> is_loop(["no"] * 4, ["not", "now"], marked=True), is_loop(["no"] * 4, ["no"] * 4, marked=True)
    (True, False)
    """
    if not marked and not _may_be_loop(hypothesis):
        return False
    if list(hypothesis) == list(reference):
        return False
    copies, covered = longest_repetition(hypothesis)
    own_copies, own_covered = longest_repetition(reference)
    beyond = covered > own_covered + LOOP_TOKENS // 2
    if copies >= LOOP_COPIES and covered >= LOOP_TOKENS:
        return beyond
    if not marked or beyond:
        return marked
    squeezed, own_squeezed = _compression(" ".join(hypothesis)), _compression(" ".join(reference))
    repeats = own_copies > 1 or own_squeezed > LOOP_COMPRESSION
    return not repeats or squeezed > max(LOOP_COMPRESSION, _COMPRESSION_SLACK * own_squeezed)


def _may_be_loop(hypothesis: Sequence[str]) -> bool:
    # So many copies repeat at least this many tokens (two, four times): few transcripts need a closer look.
    if len(hypothesis) - len(set(hypothesis)) < _LEAST_REPEATED:
        return False
    codes = dict(zip(dict.fromkeys(hypothesis), map(chr, count())))  # noqa: B905 - count() does not end
    # Periods that do not fit so often into the transcript need no look.
    copies_in = _copies(max(1, min(_LONGEST_PERIOD, len(hypothesis) // LOOP_COPIES)))
    return copies_in.search("".join(map(codes.__getitem__, hypothesis))) is not None


def _are_numbers(tokens: Sequence[str]) -> bool:
    return all(token.isnumeric() for token in tokens)


def _compression(text: str) -> float:
    content = text.encode("utf-8", "replace")
    return len(content) / len(zlib.compress(content))


def is_unrelated(hypothesis: Sequence[str], reference: Sequence[str]) -> bool:
    """Whether the words of a transcript have nothing to do with those of its reference, so that nobody spoke them.

    They have not if there are at least 3 (4 characters, where the tokens are characters), at most 30 % of the shorter
    of the two is aligned with an equal token, and the most similar part of the longer is less than 55 % the same
    letters (35 % the same characters): a name that is spelled otherwise is misheard, not made up. The word error rate
    is then at least 70 %. For an empty reference, any word is unrelated. `docs/metrics.md` has how often it is wrong.

    >>> is_unrelated("thanks for watching".split(), "which account pays the most interest".split())
    True
    >>> is_unrelated("rensby bridge".split(), "wrens bee bridge".split()), is_unrelated([], ["a"])
    (False, False)
    """
    if not hypothesis or not reference:
        return bool(hypothesis)
    are_words = max(map(len, chain(hypothesis, reference))) > 1
    if len(hypothesis) < (UNRELATED_WORDS if are_words else UNRELATED_LENGTH):
        return False
    hits = count_errors(reference, hypothesis).hits
    if hits > UNRELATED_HITS * min(len(hypothesis), len(reference)):
        return False
    blank, most = (" ", UNRELATED_LETTERS) if are_words else ("", UNRELATED_CHARACTERS)
    return partial_ratio(blank.join(reference), blank.join(hypothesis)) <= 100 * most


def flag_utterance(
    reference: Sequence[str],
    hypothesis: Sequence[str],
    *,
    loop: bool = False,
    truncated: bool = False,
    invalid_text: bool = False,
) -> UtteranceFlags:
    """Flags from normalized tokens, what the transcriber reported (`loop`, `truncated`), and whether its text came with
    lost characters (`invalid_text`).

    `loop` as in `is_loop`, `hallucination` as in `is_unrelated`. `empty`: no words for a reference that has some.

    >>> [flag for flag in UtteranceFlags.__slots__ if getattr(flag_utterance([], ["thanks"]), flag)]
    ['hallucination']
    """
    return UtteranceFlags(
        loop=is_loop(hypothesis, reference, marked=loop),
        hallucination=is_unrelated(hypothesis, reference),
        empty=bool(reference) and not hypothesis,
        truncated=truncated,
        invalid_text=invalid_text,
    )
