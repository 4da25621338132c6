# SPDX-License-Identifier: Apache-2.0
"""Makes batches of scored rollouts ahead of the trainer, as far as the replay buffer lets it."""

from __future__ import annotations

import threading
from typing import Any

import ray
import torch
from torch import Tensor

from .config import GrpoConfig
from .parts import prepare_process
from .remote_parts import RemoteGeneration, RemoteReward
from .replay_buffer import Experience
from .task import SortTask, repeat
from .timer import Timer


@ray.remote
class TrajectoryCollector:
    """A threaded actor: `run` keeps one thread for the whole training, and `publish` needs another."""

    def __init__(self, config: GrpoConfig, workers: list[Any], reward: Any, buffer: Any) -> None:
        prepare_process(config, config.seed)
        self._config = config
        self._task = SortTask(config.digits, validation_problems=0)
        self._generation = RemoteGeneration(workers)
        self._reward = RemoteReward(reward)
        self._buffer = buffer
        self._timer = Timer()
        self._published = threading.Condition()
        self._weights: dict[str, Tensor] = {}
        self._version = -1  # none yet

    def publish(self, weights: dict[str, Tensor], version: int) -> None:
        """New weights; batches begun from now on are sampled with them."""
        with self._published:
            self._weights, self._version = weights, version
            self._published.notify_all()

    def run(self) -> str:
        """Make one batch for each step of the training; returns where the time went."""
        for _ in range(self._config.steps):
            weights, version = self._newest(after=-1)
            while not ray.get(self._buffer.reserve.remote(version)):
                with self._timer.time('generation_limit_pause'):
                    weights, version = self._newest(after=version)
            ray.get(self._buffer.add.remote(self.collect_batch(weights, version)))
        return self._timer.summary()

    def collect_batch(self, weights: dict[str, Tensor], version: int) -> Experience:
        """Draw prompts, sample a group of responses to each with the weights of `version`, and score them."""
        config, timer = self._config, self._timer
        problems = repeat(self._task.sample(config.prompts_per_step), config.group_size)
        with timer.time('generation'):
            self._generation.prepare_for_generation(weights, version)
            rollouts = self._generation.generate(problems)
            self._generation.finish_generation()
        with timer.time('reward_calculation'):
            rewards = torch.tensor(self._reward.score(problems, rollouts.responses()))
        return Experience(rollouts, rewards)

    def _newest(self, after: int) -> tuple[dict[str, Tensor], int]:
        """The newest weights, once they are newer than version `after`."""
        with self._published:
            self._published.wait_for(lambda: self._version > after)
            return self._weights, self._version
