# SPDX-License-Identifier: Apache-2.0
"""PPO: GRPO's phases and those of a critic."""

from __future__ import annotations

import time
from typing import Any

import ray

from nemo_rl.algorithms.async_utils.replay_buffer import ReplayBuffer
from nemo_rl.algorithms.async_utils.trajectory_collector import AsyncTrajectoryCollector
from nemo_rl.experience.rollouts import run_multi_turn_rollout
from nemo_rl.models.value.lm_value import Value
from nemo_rl.utils.config import BaseModel, Section
from nemo_rl.utils.logger import Logger
from nemo_rl.utils.timer import Timer


class MasterConfig(BaseModel):
    ppo: Section
    policy: dict[str, Any]

    def __init__(self, /, **data: Any) -> None:
        super().__init__(**{**data, 'ppo': Section(**data['ppo'])})


def validate(
    policy_generation: Any, val_dataloader: Any, tokenizer: Any, val_task_to_env: Any, step: int, master_config: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    timer = Timer()
    with timer.time('total_validation_time'):
        for batch in val_dataloader:
            run_multi_turn_rollout(policy_generation, batch)
    return {'accuracy': 0.5}, timer.get_timing_metrics('sum')


def ppo_train(
    policy: Any,
    value: Value,
    policy_generation: Any,
    dataloader: Any,
    val_dataloader: Any,
    logger: Logger,
    master_config: Any,
) -> None:
    timer = Timer()
    current_epoch = 0
    total_steps = 0
    for batch in dataloader:
        with timer.time('total_step_time'):
            with timer.time('data_processing'):
                repeated_batch = batch.repeat_interleave(master_config.ppo.num_generations_per_prompt)
            with timer.time('prepare_for_generation/total'):
                with timer.time('policy_offload_after_refit'):
                    pass
            with timer.time('generation'):
                repeated_batch, rollout_metrics = run_multi_turn_rollout(policy_generation, repeated_batch)
            with timer.time('reward_calculation'):
                pass
            with timer.time('data_processing'):
                pass
            with timer.time('value_inference'):
                value.get_values(repeated_batch, timer=timer)
            with timer.time('logprob_inference_prep'):
                pass
            with timer.time('policy_and_reference_logprobs'):
                policy.get_logprobs(repeated_batch, timer=timer)
            with timer.time('advantage_calculation'):
                pass
            for _ in range(master_config.ppo.ppo_epochs):
                with timer.time('value_training_prep'):
                    pass
                with timer.time('value_training'):
                    critic = value.train(repeated_batch, None, timer=timer)
                with timer.time('training_prep'):
                    pass
                with timer.time('policy_training'):
                    results = policy.train(repeated_batch, None, timer=timer)
            validate(policy_generation, val_dataloader, None, None, step=total_steps + 1, master_config=master_config)
            with timer.time('checkpointing'):
                pass
        metrics = {**results, **critic, **rollout_metrics, 'reward': 0.5}
        logger.log_metrics(metrics, total_steps + 1, prefix='train')
        timer.reset()
        total_steps += 1
        if total_steps >= master_config.ppo.max_num_steps:
            break
    current_epoch += 1


def async_ppo_train(
    policy: Any,
    value: Value,
    policy_generation: Any,
    dataloader: Any,
    val_dataloader: Any,
    logger: Logger,
    master_config: Any,
) -> None:
    timer = Timer()
    step = 0
    timer.start('init/total')
    replay_buffer = ReplayBuffer.options(num_cpus=0).remote(first_polls=3)
    trajectory_collector: Any = AsyncTrajectoryCollector.options(num_cpus=0, name='ppo_collector').remote(
        policy_generation, replay_buffer, master_config
    )
    ray.get(trajectory_collector.start_collection.remote(dataloader))
    timer.stop('init/total')
    while step < master_config.ppo.max_num_steps:
        with timer.time('total_step_time'):
            with timer.time('exposed_generation'):
                batch = ray.get(replay_buffer.sample.remote(num_prompt_groups=2, current_weight_version=step))
                if batch is None:
                    with timer.time('idle/buffer_starvation'):
                        time.sleep(0.05)
                    continue
            with timer.time('data_processing'):
                pass
            with timer.time('value_inference'):
                value.get_values(batch, timer=timer)
            with timer.time('logprob_inference_prep'):
                pass
            with timer.time('policy_and_reference_logprobs'):
                policy.get_logprobs(batch, timer=timer)
            with timer.time('advantage_calculation'):
                pass
            with timer.time('value_training_prep'):
                pass
            with timer.time('value_training'):
                value.train(batch, None, timer=timer)
            with timer.time('training_prep'):
                pass
            with timer.time('policy_training'):
                results = policy.train(batch, None, timer=timer)
            with timer.time('idle/refit_bubble'):
                with timer.time('exposed_generation'):
                    ray.get(trajectory_collector.prepare_for_refit.remote())
                with timer.time('weight_sync'):
                    ray.get(trajectory_collector.set_weight_version.remote(step + 1))
                ray.get(trajectory_collector.resume_after_refit.remote())
            with timer.time('idle/validation'):
                validate(policy_generation, val_dataloader, None, None, step=step + 1, master_config=master_config)
            with timer.time('checkpointing'):
                pass
        logger.log_metrics(results, step + 1, prefix='train')
        timer.reset()
        step += 1
    ray.kill(trajectory_collector)
