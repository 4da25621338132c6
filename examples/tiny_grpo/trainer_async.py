# SPDX-License-Identifier: Apache-2.0
"""The GRPO loop that trains on what was generated meanwhile."""

from __future__ import annotations

import sys
from typing import Any

import ray

from .advantage import group_relative_advantages
from .config import GrpoConfig
from .parts import Parts
from .policy import TrainingBatch
from .replay_buffer import Experience
from .trainer import Result, due, step_metrics
from .validation import validate


def grpo_train_async(config: GrpoConfig, parts: Parts, collector: Any, buffer: Any) -> Result:
    """Train the policy for `config.steps` steps on batches of the collector.

    A batch was sampled by a policy up to `config.max_lag` versions old. Its old log-probabilities are those of the
    policy as it is when the step begins, so the clip bounds what this step changes; the lag itself is kept small.
    """
    policy, timer, logger = parts.policy, parts.timer, parts.logger
    mean_rewards: list[float] = []
    accuracy = 0.0
    ray.get(collector.publish.remote(policy.weights(), policy.version))
    collecting = collector.run.remote()
    for step in range(1, config.steps + 1):
        with timer.time('total_step_time'):
            with timer.time('exposed_generation'):
                experience = _next_batch(buffer, collecting)
            rollouts, rewards = experience.rollouts, experience.rewards
            lag = policy.version - rollouts.weight_version

            with timer.time('policy_and_reference_logprobs'):
                old_logprobs = policy.logprobs(rollouts)
                reference_logprobs = policy.reference_logprobs(rollouts)

            with timer.time('advantage_calculation'):
                advantages = group_relative_advantages(rewards, config.group_size)
                batch = TrainingBatch(rollouts, old_logprobs, reference_logprobs, advantages)

            timer.start('policy_training')
            training = policy.train(batch)
            timer.stop('policy_training')

            with timer.time('weight_sync'):
                weights = policy.weights()
                ray.get(collector.publish.remote(weights, policy.version))

            if due(step, config.save_every, config.steps):
                with timer.time('checkpointing'):
                    parts.checkpoints.save(step, weights)

            if due(step, config.validate_every, config.steps):
                with timer.time('validation'):
                    scores = validate(parts.task, parts.generation, parts.reward, policy)
                    accuracy = scores['accuracy']
                logger.log_metrics(scores, step, prefix='validation')

        metrics = step_metrics(training, rewards, rollouts) | {'lag': lag}
        logger.log_metrics(metrics, step, prefix='train')
        mean_rewards.append(metrics['reward'])
    print('collector', ray.get(collecting), file=sys.stderr)
    return Result(mean_rewards, accuracy)


def _next_batch(buffer: Any, collecting: Any) -> Experience:
    """Wait for a batch, but not for a collector that has failed."""
    taking = buffer.take.remote()
    ready, _ = ray.wait([taking, collecting], num_returns=1)
    if taking not in ready:
        ray.get(collecting)  # raises what it failed with; one that is merely done has left a batch behind
    return ray.get(taking)
