# SPDX-License-Identifier: Apache-2.0
"""The verifier: compares a response with the answer. No model, no opinion."""

from __future__ import annotations

from collections.abc import Sequence

from .task import Problem


class Reward:
    """Partial credit: the share of the answer's tokens, `END` included, that stand in their place."""

    def score(self, problems: Sequence[Problem], responses: Sequence[Sequence[int]]) -> list[float]:
        """One reward in [0, 1] for each response; 1.0 means exactly right."""
        return [_matches(p.answer, r) / len(p.answer) for p, r in zip(problems, responses, strict=True)]


def _matches(answer: Sequence[int], response: Sequence[int]) -> int:
    return sum(a == b for a, b in zip(answer, response, strict=False))
