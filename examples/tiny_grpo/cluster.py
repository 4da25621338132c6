# SPDX-License-Identifier: Apache-2.0
"""A run on Ray: a cluster of its own on this machine, the parts as actors, and the loop that suits them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ray

from .actors import GenerationWorkerImpl, TrainingWorkerImpl
from .buffer_actor import ReplayBufferActor
from .collector import TrajectoryCollector
from .config import GrpoConfig
from .parts import Parts
from .remote_parts import RemoteGeneration, RemotePolicy, RemoteReward
from .reward_actor import RewardActor
from .trainer import Result, grpo_train
from .trainer_async import grpo_train_async

GenerationWorker = ray.remote(GenerationWorkerImpl)
TrainingWorker = ray.remote(TrainingWorkerImpl)


def train_on_ray(config: GrpoConfig, parts: Parts) -> Result:
    """Train with generation, reward and policy in actors; task, timer, logger and checkpoints stay here."""
    # Actors that only wait take no CPU from those that compute, so two are enough for all.
    ray.init(address='local', num_cpus=2, include_dashboard=False)
    try:
        workers = [GenerationWorker.remote(config, index) for index in range(config.generation_workers)]
        reward = RewardActor.remote()
        trainer = TrainingWorker.remote(config)
        # Each imports torch first, which is no part of the first step.
        actors: list[Any] = [*workers, reward, trainer]
        ray.get([actor.__ray_ready__.remote() for actor in actors])
        parts = replace(
            parts, generation=RemoteGeneration(workers), reward=RemoteReward(reward), policy=RemotePolicy(trainer)
        )
        if not config.asynchronous:
            return grpo_train(config, parts)
        buffer = ReplayBufferActor.remote(config.max_lag)
        collector = TrajectoryCollector.options(max_concurrency=2).remote(config, workers, reward, buffer)
        return grpo_train_async(config, parts, collector, buffer)
    finally:
        ray.shutdown()
