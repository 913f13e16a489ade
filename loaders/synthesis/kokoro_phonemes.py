"""Text to the phonemes on which Kokoro was trained.

English, Spanish, French, Hindi, Italian and Portuguese come from espeak-ng, whose IPA is folded to the symbols of
`misaki`'s espeak path (diphthongs and affricates are one symbol each); Chinese from `misaki` (pinyin to IPA with arrows
for the tones), jieba and pypinyin.
"""

from __future__ import annotations

import functools
import logging
import re
import unicodedata
from collections.abc import Callable, Sequence

from ...errors import SynthesisError, missing_extra
from .espeak_library import espeak_phonemes
from .kokoro_vocabulary import MAX_TOKENS, VOCABULARY
from .spoken_chinese import units_in_chinese
from .written import spoken_form

EXTRA = "kokoro"

_PAUSES = ';:,.!?—…"()“”'
_PUNCTUATION = re.compile(
    # A full stop, comma or colon is punctuation only at the end of a word; after a single letter a stop abbreviates.
    r"""(?:(?<!\b\w)\.(?=\s|$|["”)])|\.$|[,:](?=\s|$|["”)])|[;!?—…"()“”«»¡¿])+"""
)

_SHARED = (
    ("a^ɪ", "I"), ("a^ʊ", "W"), ("e^ɪ", "A"), ("ɔ^ɪ", "Y"), ("d^ʒ", "ʤ"), ("t^ʃ", "ʧ"),
)  # fmt: skip
_ENGLISH = (
    *_SHARED, ("ʔˌn\u0329", "ʔn"), ("ʔn\u0329", "ʔn"), ("ə^l", "ᵊl"), ("ʲo", "jo"), ("ʲə", "jə"), ("ʲ", ""),
    ("e^ə", "ɛː"), ("ə^ʊ", "Q"), ("o^ʊ", "O"), ("e", "A"), ("ɚɹ", "əɹ"), ("ɚ", "əɹ"), ("r", "ɹ"), ("x", "k"),
    ("ç", "k"), ("ɐ", "ə"), ("ɬ", "l"), ("\u0303", ""),
)  # fmt: skip
_AMERICAN = (("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("ː", ""))
_BRITISH = (("iə", "ɪə"),)
_ESPEAK = (
    *_SHARED, ("d^z", "ʣ"), ("t^s", "ʦ"), ("s^s", "S"), ("o^ʊ", "O"), ("ə^ʊ", "Q"), ("-", ""),
)  # fmt: skip

ESPEAK_VOICES = {"es": "es", "fr": "fr", "hi": "hi", "it": "it", "pt": "pt-br"}

_LANGUAGE_SWITCH = re.compile(r"\([a-z]{2,3}(?:-[a-z0-9]+)*\)")
_LATIN = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
_HAN = "\u3400-\u9fff\U00020000-\U000323af"

_READINGS = {
    word: tuple(reading.split())
    for word, reading in {
        "还书": "huan2 shu1", "按时还": "an4 shi2 huan2", "先还": "xian1 huan2", "该还": "gai1 huan2",
        "要还": "yao4 huan2", "还钱": "huan2 qian2", "热得": "re4 de5", "好得": "hao3 de5", "进得": "jin4 de5",
        "得按": "dei3 an4", "都得": "dou1 dei3", "人弹": "ren2 tan2",
        "着的大火": "zhao2 de5 da4 huo3",
        "着火": "zhao2 huo3", "一月份": "yi1 yue4 fen4", "大夫": "dai4 fu5", "点心": "dian3 xin1",
        "还是": "hai2 shi4", "还有": "hai2 you3",
    }.items()
}  # fmt: skip
"""Words in which jieba's cut and pypinyin's most frequent reading give a wrong one; longer words win."""


def phonemes(text: str, language: str, *, british: bool = False) -> str:
    """`text` in Kokoro's symbols, "" if there are none. Raises `SynthesisError` for a character without a reading."""
    spoken = spoken_form(text, language)
    if language == "zh":
        out = _chinese(spoken)
    elif language in ESPEAK_VOICES:
        out = _by_clause(spoken.replace("।", "."), functools.partial(espeak_read, language=language))
    else:
        out = _by_clause(spoken, functools.partial(english_phonemes, british=british))
    out = " ".join(out.split())
    unknown = sorted({symbol for symbol in out if symbol not in VOCABULARY and symbol.isalpha()})
    if unknown:
        raise SynthesisError(
            f"Kokoro has no symbol for {''.join(unknown)!r} in {text!r}.", hint="Spell that word as it is spoken."
        )
    known = "".join(symbol for symbol in out if symbol in VOCABULARY)
    return known if any(symbol.isalpha() for symbol in known) else ""


def tokens(symbols: str) -> list[int]:
    """The numbers of `symbols`, all of which must be in `VOCABULARY`.

    >>> tokens("a b")
    [43, 16, 44]
    """
    return [VOCABULARY[symbol] for symbol in symbols]


def split_phonemes(symbols: str, limit: int = MAX_TOKENS) -> list[str]:
    """`symbols` in pieces of at most `limit`, cut at a sentence end, else clause end, else blank, else anywhere.

    >>> split_phonemes("ab, cd. ef", 8)
    ['ab, cd.', 'ef']
    """
    pieces = []
    rest = symbols.strip()
    while len(rest) > limit:
        window = rest[: limit + 1]
        cut = 0
        for ends in (".!?…", ";:,—", ""):
            # The cut falls on a blank; before it stands one of `ends`, or anything.
            cut = max(
                (i for i in range(1, len(window)) if window[i] == " " and (not ends or window[i - 1] in ends)),
                default=0,
            )
            if cut:
                break
        cut = cut or limit
        pieces.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    return [*pieces, rest] if rest else pieces


def _fold(ipa: str, table: Sequence[tuple[str, str]]) -> str:
    for old, new in table:
        ipa = ipa.replace(old, new)
    return ipa


def english_phonemes(text: str, *, british: bool = False) -> str:
    ipa = _LANGUAGE_SWITCH.sub("", espeak_phonemes(text, "en" if british else "en-us", extra=EXTRA))
    # espeak-ng glues the hundreds to their count.
    ipa = re.sub(r"(?<=\w)(?=hˈʌndɹ)", " ", ipa)
    ipa = _fold(ipa, _ENGLISH)
    ipa = re.sub("(\\S)\u0329", r"ᵊ\1", ipa)
    ipa = _fold(ipa, _BRITISH if british else _AMERICAN)
    ipa = _fold(ipa, (("o", "ɔ"), ("ɾ", "T"), ("ʔ", "t")))
    return ipa.replace("^", "")


def espeak_read(text: str, *, language: str) -> str:
    """The languages that Kokoro was trained on with espeak-ng's phonemes alone."""
    ipa = _LANGUAGE_SWITCH.sub("", espeak_phonemes(text, ESPEAK_VOICES[language], extra=EXTRA))
    # Nasal vowels are two symbols: the vowel and the tilde.
    ipa = re.sub("[ãẽĩõũ]", lambda m: unicodedata.normalize("NFD", m[0]), ipa)
    return _fold(ipa, _ESPEAK).replace("^", "")


def _by_clause(text: str, speak: Callable[[str], str]) -> str:
    """The clauses of `text` through `speak`, joined by the punctuation that stood between them."""
    out, start = "", 0
    for match in _PUNCTUATION.finditer(text):
        out += speak(text[start : match.start()]) if text[start : match.start()].strip() else ""
        marks = match[0].replace("«", "“").replace("»", "”")
        out += "".join(mark for mark in marks if mark in _PAUSES)
        start = match.end()
        if start < len(text) and text[start].isspace():
            out += " "
    return out + (speak(text[start:]) if text[start:].strip() else "")


def _chinese(text: str) -> str:
    try:
        from misaki.zh import ZHG2P
        from misaki.zh_normalization import TextNormalizer
    except ImportError as error:
        raise missing_extra(error.name or "misaki", EXTRA) from error
    # misaki's normalizer reads the letters of units inside words (iPhone: iP小时one), so it never gets Latin letters.
    text = re.sub(rf"(?<=[{_LATIN}])-(?=\d)", " ", units_in_chinese(text))
    out = []
    for piece in re.findall(rf"[{_LATIN}][{_LATIN}'’ -]*|[^{_LATIN}]+", text):
        if re.match(rf"[{_LATIN}]", piece):
            out.append(f" {english_phonemes(piece)} ")
            continue
        normalized = ZHG2P.map_punctuation("".join(TextNormalizer().normalize(piece)).replace("〇", "零"))
        for run in re.findall(rf"[{_HAN}]+|[^{_HAN}]+", normalized):
            is_han = re.match(rf"[{_HAN}]", run)
            out.append(" ".join(_word(word, ZHG2P.py2ipa) for word in _words(run)) if is_han else run)
    return "".join(out).replace("\u032f", "")


def _words(run: str) -> list[str]:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    pattern = "|".join(re.escape(word) for word in sorted(_READINGS, key=len, reverse=True))
    return [
        word
        for part in re.split(f"({pattern})", run)
        if part
        for word in ([part] if part in _READINGS else jieba.lcut(part))
    ]


def _word(word: str, to_ipa: Callable[[str], str]) -> str:
    from pypinyin import Style, lazy_pinyin

    readings = _READINGS.get(word) or lazy_pinyin(word, style=Style.TONE3, neutral_tone_with_five=True)
    try:
        return "".join(to_ipa(reading) for reading in readings)
    except ValueError as error:
        raise SynthesisError(
            f"a character of {word!r} has no known reading.", hint="Write it with another one."
        ) from error
