"""How text becomes terms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UsageError
from squtr.harness.backends.lexical_tokens import ENGLISH_STOP_WORDS, folded, has_words, tokenizer_for


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
    code = "from squtr.harness.backends.lexical_tokens import tokenizer_for; print(tokenizer_for('zh')('我有猫'))"
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
