# SPDX-License-Identifier: Apache-2.0
"""Distillation on the student's own answers."""

from __future__ import annotations

from typing import Any

from nemo_rl.experience.rollouts import run_multi_turn_rollout
from nemo_rl.utils.config import BaseModel, Section
from nemo_rl.utils.logger import Logger
from nemo_rl.utils.timer import Timer


class MasterConfig(BaseModel):
    distillation: Section
    policy: dict[str, Any]

    def __init__(self, /, **data: Any) -> None:
        super().__init__(**{**data, 'distillation': Section(**data['distillation'])})


def validate(
    policy_generation: Any, val_dataloader: Any, tokenizer: Any, val_task_to_env: Any, step: int, master_config: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    timer = Timer()
    with timer.time('total_validation_time'):
        for batch in val_dataloader:
            run_multi_turn_rollout(policy_generation, batch)
    return {'accuracy': 0.5}, timer.get_timing_metrics('sum')


def distillation_train(
    student_policy: Any,
    teacher_policy: Any,
    student_generation: Any,
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
                repeated_batch = batch.repeat_interleave(master_config.distillation.num_generations_per_prompt)
            with timer.time('prepare_for_generation'):
                pass
            with timer.time('generation'):
                repeated_batch, rollout_metrics = run_multi_turn_rollout(student_generation, repeated_batch)
            with timer.time('data_processing'):
                pass
            with timer.time('teacher_logprob_inference_prep'):
                pass
            with timer.time('teacher_logprob_inference'):
                teacher_policy.get_topk_logits(repeated_batch, k=2, timer=timer)
            with timer.time('training_prep'):
                pass
            with timer.time('policy_training'):
                results = student_policy.train(repeated_batch, None)
            validate(student_generation, val_dataloader, None, None, total_steps + 1, master_config)
            with timer.time('checkpointing'):
                pass
        logger.log_metrics({**results, **rollout_metrics}, total_steps + 1, prefix='train')
        timer.reset()
        total_steps += 1
        if total_steps >= master_config.distillation.max_num_steps:
            break
    current_epoch += 1
