"""NLTK's Porter stems, through PyStemmer (30 times as fast) where none of NLTK's departures from Porter can apply."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence

from ....errors import missing_extra

_SAME_LETTERS = re.compile(r"[a-z]{3,}|[0-9]{4,}")
_DEPARTS = re.compile(
    r"y|ie[ds]$|bli|logi|alli|fulli|([chjkqvwx])\1(?:ed|ing)"
    r"|^(?:news|innings?|outings?|cannings?|howe|proceed|exceed|succeed)$"
)
_SHORTEST = 4


def nltk_stemmer() -> Callable[[Sequence[str]], list[str]]:
    """A function from words in lower case to the stems of `nltk.stem.PorterStemmer().stem`.

    Raises `MissingExtraError` without NLTK.

    >>> nltk_stemmer()(["relational", "keys", "dying", "news"])
    ['relat', 'key', 'die', 'news']
    """
    import Stemmer

    try:
        exact: Callable[[str], str] = importlib.import_module("nltk.stem.porter").PorterStemmer().stem
    except ImportError as error:
        raise missing_extra(error.name or "nltk", "compat") from error

    def stems(words: Sequence[str]) -> list[str]:
        stemmer = Stemmer.Stemmer("porter")  # of its own for each call: it keeps state
        stemmer.maxCacheSize = 0
        quick: list[str] = stemmer.stemWords(words)
        return [
            stem
            if len(stem) >= _SHORTEST and _SAME_LETTERS.fullmatch(word) and not _DEPARTS.search(word)
            else exact(word)
            for word, stem in zip(words, quick, strict=True)
        ]

    return stems
