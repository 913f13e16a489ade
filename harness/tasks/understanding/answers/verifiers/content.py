"""Verifiers of what a reply says: keywords, forbidden words, letters, words, sentences, paragraphs, language."""

from __future__ import annotations

import importlib
import unicodedata
from functools import lru_cache
from typing import Any

from ......errors import missing_extra, unknown_name
from .....text.base import word_list
from . import text as of
from .arguments import Count, FirstWord, KeywordCount, Keywords, Language, Letter, OneOf, Paragraphs


def keywords(reply: str, arguments: Keywords) -> bool:
    """All keywords are there, as whole words."""
    return all(of.occurrences(reply, word, fold_accents=arguments.fold_accents) for word in arguments.keywords)


def forbidden_words(reply: str, arguments: Keywords) -> bool:
    """None of the words is there."""
    return not any(of.occurrences(reply, word, fold_accents=arguments.fold_accents) for word in arguments.keywords)


def keyword_frequency(reply: str, arguments: KeywordCount) -> bool:
    """A word is there so many times."""
    return arguments.holds(of.occurrences(reply, arguments.keyword, fold_accents=arguments.fold_accents))


def letter_frequency(reply: str, arguments: Letter) -> bool:
    """A letter is there so many times, whatever its case."""
    (wanted,) = of.letters(arguments.letter.casefold())
    found = [char for char in of.letters(reply.casefold()) if char == wanted or _base(char) == wanted]
    return arguments.holds(len(found))


def _base(char: str) -> str:
    """The letter without its accent, ñ being a letter of its own."""
    return char if char == "ñ" else unicodedata.normalize("NFD", char)[0]


def words(reply: str, arguments: Count) -> bool:
    """There are so many words."""
    return arguments.holds(len(of.words(reply)))


def sentences(reply: str, arguments: Count) -> bool:
    """There are so many sentences."""
    return arguments.holds(len(of.sentences(reply)))


def lines(reply: str, arguments: Count) -> bool:
    """There are so many lines that say something."""
    return arguments.holds(len(of.lines(reply)))


def paragraphs(reply: str, arguments: Paragraphs) -> bool:
    """There are so many paragraphs."""
    return arguments.holds(len(of.paragraphs(reply, arguments.separator)))


def paragraph_first_word(reply: str, arguments: FirstWord) -> bool:
    """A paragraph begins with a word."""
    found = of.paragraphs(reply)
    if len(found) < arguments.paragraph or arguments.count not in (None, len(found)):
        return False
    beginning = of.words(found[arguments.paragraph - 1])
    wanted = of.words(arguments.first_word)
    return [of.same(word) for word in beginning[: len(wanted)]] == [of.same(word) for word in wanted]


def one_of(reply: str, arguments: OneOf) -> bool:
    """The reply is one of the texts, but for case, punctuation around it and emphasis."""
    if arguments.contained:
        return any(of.occurrences(reply, option) for option in arguments.options)
    return _trimmed(reply) in [_trimmed(option) for option in arguments.options]


def _trimmed(text: str) -> str:
    return of.same(text).strip(" .,;:!?¡¿\"'«»“”‘’*_`()[]")


# Measured on the paragraphs of XQuAD (240 in each of es, en, zh): all are identified, and all but one of 1,923 Spanish
# and English sentences of 16 words or more.
_IDENTIFIED = word_list(
    "ar bg bn ca cs da de el en es eu fa fi fr gl he hi hr hu id it ja ko nl no pl pt ro ru sk sl sr sv sw ta "
    "te th tr uk ur vi zh"
)
_SENTENCE_WORDS = 16


@lru_cache(maxsize=1)
def _identifier() -> Any:
    try:
        langid = importlib.import_module("py3langid.langid")  # It has no types.
    except ModuleNotFoundError as error:
        raise missing_extra("py3langid", "questions") from error
    identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    identifier.set_languages(list(_IDENTIFIED))
    return identifier


def language(reply: str, arguments: Language) -> bool:
    """The whole is in a language, and so is every sentence of 16 words or more (py3langid, among 42 languages).

    One or two words often cannot be identified, and then fail. Raises `UnknownNameError` for a language that is not
    among those that are told apart.
    """
    if arguments.language not in _IDENTIFIED:
        raise unknown_name("language of replies", arguments.language, _IDENTIFIED)
    long = [sentence for sentence in of.sentences(reply) if len(of.words(sentence)) >= _SENTENCE_WORDS]
    return all(_language_of(piece) == arguments.language for piece in [of.plain(reply), *long])


def _language_of(text: str) -> str:
    found, score = _identifier().classify(text)
    # A score at the floor means that the text holds nothing that the model knows.
    return str(found) if score > -1e30 else ""
