"""From recognition errors to retrieval loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.metrics.alignment import align
from squtr.harness.metrics.attribution import attribute, loss_by_token_class, rank_correlation
from squtr.harness.metrics.error_counts import ErrorCounts
from squtr.harness.metrics.key_tokens import capitalized_words, key_token_errors

SHARE = st.sampled_from([0.0, 0.25, 0.5, 1.0])
ROWS = st.lists(st.tuples(st.integers(0, 4), SHARE, SHARE), min_size=2, max_size=20)


def rates_of(counts: dict[str, ErrorCounts]) -> dict[str, float]:
    return {id_: own.rate for id_, own in counts.items()}


@given(ROWS)
def test_the_two_parts_make_the_whole(rows: list[tuple[int, float, float]]) -> None:
    counts = {str(i): ErrorCounts(errors, 0, 0, 4) for i, (errors, _, _) in enumerate(rows)}
    spoken = {str(i): score for i, (_, score, _) in enumerate(rows)}
    typed = {str(i): score for i, (_, _, score) in enumerate(rows)}
    found = attribute(rates_of(counts), spoken, typed, resamples=50)
    assert found.retriever.value + found.asr.value == pytest.approx(found.shortfall.value)
    assert found.perfect.n + found.imperfect.n == found.n == len(rows)
    rates = np.array([errors / 4 for errors, _, _ in rows])
    lost = np.array([text - score for _, score, text in rows])
    if np.ptp(rates) and np.ptp(lost):
        assert found.slope.value == pytest.approx(scipy.stats.linregress(rates, lost).slope)
        assert found.rank_correlation == pytest.approx(scipy.stats.spearmanr(rates, lost).statistic)
    elif not np.ptp(rates):
        assert math.isnan(found.slope.value)


def test_asr_without_errors_loses_nothing() -> None:
    counts = {i: ErrorCounts(0, 0, 0, 3) for i in "abc"}
    scores = {"a": 1.0, "b": 0.0, "c": 0.5}
    found = attribute(rates_of(counts), scores, scores)
    assert found.asr.value == 0.0
    assert found.asr_share == 0.0
    assert found.perfect_fails == pytest.approx(1 / 3)
    assert found.imperfect.n == 0
    assert math.isnan(found.imperfect_succeeds)


def test_bad_transcripts_that_still_succeed() -> None:
    counts = {"a": ErrorCounts(1, 0, 0, 3), "b": ErrorCounts(3, 0, 0, 3), "c": ErrorCounts(0, 0, 2, 0)}
    found = attribute(rates_of(counts), {"a": 0.8, "b": 0.0, "c": 0.1}, {"a": 0.8, "b": 0.6, "c": 0.1})
    assert found.imperfect_succeeds == 0.5
    # The query with an empty reference has no rate, but its score counts.
    assert (found.slope.n, found.n) == (2, 3)


def test_ids_and_ranges_are_checked() -> None:
    counts = {"a": ErrorCounts(0, 0, 0, 1)}
    with pytest.raises(DataError, match="'b' is in one only"):
        attribute(rates_of(counts), {"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0})
    with pytest.raises(DataError, match=r"score of 'a' with text is 1\.5"):
        attribute(rates_of(counts), {"a": 1.0}, {"a": 1.5})


def test_rank_correlation_is_undefined_for_constants() -> None:
    assert math.isnan(rank_correlation(np.array([1.0, 1.0]), np.array([0.0, 1.0])))
    assert math.isnan(rank_correlation(np.array([1.0]), np.array([0.0])))


def test_names() -> None:
    assert capitalized_words("Where did Josh Norman play in 2015?") == {"josh", "norman"}
    assert capitalized_words("¿Quién pintó el Guernica? Fue Picasso") == {"guernica", "picasso"}
    assert capitalized_words("WHO IS THERE") == frozenset()
    assert capitalized_words("谁演唱了国歌？") == frozenset()
    assert capitalized_words("") == frozenset()
    assert capitalized_words("can I go") == frozenset()


def test_key_errors() -> None:
    steps = align("pay 15 euros to marie".split(), "play 50 euros to mary now".split())
    assert key_token_errors(steps, {"marie"}) == (2, 2)
    assert key_token_errors(align(["a"], ["a", "7"])) == (1, 0)
    assert key_token_errors([]) == (0, 0)


def test_loss_by_token_class() -> None:
    found = loss_by_token_class(
        {"a": (1, 2), "b": (0, 1), "c": (0, 0), "d": (2, 0)},
        {"a": 0.0, "b": 0.5, "c": 1.0, "d": 0.2},
        dict.fromkeys("abcd", 1.0),
    )
    assert (found.key.n, found.other.n, found.none.n) == (2, 1, 1)
    assert found.key.value == pytest.approx(0.9)
    assert found.other.value == 0.5
    assert found.none.value == 0.0
