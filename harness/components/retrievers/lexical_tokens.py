r"""How text becomes terms for lexical retrieval; the analyzer `default` treats documents and queries alike.

Every language: NFKC, lower case, then

- English: `\w+` without Lucene's 33 stop words, Porter stems of words of more than two letters;
- Chinese: the words of jieba (`chinese_words`) that hold a letter or digit;
- a language with a Snowball stemmer in PyStemmer: `\w+`, stems, no stop words; any other that writes blanks: `\w+`.

Other languages without blanks between words are refused.

`squtr-compat` is the analyzer of SQuTR's published baselines (arXiv 2602.12783; bm25s, jieba, NLTK), for English and
Chinese: lower case, words of two or more letters or digits, English stop words in both, NLTK's Porter stems in English.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ....errors import UsageError, unknown_name
from .chinese_words import chinese_words, separated_words
from .nltk_stems import nltk_stemmer

Analyzer = Literal["default", "squtr-compat"]
ANALYZERS: tuple[Analyzer, ...] = ("default", "squtr-compat")
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
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "porter",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_WORD = re.compile(r"\w+")
# Text in which lower case changes nothing: most Chinese.
_UNCASED = re.compile("[\x00-@\\[-\x7f\u00b7\u2010-\u2027\u3000-\u9fff\uff00-\uff20\uff3b-\uff40\uff5b-\uff65]*")
# Where ASCII text is cut, and its lower case, in one table.
_ASCII_WORDS = "".join(chr(i).lower() if re.match(r"\w", chr(i)) else " " for i in range(128))
# Characters that NFKC and lower case change one by one, whatever stands beside them, or not at all: most Chinese text.
_PLAIN = re.compile("[\x00-\x7f\u00b7\u2014\u2018-\u201d\u3000-\u3003\u3008-\u3011\u4e00-\u9fff\uff01-\uff5e]*")
_CHANGED = re.compile("[A-Z\u3000\uff01-\uff5e]")


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Text to terms for one language.

    `language` is the primary code (`zh` for `zh-CN`), `rules` says in words what is done and belongs into results.
    `words` cuts a text into words, in order and with repetitions. `terms` gives the term of each word, "" for a word
    that is dropped; a word's term depends on that word alone.
    """

    language: str
    rules: str
    words: Callable[[str], list[str]]
    terms: Callable[[Sequence[str]], list[str]]

    def __call__(self, text: str) -> list[str]:
        """The terms of `text` in order, with repetitions; [] for a text without letters or digits."""
        return [term for term in self.terms(self.words(text)) if term]


def folded(text: str) -> str:
    """`text` with width, compatibility forms (NFKC) and case folded.

    >>> folded("ＮＡＳＡ １５ ﬁn")
    'nasa 15 fin'
    """
    if text.isascii():
        return text.lower()
    if _PLAIN.fullmatch(text):
        for character in set(_CHANGED.findall(text)):
            text = text.replace(character, _folded(character))
        return text
    return _folded(text)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())


def primary_language(language: str) -> str:
    """The first part of a language code, in lower case.

    >>> primary_language("zh-CN"), primary_language("pt_BR")
    ('zh', 'pt')
    """
    return re.split(r"[-_]", language.strip().lower(), maxsplit=1)[0]


def has_words(language: str, *, analyzer: Analyzer = "default") -> bool:
    """Whether `tokenizer_for` has rules for `language`.

    >>> has_words("zh"), has_words("es"), has_words("ja")
    (True, True, False)
    """
    primary = primary_language(language)
    if analyzer == "squtr-compat":
        return primary in ("en", "zh")
    return primary.isalpha() and primary not in UNSEGMENTED


def tokenizer_for(language: str, *, analyzer: Analyzer = "default") -> Tokenizer:
    """The tokenizer of a language code such as "en", "zh" or "es-MX".

    Raises `UsageError` for a language that writes no blanks between words (but Chinese), and with `squtr-compat` for
    any but English and Chinese; `UnknownNameError` for another analyzer; `MissingExtraError` without NLTK for
    `squtr-compat` in English.

    >>> tokenizer_for("en")("The runners' 15 rules")
    ['runner', '15', 'rule']
    >>> tokenizer_for("fr")("Les cheveux")
    ['le', 'cheveux']
    >>> tokenizer_for("zh", analyzer="squtr-compat")("低头思故乡，我有一只猫")
    ['低头', '故乡', '一只']
    """
    if analyzer not in ANALYZERS:
        raise unknown_name("analyzer", analyzer, ANALYZERS)
    if not has_words(language, analyzer=analyzer):
        if analyzer == "squtr-compat":
            raise UsageError(
                f"the analyzer 'squtr-compat' is published for English and Chinese, not for {language!r}.",
                hint="Use the default analyzer.",
            )
        raise UsageError(
            f"lexical retrieval has no word rules for language {language!r}.", hint="Use a dense retriever for it."
        )
    primary = primary_language(language)
    if analyzer == "squtr-compat":
        return _published(primary)
    if primary == "zh":
        return Tokenizer(primary, "NFKC, lower case, jieba words", _folded_chinese_words, _with_letters)
    algorithm = _SNOWBALL.get(primary)
    stop_words = ENGLISH_STOP_WORDS if primary == "en" else frozenset()
    rules = "NFKC, lower case, \\w+"
    rules += ", Lucene stop words" if stop_words else ""
    rules += f", {algorithm} stems" if algorithm else ""
    return Tokenizer(primary, rules, _blank_words, _without(stop_words, _stemmer(algorithm) if algorithm else list))


def _published(primary: str) -> Tokenizer:
    rules = "lower case, \\w\\w+, Lucene stop words"
    if primary == "zh":
        return Tokenizer(primary, f"jieba words, {rules}", _published_chinese_words, _published_terms(list))
    terms = _published_terms(nltk_stemmer())
    return Tokenizer(primary, f"{rules}, NLTK's Porter stems", _published_english_words, terms)


def _published_terms(stem: Callable[[Sequence[str]], list[str]]) -> Callable[[Sequence[str]], list[str]]:
    """The terms of words, where those of one letter or digit are dropped too."""

    def terms(words: Sequence[str]) -> list[str]:
        kept = [word for word in words if len(word) > 1 and word not in ENGLISH_STOP_WORDS]
        term_of = dict(zip(kept, stem(kept), strict=True))
        return [term_of.get(word, "") for word in words]

    return terms


def _published_english_words(text: str) -> list[str]:
    return text.translate(_ASCII_WORDS).split() if text.isascii() else _WORD.findall(text.lower())


def _published_chinese_words(text: str) -> list[str]:
    words = separated_words(text)
    return _WORD.findall(words if _UNCASED.fullmatch(words) else words.lower())


def _folded_chinese_words(text: str) -> list[str]:
    return chinese_words(folded(text))


def _blank_words(text: str) -> list[str]:
    if text.isascii():
        return text.translate(_ASCII_WORDS).split()
    return _WORD.findall(folded(text))


def _with_letters(words: Sequence[str]) -> list[str]:
    return [word if _WORD.search(word) else "" for word in words]


def _without(
    stop_words: frozenset[str], stem: Callable[[Sequence[str]], list[str]]
) -> Callable[[Sequence[str]], list[str]]:
    def terms(words: Sequence[str]) -> list[str]:
        return ["" if word in stop_words else term for word, term in zip(words, stem(words), strict=True)]

    return terms


def _stemmer(algorithm: str) -> Callable[[Sequence[str]], list[str]]:
    import Stemmer

    stemmer = Stemmer.Stemmer(algorithm)
    stemmer.maxCacheSize = 0  # words come once; its own cache of them is slower than stemming
    lock = threading.Lock()  # a stemmer keeps state between calls

    def stem(words: Sequence[str]) -> list[str]:
        with lock:
            stems: list[str] = stemmer.stemWords(words)
        # As in Porter's own program and in Lucene, words of one or two letters stay: Snowball makes "" of "s", "u" of
        # "us".
        shortest = 3 if algorithm == "porter" else 1
        return [stem if stem and len(word) >= shortest else word for word, stem in zip(words, stems, strict=True)]

    return stem
