"""How text becomes terms for lexical retrieval, the same for documents and queries.

Every language: NFKC (full-width to half-width, ligatures, compatibility forms), lower case.

- English: `\\w+`, Lucene's 33 stop words (`EnglishAnalyzer`, the ones that Anserini uses) dropped, Porter stems of
  words of more than two letters.
- Chinese: the words of jieba that hold a letter or digit; one-character words stay.
- A language that has a Snowball stemmer in PyStemmer (Spanish and 30 others): `\\w+`, stems, no stop words.
- Any other language that writes blanks between words: `\\w+`.

Languages that write no blanks have no words here, apart from Chinese, and are refused.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...errors import UsageError

TOKENS_VERSION = 1
"""Version of these rules; raised when the same text would give other terms."""

ENGLISH_STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    )
)
"""Lucene's default English stop words. Dropped from documents and queries alike."""

UNSEGMENTED = frozenset({"bo", "ja", "km", "lo", "my", "th", "yue"})
"""Languages that write no blanks between words and for which there is no word list here."""

_SNOWBALL = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "porter",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Text to terms for one language.

    `language` is the primary code (`zh` for `zh-CN`), `rules` says in words what is done and belongs into results.
    """

    language: str
    rules: str
    _split: Callable[[str], list[str]]
    _stem: Callable[[list[str]], list[str]] | None
    _stop_words: frozenset[str]

    def __call__(self, text: str) -> list[str]:
        """The terms of `text` in order, with repetitions; [] for a text without letters or digits."""
        words = self._split(folded(text))
        if self._stop_words:
            words = [word for word in words if word not in self._stop_words]
        return self._stem(words) if self._stem is not None else words


def folded(text: str) -> str:
    """`text` with width, compatibility forms and case folded.

    NFKC is applied again after lower-casing, which may leave decomposed characters behind (as for "İ").

    >>> folded("ＮＡＳＡ １５ ﬁn")
    'nasa 15 fin'
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())


def primary_language(language: str) -> str:
    """The first part of a language code, in lower case.

    >>> primary_language("zh-CN"), primary_language("pt_BR")
    ('zh', 'pt')
    """
    return re.split(r"[-_]", language.strip().lower(), maxsplit=1)[0]


def has_words(language: str) -> bool:
    """Whether `tokenizer_for` has rules for `language`.

    >>> has_words("zh"), has_words("es"), has_words("ja")
    (True, True, False)
    """
    primary = primary_language(language)
    return primary.isalpha() and primary not in UNSEGMENTED


def tokenizer_for(language: str) -> Tokenizer:
    """The tokenizer of a language code such as "en", "zh" or "es-MX".

    Raises `UsageError` for a language that writes no blanks between words (but Chinese).

    >>> tokenizer_for("en")("The runners' 15 rules")
    ['runner', '15', 'rule']
    >>> tokenizer_for("fr")("Les cheveux")
    ['le', 'cheveux']
    """
    primary = primary_language(language)
    if not has_words(primary):
        raise UsageError(
            f"lexical retrieval has no word rules for language {language!r}.", hint="Use a dense retriever for it."
        )
    if primary == "zh":
        return Tokenizer(primary, "NFKC, lower case, jieba words", _chinese_words, None, frozenset())
    algorithm = _SNOWBALL.get(primary)
    stop_words = ENGLISH_STOP_WORDS if primary == "en" else frozenset()
    rules = "NFKC, lower case, \\w+"
    rules += ", Lucene stop words" if stop_words else ""
    rules += f", {algorithm} stems" if algorithm else ""
    return Tokenizer(primary, rules, _WORD.findall, _stemmer(algorithm) if algorithm else None, stop_words)


def _stemmer(algorithm: str) -> Callable[[list[str]], list[str]]:
    import Stemmer

    stemmer = Stemmer.Stemmer(algorithm)
    lock = threading.Lock()  # a stemmer keeps state between calls

    def stem(words: list[str]) -> list[str]:
        with lock:
            stems: list[str] = stemmer.stemWords(words)
        # As in Porter's own program and in Lucene, words of one or two letters stay: Snowball makes "" of "s", "u" of
        # "us".
        shortest = 3 if algorithm == "porter" else 1
        return [stem if stem and len(word) >= shortest else word for word, stem in zip(words, stems, strict=True)]

    return stem


def _chinese_words(text: str) -> list[str]:
    words: Sequence[str] = _jieba().lcut(text)
    return [word for word in words if _WORD.search(word)]


@lru_cache(maxsize=1)
def _jieba() -> Any:
    """A segmenter of our own: it shares no user dictionary with other users of jieba and keeps no file.

    jieba prints its progress through a logger of its own, warns while it is compiled, and would read and write a cache
    in the common temporary folder, where another user's file would be trusted. Building the dictionary anew is cheap.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in its source; pkg_resources
        import jieba
    jieba.setLogLevel(logging.WARNING)

    class Segmenter(jieba.Tokenizer):  # type: ignore[misc]
        """jieba's tokenizer without its cache file."""

        initialized: bool

        def initialize(self, dictionary: str | None = None) -> None:
            with self.lock:
                if not self.initialized:
                    self.FREQ, self.total = self.gen_pfdict(self.get_dict_file())
                    self.initialized = True

    segmenter = Segmenter()
    segmenter.initialize()
    return segmenter
