# SPDX-License-Identifier: Apache-2.0
"""How good the policy is when it does not explore: greedy answers to problems it never trains on."""

from __future__ import annotations

from .roles import GenerationRole, PolicyRole, RewardRole
from .task import SortTask


def validate(task: SortTask, generation: GenerationRole, reward: RewardRole, policy: PolicyRole) -> dict[str, float]:
    """Mean reward and share of exactly right answers on the validation set.

    Greedy decoding draws no random number: a run that validates more often trains the same.
    """
    generation.prepare_for_generation(policy.weights(), policy.version)
    rollouts = generation.generate(task.validation, greedy=True)
    generation.finish_generation()
    rewards = reward.score(task.validation, rollouts.responses())
    return {
        'reward': sum(rewards) / len(rewards),
        'accuracy': sum(r == 1.0 for r in rewards) / len(rewards),
    }
