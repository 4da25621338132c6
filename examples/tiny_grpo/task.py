# SPDX-License-Identifier: Apache-2.0
"""The task: given digits, write them in ascending order and stop."""

from __future__ import annotations

import random
from dataclasses import dataclass

SEPARATOR = 10
END = 11
VOCABULARY = 12


@dataclass(frozen=True)
class Problem:
    """A prompt and the one response that is fully right."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


class SortTask:
    """An endless supply of problems, and a fixed set to validate on.

    Training problems come from the global `random` stream. The validation set has a stream of its own: how often a
    run validates must not change what it trains on.
    """

    def __init__(self, digits: int, validation_problems: int) -> None:
        self._digits = digits
        stream = random.Random(20_26)
        self.validation = [self._problem(stream.choices(range(10), k=digits)) for _ in range(validation_problems)]

    def sample(self, count: int) -> list[Problem]:
        """Draw `count` fresh problems."""
        return [self._problem(random.choices(range(10), k=self._digits)) for _ in range(count)]

    def _problem(self, digits: list[int]) -> Problem:
        return Problem(prompt=(*digits, SEPARATOR), answer=(*sorted(digits), END))


def repeat(problems: list[Problem], group_size: int) -> list[Problem]:
    """Give each problem `group_size` adjacent places: one group of rollouts."""
    return [problem for problem in problems for _ in range(group_size)]
