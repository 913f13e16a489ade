"""Multiple-choice scores: golden values, agreement with loops written out, and what must always hold."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.harness.tasks.understanding.answers.accuracy import (
    McqaItem,
    answer_index,
    mark,
    summarize_mcqa,
    wilson_interval,
)
from squtr.harness.tasks.understanding.answers.items import Reply
from squtr.harness.tasks.understanding.answers.labels import PERCEPTION, REASONING, ItemLabels, breakdowns_of
from squtr.harness.tasks.understanding.answers.option_text import LETTERS
from squtr.harness.tasks.understanding.answers.position import Shown, position_bias
from squtr.loaders.questions.labels import PERCEPTION_SPELLINGS, REASONING_SPELLINGS, canonical
from squtr.loaders.questions.spellings import INTELLIGIBILITY_OF

WORDS = ("rojo", "verde", "azul", "negro", "blanco")


def item(id_: str, size: int = 4, answer: int = 0, **more: object) -> McqaItem:
    return McqaItem(id_, WORDS[:size], answer, **more)  # type: ignore[arg-type]


def test_the_chance_of_the_full_set() -> None:
    items = [item(f"q{n}", 4 if n < 848 else 3 if n < 893 else 2) for n in range(900)]
    found = summarize_mcqa(items, [], resamples=10).scores
    assert found["chance"] == pytest.approx((848 / 4 + 45 / 3 + 7 / 2) / 900)
    assert round(100 * found["chance"], 2) == 25.61
    assert (found["accuracy"], found["accuracy_parsed"], found["unparsed"], found["missing_replies"]) == (
        0,
        None,
        1,
        900,
    )
    assert found["accuracy_corrected"] == pytest.approx(-0.25611 / 0.74389, abs=1e-4)
    assert {name: each["chance"] for name, each in found["breakdowns"]["options"].items()} == {
        "4": 0.25,
        "3": pytest.approx(1 / 3),
        "2": 0.5,
    }


def test_all_right_and_drawing() -> None:
    items = [item(f"q{n}", 4, n % 4) for n in range(40)]
    right = summarize_mcqa(items, [Reply(each.id, LETTERS[each.answer]) for each in items]).scores
    assert (right["accuracy"], right["accuracy_parsed"], right["accuracy_corrected"], right["unparsed"]) == (1, 1, 1, 0)
    assert right["intervals"]["accuracy"] == {"low": 1, "high": 1}
    assert right["intervals"]["accuracy_wilson"]["low"] == pytest.approx(0.9124, abs=1e-4)
    first = summarize_mcqa(items, [Reply(each.id, "A") for each in items]).scores
    assert (first["accuracy"], first["accuracy_corrected"]) == (0.25, 0)


def test_missing_audio_is_coverage_and_never_wrong() -> None:
    items = [item("a"), item("b", missing_audio=True), item("c"), item("d")]
    found = summarize_mcqa(items, [Reply("a", "A"), Reply("c", None, missing_audio=True)])
    scores = found.scores
    assert (scores["n"], scores["missing_audio"], scores["coverage"], scores["missing_replies"]) == (2, 2, 0.5, 1)
    assert (scores["accuracy"], scores["unparsed"], scores["chance"]) == (0.5, 0.5, 0.25)
    assert [row["correct"] for row in found.items] == [1, None, None, 0]
    assert [row["status"] for row in found.items] == ["parsed", "missing_audio", "missing_audio", "missing_reply"]
    assert scores["breakdowns"]["options"]["4"]["missing_audio"] == 2
    gone = summarize_mcqa([item("b", missing_audio=True)], []).scores
    assert (gone["n"], gone["coverage"], gone["accuracy"], gone["position_bias"]) == (0, 0, None, None)


@pytest.mark.parametrize(
    ("items", "replies", "said"),
    [
        ([], [], "there are no items"),
        ([item("a"), item("a")], [], "item 'a' is there twice"),
        ([item("a")], [Reply("b", "A")], "there is no item 'b'"),
        ([item("a")], [Reply("a", "A"), Reply("a", "B")], "two replies in one order"),
        ([item("a", missing_audio=True)], [Reply("a", "A")], "its audio is missing"),
        ([item("a")], [Reply("a", "A", missing_audio=True)], "its audio is missing"),
        ([item("a")], [Reply("a", "A", order=(0, 1))], "the order [0, 1] is not one of 4 options"),
        ([item("a")], [Reply("a", "A", order=(0, 1, 2, 2))], "is not one of 4 options"),
    ],
)
def test_what_does_not_fit_is_named(items: list[McqaItem], replies: list[Reply], said: str) -> None:
    with pytest.raises(DataError) as error:
        summarize_mcqa(items, replies)
    assert said in str(error.value)


def test_duration_edges_must_rise() -> None:
    for edges in ((), (3.0, 2.0), (1.0, 1.0), (math.inf,)):
        with pytest.raises(UsageError):
            summarize_mcqa([item("a")], [], duration_edges_s=edges)


@pytest.mark.parametrize(
    ("answer", "options", "index"),
    [
        ("rojo", ("rojo", "azul"), 0),
        (" azul ", ("rojo", "azul"), 1),
        ("B", ("rojo", "azul"), 1),
        ("b", ("rojo", "azul"), 1),
        ("A", ("A", "B"), 0),
        ("C", ("Sí", "C", "no"), None),
        ("A", ("B", "A"), None),
        ("D", ("B", "D"), 1),
        ("Azul", ("rojo", "azul"), None),
        ("C", ("rojo", "azul"), None),
        ("1", ("rojo", "azul"), None),
        ("", ("rojo", "azul"), None),
        ("an\u0303o", ("año", "mes"), 0),
    ],
)
def test_answers_are_texts_or_letters(answer: str, options: tuple[str, ...], index: int | None) -> None:
    if index is None:
        with pytest.raises(DataError):
            answer_index(answer, options)
    else:
        assert answer_index(answer, options) == index


# Orders


@given(st.permutations(range(4)), st.integers(0, 3), st.integers(0, 3))
def test_orders_are_undone(order: list[int], answer: int, chosen: int) -> None:
    own = item("q", 4, answer)
    by_letter = mark(own, Reply("q", f"({LETTERS[order.index(chosen)]})", order=tuple(order)))
    by_text = mark(own, Reply("q", WORDS[chosen], order=tuple(order)))
    assert by_letter.chosen == by_text.chosen == chosen
    assert by_letter.right == (chosen == answer)
    assert by_letter.shown == Shown(4, order.index(answer), order.index(chosen))


def test_consistency_over_orders() -> None:
    orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    steady, first, mute = item("a", 3, 1), item("b", 3, 1), item("c", 3, 1)
    replies = [Reply("a", WORDS[1], order=order) for order in orders]
    replies += [Reply("b", "A", order=order) for order in orders]
    replies += [
        Reply("c", "verde", order=orders[0]),
        Reply("c", "verde", order=orders[1]),
        Reply("c", "?", order=orders[2]),
    ]
    found = summarize_mcqa([steady, first, mute, item("d", 3, 0)], [*replies, Reply("d", "rojo")])
    scores = found.scores
    # Pairs that agree: 3 of 3, 0 of 3, 1 of 3.
    assert scores["consistency"] == pytest.approx(4 / 9)
    assert (scores["consistent"], scores["accuracy_all_orders"], scores["n_orders"]) == (1 / 3, 1 / 3, 3)
    assert scores["accuracy"] == pytest.approx((1 + 1 / 3 + 2 / 3 + 1) / 4)
    assert scores["unparsed"] == pytest.approx(1 / 12)
    assert [row["parsed"] for row in found.items] == ["B B B", "A B C", "B B -", "A"]
    assert found.items[1]["correct"] == pytest.approx(1 / 3)
    alone = summarize_mcqa([steady], [Reply("a", "B")]).scores
    assert (alone["consistency"], alone["n_orders"]) == (None, 0)


# Agreement with loops


def some_set(seed: int) -> tuple[list[McqaItem], list[Reply]]:
    rng = random.Random(seed)
    items, replies = [], []
    for n in range(60):
        size = rng.choice([2, 3, 4, 5])
        labels = ItemLabels(
            perception=tuple(rng.sample(list(PERCEPTION), rng.randint(0, 3))),
            reasoning=tuple(rng.sample(list(REASONING), rng.randint(0, 2))),
            comparative=rng.choice([True, False, None]),
            aetiology=rng.choice(["", "als", "stroke"]),
            intelligibility=rng.choice(["", "low", "medium"]),
            sex=rng.choice(["", "female"]),
            duration_s=rng.choice([math.nan, 10.0, 30.0, 59.0, 2000.0]),
        )
        items.append(item(f"q{n}", size, rng.randrange(size), labels=labels, missing_audio=rng.random() < 0.1))
        if not items[-1].missing_audio and rng.random() < 0.9:
            replies.append(Reply(f"q{n}", rng.choice([*WORDS[:size], "A", "B", "no lo sé", "A o B", ""])))
    return items, replies


@pytest.mark.parametrize("seed", range(5))
def test_scores_agree_with_loops(seed: int) -> None:
    items, replies = some_set(seed)
    said = {reply.id: reply for reply in replies}
    found = summarize_mcqa(items, replies, resamples=20).scores

    def by_loop(kept: list[McqaItem]) -> dict[str, float | None]:
        right = parsed = chance = n = 0.0
        for each in kept:
            if each.missing_audio:
                continue
            n += 1
            chance += 1 / len(each.options)
            marked = mark(each, said.get(each.id))
            parsed += marked.chosen is not None
            right += marked.chosen == each.answer
        if not n:
            return dict.fromkeys(("accuracy", "accuracy_parsed", "chance", "accuracy_corrected", "unparsed"))
        accuracy, c = right / n, chance / n
        return {
            "accuracy": accuracy,
            "accuracy_parsed": right / parsed if parsed else None,
            "chance": c,
            "accuracy_corrected": (accuracy - c) / (1 - c),
            "unparsed": 1 - parsed / n,
        }

    def check(scores: dict[str, object], kept: list[McqaItem]) -> None:
        assert {name: scores[name] for name in by_loop(kept)} == {
            name: None if value is None else pytest.approx(value) for name, value in by_loop(kept).items()
        }
        assert scores["n"] == sum(not each.missing_audio for each in kept)
        assert scores["missing_audio"] == sum(each.missing_audio for each in kept)

    check(found, items)
    breakdowns = found["breakdowns"]
    for label in PERCEPTION:
        check(breakdowns["perception"][label], [each for each in items if label in each.labels.perception])
    for one, other in itertools.product(PERCEPTION, REASONING):
        kept = [each for each in items if one in each.labels.perception and other in each.labels.reasoning]
        if kept:
            check(breakdowns["perception|reasoning"][f"{one}|{other}"], kept)
    for size in (2, 3, 4, 5):
        check(breakdowns["options"][str(size)], [each for each in items if len(each.options) == size])
    for name, value in (("yes", True), ("no", False)):
        check(breakdowns["comparative"][name], [each for each in items if each.labels.comparative is value])
    ill = [each for each in items if each.labels.aetiology]
    check(breakdowns["aetiology"]["als"], [each for each in ill if each.labels.aetiology == "als"])
    check(breakdowns["intelligibility"]["missing"], [each for each in ill if not each.labels.intelligibility])
    check(breakdowns["sex"]["missing"], [each for each in ill if not each.labels.sex])
    check(breakdowns["duration"]["30-60 s"], [each for each in items if 30 <= each.labels.duration_s < 60])
    check(breakdowns["duration"][">=1200 s"], [each for each in items if each.labels.duration_s >= 1200])
    check(breakdowns["duration"]["missing"], [each for each in items if math.isnan(each.labels.duration_s)])


def test_intervals_are_those_of_resampled_items() -> None:
    items, replies = some_set(9)
    found = summarize_mcqa(items, replies, resamples=4000, seed=1).scores
    heard = [each for each in items if not each.missing_audio]
    said = {reply.id: reply for reply in replies}
    right = np.array([mark(each, said.get(each.id)).right for each in heard], dtype=float)
    chance = np.array([1 / len(each.options) for each in heard])
    drawn = np.random.default_rng(0).integers(0, len(heard), size=(4000, len(heard)))
    accuracy, c = right[drawn].mean(axis=1), chance[drawn].mean(axis=1)
    for name, values in (("accuracy", accuracy), ("accuracy_corrected", (accuracy - c) / (1 - c))):
        low, high = np.quantile(values, [0.025, 0.975])
        assert found["intervals"][name]["low"] == pytest.approx(low, abs=0.03)
        assert found["intervals"][name]["high"] == pytest.approx(high, abs=0.03)


def test_clusters_widen_intervals() -> None:
    items = [item(f"q{n}", 4, 0) for n in range(40)]
    replies = [Reply(each.id, "A" if n < 20 else "B") for n, each in enumerate(items)]
    clusters = {each.id: str(n // 10) for n, each in enumerate(items)}
    own, together = (
        summarize_mcqa(items, replies, clusters=each).scores["intervals"]["accuracy"] for each in (None, clusters)
    )
    assert together["high"] - together["low"] > own["high"] - own["low"]
    with pytest.raises(DataError, match="id 'q0' has no cluster"):
        summarize_mcqa(items, replies, clusters={})


@given(st.integers(0, 40), st.integers(1, 40))
def test_wilson_holds_the_share(successes: int, n: int) -> None:
    if successes > n:
        return
    found = wilson_interval(successes, n)
    assert 0 <= found.low <= successes / n + 1e-12
    assert successes / n - 1e-12 <= found.high <= 1
    assert found.high > found.low


def test_wilson_of_published_values() -> None:
    # Newcombe, Statistics in Medicine 17, 1998, table I.
    for successes, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = wilson_interval(successes, n)
        assert (round(found.low, 4), round(found.high, 4)) == (low, high)


# Spoken and written


def test_spoken_and_written_are_paired_and_counted_once() -> None:
    items = [item(f"q{n}", 4, 0) for n in range(4)]
    items += [item(f"s{n}", 4, 0, spoken_of=f"q{n}") for n in range(3)]
    items += [item("t9", 4, 0, spoken_of="q9")]
    replies = [Reply(f"q{n}", "A") for n in range(4)]
    replies += [Reply("s0", "A"), Reply("s1", "B"), Reply("s2", None, missing_audio=True), Reply("t9", "B")]
    scores = summarize_mcqa(items, replies).scores
    assert (scores["n"], scores["accuracy"]) == (5, 0.8)
    assert scores["spoken"] == {
        "accuracy_spoken": 0.5,
        "accuracy_written": 1.0,
        "difference": -0.5,
        "interval": {"low": -1.0, "high": 0.0},
        "p_value": 1.0,
        "n": 2,
        "missing_audio": 1,
    }
    assert scores["breakdowns"]["question"]["spoken"]["n"] == 1
    assert summarize_mcqa(items[:4], replies[:4]).scores["spoken"] is None


# Labels


def test_spellings_of_labels() -> None:
    assert [
        canonical(each, PERCEPTION_SPELLINGS) for each in ("Sintaxis", "PROSODY", "speech activity", "Actividad de voz")
    ] == [*("syntax", "prosody", "speech_activity", "speech_activity")]
    assert [
        canonical(each, REASONING_SPELLINGS)
        for each in ("Cross-boundary entity", "sentido común", "intent/pragmatic/causal")
    ] == [*("cross_boundary_entity", "factual", "intent")]
    assert [canonical(each, INTELLIGIBILITY_OF) for each in ("Media-baja", "medium_low", "high")] == [
        *("medium-low", "medium-low", "high")
    ]
    assert (len(PERCEPTION), len(REASONING)) == (9, 10)


def test_slices_are_in_a_fixed_order() -> None:
    labels = [ItemLabels(("zeta", "syntax", "alfa", "lexical"), more={"b": ("y", "x"), "a": ("1",)})]
    found = breakdowns_of(labels, options=[4])
    assert list(found) == ["perception", "options", "a", "b"]
    assert list(found["perception"]) == ["lexical", "syntax", "alfa", "zeta"]


# Places


def test_a_system_without_preference_is_seldom_found_to_have_one() -> None:
    rng = random.Random(0)
    p_values = []
    for seed in range(300):
        replies = []
        for _ in range(80):
            size = rng.choice([2, 3, 4])
            right = 0 if rng.random() < 0.6 else rng.randrange(size)  # The right ones are not spread evenly.
            knows = rng.random() < 0.5
            chosen = right if knows else rng.choice([place for place in range(size) if place != right])
            replies.append(Shown(size, right, chosen))
        p_values.append(position_bias(replies, seed=seed, resamples=1).p_value)
    below = np.mean(np.array(p_values) < 0.05)
    assert 0.02 < below < 0.09
    assert 0.4 < np.mean(p_values) < 0.6


def test_the_test_of_places_by_hand() -> None:
    # Two options leave wrong choices no freedom; three with the right one first leave two places.
    assert math.isnan(position_bias([Shown(2, 0, 1)] * 5, seed=0).p_value)
    found = position_bias([Shown(3, 0, 1)] * 9 + [Shown(3, 0, 2)] + [Shown(3, 0, 0), Shown(3, 0, None)], seed=0)
    # 9 against 1 where 5 and 5 are expected: (9 - 5)² / (10 / 4).
    assert found.chi_square == pytest.approx(6.4)
    assert (found.degrees_of_freedom, found.n_wrong) == (1, 10)
    assert found.p_value == pytest.approx(0.011412, abs=1e-6)
    assert found.recall["A"] == pytest.approx(1 / 12)
    assert math.isnan(found.recall["B"])
    assert math.isnan(found.rstd)


@given(st.lists(st.tuples(st.integers(2, 5), st.integers(0, 4), st.integers(-1, 4)), min_size=1, max_size=30))
def test_places_agree_with_loops(rows: list[tuple[int, int, int]]) -> None:
    replies = [Shown(size, right % size, None if chosen < 0 else chosen % size) for size, right, chosen in rows]
    found = position_bias(replies, seed=0, resamples=5)
    for place, letter in enumerate(LETTERS[: max(size for size, _, _ in rows)]):
        here = [reply for reply in replies if reply.right == place]
        assert found.right[letter] == len(here)
        assert found.chosen[letter] == sum(reply.chosen == place for reply in replies)
        if here:
            assert found.recall[letter] == pytest.approx(sum(reply.chosen == place for reply in here) / len(here))
    recalls = [value for value in found.recall.values() if not math.isnan(value)]
    assert found.rstd == pytest.approx(np.std(recalls)) if len(recalls) > 1 else math.isnan(found.rstd)


def test_answers_load_neither_torch_nor_datasets() -> None:
    code = """
import sys, pkgutil, importlib, squtr.harness.tasks.understanding.answers as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
heavy = {"torch", "datasets", "transformers", "scipy", "py3langid"} & {name.partition(".")[0] for name in sys.modules}
sys.exit(str(heavy) if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
