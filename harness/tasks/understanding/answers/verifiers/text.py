"""Words, sentences, paragraphs of a reply, as people count them in Spanish."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from .....text.base import word_list

_WORD = re.compile(r"\d+(?:[.,:/]\d+)+|[^\W_]+(?:[-'’·][^\W_]+)*")
_BEFORE_A_NAME = frozenset(
    word_list(
        "sr sra srta sres dr dra dres d dª dña dn ud uds vd vds prof profa lic ing arq gral cnel cap cmdte tte "
        "sgto mons fr hno hna rvdo excmo excma ilmo ilma sto sta av avda c/ pza núm nº pág págs pag pags p pp art "
        "arts caps vol vols ed eds fig figs tel tfno aprox máx mín ej cf cfr vid vs st mr mrs ms jr fdo dpto izq "
        "dcha ctra"
    )
)
"""Abbreviations that something must follow, so that their full stop never ends a sentence."""
_FIRST_HALF = re.compile(r"\b(?:([A-Z])\1|[ad])\.$")
_SECOND_HALF = re.compile(r"\s?(?:([A-Z])\1|C)\.")
_CAN_END = re.compile(
    r"\b(?:EE\.\s?UU|S\.\s?A|S\.\s?L|a\.\s?C|d\.\s?C|a\.\s?m|p\.\s?m|A\.\s?M|P\.\s?M|etc|RR\.\s?HH|CC\.\s?AA|DD\.\s?HH|ONG)\.$"
)
_P_EJ = re.compile(r"\b[pP]\.\s?(?:ej|e)\.$")
_STOP = re.compile(r"[.?!…]+[\"'”’»)\]*_]*(?=\s|$)|\n")
_LIST_NUMBER = re.compile(r"(?:^|\n)[ \t]*(?:[-*•]\s+)?\(?(?:\d{1,3}|[a-zA-Z])\.$")
_OPENS = re.compile(r"[\s¿¡«“\"'(\[*_#>•–—-]*")


def plain(text: str) -> str:
    r"""NFC, all line ends as line feeds, no-break and other odd spaces as blanks, nothing invisible.

    >>> plain("nin\u0303o\u00a0y\u200b \r\n") == "niño y \n"
    True
    """
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text
    return "".join(
        " " if (category := unicodedata.category(char)) == "Zs" else "\n" if category in ("Zl", "Zp") else char
        for char in text
        if unicodedata.category(char) != "Cf"
    )


def same(text: str) -> str:
    """The form in which texts are compared: NFC, no case, blanks joined.

    >>> same("  ¿QUÉ  tal?\\n") == same("¿que\\u0301 tal?")
    True
    """
    return " ".join(unicodedata.normalize("NFC", plain(text).casefold()).split())


def without_accents(text: str) -> str:
    """Without accents and diaereses; ñ stays ñ.

    >>> without_accents("pingüino, canción, niño")
    'pinguino, cancion, niño'
    """
    marked = unicodedata.normalize("NFD", text.replace("ñ", "\0").replace("Ñ", "\1"))
    bare = "".join(char for char in marked if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", bare).replace("\0", "ñ").replace("\1", "Ñ")


def says_something(text: str) -> bool:
    """Whether there is a letter or a digit."""
    return any(char.isalnum() for char in text)


def words(text: str) -> list[str]:
    """The words: letters and digits, joined by hyphens and apostrophes; a number with its separators is one.

    >>> words("—¿Qué tal, Sr. Núñez-Ruiz? —Bien: 3,5 % (más o menos) a las 10:30…")
    ['Qué', 'tal', 'Sr', 'Núñez-Ruiz', 'Bien', '3,5', 'más', 'o', 'menos', 'a', 'las', '10:30']
    """
    return _WORD.findall(plain(text))


def occurrences(text: str, phrase: str, *, fold_accents: bool = False) -> int:
    """How often a word or phrase is in `text`: whole words, whatever their case.

    >>> occurrences("El año. Los años, AÑO y ano.", "año"), occurrences("Sol, solar y girasol", "sol")
    (2, 1)
    """
    text, phrase = same(text), same(phrase)
    if fold_accents:
        text, phrase = without_accents(text), without_accents(phrase)
    if not phrase:
        return 0
    before = r"(?<![^\W_])" if phrase[0].isalnum() else ""
    after = r"(?![^\W_]|[\u0300-\u036f])" if phrase[-1].isalnum() else ""
    return len(re.findall(f"{before}{re.escape(phrase)}{after}", text))


def sentences(text: str) -> list[str]:
    """The sentences: ended by . ? ! … or a line's end, and with a letter or digit in them.

    A full stop does not end one in a decimal ("3.5"), after an abbreviation ("Sr.", "p. ej.", "EE. UU.") or an initial
    ("J. L. Borges"), before a lower-case letter, or behind the number of a list. "etc.", "EE. UU.", "p. m." and their
    like end one if a capital follows.

    >>> sentences("El Sr. Ruiz ganó 3.5 millones en EE. UU. y volvió… contento. ¿Y tú? ¡Ja!")
    ['El Sr. Ruiz ganó 3.5 millones en EE. UU. y volvió… contento.', '¿Y tú?', '¡Ja!']
    >>> len(sentences("Vive en EE. UU. Trabaja allí. J. L. Borges escribió «Ficciones»."))
    3
    """
    return [sentence for sentence in _pieces(plain(text)) if says_something(sentence)]


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for match in _STOP.finditer(text):
        if match[0] != "\n" and not _ends(text, match):
            continue
        yield text[start : match.end()].strip()
        start = match.end()
    yield text[start:].strip()


def _ends(text: str, stop: re.Match[str]) -> bool:
    opening = _OPENS.match(text, stop.end())
    following = text[opening.end() : opening.end() + 1] if opening else ""
    if following.islower():
        return False
    marks = stop[0].rstrip("\"'”’»)]*_")
    if marks != ".":
        return True
    before = text[max(0, stop.start() - 24) : stop.start() + 1]
    if _FIRST_HALF.search(before) and _SECOND_HALF.match(text, stop.end()):
        return False
    if _LIST_NUMBER.search(before) or _P_EJ.search(before):
        return False
    if _CAN_END.search(before):
        return True
    last = re.search(r"[^\s(«“\"'¿¡]*$", before[:-1])
    token = last[0] if last else ""
    initial = len(token) == 1 and token.isupper()
    return not (initial or token.casefold() in _BEFORE_A_NAME) or not following


def paragraphs(text: str, separator: str = "") -> list[str]:
    """The paragraphs that say something, with blank lines between, or `separator` if one is given.

    >>> len(paragraphs("Uno.\\n\\nDos.\\nSigue dos.\\n \\n***\\n\\nTres.")), len(paragraphs("Uno *** Dos", "***"))
    (3, 2)
    """
    pieces = plain(text).split(separator) if separator else re.split(r"\n[^\S\n]*\n", plain(text))
    return [piece.strip() for piece in pieces if says_something(piece)]


def lines(text: str) -> list[str]:
    """The lines that say something."""
    return [line.strip() for line in plain(text).split("\n") if says_something(line)]


def letters(text: str) -> list[str]:
    """The letters, composed; ª and º are none, for they have no case."""
    return [char for char in plain(text) if char.isalpha() and char not in "ªº"]
