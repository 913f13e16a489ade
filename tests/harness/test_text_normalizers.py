"""Normalizers: spoken and written forms meet, nothing else does; idempotent; no letter is lost."""

from __future__ import annotations

import json
import pickle
import unicodedata
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.text.base import to_fixpoint
from squtr.harness.text.languages import KNOWN_LANGUAGES
from squtr.harness.text.normalizers import load_normalizer

LANGUAGES = ("en", "zh", "es", "hi", "ar", "th", "fr", "ja")

# Each line is one meaning in several forms.
ENGLISH = """
I have 20 dollars. | I have twenty dollars | i have $20
thirty-six members | 36 members | thirty six members
Don't go | do not go | Don’t go | DON'T GO
naïve café résumé | naive cafe resume
COVID-19 | covid nineteen | COVID19
In 1984, 3.5% of $20 | in nineteen eighty four three point five percent of twenty dollars
It's 5:30 PM | it is five thirty p.m. | It's 5:30pm
at 5:00 pm | at five pm | at 5 p.m.
at 5:00 | at five o'clock | at 5 o’clock
January 5, 2024 | January fifth, twenty twenty-four | 5 January 2024 | the fifth of January 2024 | 2024-01-05
the 1980s | the nineteen eighties | the 1980's
1,000,000 people | one million people | a million people | 1 million people
$1.5 million | one point five million dollars
$3.50 | three dollars and fifty cents | 3 dollars 50 cents
5 km | five kilometers | 5 kilometres | 5km
100 km/h | one hundred kilometers per hour | 100 kph
5 m/s | five meters per second
the colour of the centre | the color of the center
travelled, organized behaviour | traveled organized behavior
21st century | twenty-first century | twenty first century
2/3 | two thirds
1/2 | one half | half | ½
2½ | two and a half | 2 1/2
room 101 | room one oh one
nine one one | 911
two thousand and twenty four | 2024 | twenty twenty-four | 2,024
-5 degrees | minus five degrees | −5°
20°C | twenty degrees Celsius
U.S. economy | US economy
e-mail | email
AT&T | at and t
half a million | 500,000
ten seconds | 10 s | 10 secs
Mr. Smith | mister smith
may fifth | the 5th of May | May 5
free on 30 May | free on the 30th of May | free on May 30th
"""
CHINESE = """
50% | 百分之五十 | ５０％
100倍 | 一百倍
３．１４ | 3.14 | 三点一四
二零二四年 | 2024年 | ２０２４年 | 二〇二四年
两千零二十四个 | 2024个 | 2,024个
三分之一 | 1/3 | ⅓
三万二 | 32000 | 3.2万
1.5亿 | 一亿五千万 | 15000万
三点半 | 3:30 | 三点三十分 | 3点30
三点零五分 | 3:05 | 3点5分
三点十五 | 3:15 | 三点一刻
2024-01-05 | 二零二四年一月五日 | 2024/1/5
零下五度 | -5度
五公里 | 5km
￥50 | 五十元
我用iPhone 15 pro | 我用 iphone十五Pro
臺灣大學 | 台湾大学
幺零零八六 | 10086
37.5℃的 | 三十七点五摄氏度的 | 37.5°C 的
百分百 | 100%
九点五分 | 9.5分
你 好，世界！ | 你好世界
十二月八号 | 12月8日 | 12 月 08 号
"""
SPANISH = """
¿Cuántos años? | cuántos años
1984 | mil novecientos ochenta y cuatro
2.024 | dos mil veinticuatro | 2024
50 % | cincuenta por ciento | 50%
3,14 | 3.14 | tres coma catorce | tres coma uno cuatro
1.000.000 de euros | un millón de euros | 1.000.000 €
1.234,56 | 1,234.56
20,50 € | veinte euros con cincuenta céntimos
treinta y una casas | 31 casas
158 349 hogares | 158.349 hogares | ciento cincuenta y ocho mil trescientos cuarenta y nueve hogares
1.º | primero | 1ro | primer | 1er
a las 5:30 | a las cinco y media | a las cinco treinta
5 de enero de 2024 | cinco de enero de dos mil veinticuatro | 2024-01-05
1 de mayo | primero de mayo
siglo XXI | siglo veintiuno
EE. UU. | Estados Unidos
10 segundos | diez segundos | 10 s
100 % | cien por cien
covid-19 | covid diecinueve
"""


def lines(language: str, table: str) -> list[tuple[str, list[str]]]:
    return [(language, [form.strip() for form in line.split(" | ")]) for line in table.strip().splitlines()]


@pytest.mark.parametrize(
    ("language", "forms"), lines("en", ENGLISH) + lines("zh", CHINESE) + lines("es", SPANISH), ids=lambda x: str(x)[:40]
)
def test_spoken_and_written_forms_meet(language: str, forms: list[str]) -> None:
    normalize = load_normalizer("default", language)
    assert len({normalize(form) for form in forms}) == 1, [normalize(form) for form in forms]
    assert normalize(forms[0])


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "fifteen", "fifty"),
        ("en", "15%", "50%"),
        ("en", "version 3.10", "version 3.1"),
        ("en", "10³", "103"),
        ("en", "resume", "resumed"),
        ("en", "$20", "€20"),
        ("en", "May 5", "March 5"),
        ("en", "Jon", "John"),
        ("zh", "四十", "十四"),
        ("zh", "期中", "期终"),
        ("zh", "一百零五", "一百五"),
        ("zh", "𠮷野家", "吉野家"),
        ("zh", "100，200", "100200"),
        ("zh", "花儿", "花"),
        ("zh", "呃这个", "这个"),
        ("es", "año", "ano"),
        ("es", "qué", "que"),
        ("es", "quince", "cincuenta"),
        ("es", "primero", "primera"),
    ],
)
def test_different_words_stay_different(language: str, one: str, other: str) -> None:
    normalize = load_normalizer("default", language)
    assert normalize(one) != normalize(other)


def test_hyphens_split_and_never_glue() -> None:
    for language in LANGUAGES:
        assert load_normalizer("default", language)("alpha-beta/gamma—delta").split() == [
            "alpha", "beta", "gamma", "delta"
        ]  # fmt: skip


def test_golden_texts() -> None:
    golden = {
        "en": ("It’s £3.50 — don’t pay “thirty-six” euros on the 5th of March, 2024!",
               "it is 3.50 pound do not pay 36 euro on march 5 2024"),
        "zh": ("２０２４ 年，百分之五十的 iPhone15 用戶、一百倍！", "2024年50%的iphone 15用户100倍"),
        "es": ("¿Cuántos años? ¡Treinta y seis, el 50 % de 1.000 €!", "cuántos años 36 el 50 porciento de 1000 euro"),
        "hi": ("हिन्दी में — ‘पाठ’!", "हिन्दी में पाठ"),
        "fr": ("L’été, déjà ?", "l été déjà"),
        "th": ("ภาษาไทย ๑๒", "ภาษาไทย ๑๒"),
    }  # fmt: skip
    for language, (text, expected) in golden.items():
        assert load_normalizer("default", language)(text) == expected


EN = (
    "one two fifteen fifty hundred thousand million and point oh second seconds first eighties may march january of "
    "the 5th 5 20 1984 3.5 1,000 $ % £ ° c km - . , : / ' 's n't half a am pm us$ + = & 1/2 ½ ² 5:30 5:00 cent dollars"
)
ES = (
    "uno un una dos y treinta mil millón millones ciento cien por coma punto cero las 5 3,14 1.000 1,000 º ª primero "
    "segundo enero de siglo xxi € $ % ° c : . - s h km"
)
ZH = "一 二 三 十 百 千 万 亿 零 两 点 分 之 半 刻 月 日 年 % 百分之 5 3.5 1,000 : . / - 度 下 幺 km ¥ 著 臺"


def texts(language: str) -> st.SearchStrategy[str]:
    pieces = st.lists(st.sampled_from(str.split({"zh": ZH, "es": ES}.get(language, EN))), max_size=12)
    return st.one_of(
        pieces.map(" ".join), pieces.map("".join), st.text(max_size=40), st.text(alphabet="0123456789.,:/-%°c' ²½")
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_idempotent_on_any_unicode(language: str) -> None:
    normalize = load_normalizer("default", language)

    @given(texts(language))
    def check(text: str) -> None:
        once = normalize(text)
        assert normalize(once) == once
        assert once == " ".join(once.split())

    check()


@pytest.mark.parametrize("language", ["en", "zh", "es"])
def test_idempotent_on_the_embedded_collection(language: str) -> None:
    normalize = load_normalizer("default", language)
    data = resources.files("squtr.loaders") / "data" / "mini"
    rows = [
        json.loads(line)
        for name in (f"corpus.{language}.jsonl", f"queries.{language}.jsonl")
        for line in (data / name).read_text("utf-8").splitlines()
    ]
    assert len(rows) > 150
    for row in rows:
        once = normalize(row["text"])
        assert once
        assert normalize(once) == once


@given(st.text(alphabet=st.characters(categories=["Lo", "Lm", "Mn", "Mc"]), max_size=30))
def test_the_base_deletes_no_letter_and_no_mark(text: str) -> None:
    out = load_normalizer("default", "sw")(text)
    expected = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = [c for c in expected if unicodedata.category(c)[0] in "LM"]
    kept = [c for c in kept if not ("\ufe00" <= c <= "\ufe0f" or "\U000e0100" <= c <= "\U000e01ef")]
    if not any("\u180b" <= c <= "\u180f" for c in text):
        # Composition may still join a letter and a mark that a removed selector kept apart.
        assert unicodedata.normalize("NFKC", "".join(out.split())) == unicodedata.normalize("NFKC", "".join(kept))


def test_decimals_stay_one_token() -> None:
    assert load_normalizer("default", "en")("It is 3.14.") == "it is 3.14"
    assert load_normalizer("default", "es")("Son 3,14.") == "son 3.14"
    assert load_normalizer("default", "zh")("是３．１４。") == "是3.14"


def test_a_circle_of_texts_has_one_end() -> None:
    turn = {"a": "b", "b": "c", "c": "b"}
    assert [to_fixpoint(turn.__getitem__, text) for text in "abc"] == ["b", "b", "b"]


def test_options() -> None:
    strict = load_normalizer("default", "zh", script="strict")
    assert strict("臺灣") != strict("台湾")
    assert strict.name == "default(script=strict)"
    folded = load_normalizer("default", "es", accents="fold")
    assert folded("Qué pingüino, año") == "que pinguino año"
    assert folded.name == "default(accents=fold)"
    with pytest.raises(UsageError, match="script"):
        load_normalizer("default", "en", script="strict")
    with pytest.raises(UsageError, match="accents"):
        load_normalizer("raw", "es", accents="fold")


def test_names_and_versions() -> None:
    assert load_normalizer("default", "en").version == "1"
    assert "opencc" in load_normalizer("default", "zh").version
    assert load_normalizer("default", "en") == load_normalizer("default", "en-GB")
    with pytest.raises(UnknownNameError, match="default"):
        load_normalizer("defualt", "en")
    with pytest.raises(UnknownNameError, match="language 'klingon'"):
        load_normalizer("default", "klingon")
    assert {"en", "zh", "es", "yue"} <= KNOWN_LANGUAGES


def test_normalizers_can_be_sent_to_other_processes() -> None:
    for language, options in (("en", {}), ("zh", {"script": "strict"}), ("es", {"accents": "fold"})):
        normalize = load_normalizer("default", language, **options)  # type: ignore[arg-type]
        copy = pickle.loads(pickle.dumps(normalize))
        assert copy == normalize
        assert copy("臺 qué 21") == normalize("臺 qué 21")


def test_raw_changes_nothing_inside() -> None:
    assert load_normalizer("raw", "en")("  It’s  20%! ") == "It’s  20%!"


def test_whisper() -> None:
    pytest.importorskip("transformers")
    assert load_normalizer("whisper", "en")("I've got twenty-one (uh) dollars!") == "i have got $21"
    assert load_normalizer("whisper", "es")("¡Año nuevo!") == "año nuevo"
    assert load_normalizer("whisper", "en").version.startswith("transformers-")


@pytest.mark.parametrize(
    ("text", "kept", "without_erhua", "without_interjections"),
    [
        ("一会儿", "1会儿", "1会", "1会儿"),
        ("花儿", "花儿", "花", "花儿"),
        ("女儿和儿童在托儿所", "女儿和儿童在托儿所", "女儿和儿童在托儿所", "女儿和儿童在托儿所"),
        ("呃这个呃", "呃这个呃", "呃这个呃", "这个"),
        ("嗯", "嗯", "嗯", ""),
        ("哎呀，好啊！唉声叹气", "哎呀好啊唉声叹气", "哎呀好啊唉声叹气", "好唉声叹气"),
        ("這兒", "这儿", "这", "这儿"),
    ],
)
def test_erhua_and_interjections_go_only_by_option(
    text: str, kept: str, without_erhua: str, without_interjections: str
) -> None:
    assert load_normalizer("default", "zh")(text) == kept
    assert load_normalizer("default", "zh", erhua="drop")(text) == without_erhua
    assert load_normalizer("default", "zh", interjections="drop")(text) == without_interjections


def test_options_are_named_and_only_for_their_language() -> None:
    both = load_normalizer("default", "zh", script="strict", erhua="drop", interjections="drop")
    assert both.name == "default(script=strict,erhua=drop,interjections=drop)"
    assert both("這兒呃") == "這"
    assert pickle.loads(pickle.dumps(both)) == both
    with pytest.raises(UsageError, match="no option erhua=drop"):
        load_normalizer("default", "en", erhua="drop")
    with pytest.raises(UsageError, match="no option interjections=drop"):
        load_normalizer("raw", "zh", interjections="drop")
    with pytest.raises(UnknownNameError, match="value of erhua"):
        load_normalizer("default", "zh", erhua="delete")  # type: ignore[arg-type]


@given(st.text(st.sampled_from("儿兒女花这呃嗯啊唉声哎呀一二 ，a1"), max_size=12))
def test_options_are_idempotent(text: str) -> None:
    normalize = load_normalizer("default", "zh", erhua="drop", interjections="drop")
    assert normalize(normalize(text)) == normalize(text)
