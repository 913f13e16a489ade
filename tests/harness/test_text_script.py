"""Traditional to simplified characters."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UnknownNameError
from squtr.harness.text.script import fold_script, folding_versions

PAIRS = [
    ("乾隆乾杯乾淨乾坤", "乾隆干杯干净乾坤"),
    ("頭髮發展", "头发发展"),
    ("臺灣颱風舞臺", "台湾台风舞台"),
    ("皇后以後", "皇后以后"),
    ("麵條表面", "面条表面"),
    ("裡面公里", "里面公里"),
    ("杯盤狼藉，找藉口", "杯盘狼藉，找借口"),
    ("複雜重複恢復覆蓋", "复杂重复恢复覆盖"),
    ("宮商角徵羽徵求長征", "宫商角徵羽征求长征"),
    ("瞭解瞭望", "了解瞭望"),
    ("一隻豬", "一只猪"),
    ("餘額", "余额"),
    ("看著接著睡著了", "看着接着睡着了"),
    ("意味著著名的著作", "意味着著名的著作"),
    ("顯著原著名著專著編著土著", "显著原著名著专著编著土著"),
    ("以山水著稱", "以山水著称"),
    ("魯迅著《吶喊》", "鲁迅著《呐喊》"),
    ("穿著執著著急著火", "穿着执着着急着火"),
    ("妳說甚麼", "你说什么"),
    ("軟體", "软体"),
]


@pytest.mark.parametrize(("traditional", "simplified"), PAIRS)
def test_phrases_decide(traditional: str, simplified: str) -> None:
    assert fold_script(traditional, "simplified") == simplified
    assert fold_script(simplified, "simplified") == simplified


def test_simplified_text_is_left_alone() -> None:
    data = resources.files("squtr.loaders") / "data" / "mini"
    texts = [json.loads(line)["text"] for line in (data / "corpus.zh.jsonl").read_text("utf-8").splitlines()]
    assert len(texts) > 100
    assert [t for t in texts if fold_script(t) != t] == []


@pytest.mark.parametrize("text", ["", "plain English 15/50", "¿Cuánto cuesta el año?", "ABC。，！"])
def test_other_text_is_left_alone(text: str) -> None:
    assert fold_script(text) == text


@given(st.text(alphabet=st.characters(max_codepoint=0x2E7F)))
def test_text_without_han_characters_is_never_touched(text: str) -> None:
    assert fold_script(text) == text


@given(st.lists(st.sampled_from(PAIRS), max_size=4))
def test_words_fold_alike_in_running_text(pairs: list[tuple[str, str]]) -> None:
    folded = fold_script("，".join(traditional for traditional, _ in pairs))
    assert folded == "，".join(simplified for _, simplified in pairs)


def test_an_unknown_script_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="simplified"):
        fold_script("字", "cursive")


def test_versions_are_told() -> None:
    assert set(folding_versions()) == {"opencc", "rules"}
