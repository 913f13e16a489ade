"""How text becomes terms."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import MissingExtraError, UnknownNameError, UsageError
from squtr.harness.components.retrievers.lexical_tokens import ENGLISH_STOP_WORDS, folded, has_words, tokenizer_for


def test_english_is_lower_case_stemmed_by_porter_and_without_lucenes_stop_words() -> None:
    cut = tokenizer_for("en")
    assert cut("The Runners were running into the ponies' caresses, 15 not 50!") == [
        *("runner", "were", "run", "poni", "caress", "15", "50")
    ]
    assert cut("Newton's laws cost us US$ 5") == ["newton", "s", "law", "cost", "us", "us", "5"]
    assert len(ENGLISH_STOP_WORDS) == 33
    assert cut(" ".join(ENGLISH_STOP_WORDS).upper()) == []


def test_chinese_keeps_words_of_one_character_and_drops_marks() -> None:
    assert tokenizer_for("zh")("低头思故乡，我有一只猫。") == ["低头", "思", "故乡", "我", "有", "一只", "猫"]
    assert tokenizer_for("zh-CN")("ＧＤＰ增长１５％！") == ["gdp", "增长", "15%"]


def test_spanish_is_stemmed_and_keeps_its_stop_words() -> None:
    cut = tokenizer_for("es")
    assert cut("Las niñas cantaban") == ["las", "niñ", "cant"]
    assert cut("CANCIÓN") == cut("canciones")


def test_a_language_without_a_stemmer_is_cut_at_its_blanks() -> None:
    assert tokenizer_for("uk")("Добрий день, світе") == ["добрий", "день", "світе"]


@pytest.mark.parametrize("language", ["ja", "th", "my", "yue", "", "??"])
def test_languages_without_blanks_are_refused(language: str) -> None:
    assert not has_words(language)
    with pytest.raises(UsageError, match="word rules"):
        tokenizer_for(language)


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert tokenizer_for("es")("camio\u0301n") == tokenizer_for("es")("camión")


@given(st.text(max_size=40))
def test_folding_is_stable_and_terms_hold_no_blank(text: str) -> None:
    assert folded(folded(text)) == folded(text)
    for language in ("en", "es", "zh"):
        assert all(term and not term.isspace() for term in tokenizer_for(language)(text))


def test_chinese_words_are_cut_without_a_sound_and_without_a_file(tmp_path: Path) -> None:
    module = "squtr.harness.components.retrievers.lexical_tokens"
    code = f"from {module} import tokenizer_for; print(tokenizer_for('zh')('我有猫'))"
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", code],
        env={"TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['我', '有', '猫']\n"
    assert done.stderr == ""
    assert not list(tmp_path.iterdir())


@given(
    st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("ＡＺａ１，（　AZ“”—·《》。、中文")), max_size=20)
)
def test_folding_in_parts_is_folding_the_whole(text: str) -> None:
    whole = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    assert folded(text) == whole


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_ascii_is_cut_as_any_other_text(text: str) -> None:
    assert tokenizer_for("uk").words(text) == re.findall(r"\w+", text.lower())


def test_a_words_term_depends_on_the_word_alone() -> None:
    for language in ("en", "es", "zh", "uk"):
        cut = tokenizer_for(language)
        words = cut.words("The ponies, las niñas 15% of 我们 … світе")
        assert cut.terms(words) == [term for word in words for term in cut.terms([word])]


def test_the_published_chinese_terms_lose_words_of_one_character_and_english_stop_words() -> None:
    cut = tokenizer_for("zh", analyzer="squtr-compat")
    assert cut("低头思故乡,我有一只猫") == ["低头", "故乡", "一只"]
    assert cut("The iPhone 15 Pro 的 50.25%") == ["iphone", "15", "pro", "50", "25"]


def test_the_published_english_terms_are_those_of_bm25s_and_nltk() -> None:
    porter = pytest.importorskip("nltk.stem.porter", reason="needs squtr[compat]").PorterStemmer()
    cut = tokenizer_for("en", analyzer="squtr-compat")
    assert cut("The Keys of dying news, a B 7 x_y naïve") == ["key", "die", "news", "x_i", "naïv"]
    endings = (
        "s es ed ing eed ied ies y ly ational enci anci izer bli alli entli eli ousli ization fulness logi".split()
    )
    endings += (
        "icate ative alize iciti ical ful ness al ance er able ant ement ment ion ou ism ate iti ous ive ize e".split()
    )
    rng = random.Random(0)
    words = [
        "".join(rng.choices("aeiouybcdlstwxzmn", k=rng.randint(1, 6)))
        + rng.choice(endings)
        + rng.choice(["", *endings])
        for _ in range(20_000)
    ]
    words = [word for word in words if len(word) > 1 and word not in ENGLISH_STOP_WORDS]
    assert cut.terms(words) == [porter.stem(word) for word in words]


def test_the_published_terms_without_nltk_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    with pytest.raises(MissingExtraError, match=r"squtr\[compat\]"):
        tokenizer_for("en", analyzer="squtr-compat")


def test_the_published_terms_are_for_english_and_chinese() -> None:
    assert has_words("zh", analyzer="squtr-compat")
    assert not has_words("es", analyzer="squtr-compat")
    with pytest.raises(UsageError, match="English and Chinese"):
        tokenizer_for("es", analyzer="squtr-compat")
    with pytest.raises(UnknownNameError, match="squtr-compat"):
        tokenizer_for("en", analyzer="published")  # type: ignore[arg-type]
