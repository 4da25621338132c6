# SPDX-License-Identifier: Apache-2.0
"""The parts of the loop with the work done elsewhere: each call goes to actors and waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray
from torch import Tensor

from .generation import Rollouts
from .policy import TrainingBatch
from .sharding import merge, split
from .task import Problem


class RemoteGeneration:
    """Generation on several workers at once."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers = workers
        self._weights: Any = None
        self._version = 0

    def prepare_for_generation(self, weights: dict[str, Tensor], version: int) -> None:
        """Put the weights where every worker can map them."""
        self._weights, self._version = ray.put(weights), version

    def generate(self, problems: list[Problem], greedy: bool = False) -> Rollouts:
        """Each worker answers its share of the problems; the answers come back in the problems' order."""
        shares = split(problems, len(self._workers))
        pending = [
            worker.generate.remote(self._weights, self._version, share, greedy)
            for worker, share in zip(self._workers, shares, strict=False)
        ]
        return merge(ray.get(pending))

    def finish_generation(self) -> None:
        """Let go of the weights."""
        self._weights = None


class RemoteReward:
    """The reward actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def score(self, problems: Sequence[Problem], responses: Sequence[Sequence[int]]) -> list[float]:
        return ray.get(self._actor.score.remote(problems, responses))


class RemotePolicy:
    """The training worker; `version` is that of its policy."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self.version = 0

    def weights(self) -> dict[str, Tensor]:
        return ray.get(self._worker.weights.remote())

    def logprobs(self, rollouts: Rollouts) -> Tensor:
        return ray.get(self._worker.logprobs.remote(rollouts))

    def reference_logprobs(self, rollouts: Rollouts) -> Tensor:
        return ray.get(self._worker.reference_logprobs.remote(rollouts))

    def train(self, batch: TrainingBatch) -> dict[str, float]:
        metrics, self.version = ray.get(self._worker.train.remote(batch))
        return metrics
