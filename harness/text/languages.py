"""Language codes: ISO 639-1 and a few of ISO 639-3, with or without a region ("zh", "zh-TW", "en_GB", "yue")."""

from __future__ import annotations

from functools import lru_cache

from ...errors import unknown_name

_ISO_639_1 = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka "
    "kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
_ISO_639_3 = "ast ceb ckb cmn fil gsw hak haw hsb kab lzh mai mni nan scn sco sat wuu yue"
KNOWN_LANGUAGES = frozenset(f"{_ISO_639_1} {_ISO_639_3}".split())

CHINESE = frozenset({"zh", "cmn", "yue", "wuu", "nan", "hak", "lzh"})
UNSPACED = CHINESE | {"ja", "th", "lo", "km", "my", "bo", "dz"}
"""Languages written without spaces between words (Tibetan and Dzongkha mark syllables only)."""


def primary_language(code: str) -> str:
    """The language of `code` without its region, in lower case. Raises `UnknownNameError`.

    >>> primary_language("zh-Hant-TW"), primary_language("en_GB")
    ('zh', 'en')
    """
    primary = code.replace("_", "-").split("-")[0].lower()
    if primary not in KNOWN_LANGUAGES:
        raise unknown_name("language", code, KNOWN_LANGUAGES)
    return primary


@lru_cache(maxsize=256)
def is_written_without_spaces(code: str) -> bool:
    """Whether words are not separated by blanks, so that they cannot be counted without a segmenter.

    >>> is_written_without_spaces("th"), is_written_without_spaces("ko")
    (True, False)
    """
    return primary_language(code) in UNSPACED
