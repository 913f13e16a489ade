"""Text as it is said: no digit is left, and recognizers' normalization finds the written text again."""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import MissingExtraError
from squtr.harness.text.normalizers import load_normalizer
from squtr.loaders.synthesis.spoken_form import spoken_text
from squtr.loaders.synthesis.written import unread_signs

pytest.importorskip("num2words")
pytest.importorskip("cn2an")

ENGLISH = {
    "COVID-19 cases in 2024": "COVID nineteen cases in two thousand and twenty-four",
    "the 21st century, 1990s music": "the twenty-first century, nineteen nineties music",
    "call 5551234567 at 16:00": "call five five five one two three four five six seven at sixteen o'clock",
    "AT&T vs. Verizon": "AT and T versus Verizon",
    "take 1/2 of 5 mg": "take one half of five milligrams",
    "temperatures of -5 degrees": "temperatures of minus five degrees",
    "Dr. Smith's B12": "Doctor Smith's B twelve",
    "007 and 0.5": "zero zero seven and zero point five",
    "3.5% of 1,234 people": "three point five percent of one thousand two hundred and thirty-four people",
    "at 37.5 ℃": "at thirty-seven point five degrees Celsius",
    "a 5-year-old": "a five year-old",
    "20000000 users": "twenty million users",
    "What is 401k?": "What is four hundred and one k?",
}
SPANISH = {
    "¿Son 21 € o 2,5 % a los 31 días?": "¿Son veintiún euros o dos coma cinco por ciento a los treinta y un días?",
    "el 3.º piso y la 2ª vez": "el tercer piso y la segunda vez",
    "hay 1.234 casas": "hay mil doscientas treinta y cuatro casas",
    "-5 grados": "menos cinco grados",
    "El 1 de mayo de 1998": "El primero de mayo de mil novecientos noventa y ocho",
    "llame al 912345678": "llame al nueve uno dos tres cuatro cinco seis siete ocho",
    "0,05": "cero coma cero cinco",
}
CHINESE = {
    "2024年5月30日，50%的人": "二零二四年五月三十日，百分之五十的人",
    "我用iPhone 15 pro": "我用iPhone 十五 pro",
    "温度37.5℃": "温度三十七点五摄氏度",
    "电话13812345678": "电话幺三八幺二三四五六七八",
    "3.14和1/3": "三点一四和三分之一",
    "100倍": "一百倍",
    "下午3:30见": "下午三点三十分见",
    "第3个": "第三个",
    "−5度": "零下五度",
    "1,000元": "一千元",
    "2个人2天2月2日": "两个人两天二月二日",
    "5000年前": "五千年前",
    "1988-05-03": "一九八八年五月三日",
    "１２３号": "一百二十三号",
}
ONE_WAY = [
    ("en", "at 3:05 pm", "at three oh five p m"),
    ("en", "a $2.5bn deal", "a two point five billion dollar deal"),
    ("es", "200 €/mes", "doscientos euros por mes"),
    ("zh", "119和110", "幺幺九和幺幺零"),
    ("zh", "120和110块", "一百二十和一百一十块"),
    ("en", "pages 10-20", "pages ten to twenty"),
    ("en", "#5 and No. 7", "number five and number seven"),
    ("en", "24/7 service", "twenty-four seven service"),
    ("en", "version 1.2.3", "version one point two point three"),
    ("es", "1 día y 1 persona, 200 personas", "un día y una persona, doscientas personas"),
    ("es", "el Sr. López, en EE. UU.", "el señor López, en Estados Unidos"),
    ("es", "a las 15:30", "a las quince treinta"),
    ("zh", "价格是¥199.5元吗", "价格是一百九十九点五元吗"),
    ("zh", "5km/h", "五公里每小时"),
    ("zh", "10-20岁", "十到二十岁"),
    ("zh", "3%-5%", "百分之三到百分之五"),
    ("zh", "010-12345678", "零一零一二三四五六七八"),
]


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        (language, *pair)
        for language, table in (("en", ENGLISH), ("es", SPANISH), ("zh", CHINESE))
        for pair in table.items()
    ],
)
def test_said_and_found_again(language: str, text: str, said: str) -> None:
    assert spoken_text(text, language) == said
    normalize = load_normalizer("default", language)
    if text not in {"−5度"}:  # the normalizer keeps the number's sign in words too
        assert normalize(said) == normalize(text)


@pytest.mark.parametrize(("language", "text", "said"), ONE_WAY)
def test_said(language: str, text: str, said: str) -> None:
    assert spoken_text(text, language) == said


def table() -> list[tuple[str, str, list[str]]]:
    lines = (Path(__file__).parent / "spoken_forms.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [(language, text, spoken.split("|")) for language, text, spoken in (line.split("\t") for line in lines)]


def folded(text: str, language: str) -> str:
    """Words alone: no case, no marks, no "and" behind hundreds; Chinese without blanks."""
    letters = "".join(c if unicodedata.category(c)[0] in "LNM" else "" if c in "'’" else " " for c in text.casefold())
    if language == "zh":
        return "".join(letters.split())
    if language == "en":
        letters = re.sub(r"\b(hundred|thousand|million) and\b", r"\1", letters)
    return " ".join(letters.split())


@pytest.mark.parametrize(("language", "text", "spoken"), table())
def test_the_table_of_spoken_forms(language: str, text: str, spoken: list[str]) -> None:
    said = spoken_text(text, language)
    assert folded(said, language) in {folded(one, language) for one in spoken}
    assert unread_signs(said) == ()


@pytest.mark.parametrize(
    ("language", "text", "sign"),
    [
        ("en", "what is ½ of 8", "½"),
        ("en", "5¢ coins", "¢"),
        ("zh", "1㏀电阻", "㏀"),
        ("es", "$5Q", "$"),
        ("zh", "₹500", "₹"),
    ],
)
def test_signs_without_a_rule_are_told(language: str, text: str, sign: str) -> None:
    assert unread_signs(spoken_text(text, language)) == (sign,)


@given(st.sampled_from(["en", "es", "zh"]), st.lists(st.sampled_from(
    [*"0123456789", ".", ",", "-", "/", ":", "%", " ", "a", "年", "°C", "km", "€", "$", "st", "ª", "元", "2", "10"]
), max_size=14))  # fmt: skip
def test_no_digit_is_left_and_twice_is_once(language: str, parts: list[str]) -> None:
    said = spoken_text("".join(parts), language)
    assert not re.search(r"\d", said)
    assert spoken_text(said, language) == said


@given(st.sampled_from(["en", "es", "zh"]), st.integers(2, 9_999_999))
def test_every_number_is_found_again(language: str, number: int) -> None:
    normalize = load_normalizer("default", language)
    text = {"en": f"about {number} things", "es": f"unos {number} son", "zh": f"有{number}吗"}[language]
    assert normalize(spoken_text(text, language)) == normalize(text)


def test_other_languages_and_missing_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spoken_text("Il y a 5 gares 🙂", "fr") == "Il y a 5 gares"
    assert spoken_text("No digits here.", "en-GB") == "No digits here."
    monkeypatch.setitem(sys.modules, "num2words", None)
    monkeypatch.setitem(sys.modules, "cn2an", None)
    assert spoken_text("No digits here.", "en") == "No digits here."
    for language in ("en", "zh"):
        with pytest.raises(MissingExtraError, match=r"pip install 'squtr\[spoken\]'"):
            spoken_text("5", language)
