# SPDX-License-Identifier: Apache-2.0
"""GRPO whose data goes by a queue; a trainer of its own, chosen by the launcher when it is needed."""

from __future__ import annotations

from typing import Any

from nemo_rl.experience.rollouts import run_multi_turn_rollout
from nemo_rl.utils.logger import Logger
from nemo_rl.utils.timer import Timer


def validate_sync(policy_generation: Any, val_dataloader: Any, step: int, master_config: Any) -> dict[str, Any]:
    timer = Timer()
    with timer.time('total_validation_time'):
        for batch in val_dataloader:
            run_multi_turn_rollout(policy_generation, batch)
    timer.reset()
    return {'accuracy': 0.5}


def grpo_train_sync(
    policy: Any, policy_generation: Any, dataloader: Any, val_dataloader: Any, logger: Logger, master_config: Any
) -> None:
    timer = Timer()
    current_epoch = 0
    total_steps = 0
    for batch in dataloader:
        with timer.time('total_step_time'):
            with timer.time('data_processing'):
                repeated_batch = batch.repeat_interleave(master_config.grpo.num_generations_per_prompt)
            with timer.time('prepare_for_generation/total'):
                pass
            with timer.time('generation'):
                repeated_batch, _ = run_multi_turn_rollout(policy_generation, repeated_batch)
            with timer.time('reward_calculation'):
                pass
            with timer.time('dynamic_sampling'):
                pass
            with timer.time('logprob_inference_prep'):
                pass
            with timer.time('policy_and_reference_logprobs'):
                policy.get_logprobs(repeated_batch)
            with timer.time('advantage_calculation'):
                pass
            with timer.time('training_prep'):
                pass
            with timer.time('policy_training'):
                results = policy.train(repeated_batch, None)
            validate_sync(policy_generation, val_dataloader, total_steps + 1, master_config)
            with timer.time('checkpointing'):
                pass
        logger.log_metrics(results, total_steps + 1, prefix='train')
        timer.reset()
        total_steps += 1
        if total_steps >= master_config.grpo.max_num_steps:
            break
        current_epoch += 0
