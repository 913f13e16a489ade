"""Flags of transcripts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from squtr.harness.metrics.flags import flag_counts, flag_utterance, is_loop, longest_repetition


@given(st.lists(st.sampled_from("abc"), max_size=14))
def test_longest_repetition_agrees_with_brute_force(tokens: list[str]) -> None:
    best = 0
    for start in range(len(tokens)):
        for period in range(1, len(tokens)):
            copies = 1
            while tokens[start : start + period] == tokens[start + copies * period : start + (copies + 1) * period]:
                copies += 1
                if start + copies * period > len(tokens):
                    break
            if copies > 1 and start + copies * period <= len(tokens):
                best = max(best, copies * period)
    assert longest_repetition(tokens)[1] == best


def test_loops() -> None:
    assert is_loop(str.split("i am going to the the shop of the shop of the shop of the shop of the"), ["i"])
    assert is_loop(list("谢谢观看" * 4), list("今天天气"))
    assert not is_loop(list("哈哈哈"))
    assert not is_loop(str.split("to be or not to be that is the question"))
    # What was said may repeat.
    said = ("row " * 10).split()
    assert not is_loop(said, said)
    assert is_loop(said * 3, said)
    assert not is_loop([])


def test_flags() -> None:
    assert flag_utterance(["a"], []).empty
    assert not flag_utterance([], []).empty
    assert flag_utterance([], ["x"]).hallucination
    assert flag_utterance(["a"], ["x"], silent=True).hallucination
    assert not flag_utterance(["a"], ["x"]).hallucination
    assert flag_utterance(["a"], ["a"], truncated=True, loop=True).loop
    found = flag_counts([flag_utterance(["a"], []), flag_utterance(["a"], ["a"], truncated=True)])
    assert found == {"loop": 0, "hallucination": 0, "empty": 1, "truncated": 1, "n": 2}
