"""Scores of instructions: strict and loose as IFEval defines them, against loops written out."""

from __future__ import annotations

import random

import pytest

from squtr.errors import DataError
from squtr.harness.tasks.understanding.answers.following import AifItem, follow, loose_forms, summarize_aif
from squtr.harness.tasks.understanding.answers.items import Reply
from squtr.harness.tasks.understanding.answers.labels import ItemLabels
from squtr.harness.tasks.understanding.answers.verifiers.registry import Verifier, load_verifier

UPPER, NO_COMMAS, TITLE = load_verifier("uppercase"), load_verifier("no_commas"), load_verifier("title")
THREE_WORDS = load_verifier("words", {"count": 3, "relation": "at most"})


def item(id_: str, *verifiers: Verifier, **more: object) -> AifItem:
    return AifItem(id_, verifiers, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "strict", "loose"),
    [
        ("HOLA", True, True),
        ("Claro:\nHOLA", False, True),
        ("HOLA\nEspero que ayude.", False, True),
        ("Claro:\nHOLA\nEspero que ayude.", False, True),
        ("Claro:\n\nHOLA\nA TODOS\nAdiós.", False, True),
        ("Hola", False, False),
        ("HOLA\nhola\nHOLA\nhola", False, False),
        ("<think>minúsculas</think>HOLA", True, True),
        ("<think>HOLA", False, False),
        ("", False, False),
        (None, False, False),
    ],
)
def test_strict_and_loose(reply: str | None, strict: bool, loose: bool) -> None:
    assert follow([UPPER], reply) == ([strict], [loose])


def test_asterisks_are_left_out_for_loose_scores() -> None:
    starts = load_verifier("start_phrase", {"phrase": "En mi opinión"})
    assert follow([starts], "En *mi* opinión, sí.") == ([False], [True])
    assert follow([load_verifier("highlights")], "*uno*") == ([True], [True])


def test_a_blank_form_is_never_followed() -> None:
    # One line: without it nothing is left, and nothing has no comma.
    assert follow([NO_COMMAS], "uno, dos") == ([False], [False])
    assert loose_forms("uno\n\n") == ["uno\n\n", "uno"]
    assert loose_forms("***") == ["***"]


def test_levels_by_hand() -> None:
    items = [item("a", UPPER, NO_COMMAS), item("b", NO_COMMAS), item("c", TITLE), item("d", UPPER)]
    replies = [Reply("a", "Hola"), Reply("b", "Hola"), Reply("c", "Va:\n<<x>>"), Reply("d", "Va:\nHOLA")]
    found = summarize_aif(items, replies).scores
    assert (found["prompt_strict"], found["prompt_loose"]) == (0.5, 0.75)
    assert (found["instruction_strict"], found["instruction_loose"]) == (3 / 5, 4 / 5)
    assert found["accuracy"] == found["prompt_strict"]
    assert (found["n"], found["n_instructions"], found["missing_replies"]) == (4, 5, 0)
    assert found["verifiers"]["uppercase"] == {
        "strict": 0.0,
        "loose": 0.5,
        "n": 2,
        "strict_wilson": {"low": 0.0, "high": pytest.approx(0.6576, abs=1e-4)},
    }
    assert list(found["verifiers"]) == ["title", "uppercase", "no_commas"]


@pytest.mark.parametrize("seed", range(3))
def test_scores_agree_with_loops(seed: int) -> None:
    rng = random.Random(seed)
    known = [UPPER, NO_COMMAS, TITLE, THREE_WORDS]
    texts = ["HOLA", "hola, tú", "<<T>>\nUNO DOS TRES CUATRO", "Va:\nUNO", "<<Uno>>, dos", "", "*SÍ*"]
    items, replies = [], []
    for n in range(40):
        labels = ItemLabels(("lexical",) if n % 3 else ("syntax",), duration_s=float(n * 10))
        own = rng.sample(known, rng.randint(1, 3))
        items.append(AifItem(str(n), tuple(own), labels, missing_audio=n % 10 == 9))
        if n % 10 < 8:
            replies.append(Reply(str(n), rng.choice(texts)))
    found = summarize_aif(items, replies, resamples=30)
    said = {reply.id: reply.text or "" for reply in replies}

    def by_loop(kept: list[AifItem]) -> dict[str, float]:
        strict = [[v.follows(said.get(each.id, "")) for v in each.verifiers] for each in kept if not each.missing_audio]
        loose = [
            [any(v.follows(form) for form in loose_forms(said.get(each.id, ""))) for v in each.verifiers]
            for each in kept
            if not each.missing_audio
        ]
        flat_strict, flat_loose = [ok for row in strict for ok in row], [ok for row in loose for ok in row]
        return {
            "prompt_strict": sum(map(all, strict)) / len(strict),
            "prompt_loose": sum(map(all, loose)) / len(loose),
            "instruction_strict": sum(flat_strict) / len(flat_strict),
            "instruction_loose": sum(flat_loose) / len(flat_loose),
        }

    scores = found.scores
    for name, value in by_loop(items).items():
        assert scores[name] == pytest.approx(value)
        bounds = scores["intervals"][name]
        assert bounds["low"] <= value + 0.2 and bounds["high"] >= value - 0.2
    for label in ("lexical", "syntax"):
        own = [each for each in items if label in each.labels.perception]
        for name, value in by_loop(own).items():
            assert scores["breakdowns"]["perception"][label][name] == pytest.approx(value)
    assert scores["prompt_loose"] >= scores["prompt_strict"]
    assert scores["instruction_strict"] >= scores["prompt_strict"]
    assert (scores["n"], scores["missing_audio"], scores["missing_replies"], scores["coverage"]) == (36, 4, 4, 0.9)
    assert [row["correct"] for row in found.items].count(None) == 4
    assert sum(row["correct"] or 0 for row in found.items) / 36 == pytest.approx(scores["prompt_strict"])


def test_what_failed_is_named_per_item() -> None:
    found = summarize_aif([item("a", UPPER, NO_COMMAS)], [Reply("a", "Va,\nHOLA")])
    assert found.items == [
        {
            "id": "a",
            "correct": 0,
            "correct_loose": 1,
            "instructions": 2,
            "instructions_strict": 0,
            "instructions_loose": 2,
            "failed": "uppercase no_commas",
            "failed_loose": "",
            "status": "scored",
        }
    ]


@pytest.mark.parametrize(
    ("items", "replies", "said"),
    [
        ([], [], "there are no items"),
        ([item("a")], [], "item 'a' has no verifiers"),
        ([item("a", UPPER)], [Reply("a", "A", order=(0, 1))], "the reply to 'a' has an `order`"),
        ([item("a", UPPER)], [Reply("a", "A"), Reply("a", "B")], "two replies"),
        ([item("a", UPPER)], [Reply("b", "A")], "there is no item 'b'"),
        ([item("a", UPPER, missing_audio=True)], [Reply("a", "A")], "its audio is missing"),
    ],
)
def test_what_does_not_fit_is_named(items: list[AifItem], replies: list[Reply], said: str) -> None:
    with pytest.raises(DataError) as error:
        summarize_aif(items, replies)
    assert said in str(error.value)
