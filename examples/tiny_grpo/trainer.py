# SPDX-License-Identifier: Apache-2.0
"""The GRPO loop."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .advantage import group_relative_advantages
from .config import GrpoConfig
from .generation import Rollouts
from .parts import Parts
from .policy import TrainingBatch
from .task import repeat
from .validation import validate


@dataclass(frozen=True)
class Result:
    """How a run went: the mean reward of each step, and the last validation accuracy (0 if there was none)."""

    rewards: list[float]
    accuracy: float


def grpo_train(config: GrpoConfig, parts: Parts) -> Result:
    """Train the policy for `config.steps` steps.

    A step: draw prompts, sample a group of responses to each, score them, and push the policy towards the responses
    that beat their group.
    """
    task, generation, reward, policy = parts.task, parts.generation, parts.reward, parts.policy
    timer, logger = parts.timer, parts.logger
    mean_rewards: list[float] = []
    accuracy = 0.0
    for step in range(1, config.steps + 1):
        with timer.time('total_step_time'):
            with timer.time('data_processing'):
                problems = repeat(task.sample(config.prompts_per_step), config.group_size)

            with timer.time('generation'):
                generation.prepare_for_generation(policy.weights(), policy.version)
                rollouts = generation.generate(problems)
                generation.finish_generation()

            with timer.time('reward_calculation'):
                rewards = torch.tensor(reward.score(problems, rollouts.responses()))

            with timer.time('policy_and_reference_logprobs'):
                old_logprobs = policy.logprobs(rollouts)
                reference_logprobs = policy.reference_logprobs(rollouts)

            with timer.time('advantage_calculation'):
                advantages = group_relative_advantages(rewards, config.group_size)
                batch = TrainingBatch(rollouts, old_logprobs, reference_logprobs, advantages)

            timer.start('policy_training')
            training = policy.train(batch)
            timer.stop('policy_training')

            if due(step, config.save_every, config.steps):
                with timer.time('checkpointing'):
                    parts.checkpoints.save(step, policy.weights())

            if due(step, config.validate_every, config.steps):
                with timer.time('validation'):
                    scores = validate(task, generation, reward, policy)
                    accuracy = scores['accuracy']
                logger.log_metrics(scores, step, prefix='validation')

        metrics = step_metrics(training, rewards, rollouts)
        logger.log_metrics(metrics, step, prefix='train')
        mean_rewards.append(metrics['reward'])
    return Result(mean_rewards, accuracy)


def step_metrics(training: dict[str, float], rewards: Tensor, rollouts: Rollouts) -> dict[str, float]:
    """What a step reports."""
    return {
        'loss': training['loss'],
        'reward': rewards.mean().item(),
        'kl': training['kl'],
        'grad_norm': training['grad_norm'],
        'lr': training['lr'],
        'response_length': rollouts.lengths.float().mean().item(),
        'generated_tokens': int(rollouts.lengths.sum()),
    }


def due(step: int, every: int, last: int) -> bool:
    """Every `every` steps and at the end; 0 switches it off."""
    return every > 0 and (step % every == 0 or step == last)
