# SPDX-License-Identifier: Apache-2.0
"""GRPO: generation and training in turn, or generation ahead of training."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from nemo_rl.algorithms.async_utils.replay_buffer import ReplayBuffer
from nemo_rl.algorithms.async_utils.trajectory_collector import AsyncTrajectoryCollector
from nemo_rl.algorithms.utils import performance, print_efficiency_summary
from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.experience.rollouts import run_multi_turn_rollout
from nemo_rl.models.generation.vllm.vllm_generation import VllmGeneration
from nemo_rl.models.policy.lm_policy import Policy
from nemo_rl.utils.config import BaseModel, Section
from nemo_rl.utils.logger import Logger
from nemo_rl.utils.timer import Timer


class MasterConfig(BaseModel):
    grpo: Section
    policy: dict[str, Any]
    logger: dict[str, Any]
    data: dict[str, Any]
    checkpointing: dict[str, Any]

    def __init__(self, /, **data: Any) -> None:
        super().__init__(**{**data, 'grpo': Section(**data['grpo'])})


def setup(master_config: MasterConfig, workers: Any = None) -> tuple[Policy, VllmGeneration, Logger]:
    """The policy, the generation backend and the logger."""
    started = time.perf_counter()
    logger = Logger(master_config.logger)
    # In threads, one after the other here, so that what is printed has an order.
    with ThreadPoolExecutor(max_workers=1) as executor:
        generation = executor.submit(VllmGeneration, master_config.policy['generation'], workers=workers).result()
        generation_time = time.perf_counter() - started
        policy = executor.submit(Policy, master_config.policy, workers=workers).result()
    total = time.perf_counter() - started
    metrics = {
        'vllm_init_time_s': generation_time,
        'policy_init_time_s': total - generation_time,
        'total_setup_time_s': total,
        'parallel_init_enabled': 1.0,
    }
    logger.log_metrics(metrics, step=0, prefix='timing/setup')
    return policy, generation, logger


def refit_policy_generation(
    policy: Any, policy_generation: Any, colocated_inference: bool, timer: Timer | None = None
) -> dict[str, float]:
    if timer is not None:
        with timer.time('prepare_for_generation/transfer_and_update_weights'):
            pass
    return {}


def validate(
    policy_generation: Any, val_dataloader: Any, tokenizer: Any, val_task_to_env: Any, step: int, master_config: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    timer = Timer(context={'worker': 'validator'})
    with timer.time('total_validation_time'):
        for batch in val_dataloader:
            run_multi_turn_rollout(policy_generation, batch, val_task_to_env)
    timings = timer.get_timing_metrics(reduction_op='sum')
    timer.reset()
    return {'accuracy': 0.5, 'reward': 77.0}, timings


def grpo_train(
    policy: Any,
    policy_generation: Any,
    wrapped_dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    logger: Logger,
    master_config: Any,
) -> None:
    timer = Timer(context={'worker': 'driver'})
    current_epoch = 0
    current_step = 0
    total_steps = 0
    while total_steps < master_config.grpo.max_num_steps:
        for batch in wrapped_dataloader:
            print(f'step {total_steps + 1}', flush=True)
            with timer.time('total_step_time'):
                with timer.time('data_processing'):
                    repeated_batch = batch.repeat_interleave(master_config.grpo.num_generations_per_prompt)
                with timer.time('prepare_for_generation/total'):
                    refit_policy_generation(policy, policy_generation, True, timer=timer)
                with timer.time('generation'):
                    repeated_batch, rollout_metrics = run_multi_turn_rollout(policy_generation, repeated_batch)
                    policy_generation.finish_generation()
                    logger.log_metrics(rollout_metrics, total_steps + 1, prefix='train')
                with timer.time('reward_calculation'):
                    rewards = repeated_batch['total_reward']
                with timer.time('data_processing'):
                    train_data = BatchedDataDict(repeated_batch)
                with timer.time('logprob_inference_prep'):
                    policy.prepare_for_lp_inference()
                with timer.time('policy_and_reference_logprobs'):
                    train_data['prev_logprobs'] = policy.get_logprobs(train_data, timer=timer)
                    train_data['ref_logprobs'] = policy.get_reference_policy_logprobs(train_data, timer=timer)
                with timer.time('advantage_calculation'):
                    mean_reward = sum(rewards) / len(rewards)
                with timer.time('training_prep'):
                    policy.prepare_for_training()
                with timer.time('policy_training'):
                    train_results = policy.train(train_data, loss_fn, timer=timer)
                if (total_steps + 1) % master_config.grpo.val_period == 0:
                    val_metrics, timings = validate(
                        policy_generation,
                        val_dataloader,
                        tokenizer,
                        None,
                        step=total_steps + 1,
                        master_config=master_config,
                    )
                    logger.log_metrics(timings, total_steps + 1, prefix='timing/validation')
                    logger.log_metrics(val_metrics, total_steps + 1, prefix='validation')
                if (total_steps + 1) % master_config.checkpointing['save_period'] == 0:
                    with timer.time('checkpointing'):
                        policy.save_checkpoint(f'{master_config.logger["log_dir"]}/step_{total_steps + 1}')
            metrics = {**rollout_metrics, **train_results, 'reward': mean_reward, 'kl_penalty': 0.125}
            metrics |= {'approx_entropy': 2.0, 'num_valid_samples': len(rewards)}
            print(f'  loss {train_results["loss"]:.3f} reward {mean_reward:.3f}', flush=True)
            timing_metrics = timer.get_timing_metrics(reduction_op='sum')
            logger.log_metrics(metrics, total_steps + 1, prefix='train')
            logger.log_metrics(performance(120), total_steps + 1, prefix='performance')
            logger.log_metrics(timing_metrics, total_steps + 1, prefix='timing/train', step_finished=True)
            timer.reset()
            current_step += 1
            total_steps += 1
            if total_steps >= master_config.grpo.max_num_steps:
                break
            if current_step == master_config.grpo.steps_per_epoch:
                break
        current_epoch += 1
        current_step = 0


def async_grpo_train(
    policy: Any,
    policy_generation: Any,
    dataloader: Any,
    val_dataloader: Any,
    tokenizer: Any,
    loss_fn: Any,
    logger: Logger,
    master_config: Any,
) -> None:
    timer = Timer(context={'worker': 'driver'})
    started = time.perf_counter()
    step = 0
    timer.start('init/total')
    replay_buffer = ReplayBuffer.options(num_cpus=0).remote(first_polls=3)
    trajectory_collector = AsyncTrajectoryCollector.options(num_cpus=0, name='collector').remote(
        policy_generation, replay_buffer, master_config
    )
    _get(trajectory_collector.start_collection.remote(dataloader))
    timer.stop('init/total')
    while step < master_config.grpo.max_num_steps:
        with timer.time('total_step_time'):
            with timer.time('exposed_generation'):
                train_data = _get(replay_buffer.sample.remote(num_prompt_groups=2, current_weight_version=step))
                if train_data is None:
                    with timer.time('idle/buffer_starvation'):
                        time.sleep(0.05)
                    continue
            with timer.time('reward_calculation'):
                rewards = train_data['total_reward']
            with timer.time('data_processing'):
                with timer.time('overlong_filter'):
                    pass
                with timer.time('mask_sample_filter'):
                    pass
            with timer.time('logprob_inference_prep'):
                policy.prepare_for_lp_inference()
            with timer.time('policy_and_reference_logprobs'):
                policy.get_logprobs(train_data, timer=timer)
            with timer.time('advantage_calculation'):
                mean_reward = sum(rewards) / len(rewards)
            with timer.time('training_prep'):
                policy.prepare_for_training()
            with timer.time('policy_training'):
                train_results = policy.train(train_data, loss_fn, timer=timer)
            timer.start('idle/refit_bubble')
            with timer.time('exposed_generation'):
                _get(trajectory_collector.prepare_for_refit.remote())
            with timer.time('weight_sync'):
                refit_policy_generation(policy, policy_generation, False)
            _get(trajectory_collector.set_weight_version.remote(step + 1))
            time.sleep(0.1)
            fail = step + 1 == getattr(master_config.grpo, 'fail_at_refit', 0)
            _get(trajectory_collector.resume_after_refit.remote(fail))
            timer.stop('idle/refit_bubble')
            if (step + 1) % master_config.grpo.val_period == 0:
                with timer.time('idle/validation'):
                    val_metrics, timings = validate(
                        policy_generation, val_dataloader, tokenizer, None, step=step + 1, master_config=master_config
                    )
                    logger.log_metrics(val_metrics, step + 1, prefix='validation')
                    logger.log_metrics(timings, step + 1, prefix='timing/validation')
            if (step + 1) % master_config.checkpointing['save_period'] == 0:
                with timer.time('checkpointing'):
                    policy.save_checkpoint(f'{master_config.logger["log_dir"]}/step_{step + 1}')
        timing_metrics = timer.get_timing_metrics(reduction_op='sum')
        collected = _get(trajectory_collector.get_efficiency_metrics.remote())
        efficiency = print_efficiency_summary({**timing_metrics, **collected}, time.perf_counter() - started, step)
        logger.log_metrics(performance(120), step + 1, prefix='performance')
        logger.log_metrics({**train_results, 'reward': mean_reward}, step + 1, prefix='train')
        logger.log_metrics(efficiency, step + 1, prefix='')
        logger.log_metrics(timing_metrics, step + 1, prefix='timing/train', step_finished=True)
        timer.reset()
        step += 1


def _get(ref: Any) -> Any:
    import ray

    return ray.get(ref)
