"""The published scoring: its measured behaviour, row by row."""

from __future__ import annotations

import sys

import pytest

from squtr.errors import MissingExtraError, UsageError
from squtr.harness.metrics.error_counts import score_transcripts
from squtr.harness.metrics.summaries import summarize_recognition
from squtr.harness.text import normalizers
from squtr.harness.text.normalizers import load_normalizer

ENGLISH = [
    ("I have 20 dollars.", "i have twenty dollars"),
    ("thirty-six members", "thirtysix members"),
    ("36 members", "thirty six members"),
    ("Don't", "dont"),
    ("Don’t", "dont"),
    ("naïve café résumé", "nave caf rsum"),
    ("COVID-19", "covid negative nineteen"),
    ("In 1984, 3.5% of $20", "in nineteen eighty four three point five percent of twenty dollars"),
    ("", ""),
]
CHINESE = [
    ("２０２４年", "二零二四年"),
    ("2024年", "二零二四年"),
    ("二零二四年", "二零二四年"),
    ("50%", "百分之五十"),
    ("百分之五十", "百分之五十"),
    ("100倍", "幺零零倍"),
    ("一百倍", "一百倍"),
    ("３．１４", "三十四"),
    ("臺灣大學", "台湾大学"),
    ("一会儿", "一会"),
    ("花儿", "花"),
    ("呃这个呃", "这个"),
    ("我用iPhone 15 pro", "我用iphone十五pro"),
    ("㐀𠮷", ""),
    ("かな", ""),
    ("?!", ""),
]


@pytest.mark.parametrize(("text", "expected"), ENGLISH)
def test_english(text: str, expected: str) -> None:
    pytest.importorskip("tn", reason="needs squtr[compat]")
    assert load_normalizer("squtr-compat", "en")(text) == expected


@pytest.mark.parametrize(("text", "expected"), CHINESE)
def test_chinese(text: str, expected: str) -> None:
    pytest.importorskip("tn", reason="needs squtr[compat]")
    assert load_normalizer("squtr-compat", "zh")(text) == expected


def test_published_rates() -> None:
    pytest.importorskip("tn", reason="needs squtr[compat]")
    english, chinese = load_normalizer("squtr-compat", "en"), load_normalizer("squtr-compat", "zh")
    glued = score_transcripts(
        {"a": "thirty-six members"}, {"a": "36 members"}, language="en", normalizer=english, unit="word"
    )
    assert glued["a"].rate == 1.0
    rare = score_transcripts({"a": "𠮷野家"}, {"a": "吉野家"}, language="zh", normalizer=chinese, unit="char")
    assert rare["a"].rate == 0.5
    silent = summarize_recognition({"a": "?!", "b": "?!"}, {"a": "", "b": "好"}, language="zh", normalizer=chinese)
    assert silent.scores["cer_macro"] == 0.5
    assert english.version == "WeTextProcessing-1.0.4.1"


def test_other_languages_and_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="does not exist for language 'es'"):
        load_normalizer("squtr-compat", "es")
    for name in ("tn", "tn.english", "tn.english.normalizer"):
        monkeypatch.setitem(sys.modules, name, None)
    normalizers._load.cache_clear()
    with pytest.raises(MissingExtraError, match=r"squtr\[compat\]"):
        load_normalizer("squtr-compat", "en")
    normalizers._load.cache_clear()
