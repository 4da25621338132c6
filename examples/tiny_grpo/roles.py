# SPDX-License-Identifier: Apache-2.0
"""What the training loop asks of its parts, wherever they live: in this process, or behind Ray actors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from .generation import Rollouts
from .policy import TrainingBatch
from .task import Problem


class GenerationRole(Protocol):
    """Writes responses; `Generation` is the plain one."""

    def prepare_for_generation(self, weights: dict[str, Tensor], version: int) -> None: ...

    def generate(self, problems: list[Problem], greedy: bool = False) -> Rollouts: ...

    def finish_generation(self) -> None: ...


class RewardRole(Protocol):
    """Scores responses; `Reward` is the plain one."""

    def score(self, problems: Sequence[Problem], responses: Sequence[Sequence[int]]) -> list[float]: ...


class PolicyRole(Protocol):
    """Learns; `Policy` is the plain one."""

    version: int

    def weights(self) -> dict[str, Tensor]: ...

    def logprobs(self, rollouts: Rollouts) -> Tensor: ...

    def reference_logprobs(self, rollouts: Rollouts) -> Tensor: ...

    def train(self, batch: TrainingBatch) -> dict[str, float]: ...
