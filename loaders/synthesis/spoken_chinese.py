"""Chinese text as it is spoken: digits, signs and units in characters. Number words come from `cn2an`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from ...errors import missing_extra

_DIGITS = dict(zip("0123456789", "零一二三四五六七八九", strict=True))
_CURRENCIES = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
_UNITS = {
    "km/h": "公里每小时", "m/s²": "米每二次方秒", "m/s": "米每秒", "km²": "平方公里", "cm²": "平方厘米", "m²": "平方米",
    "m2": "平方米", "m³": "立方米", "m3": "立方米", "cm³": "立方厘米", "km": "公里", "cm": "厘米", "mm": "毫米",
    "nm": "纳米", "μm": "微米", "kg": "公斤", "mg": "毫克", "μg": "微克", "ug": "微克", "mcg": "微克", "ng": "纳克",
    "ml": "毫升", "mL": "毫升", "dl": "分升", "dL": "分升", "mmol": "毫摩尔", "μmol": "微摩尔", "mmHg": "毫米汞柱",
    "kPa": "千帕", "kWh": "千瓦时", "kW": "千瓦", "mAh": "毫安时", "kcal": "千卡", "GB": "G B", "MB": "M B",
    "TB": "T B",
    "m": "米", "g": "克", "t": "吨", "L": "升", "l": "升", "V": "伏", "Hz": "赫兹", "GHz": "吉赫兹", "MHz": "兆赫兹",
    "dB": "分贝", "℃": "摄氏度", "°C": "摄氏度", "℉": "华氏度", "°F": "华氏度", "°": "度",
}  # fmt: skip
_SQUARES = {"㎡": "m²", "㎥": "m³", "㎢": "km²", "㎠": "cm²", "㏄": "ml", "µ": "μ"}
_TWO = "个只条张件位名次种倍块岁天米斤点周页本台部家份套杯瓶层辆头"
"""Words before which 2 is spoken 两. Days and months are dates where 月 or 日 follows, so these are left out."""
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_LONG = 8


def spoken_chinese(text: str) -> str:
    """`text` without digits: years digit by digit, telephone numbers with 幺. Raises `MissingExtraError`."""
    # Full-width digits, letters and signs; Chinese punctuation stays, which NFKC would make ASCII.
    text = "".join(unicodedata.normalize("NFKC", c) if _is_wide(c) else _SQUARES.get(c, c) for c in text)
    text = re.sub(r"(?<=\d)：(?=\d)", ":", text)
    text = re.sub(r"(?<=\d)[−–—](?=\d)", "-", text).replace("−", "-")
    text = _codes(text)
    text = _arithmetic(text)
    text = re.sub(
        r"(?<![\d/])(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?![\d/])", lambda m: f"{m[1]}年{int(m[2])}月{int(m[3])}日", text
    )
    text = re.sub(
        rf"(?<![\dA-Za-z.]){_YEAR} ?[-~～至到] ?{_YEAR}(?![\d.]| ?[元块米个人万亿度公千%‰a-zA-Z])",
        lambda m: f"{_one_by_one(m[1])}到{_one_by_one(m[2])}",
        text,
    )
    text = re.sub(rf"(?<!\d){_YEAR}(?=届|级|款|版|财年|年度|赛季)", lambda m: _one_by_one(m[1]), text)
    text = re.sub(r"(?<!\d)([05-9][05])后", lambda m: f"{_one_by_one(m[1])}后", text)
    text = re.sub(r"(?<!\d)(\d{4})(?=年(?!前|后|内|间|来|以|多))", lambda m: _one_by_one(m[1]), text)
    text = re.sub(r"(?<![\d:])([01]?\d|2[0-4]):([0-5]\d)(?![\d:])", _clock, text)
    # No time of day: a ratio, a score.
    text = re.sub(r"(?<![\d:.])(\d{1,4}) ?: ?(\d{1,4})(?![\d:])", r"\1比\2", text)
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
    text = re.sub(r"(?<=[元块角分美欧镑])/ ?(?=[^\W\d_])", "每", text)
    text = re.sub(r"(?<![\d/])(\d{1,4})/(\d{1,4})(?![\d/])", _fraction, text)
    text = re.sub(rf"(?<![\d.,零一二三四五六七八九十百千万亿第点])2(?= ?[{_TWO}]|年(?!级))", "两", text)
    text = re.sub(rf"(?<![\w.-])-(?={_NUMBER})", "负", text)
    # A hyphen between letters and a number is not spoken: COVID-19.
    text = re.sub(r"(?<=[A-Za-z])-(?=\d)", " ", text)
    text = re.sub(r"\d+(?:\.\d+){2,}", lambda m: "点".join(_amount(part) for part in m[0].split(".")), text)
    text = re.sub(_NUMBER, lambda m: _amount(m[0]), text)
    return re.sub(r"\d", lambda m: _DIGITS[m[0]], text)


def units_in_chinese(text: str) -> str:
    """`text` with the units behind numbers in words; the numbers stay.

    >>> units_in_chinese("5 kg, 3G, iPhone 5m")
    '5公斤, 3G, iPhone 5米'
    """
    longest = "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))
    below = rf"(?:/ ?({longest}|s|min|d))?"
    text = re.sub(
        rf"({_NUMBER}) ?({longest}){below}(?![A-Za-z²³/])",
        lambda m: f"{m[1]}{_UNITS[m[2]]}{'每' + _BELOW.get(m[3], _UNITS.get(m[3], '')) if m[3] else ''}",
        text,
    )
    # A price for each: 元/㎡.
    return re.sub(rf"(?<=[元块])/ ?({longest})(?![A-Za-z²³/])", lambda m: f"每{_UNITS[m[1]]}", text)


def _codes(text: str) -> str:
    """Numbers that are names: digit by digit, in telephone numbers with 幺."""

    def spelled(one: str) -> Callable[[re.Match[str]], str]:
        return lambda m: re.sub(r"\d+", lambda digits: _one_by_one(digits[0], one), m[0]).replace("-", "")

    text = re.sub(r"(?<![\d-])(?:400|800)-?\d{3,4}-?\d{3,4}(?![\d-])", spelled("一"), text)
    text = re.sub(
        rf"(?<=[打拨叫])(?:通|了|个)?{_EMERGENCY}(?!\d| ?{_COUNTED})|"
        rf"(?<![\d.]){_EMERGENCY}(?:[和与、或]{_EMERGENCY})*(?=是?(?:电话|报警|急救|火警|热线|出警|救护|接警|号码|客服))",
        spelled("幺"),
        text,
    )
    # Two of them are never amounts.
    text = re.sub(rf"(?<![\d.]){_EMERGENCY}(?:[和与、或]{_EMERGENCY})+(?!\d| ?{_COUNTED})", spelled("幺"), text)
    text = re.sub(
        r"(?<=[打拨])(?:通|了)?[19]\d{4}(?!\d)|(?<![\d.])[19]\d{4}(?=热线|客服|电话|投诉|举报)", spelled("幺"), text
    )
    # Flights, graphics cards; a letter alone counts (B12, G20).
    text = re.sub(r"(?<![A-Za-z])(?:[A-Z]{2,3})-?[1-9]\d{2,3}(?![\d.A-Za-z])", spelled("一"), text)
    names = rf"(?<![\d.,A-Za-z])(?:985|211|996|007)(?![\d.,:%-]| ?{_COUNTED})"
    return re.sub(rf"{names}|(?<![\d.])(?:502(?=胶)|315(?=晚会|消费|打假)|618(?=大促|活动|购物))", spelled("一"), text)


_EMERGENCY = r"(?:110|119|120|122|114)"
_COUNTED = (
    r"(?:[元块斤米公里个人岁度天年月分秒平寸号楼层页克毫厘千万亿倍次名位件套种条只张双部台吨升瓦伏多余几a-zA-Z℃/])"
)
_YEAR = r"(1[5-9]\d\d|20\d\d)"
_BELOW = {"s": "秒", "min": "分钟", "d": "天"}


def _arithmetic(text: str) -> str:
    text = re.sub(r"(?<=\d)e([-+]?)(\d+)(?![\w])", lambda m: f"乘十的{'负' if m[1] == '-' else ''}{m[2]}次方", text)
    text = re.sub(
        r"(\d+|[A-Za-z])\^([-]?)(\d+)",
        lambda m: f"{m[1]}的{'负' if m[2] else ''}{'平' if m[3] == '2' and not m[1].isdigit() else m[3] + '次'}方",
        text,
    )
    text = re.sub(r"(?<=\d) ?[×xX*] ?(?=\d)", "乘", text)
    text = re.sub(rf"(?<![\d.-])({_NUMBER}) ?- ?({_NUMBER})(?= ?(?:=|等于|得多少))", r"\1减\2", text)
    text = re.sub(r"(?<=[\dA-Z]) ?\+ ?(?=\d)", "加", text)
    text = re.sub(r"(?<=\d) ?÷ ?(?=\d)", "除以", text)
    return re.sub(r"(?<=[\d方]) ?= ?(?=[\d?？])", "等于", text)


def _fraction(match: re.Match[str]) -> str:
    # What is above one is no fraction that anyone writes so: blood pressure 120/80, tyres, sizes.
    if int(match[1]) > int(match[2]):
        return f"{_amount(match[1])}比{_amount(match[2])}"
    return f"{_amount(match[2])}分之{_amount(match[1])}"


def _is_wide(character: str) -> bool:
    return ("\uff10" <= character <= "\uff5a" and character.isalnum()) or character in "％＄＋－／．"


def _clock(match: re.Match[str]) -> str:
    hour = "两" if int(match[1]) == 2 else _amount(str(int(match[1])))
    if match[2] == "00":
        return f"{hour}点"
    minute = f"零{_DIGITS[match[2][1]]}" if match[2][0] == "0" else _amount(match[2])
    return f"{hour}点{minute}分"


def _money(match: re.Match[str]) -> str:
    amount = re.sub(r"\.0+$", "", match[2])
    return f"{_amount(amount)}{match[3] or ''}{_CURRENCIES[match[1]]}"


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
