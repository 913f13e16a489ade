"""Traditional to simplified Chinese, by OpenCC's `t2s` and a few rules of our own (看著, 妳, 牠, 甚么)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

from ...errors import unknown_name

SCRIPTS = ("simplified",)
FOLDING_VERSION = "1"
"""Raised whenever our own rules would give another text for the same input."""
_CACHE_SIZE = 65_536

# 著 stays in the words in which it is read zhù, and in book titles' "X 著《…》"; elsewhere it is the particle 着.
_PARTICLE = re.compile("(?<![显顯名原土编編专專卓昭巨论論译譯遗遺合拙所])著(?![名作称稱述书書者录錄《])")
_VARIANTS = (("甚么", "什么"), ("甚麼", "什么"), ("妳", "你"), ("牠", "它"), ("揹", "背"))


class _Converter(Protocol):
    def convert(self, text: str) -> str: ...


def fold_script(text: str, script: str = "simplified") -> str:
    """`text` in simplified characters; simplified text, other languages and "" come back unchanged.

    Raises `UnknownNameError` for another `script`.

    >>> fold_script("臺灣的頭髮發展，看著乾隆乾杯", "simplified")
    '台湾的头发发展，看着乾隆干杯'
    >>> fold_script("著名作家的著作")
    '著名作家的著作'
    """
    if script not in SCRIPTS:
        raise unknown_name("script", script, SCRIPTS)
    # Most texts in other languages never reach the tables.
    return text if text.isascii() else _simplified(text)


def folding_versions() -> dict[str, str]:
    """What decides the result of `fold_script`: the versions of OpenCC and of our own rules."""
    from importlib.metadata import version

    return {"opencc": version("opencc"), "rules": FOLDING_VERSION}


@lru_cache(maxsize=_CACHE_SIZE)
def _simplified(text: str) -> str:
    folded = _converter().convert(text)
    for variant, plain in _VARIANTS:
        folded = folded.replace(variant, plain)
    return _PARTICLE.sub("着", folded)


@lru_cache(maxsize=1)
def _converter() -> _Converter:
    from opencc import OpenCC

    converter: _Converter = OpenCC("t2s")
    return converter
