"""Chinese: numbers, percentages, times, money and units in one form each; blanks and scripts folded.

The form is digits: 一百倍 = 100倍, 百分之五十 = 50%, 三点一四 = 3.14, also in ordinary words (一起).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .base import fold, strip_punctuation
from .chinese_numbers import digits_for_characters

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

_NUMBER = r"\d+(?:\.\d+)?"
_HAN = (
    r"\u3005\u3007\u3041-\u30ff\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_BLANK_BESIDE_HAN = re.compile(rf"(?<=[{_HAN}%‰]) +| +(?=[{_HAN}])")
_CURRENCIES = {"¥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
_UNITS = {"km": "公里", "cm": "厘米", "mm": "毫米", "m": "米", "kg": "公斤", "mg": "毫克", "g": "克", "ml": "毫升"}
# 儿 is a suffix behind a character, but not in words for children: 女儿, 婴儿, 儿童, 托儿所.
_ERHUA = re.compile(
    rf"(?<=[{_HAN}])(?<![女男婴嬰幼孤胎健宠寵少小育血生产產患弃棄侄姪孙孫娇嬌])[儿兒](?![童子女科歌媳时時戏戲孙孫园園所郎])"
)
_INTERJECTIONS = re.compile(r"哎[呀哟呦喲]|唉(?![声聲])|[呃嗯唔啊噢哦喔诶誒欸哎]")


def _date(match: re.Match[str]) -> str:
    year, month, day = match[1], int(match[3]), int(match[4])
    return f"{year}年{month}月{day}日" if 1 <= month <= 12 and 1 <= day <= 31 else match[0]


def _clock(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), match[2]
    if hour > 24 or int(minute) > 59:
        return match[0]
    return f"{hour}点" if minute == "00" else f"{hour}点{minute}分"


_BEFORE: tuple[Rule, ...] = (
    (re.compile(rf"([¥$€£]) ?({_NUMBER})([万萬亿億]*)"), lambda m: f"{m[2]}{m[3]}{_CURRENCIES[m[1]]}"),
    (re.compile(r"(?<=\d)([¥$€£])"), lambda m: _CURRENCIES[m[1]]),
    (re.compile(r"(?<!\d)(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)"), _date),
    (re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?![\d:])"), _clock),
    (re.compile(rf"(?<![\w.])[-\u2212](?={_NUMBER}(?:度|摄氏度|°))"), "零下"),
    (re.compile(r"(?<![\w.])[-\u2212](?=\d)"), "负"),
    (re.compile(r"(?<=\d) ?°c(?![a-z])"), "摄氏度"),
    (re.compile(r"(?<=\d) ?°f(?![a-z])"), "华氏度"),
    (re.compile(r"(?<=\d) ?°"), "度"),
    (re.compile(rf"(?<=\d) ?({'|'.join(_UNITS)})(?![a-z/])"), lambda m: _UNITS[m[1]]),
    (re.compile(r"百分之?百"), "百分之100"),
)
_AFTER: tuple[Rule, ...] = (
    (re.compile(rf"百分之({_NUMBER})"), r"\1%"),
    (re.compile(rf"千分之({_NUMBER})"), r"\1‰"),
    (re.compile(rf"万分之({_NUMBER})"), r"\1/10000"),
    (re.compile(r"(?<![\d.])(\d+)分之(\d+)(?![\d.])"), r"\2/\1"),
    (re.compile(r"(?<![\d.])(\d{1,2})[点點]半"), r"\1点30分"),
    (re.compile(r"(?<![\d.])(\d{1,2})[点點]([13])刻"), lambda m: f"{m[1]}点{int(m[2]) * 15}分"),
    (re.compile(r"(?<![\d.])(\d{1,2})[点點](\d{1,2})分?(?![\d.之%‰/])"), lambda m: f"{m[1]}点{int(m[2]):02d}分"),
    (re.compile(r"(?<![\d.])0(\d)(?=[月日号號])"), r"\1"),
    # The day of a date is spoken 号 and written 日.
    (re.compile(r"(?<=\d月)(\d{1,2})[号號]"), r"\1日"),
    (re.compile(r"(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])"), " "),
    # Points, slashes and signs stay only where they belong to a number.
    (re.compile(r"[./](?!\d)|(?<!\d)[./]|(?<!\d)[%‰]"), " "),
)


def chinese_step(
    text: str, simplify: Callable[[str], str] | None, *, drop_erhua: bool = False, drop_interjections: bool = False
) -> str:
    """One pass of the Chinese normalizer (the caller repeats it until nothing changes).

    `simplify` folds traditional to simplified characters; None keeps the scripts apart. `drop_erhua` takes the suffix
    儿 away (花儿 = 花), `drop_interjections` 呃, 嗯, 啊 and their like.

    >>> chinese_step("２０２４ 年，百分之五十的 iPhone15 用户、一百倍！", None)
    '2024年50%的iphone 15用户100倍'
    >>> chinese_step("呃，花儿和女儿", None, drop_erhua=True, drop_interjections=True)
    '花和女儿'
    """
    # Only an ASCII comma separates thousands: "100，200" is two numbers.
    text = fold(_THOUSANDS.sub(lambda m: m[0].replace(",", ""), text)).replace("\u2044", "/")
    if simplify is not None:
        text = simplify(text)
    text = _BLANK_BESIDE_HAN.sub("", " ".join(text.split()))
    if drop_interjections:
        text = _INTERJECTIONS.sub("", text)
    if drop_erhua:
        text = _ERHUA.sub("", text)
    for pattern, replacement in _BEFORE:
        text = pattern.sub(replacement, text)
    text = digits_for_characters(text)
    for pattern, replacement in _AFTER:
        text = pattern.sub(replacement, text)
    return _BLANK_BESIDE_HAN.sub("", strip_punctuation(text, keep="./%‰"))
