"""Chinese number words to digits: 一百零五 → 105, 三点一四 → 3.14, 二零二四 → 2024, 1.5万 → 15000, 三万二 → 32000."""

from __future__ import annotations

import re
from decimal import Decimal

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2, "幺": 1}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_LARGE = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_POINT = "点點"
_LITERAL = r"\d+(?:\.\d+)?"

# 零下 is "below zero", 幺 is a one only among other digits.
_DIGIT = "零(?!下)|[〇一二三四五六七八九两兩]|幺(?=[零〇一二三四五六七八九幺])|(?<=[零〇一二三四五六七八九])幺"
_TOKEN = re.compile(rf"{_LITERAL}|{_DIGIT}|[十百千万萬亿億{_POINT}]")
_RUN = re.compile(rf"(?:{_LITERAL}|{_DIGIT}|十)(?:{_LITERAL}|{_DIGIT}|[十百千万萬亿億{_POINT}])*")


def digits_for_characters(text: str) -> str:
    """Number words of a Chinese text as digits; everything else unchanged.

    What is no well-formed number is read digit by digit, from the left.

    >>> digits_for_characters("一百零五个，两千零二十四，三点一四，二零二四年，1.5万，三万二，十五")
    '105个，2024，3.14，2024年，15000，32000，15'
    """
    return _RUN.sub(lambda match: _read(match[0], match.string[match.end() : match.end() + 2]), text)


def _read(run: str, after: str) -> str:
    tokens = _TOKEN.findall(run)
    out: list[str] = []
    at = 0
    while at < len(tokens):
        text, at = _number(tokens, at, after)
        out.append(text)
    return "".join(out)


def _number(tokens: list[str], at: int, after: str) -> tuple[str, int]:
    part = tokens[at]
    following = _at(tokens, at + 1)
    if part == "十" or (following in _UNITS | _LARGE and _value(part) > 0):
        amount, end = _amount(tokens, at)
        text = _plain(amount)
    elif part in _DIGITS:
        end = at
        while _at(tokens, end) in _DIGITS and not (end > at and _at(tokens, end + 1) in _UNITS | _LARGE):
            end += 1
        text = "".join(str(_DIGITS[t]) for t in tokens[at:end])
    elif part[0].isdigit():
        text, end = part, at + 1
    else:
        return part, at + 1
    fraction, fraction_end = _fraction(tokens, end, after)
    if not fraction or "." in text:
        return text, end
    scale = _LARGE.get(_at(tokens, fraction_end))
    if scale is None:
        return f"{text}.{fraction}", fraction_end
    return _plain(Decimal(f"{text}.{fraction}") * scale), fraction_end + 1


def _at(tokens: list[str], index: int) -> str:
    return tokens[index] if index < len(tokens) else ""


def _value(part: str) -> Decimal:
    return Decimal(_DIGITS[part]) if part in _DIGITS else Decimal(part) if part[0].isdigit() else Decimal(0)


def _plain(value: Decimal) -> str:
    return str(int(value)) if value == value.to_integral_value() else f"{value.normalize():f}"


def _amount(tokens: list[str], at: int) -> tuple[Decimal, int]:
    """A number with units, read as far as it is well formed (units descend)."""
    total, section = Decimal(0), Decimal(0)
    unit_limit, large_limit, last = 10**4, 10**12, 1
    gap = False
    while at < len(tokens):
        part, following = tokens[at], _at(tokens, at + 1)
        is_digit = part in _DIGITS or part[0].isdigit()
        value = _value(part)
        if part == "十" and unit_limit > 10:
            section += 10
            unit_limit = last = 10
        elif part in _LARGE and section > 0 and _LARGE[part] < large_limit:
            total = (total + section) * _LARGE[part] if _LARGE[part] == 10**8 else total + section * _LARGE[part]
            large_limit = last = _LARGE[part]
            section, unit_limit = Decimal(0), 10**4
        elif part in _LARGE and section == 0 and last == 10**4 and _LARGE[part] == 10**8:
            # 一万亿: ten thousand times a hundred million.
            total, large_limit, last = total * 10**8, 10**8, 10**8
        elif is_digit and value == 0 and following in _DIGITS and _DIGITS[following] and last > 1:
            gap = True
            at += 1
            continue
        elif is_digit and value > 0 and following in _UNITS and _UNITS[following] < unit_limit:
            section += value * _UNITS[following]
            unit_limit = last = _UNITS[following]
            at += 1
        elif is_digit and value > 0 and following in _LARGE and (last == 1 or unit_limit <= 10 or gap or last >= 10**4):
            section += value
        elif is_digit and value > 0 and last > 1 and following not in _UNITS and following not in _DIGITS:
            # 一百五 is 150 and 三万二 is 32000, but 一百零五 is 105 and 二十五 is 25.
            short = value < 10 and last >= 100 and not gap
            section += value * (last // 10) if short else value
            return total + section, at + 1
        else:
            break
        gap = False
        at += 1
    return total + section, at - (1 if gap else 0)


def _fraction(tokens: list[str], at: int, after: str) -> tuple[str, int]:
    """The decimals after a 点 at `at` ("" if it is the 点 of a clock): spoken digits, no tens."""
    if _at(tokens, at) not in _POINT or at >= len(tokens):
        return "", at
    end = at + 1
    while _at(tokens, end) in _DIGITS:
        end += 1
    digits = "".join(str(_DIGITS[t]) for t in tokens[at + 1 : end])
    if not digits or _at(tokens, end) in _UNITS or _at(tokens, end)[:1].isdigit():
        return "", at
    if end == len(tokens) and (after[:1] == "刻" or (after[:1] == "分" and after != "分之" and digits[0] == "0")):
        return "", at
    return digits, end
