"""jieba's model of unknown Chinese words (`jieba.finalseg`), faster, with its tables, order of sums and ties."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class _Tables:
    """Log-probabilities: an ideograph begins a word, is in its middle, ends it, or is one by itself (B, M, E, S).

    `pair_begin` and `pair_single` are sums for the first of two ideographs, the step to the second included.
    """

    begin: Mapping[str, float]
    middle: Mapping[str, float]
    end: Mapping[str, float]
    single: Mapping[str, float]
    start: Mapping[str, float]
    step: Mapping[str, Mapping[str, float]]
    pair_begin: Mapping[str, float]
    pair_single: Mapping[str, float]
    cut: Callable[[str], list[str]]


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    with warnings.catch_warnings():
        for about in (SyntaxWarning, DeprecationWarning):  # invalid escapes in its source
            warnings.simplefilter("ignore", about)
        warnings.filterwarnings("ignore", "pkg_resources")
        from jieba import finalseg
    emit, start, step = finalseg.emit_P, finalseg.start_P, finalseg.trans_P
    return _Tables(
        emit["B"],
        emit["M"],
        emit["E"],
        emit["S"],
        start,
        step,
        {ideograph: start["B"] + p + step["B"]["E"] for ideograph, p in emit["B"].items()},
        {ideograph: start["S"] + p + step["S"]["S"] for ideograph, p in emit["S"].items()},
        lambda run: list(finalseg.cut(run)),
    )


def unknown_words(run: str) -> tuple[str, ...]:
    """The words of a run of ideographs (U+4E00 to U+9FD5), as `jieba.finalseg.cut` gives them; () for an empty run.

    >>> unknown_words("变突")
    ('变突',)
    """
    if len(run) < 2:
        return (run,) if run else ()
    tables = _tables()
    try:
        if len(run) == 2:
            apart = tables.pair_single[run[0]] + tables.single[run[1]]
            return (run[0], run[1]) if apart >= tables.pair_begin[run[0]] + tables.end[run[1]] else (run,)
        states = _states(run, tables)
    except KeyError:
        # An ideograph that a table lacks: there jieba adds up huge numbers, whose ties are its own.
        return tuple(tables.cut(run))
    words = []
    start = 0
    for place, state in enumerate(states):
        if state in "ES":
            words.append(run[start : place + 1])
            start = place + 1
    return tuple(words)


def _states(run: str, tables: _Tables) -> str:
    """Viterbi's best path. A word never starts in its middle or with its end."""
    begin, middle, end, single = tables.begin, tables.middle, tables.end, tables.single
    step = tables.step
    b_m, b_e, m_m, m_e = step["B"]["M"], step["B"]["E"], step["M"]["M"], step["M"]["E"]
    e_b, e_s, s_b, s_s = step["E"]["B"], step["E"]["S"], step["S"]["B"], step["S"]["S"]
    nothing = float("-inf")
    b, s = tables.start["B"] + begin[run[0]], tables.start["S"] + single[run[0]]
    m = e = nothing
    b_path, m_path, e_path, s_path = "B", "", "", "S"
    for ideograph in run[1:]:
        by_b, by_m, by_e, by_s = begin[ideograph], middle[ideograph], end[ideograph], single[ideograph]
        # The larger letter wins a tie, as in jieba's max() over pairs of a probability and a state.
        from_e, from_s = e + e_b + by_b, s + s_b + by_b
        new_b, new_b_path = (from_s, s_path + "B") if from_s >= from_e else (from_e, e_path + "B")
        from_b, from_m = b + b_m + by_m, m + m_m + by_m
        new_m, new_m_path = (from_m, m_path + "M") if from_m >= from_b else (from_b, b_path + "M")
        from_b, from_m = b + b_e + by_e, m + m_e + by_e
        new_e, new_e_path = (from_m, m_path + "E") if from_m >= from_b else (from_b, b_path + "E")
        from_e, from_s = e + e_s + by_s, s + s_s + by_s
        new_s, new_s_path = (from_s, s_path + "S") if from_s >= from_e else (from_e, e_path + "S")
        b, m, e, s = new_b, new_m, new_e, new_s
        b_path, m_path, e_path, s_path = new_b_path, new_m_path, new_e_path, new_s_path
    return s_path if s >= e else e_path
