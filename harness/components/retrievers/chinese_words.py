"""Chinese words as jieba cuts them, most of the work done by rjieba (the same dictionary, in Rust).

Ideographs that no word covers are cut by `unknown_words`. Runs of ASCII characters joined by signs ("24-10"), and
ideographs beyond U+9FD5, which rjieba treats otherwise, are replaced by as many characters that begin no word of the
dictionary (so that sums are rounded alike), and put back as jieba's own pieces; where a run could be part of a word
with ASCII ("4s店"), jieba itself cuts the text. Only readings that are equally likely to the last bit may still differ.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from .unknown_words import unknown_words

_SIGNS = r"+#&._%\-"
# jieba's block of ideographs and ASCII ends at U+9FD5, rjieba's goes on into the extensions. Surrogates are no UTF-8.
# NUL separates words here, U+E001 stands for a NUL of the text, and U+E000 for all of these.
_ALONE = "\x00\u3400-\u4dbf\u9fd6-\u9fff\ue000\ue001\ud800-\udfff\uf900-\ufaff\U00020000-\U0003ffff"
BETWEEN = "\x00"
_NUL, _SIGN, _LETTER = "\ue001", "\ue000", "q"
_LONGEST_MIXED = 8
_CACHED_RUNS = 1 << 18
_DIFFERS = re.compile(f"[{_SIGNS}{_ALONE}]")
_ALONE_CHARACTER = re.compile(f"[{_ALONE}]")
_RUN = re.compile(f"([a-zA-Z0-9{_SIGNS}]+)")
_HAS_SIGN = re.compile(f"[{_SIGNS}]")
_STAND_IN = re.compile(f"{BETWEEN}{_LETTER}+{BETWEEN}")
# What jieba makes of a run: letters and digits with decimals and a per cent sign, and the signs between those.
_PIECE = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
# Two or more words in a row that are single ideographs of jieba's block.
_SINGLES = re.compile("\x00[\u4e00-\u9fd5](?:\x00[\u4e00-\u9fd5])+(?=\x00)")


def chinese_words(text: str) -> list[str]:
    """The words of `text` in order, as `jieba.lcut` gives them, marks and blanks included; [] for an empty text.

    >>> chinese_words("他以24-10获胜")
    ['他', '以', '24', '-', '10', '获胜']
    """
    if BETWEEN in text:  # hardly ever
        return list(_jieba().cut(text))
    return separated_words(text).split(BETWEEN) if text else []


def separated_words(text: str) -> str:
    """As `chinese_words`, in one string with a NUL between words; a NUL of the text is U+E001."""
    if not _DIFFERS.search(text):
        return _separated(text)[1:-1]
    parts = _RUN.split(text)
    runs: list[str] = []
    for i in range(1, len(parts), 2):
        if _is_replaced(parts[i]):
            runs.append(parts[i])
            parts[i] = _LETTER * len(parts[i])
    if runs and _crosses(text):
        return _by_jieba(text)
    words = _separated(_ALONE_CHARACTER.sub(_SIGN, "".join(parts) if runs else text))
    if runs:
        rest = _STAND_IN.split(words)
        if len(rest) != len(runs) + 1:  # a word of the dictionary took the rest of a run and left the letter over
            return _by_jieba(text)
        restored = [rest[0]]
        for run, following in zip(runs, rest[1:], strict=True):
            restored += (BETWEEN, *(piece + BETWEEN for piece in pieces(run)), following)
        words = "".join(restored)
    if _SIGN in words:
        alone = iter(_ALONE_CHARACTER.findall(text.replace("\x00", _NUL)))
        words = re.sub(_SIGN, lambda _: next(alone), words)
    return words[1:-1]


def pieces(run: str) -> list[str]:
    """What jieba makes of a run of ASCII letters, digits and joining signs that is no word of its dictionary.

    >>> pieces("mpeg-2"), pieces("3.5%"), pieces("--")
    (['mpeg', '-', '2'], ['3.5%'], ['--'])
    """
    return [piece for piece in _PIECE.split(run) if piece]


def _by_jieba(text: str) -> str:
    return BETWEEN.join(_jieba().cut(text.replace("\x00", _NUL)))


def _separated(text: str) -> str:
    """jieba's words of a text without joining signs, with a NUL before, between and after them."""
    words = BETWEEN.join(_rjieba().cut(text, False))
    return _SINGLES.sub(_with_unknown_words, f"{BETWEEN}{words}{BETWEEN}")


def _with_unknown_words(singles: re.Match[str]) -> str:
    return _joined(singles[0]) or _joined_by_neighbors(singles)


@lru_cache(maxsize=_CACHED_RUNS)
def _joined(separated: str) -> str:
    """Single ideographs with their unknown words joined, "" where that depends on what stands beside them."""
    run = separated.replace(BETWEEN, "")
    return "" if _rjieba().has_word(run) else _with_words(unknown_words(run))


def _joined_by_neighbors(singles: re.Match[str]) -> str:
    # jieba leaves a run alone that is a word of the dictionary after all, unless letters or digits are beside it.
    words, start, end = singles.string, singles.start(), singles.end()
    before, after = words[words.rfind(BETWEEN, 0, start) + 1 : start], words[end + 1 : words.find(BETWEEN, end + 1)]
    if any(word.isascii() and word.isalnum() for word in (before, after)):
        return _with_words(unknown_words(singles[0].replace(BETWEEN, "")))
    return singles[0]


def _with_words(words: Sequence[str]) -> str:
    return "".join(BETWEEN + word for word in words)


def _is_replaced(run: str) -> bool:
    # A run of the stand-in's letter counts too: whatever consists of it afterwards then stands for a run.
    return bool(_HAS_SIGN.search(run)) or not run.strip(_LETTER)


def _crosses(text: str) -> bool:
    """Whether a word of the dictionary may lie across the edge of, or within, a run that is to be replaced."""
    words = _mixed_words()
    if not words.search(text):
        return False
    for run in _RUN.finditer(text):
        if _is_replaced(run[0]):
            for start in range(max(0, run.start() - _LONGEST_MIXED), run.end()):
                found = words.match(text, start)
                if found and found.end() > run.start():
                    return True
    return False


@lru_cache(maxsize=1)
def _rjieba() -> Any:
    """An instance of our own: words that others add to the shared one change nothing here."""
    import rjieba

    return rjieba.Jieba()


@lru_cache(maxsize=1)
def _mixed_words() -> re.Pattern[str]:
    """Matches the 71 words of jieba's dictionary that hold ASCII characters, the longest at a place first."""
    found = importlib.util.find_spec("jieba")
    locations = found.submodule_search_locations if found else None
    dictionary = (Path((locations or [""])[0]) / "dict.txt").read_bytes()
    words = [word.decode("utf-8") for word in re.findall(rb"(?m)^([^ \r\n]*[!-~][^ \r\n]*) \d", dictionary)]
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


@lru_cache(maxsize=1)
def _jieba() -> Any:
    """A segmenter of our own: no shared user dictionary, no cache file in the common temporary folder."""
    with warnings.catch_warnings():
        for about in (SyntaxWarning, DeprecationWarning):  # invalid escapes in its source
            warnings.simplefilter("ignore", about)
        warnings.filterwarnings("ignore", "pkg_resources")
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
