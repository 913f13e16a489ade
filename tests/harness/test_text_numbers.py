"""Number words: every number, spoken by an independent speller, reads back as its digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.harness.text.chinese_numbers import digits_for_characters
from squtr.harness.text.english_numbers import digits_for_words as english
from squtr.harness.text.english_numbers import ordinal
from squtr.harness.text.spanish_numbers import digits_for_words as spanish

EN_SMALL = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
EN_TENS = str.split("_ _ twenty thirty forty fifty sixty seventy eighty ninety")


def spell_english(n: int, *, joined: bool) -> str:
    if n < 20:
        return EN_SMALL[n]
    if n < 100:
        return EN_TENS[n // 10] + (f"-{EN_SMALL[n % 10]}" if n % 10 else "")
    if n < 1000:
        rest = f"{' and' if joined else ''} {spell_english(n % 100, joined=joined)}" if n % 100 else ""
        return f"{EN_SMALL[n // 100]} hundred{rest}"
    for size, name in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if n >= size:
            low = n % size
            joint = " and" if joined and 0 < low < 100 else ""
            rest = f"{joint} {spell_english(low, joined=joined)}" if low else ""
            return f"{spell_english(n // size, joined=joined)} {name}{rest}"
    raise AssertionError(n)


def spell_chinese(n: int) -> str:
    if n == 0:
        return "零"

    def section(value: int) -> str:
        out, gap = "", False
        for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
            digit = value // unit % 10
            if digit:
                out += ("零" if gap and out else "") + "零一二三四五六七八九"[digit] + name
                gap = False
            else:
                gap = True
        return out

    out = ""
    for size, name in ((10**8, "亿"), (10**4, "万"), (1, "")):
        part = n // size % 10**4
        if part:
            out += ("零" if out and part < 1000 else "") + section(part) + name
        elif out and not out.endswith("零") and n % size:
            out += "零"
    return out.replace("零零", "零")


ES_SMALL = str.split(
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve"
)
ES_TENS = str.split("_ _ _ treinta cuarenta cincuenta sesenta setenta ochenta noventa")
ES_HUNDREDS = str.split(
    "_ ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
)


def spell_spanish(n: int) -> str:
    if n < 30:
        return ES_SMALL[n]
    if n < 100:
        return ES_TENS[n // 10] + (f" y {ES_SMALL[n % 10]}" if n % 10 else "")
    if n == 100:
        return "cien"
    if n < 1000:
        return ES_HUNDREDS[n // 100] + (f" {spell_spanish(n % 100)}" if n % 100 else "")
    if n < 10**6:
        head = "mil" if n < 2000 else f"{short_one(spell_spanish(n // 1000))} mil"
        return head + (f" {spell_spanish(n % 1000)}" if n % 1000 else "")
    head = "un millón" if n < 2 * 10**6 else f"{short_one(spell_spanish(n // 10**6))} millones"
    return head + (f" {spell_spanish(n % 10**6)}" if n % 10**6 else "")


def short_one(text: str) -> str:
    if text.endswith("veintiuno"):
        return text.removesuffix("veintiuno") + "veintiún"
    return text.removesuffix("o") if text.endswith(" uno") else text


numbers = st.one_of(
    st.integers(0, 9_999),
    st.integers(0, 999_999_999),
    st.builds(lambda a, b: a * 10**b, st.integers(1, 999), st.integers(0, 6)),
)


@pytest.mark.parametrize("n", range(0, 1200))
def test_small_numbers_in_three_languages(n: int) -> None:
    assert english(spell_english(n, joined=True)) == str(n)
    assert english(spell_english(n, joined=False)) == str(n)
    assert digits_for_characters(spell_chinese(n)) == str(n)
    assert spanish(spell_spanish(n)) == str(n)


@given(numbers)
def test_english(n: int) -> None:
    assert english(spell_english(n, joined=True)) == str(n)
    assert english(f"x {spell_english(n, joined=False)} y") == f"x {n} y"


@given(numbers)
def test_chinese(n: int) -> None:
    assert digits_for_characters(spell_chinese(n)) == str(n)
    assert digits_for_characters(f"有{spell_chinese(n)}个") == f"有{n}个"


@given(numbers)
def test_spanish(n: int) -> None:
    assert spanish(spell_spanish(n)) == str(n)


@given(st.integers(1, 999), st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_decimals(whole: int, digits: list[int]) -> None:
    decimals = "".join(map(str, digits))
    spoken = " ".join(EN_SMALL[d] for d in digits)
    assert english(f"{spell_english(whole, joined=True)} point {spoken}") == f"{whole}.{decimals}"
    spoken = "".join("零一二三四五六七八九"[d] for d in digits)
    assert digits_for_characters(f"{spell_chinese(whole)}点{spoken}") == f"{whole}.{decimals}"
    spoken = " ".join(ES_SMALL[d] for d in digits)
    assert spanish(f"{spell_spanish(whole)} coma {spoken}") == f"{whole}.{decimals}"


@given(st.integers(1000, 2099))
def test_english_years_in_pairs(year: int) -> None:
    first, second = divmod(year, 100)
    if second == 0 or (first % 10 == 0 and second < 10):
        return
    tail = spell_english(second, joined=False) if second >= 10 else f"oh {EN_SMALL[second]}"
    assert english(f"in {spell_english(first, joined=False)} {tail}") == f"in {year}"


@given(st.lists(st.integers(0, 9), min_size=3, max_size=11))
def test_spelt_digits(digits: list[int]) -> None:
    expected = "".join(map(str, digits))
    assert english(" ".join(EN_SMALL[d] for d in digits)) == expected
    assert spanish(" ".join(ES_SMALL[d] for d in digits)) == expected
    assert digits_for_characters("".join("零一二三四五六七八九"[d] for d in digits)) == expected


def test_english_ordinals() -> None:
    spoken = "first second third twenty-first thirtieth forty second hundredth"
    assert english(spoken.replace(" ", ", ", 4)) == "1st, 2nd, 3rd, 21st, 30th 42nd hundredth"
    assert [ordinal(n) for n in (2, 11, 21, 112, 1003)] == ["2nd", "11th", "21st", "112th", "1003rd"]


def test_two_numbers_stay_two() -> None:
    assert english("between one hundred and two hundred") == "between 100 and 200"
    assert english("ten or twenty-five and six") == "10 or 25 and 6"
    assert spanish("entre cien y doscientos") == "entre 100 y 200"
    assert digits_for_characters("三四十个") == "340个"


def test_words_that_look_like_numbers_stay() -> None:
    for text in ("someone", "hundreds of people", "a point", "attention", "often"):
        assert english(text) == text
    for text in ("una casa", "milla", "puntos", "y"):
        assert spanish(text) == text
    for text in ("百姓", "千里马", "零下", "点心", "幺妹"):
        assert digits_for_characters(text) == text
