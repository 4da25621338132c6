# SPDX-License-Identifier: Apache-2.0
"""What runs inside the generation and training workers. Plain classes: `cluster.py` makes Ray actors of them."""

from __future__ import annotations

from torch import Tensor

from .config import GrpoConfig
from .generation import Generation, Rollouts
from .parts import build_model, prepare_process
from .policy import Policy, TrainingBatch
from .task import Problem


class GenerationWorkerImpl:
    """One of several samplers. It keeps no state between calls but its random stream."""

    def __init__(self, config: GrpoConfig, index: int) -> None:
        # Streams apart from each other and from the trainer's, and the same in every run of this seed.
        prepare_process(config, seed=config.seed * 1000 + 1 + index)
        self._generation = Generation(build_model(config), config.max_new_tokens, config.temperature)

    def generate(self, weights: dict[str, Tensor], version: int, problems: list[Problem], greedy: bool) -> Rollouts:
        """One whole round with the weights of `version`.

        Weights come with every call: callers that interleave, as the collector and a validation do, cannot mix
        versions up.
        """
        self._generation.prepare_for_generation(weights, version)
        rollouts = self._generation.generate(problems, greedy)
        self._generation.finish_generation()
        return rollouts


class TrainingWorkerImpl:
    """Owns the policy."""

    def __init__(self, config: GrpoConfig) -> None:
        prepare_process(config, config.seed)
        self._policy = Policy(build_model(config), config)

    def weights(self) -> dict[str, Tensor]:
        return self._policy.weights()

    def logprobs(self, rollouts: Rollouts) -> Tensor:
        return self._policy.logprobs(rollouts)

    def reference_logprobs(self, rollouts: Rollouts) -> Tensor:
        return self._policy.reference_logprobs(rollouts)

    def train(self, batch: TrainingBatch) -> tuple[dict[str, float], int]:
        """Returns what was measured, and the version that the policy has now."""
        metrics = self._policy.train(batch)
        return metrics, self._policy.version
