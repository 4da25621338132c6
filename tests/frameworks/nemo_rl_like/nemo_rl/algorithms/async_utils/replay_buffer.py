# SPDX-License-Identifier: Apache-2.0
"""Where the collector leaves trajectories for the trainer."""

from __future__ import annotations

from typing import Any

import ray


class ReplayBufferImpl:
    def __init__(self, first_polls: int) -> None:
        self.trajectories: list[Any] = []
        self.polls_to_come = first_polls

    def push(self, trajectory: Any) -> str:
        self.trajectories.append(trajectory)
        return 'success'

    def sample(self, num_prompt_groups: int, current_weight_version: int) -> Any:
        """A batch, or None when there is none yet; the first calls always come too early."""
        if self.polls_to_come:
            self.polls_to_come -= 1
            return None
        return self.trajectories.pop(0) if self.trajectories else None


@ray.remote
class ReplayBuffer(ReplayBufferImpl):
    pass
