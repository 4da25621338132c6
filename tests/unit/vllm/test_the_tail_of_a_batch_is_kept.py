# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from lens_auto.vllm.tail import FAILED, SLOWEST, Tail

LENGTHS = some.tuples(some.integers(1, 1000), some.integers(0, 500))


def ended(number: int, duration: int) -> Any:
    return SimpleNamespace(start=number, number=number), number + duration, 0


@given(some.lists(LENGTHS, min_size=1, max_size=60))
def test_the_slowest_and_the_longest_are_always_kept_and_few_besides(batch: list[tuple[int, int]]) -> None:
    kept: list[int] = []
    tail = Tail(lambda span, end, status: kept.append(span.number))
    lost = 0
    for number, (duration, tokens) in enumerate(batch):
        lost += tail.offer(ended(number, duration), tokens, False, number == len(batch) - 1)
    assert len(kept) + lost == len(batch)
    assert len(kept) == len(set(kept)) <= SLOWEST + 1
    assert max(duration for duration, _ in batch) in [batch[number][0] for number in kept]
    assert max(tokens for _, tokens in batch) in [batch[number][1] for number in kept]


def test_failures_are_kept_at_once_up_to_a_limit() -> None:
    kept: list[int] = []
    tail = Tail(lambda span, end, status: kept.append(span.number))
    for number in range(FAILED + 100):
        tail.offer(ended(number, 1), 0, True, False)
    assert kept[:FAILED] == list(range(FAILED))
    assert len(kept) <= FAILED + SLOWEST + 1
