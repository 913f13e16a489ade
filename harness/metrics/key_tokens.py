"""Which errors hit names and numbers: the words that a search depends on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .alignment import AlignmentOp

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.?!…]\s*[\"'”’)\]]*\s*$|^\W*$")


def is_number(token: str) -> bool:
    """Whether a normalized token holds a digit; the default normalizer writes number words with digits.

    >>> is_number("21st"), is_number("twenty")
    (True, False)
    """
    return any(char.isdigit() for char in token)


def capitalized_words(text: str) -> frozenset[str]:
    """Words of a cased text that begin with a capital inside a sentence, in lower case: names, mostly.

    The first word of a sentence tells nothing and is left out, unless it has a capital after its first letter (NASA). A
    text without lower-case letters, and scripts without case, give nothing.

    >>> sorted(capitalized_words("Who is Marie Curie? NASA knows. Is it true?"))
    ['curie', 'marie', 'nasa']
    """
    if not any(char.islower() for char in text):
        return frozenset()
    names = set()
    for match in _WORD.finditer(text):
        word = match[0]
        begins = bool(_SENTENCE_END.search(text[: match.start()]))
        if word[0].isupper() and word.lower() != "i" and (not begins or any(c.isupper() for c in word[1:])):
            names.add(word.lower())
    return frozenset(names)


def key_token_errors(steps: Iterable[AlignmentOp], names: Iterable[str] = ()) -> tuple[int, int]:
    """(errors in numbers and `names`, errors in other tokens) of one aligned utterance.

    A wrong or missing reference token is a key error if it is a number or one of `names` (lower case, as the normalizer
    writes them). An inserted token is one if it is a number.

    >>> from squtr.harness.metrics.alignment import align
    >>> key_token_errors(align("who was curie in 1911".split(), "who is query in 1911".split()), {"curie"})
    (1, 1)
    """
    known = set(names)
    key = other = 0
    for step in steps:
        if step.kind == "equal":
            continue
        token = step.reference or step.hypothesis
        if is_number(token) or step.reference in known:
            key += 1
        else:
            other += 1
    return key, other
