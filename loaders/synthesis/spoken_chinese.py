"""Chinese text as it is spoken: digits, signs and units in characters. Number words come from `cn2an`."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ...errors import missing_extra

_DIGITS = dict(zip("0123456789", "零一二三四五六七八九", strict=True))
_CURRENCIES = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
_UNITS = {
    "km/h": "公里每小时", "m/s": "米每秒", "km²": "平方公里", "m²": "平方米", "km": "公里", "cm": "厘米", "mm": "毫米",
    "kg": "公斤", "mg": "毫克", "ml": "毫升", "mL": "毫升", "kWh": "千瓦时", "GB": "G B", "m": "米", "g": "克",
    "L": "升", "℃": "摄氏度", "°C": "摄氏度", "℉": "华氏度", "°": "度",
}  # fmt: skip
_TWO = "个只条张件位名次种倍块岁天米斤点周页本台部家份套杯瓶层辆头"
"""Words before which 2 is spoken 两. Days and months are dates where 月 or 日 follows, so these are left out."""
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_LONG = 8


def spoken_chinese(text: str) -> str:
    """`text` without digits: years digit by digit, telephone numbers with 幺. Raises `MissingExtraError`."""
    # Full-width digits, letters and signs; Chinese punctuation stays, which NFKC would make ASCII.
    text = "".join(unicodedata.normalize("NFKC", c) if _is_wide(c) else c for c in text)
    text = re.sub(r"(?<=\d)[−–—](?=\d)", "-", text).replace("−", "-")
    text = re.sub(
        r"(?<!\d)(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)", lambda m: f"{m[1]}年{int(m[2])}月{int(m[3])}日", text
    )
    text = re.sub(r"(?<!\d)(\d{4})(?=年(?!前|后|内|间|来|以|多))", lambda m: _one_by_one(m[1]), text)
    text = re.sub(r"(?<![\d:])([01]?\d|2[0-4]):([0-5]\d)(?![\d:])", _clock, text)
    text = re.sub(
        rf"([{''.join(map(re.escape, _CURRENCIES))}]) ?({_NUMBER})(万|亿)?(?:元|美元|欧元|英镑)?", _money, text
    )
    text = re.sub(rf"({_NUMBER})(万|亿)? ?([$€£])", lambda m: f"{m[1]}{m[2] or ''}{_CURRENCIES[m[3]]}", text)
    text = re.sub(rf"({_NUMBER}) ?%? ?[-~～至到] ?({_NUMBER})(?= ?%)", r"\1%到\2", text)
    # An area code belongs to its number.
    text = re.sub(r"(?<!\d)(0\d{2,3})-(\d{7,8})(?!\d)", r"\1\2", text)
    text = re.sub(rf"(-?)({_NUMBER}) ?(%|‰)", _percent, text)
    # A range; codes with letters or several groups are not ranges.
    text = re.sub(rf"(?<![\w.-])({_NUMBER}) ?[-~～] ?({_NUMBER})(?![\d-])", r"\1到\2", text)
    text = re.sub(rf"(?<![\w-])-({_NUMBER})(?=度| ?℃| ?°)", r"零下\1", text)
    text = units_in_chinese(text)
    text = re.sub(r"(?<![\d/])(\d{1,4})/(\d{1,4})(?![\d/])", lambda m: f"{_amount(m[2])}分之{_amount(m[1])}", text)
    text = re.sub(rf"(?<![\d.,零一二三四五六七八九十百千万亿第点])2(?= ?[{_TWO}]|年(?!级))", "两", text)
    text = re.sub(rf"(?<![\w.-])-(?={_NUMBER})", "负", text)
    # A hyphen between letters and a number is not spoken: COVID-19.
    text = re.sub(r"(?<=[A-Za-z])-(?=\d)", " ", text)
    text = re.sub(_NUMBER, lambda m: _amount(m[0]), text)
    return re.sub(r"\d", lambda m: _DIGITS[m[0]], text)


def units_in_chinese(text: str) -> str:
    """`text` with the units behind numbers in words; the numbers stay.

    >>> units_in_chinese("5 kg, 3G, iPhone 5m")
    '5公斤, 3G, iPhone 5米'
    """
    longest = "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))
    return re.sub(rf"({_NUMBER}) ?({longest})(?![A-Za-z/])", lambda m: f"{m[1]}{_UNITS[m[2]]}", text)


def _is_wide(character: str) -> bool:
    return ("\uff10" <= character <= "\uff5a" and character.isalnum()) or character in "％＄＋－／．"


def _clock(match: re.Match[str]) -> str:
    hour = "两" if int(match[1]) == 2 else _amount(str(int(match[1])))
    if match[2] == "00":
        return f"{hour}点"
    minute = f"零{_DIGITS[match[2][1]]}" if match[2][0] == "0" else _amount(match[2])
    return f"{hour}点{minute}分"


def _money(match: re.Match[str]) -> str:
    return f"{_amount(match[2])}{match[3] or ''}{_CURRENCIES[match[1]]}"


def _percent(match: re.Match[str]) -> str:
    return f"{'负' if match[1] else ''}{'百' if match[3] == '%' else '千'}分之{_amount(match[2])}"


def _one_by_one(digits: str, one: str = "一") -> str:
    return "".join(one if digit == "1" else _DIGITS[digit] for digit in digits)


def _amount(written: str) -> str:
    digits = written.replace(",", "")
    whole = digits.partition(".")[0]
    if re.fullmatch(r"1\d{10}", digits):
        return _one_by_one(digits, "幺")
    is_code = len(digits) >= _LONG and digits.isdigit() and "," not in written and not digits.endswith("0000")
    if is_code or (len(whole) > 1 and whole[0] == "0"):
        return "点".join(_one_by_one(part) for part in digits.split("."))
    return str(_cn2an().an2cn(digits, "low"))


def _cn2an() -> Any:
    try:
        import cn2an  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_extra("cn2an", "spoken") from error
    return cn2an
