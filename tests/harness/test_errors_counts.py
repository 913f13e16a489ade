"""Error counts and rates: golden numbers, properties, and agreement with jiwer where it is right."""

from __future__ import annotations

import math
import pickle

import jiwer
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.metrics import error_counts
from squtr.harness.metrics.alignment import align
from squtr.harness.metrics.error_counts import (
    ErrorCounts,
    Unit,
    count_errors,
    count_texts,
    counts_array,
    default_unit,
    score_transcripts,
    tokens,
)
from squtr.harness.metrics.summaries import summarize_recognition
from squtr.harness.text.normalizers import load_normalizer

WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "ee"]), max_size=12)


def brute_force_distance(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, start=1):
        previous, row[0] = row[0], i
        for j, right in enumerate(b, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (left != right))
    return row[-1]


@given(WORDS, WORDS)
def test_the_distance_is_minimal_and_the_parts_fit(a: list[str], b: list[str]) -> None:
    counts = count_errors(a, b)
    assert counts.errors == brute_force_distance(a, b)
    assert counts.insertions - counts.deletions == len(b) - len(a)
    assert counts.reference_length == len(a)
    assert counts.hits >= 0


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_jiwer_agrees_on_filled_references(pairs: list[tuple[list[str], list[str]]]) -> None:
    pairs = [(a, b) for a, b in pairs if a]
    assume(pairs)
    counts = [count_errors(a, b) for a, b in pairs]
    total = sum(counts, ErrorCounts.zero())
    theirs = jiwer.process_words([" ".join(a) for a, _ in pairs], [" ".join(b) for _, b in pairs])
    assert (total.substitutions, total.deletions, total.insertions) == (
        theirs.substitutions,
        theirs.deletions,
        theirs.insertions,
    )
    assert total.hits == theirs.hits
    assert total.rate == pytest.approx(theirs.wer, abs=1e-12)
    assert total.match_error_rate == pytest.approx(theirs.mer, abs=1e-12)


@given(st.text(alphabet="abc", min_size=1), st.text(alphabet="abc"))
def test_jiwer_agrees_on_characters_without_blanks(a: str, b: str) -> None:
    counts = count_errors(tokens(a, "char", "en"), tokens(b, "char", "en"))
    assert counts.rate == pytest.approx(jiwer.cer(a, b), abs=1e-12)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=8))
def test_many_at_once_are_the_same(pairs: list[tuple[list[str], list[str]]]) -> None:
    left, right = ([" ".join(pair[side]) for pair in pairs] for side in (0, 1))
    assert count_texts(left, right, unit="word", language="en") == [count_errors(a, b) for a, b in pairs]


def test_more_tokens_than_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_counts, "_LAST_CODE", 5)
    pairs = [([f"a{i}", f"b{i}", "c"], [f"a{i}", "c", "d"]) for i in range(9)]
    left, right = ([" ".join(pair[side]) for pair in pairs] for side in (0, 1))
    assert count_texts(left, right, unit="word", language="en") == [count_errors(a, b) for a, b in pairs]


@given(WORDS)
def test_equal_text_scores_zero(a: list[str]) -> None:
    assert count_errors(a, list(a)).errors == 0


@given(WORDS, WORDS)
def test_the_alignment_has_the_counted_edits(a: list[str], b: list[str]) -> None:
    ops = align(a, b)
    counts = count_errors(a, b)
    kinds = [op.kind for op in ops]
    assert kinds.count("substitute") == counts.substitutions
    assert kinds.count("delete") == counts.deletions
    assert kinds.count("insert") == counts.insertions
    assert [op.reference for op in ops if op.kind != "insert"] == a
    assert [op.hypothesis for op in ops if op.kind != "delete"] == b
    for op in ops:
        assert (op.kind == "equal") == (op.reference == op.hypothesis)
        assert op.reference_at < 0 or a[op.reference_at] == op.reference
        assert op.hypothesis_at < 0 or b[op.hypothesis_at] == op.hypothesis


@given(st.lists(st.tuples(WORDS, WORDS), max_size=8))
def test_sums_are_exact_in_any_order(pairs: list[tuple[list[str], list[str]]]) -> None:
    counts = [count_errors(a, b) for a, b in pairs]
    total = sum(counts, ErrorCounts.zero())
    assert sum(reversed(counts), ErrorCounts.zero()) == total
    assert tuple(counts_array(counts).sum(axis=0)) == total.as_tuple()
    rate = total.rate
    assert math.isnan(rate) if total.reference_length == 0 else rate == total.errors / total.reference_length


def test_many_distinct_tokens() -> None:
    # Tokens are numbered, not hashed: none can be taken for another.
    many = [f"w{i}" for i in range(3000)]
    assert count_errors(many, many[::-1]).errors == 3000


def test_empty_reference() -> None:
    counts = count_errors([], ["x", "y"])
    assert counts == ErrorCounts(0, 0, 2, 0)
    assert math.isnan(counts.rate)
    assert math.isnan(counts.capped_rate)
    assert counts.match_error_rate == 1.0
    filled = ErrorCounts(1, 0, 0, 4)
    assert (counts + filled).rate == 0.75
    found = summarize_recognition(
        {"a": "", "b": "a b c d"}, {"a": "x y", "b": "a b c x"}, language="en", normalizer=load_normalizer("raw", "en")
    )
    assert (found.scores["wer"], found.scores["wer_macro"], found.scores["empty_references"]) == (0.75, 0.25, 1)


def test_rates_above_one_stay() -> None:
    counts = count_errors(["a"], ["b", "c", "d"])
    assert counts.rate == 3.0
    assert counts.capped_rate == 1.0


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(DataError, match="impossible"):
        ErrorCounts(1, 1, 0, 1)
    with pytest.raises(DataError, match="impossible"):
        ErrorCounts(0, 0, -1, 1)


def test_units() -> None:
    assert tokens("我 爱 你", "char", "zh") == ["我", "爱", "你"]
    assert tokens("我用iphone 15 pro吧", "mixed", "zh") == ["我", "用", "iphone", "15", "pro", "吧"]
    assert tokens("𠮷野家へ go", "mixed", "ja") == ["𠮷", "野", "家", "へ", "go"]
    assert tokens("  ", "word", "en") == tokens("", "char", "zh") == tokens(" ", "mixed", "en") == []
    for language in ("zh", "zh-TW", "yue", "ja", "th"):
        with pytest.raises(UsageError, match="'word' has no meaning for language"):
            tokens("我", "word", language)
        assert default_unit(language) == "char"
    assert default_unit("es") == default_unit("ko") == "word"
    with pytest.raises(UnknownNameError, match="unit 'words'"):
        tokens("a", "words", "en")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="language 'qq'"):
        default_unit("qq")


def test_transcripts_are_joined_by_id() -> None:
    normalizer = load_normalizer("default", "en")
    references = {"a": "Twenty one!", "b": "yes"}
    counts = score_transcripts(references, {"b": "yes", "a": "21"}, language="en", normalizer=normalizer, unit="word")
    assert list(counts) == ["a", "b"]
    assert sum(counts.values(), ErrorCounts.zero()).rate == 0.0
    with pytest.raises(DataError, match="no hypothesis for id 'b'"):
        score_transcripts(references, {"a": "21"}, language="en", normalizer=normalizer, unit="word")
    with pytest.raises(DataError, match="no reference for id 'c'"):
        score_transcripts(references, references | {"c": ""}, language="en", normalizer=normalizer, unit="word")


def test_counts_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(ErrorCounts(1, 2, 3, 9))) == ErrorCounts(1, 2, 3, 9)


@given(st.lists(st.tuples(st.text("ab 我你\u3000", max_size=9), st.text("ab 我你\u3000", max_size=9)), max_size=5))
@pytest.mark.parametrize(("unit", "language"), [("word", "en"), ("char", "zh"), ("char", "en"), ("mixed", "zh")])
def test_texts_count_as_their_tokens(unit: Unit, language: str, pairs: list[tuple[str, str]]) -> None:
    expected = [count_errors(tokens(a, unit, language), tokens(b, unit, language)) for a, b in pairs]
    said, heard = [a for a, _ in pairs], [b for _, b in pairs]
    assert count_texts(said, heard, unit=unit, language=language) == expected


def test_texts_are_refused_as_tokens_are() -> None:
    with pytest.raises(DataError, match="1 references and 0 hypotheses"):
        count_texts(["a"], [], unit="word", language="en")
    with pytest.raises(UsageError, match="written without spaces"):
        count_texts([], [], unit="word", language="zh")
    with pytest.raises(UnknownNameError, match="unknown unit"):
        count_texts([], [], unit="phone", language="en")  # type: ignore[arg-type]
