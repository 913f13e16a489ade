"""Chinese words are jieba's, to the last mark."""

from __future__ import annotations

import functools
import logging
import random
import subprocess
import sys
import warnings
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from squtr.harness.components.retrievers.chinese_words import chinese_words, separated_words
from squtr.harness.components.retrievers.unknown_words import unknown_words


@functools.lru_cache(maxsize=1)
def jieba() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@functools.lru_cache(maxsize=1)
def dictionary() -> tuple[list[str], list[int]]:
    known = [(word, n) for word, n in jieba().FREQ.items() if n]
    return [word for word, _ in known], [n for _, n in known]


@functools.lru_cache(maxsize=1)
def ideographs() -> list[str]:
    """Those of frequent words, as often as the words hold them."""
    words, counts = dictionary()
    return sorted(word for word, n in zip(words, counts, strict=True) if n > 500 and len(word) == 1 and word > "\u4e00")


ascii_runs = st.text("abqzQSAB0149+#&._%-", max_size=6)
others = st.text("\u3400\u4dbf\u9fd6\u9fff\uf900\ue000\ue001\ud800\U00020000éñかß½、。，“《 \n\r\t\x00\x1c", max_size=3)
words = st.sampled_from(
    [
        "的",
        "我们",
        "人民",
        "上海",
        "A股",
        "4s店",
        "c++",
        "C#",
        "AT&T",
        "江南style",
        "阿Q",
        "常",
        "在",
        "时",
        "变",
        "突",
        "鿬",
    ]
)


@settings(max_examples=400, deadline=None)
@example("常在时")  # rjieba's own tables join the first two
@example("z考㐀,常在时zか")
@example("q&q-版Q版")
@example("qQ版1.5")
@example("")
@given(st.lists(st.one_of(ascii_runs, others, words, st.text("\u4e00一丁七龥鿕的是不了在", max_size=4))).map("".join))
def test_words_are_those_of_jieba(text: str) -> None:
    # Equally likely readings hold the same words; their order is a matter of the last bit.
    assert sorted(chinese_words(text)) == sorted(jieba().lcut(text))
    if "\x00" not in text:
        assert separated_words(text) == "\x00".join(chinese_words(text))


@pytest.mark.parametrize("seed", range(3))
def test_random_sequences_of_the_dictionary_are_cut_alike(seed: int) -> None:
    rng = random.Random(seed)
    known, counts = dictionary()
    for sample in (
        rng.choices(known, counts, k=4000),
        rng.choices(known, k=2000),
        rng.choices(ideographs(), k=4000),
        [
            rng.choice([*"，。 ", "3.5%", "24-10", "mp3", "A股"]) if i % 5 == 0 else word
            for i, word in enumerate(rng.choices(known, k=3000))
        ],
    ):
        for start in range(0, len(sample), 25):
            text = "".join(sample[start : start + 25])
            assert chinese_words(text) == jieba().lcut(text)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5), max_size=8))
def test_unknown_words_are_those_of_jiebas_model(run: str) -> None:
    from jieba import finalseg

    assert list(unknown_words(run)) == list(finalseg.cut(run))


def test_unknown_words_of_frequent_ideographs_are_those_of_jiebas_model() -> None:
    from jieba import finalseg

    rng = random.Random(0)
    for n in (2, 2, 3, 4, 7):
        for _ in range(1500):
            run = "".join(rng.choices(ideographs(), k=n))
            assert list(unknown_words(run)) == list(finalseg.cut(run))


def test_a_very_long_run_of_letters_is_one_word() -> None:
    assert chinese_words("a" * 3000 + "的") == ["a" * 3000, "的"]


def test_jiebas_dictionary_is_not_built_for_ordinary_text() -> None:
    code = (
        "import sys, jieba\n"
        "from squtr.harness.components.retrievers.chinese_words import chinese_words\n"
        "print(chinese_words('常在时，他以24-10获胜 3.5%'), jieba.dt.initialized)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    words = ["常", "在", "时", "，", "他", "以", "24", "-", "10", "获胜", " ", "3.5%"]
    assert done.stdout == f"{words} False\n"
