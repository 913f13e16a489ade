"""Batches by tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import ModelError
from squtr.harness.components.batches import in_token_batches


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 60), st.integers(1, 60))
def test_every_item_is_done_once_within_the_budget_and_the_memory(lengths: list[int], budget: int, room: int) -> None:
    sizes: list[int] = []

    def work(batch: list[int]) -> list[str]:
        tokens = max(1, *(lengths[i] for i in batch), 1) * len(batch)
        assert len(batch) == 1 or tokens <= budget
        if len(batch) > 1 and tokens > room:
            raise MemoryError
        sizes.append(len(batch))
        return [str(i) for i in batch]

    items = list(range(len(lengths)))
    assert in_token_batches(items, lengths, budget, work, who="m") == [str(i) for i in items]
    assert sum(sizes) == len(items)


def test_what_goes_wrong_is_said() -> None:
    with pytest.raises(ModelError, match=r"m has no memory for one item of 3 tokens \('abc'\)"):
        in_token_batches(["abc"], [3], 9, _out_of_memory, who="m")
    with pytest.raises(ModelError, match="m gave 0 results for 1 items"):
        in_token_batches(["abc"], [3], 9, lambda batch: [], who="m")
    with pytest.raises(RuntimeError, match="something else"):
        in_token_batches(["abc"], [3], 9, _something_else, who="m")


def _out_of_memory(batch: list[str]) -> list[str]:
    raise RuntimeError("CUDA out of memory")


def _something_else(batch: list[str]) -> list[str]:
    raise RuntimeError("something else")
