# SPDX-License-Identifier: Apache-2.0
"""The verifier as a service of its own; a larger one would run code or call a judge here."""

from __future__ import annotations

from collections.abc import Sequence

import ray

from .reward import Reward
from .task import Problem


@ray.remote
class RewardActor:
    """Scores for whoever asks."""

    def __init__(self) -> None:
        self._reward = Reward()

    def score(self, problems: Sequence[Problem], responses: Sequence[Sequence[int]]) -> list[float]:
        return self._reward.score(problems, responses)
