# SPDX-License-Identifier: Apache-2.0
"""Prompts become answers, and answers rewards."""

from __future__ import annotations

from typing import Any

from nemo_rl.distributed.batched_data_dict import BatchedDataDict


def calculate_rewards(batch: BatchedDataDict, task_to_env: Any) -> list[float]:
    return [1.0] * batch.size


def run_multi_turn_rollout(
    policy_generation: Any, input_batch: BatchedDataDict, task_to_env: Any = None, greedy: bool = False
) -> tuple[BatchedDataDict, dict[str, Any]]:
    """One turn for each sample, all at once."""
    generated = policy_generation.generate(input_batch, greedy=greedy)
    rewards = calculate_rewards(input_batch, task_to_env)
    metrics = {'mean_gen_tokens_per_sample': float(generated['generation_lengths'].mean()), 'histogram/lengths': [3]}
    return BatchedDataDict(input_batch, total_reward=rewards), metrics


async def run_async_multi_turn_rollout(
    policy_generation: Any, input_batch: BatchedDataDict, task_to_env: Any = None
) -> BatchedDataDict:
    """One sample after the other."""
    async for _ in policy_generation.generate_async(input_batch):
        pass
    return BatchedDataDict(input_batch, total_reward=calculate_rewards(input_batch, task_to_env))
