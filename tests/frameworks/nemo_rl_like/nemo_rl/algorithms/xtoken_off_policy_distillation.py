# SPDX-License-Identifier: Apache-2.0
"""Distillation from teachers with tokenizers of their own."""

from __future__ import annotations

from typing import Any

from nemo_rl.utils.config import BaseModel, Section
from nemo_rl.utils.logger import Logger
from nemo_rl.utils.timer import Timer


class MasterConfig(BaseModel):
    distillation: Section
    policy: dict[str, Any]

    def __init__(self, /, **data: Any) -> None:
        super().__init__(**{**data, 'distillation': Section(**data['distillation'])})


def setup(
    master_config: MasterConfig,
    student_tokenizer: Any,
    teacher_tokenizers: dict[str, Any],
    train_dataset: Any,
    val_dataset: Any,
) -> tuple[Any, Any]:
    """What trains, and what it is trained on."""
    return train_dataset, val_dataset


def xtoken_off_policy_distillation_train(
    student_policy: Any,
    teacher_policies: dict[str, Any],
    dataloader: Any,
    val_dataloader: Any,
    loss_fn: Any,
    logger: Logger,
    checkpointer: Any,
    off_policy_distillation_state: dict[str, Any],
    master_config: MasterConfig,
) -> None:
    timer = Timer()
    total_steps = off_policy_distillation_state['total_steps']
    current_epoch = 0
    for batch in dataloader:
        with timer.time('total_step_time'):
            with timer.time('teacher_forward'):
                for teacher in teacher_policies.values():
                    teacher.get_topk_logits(batch, k=2, timer=timer)
            with timer.time('training_prep'):
                student_policy.prepare_for_training()
            with timer.time('policy_training'):
                results = student_policy.train(batch, loss_fn)
            validate(student_policy, teacher_policies, val_dataloader, loss_fn, master_config, ())
            with timer.time('checkpointing'):
                pass
        logger.log_metrics(results, total_steps + 1, prefix='train')
        timer.reset()
        total_steps += 1
        if total_steps >= master_config.distillation.max_num_steps:
            break
    current_epoch += 1


def validate(
    student_policy: Any,
    teacher_policies: dict[str, Any],
    val_dataloader: Any,
    loss_fn: Any,
    master_config: MasterConfig,
    skip_keys: tuple[str, ...],
    timer: Timer | None = None,
) -> dict[str, Any]:
    timer = timer or Timer()
    with timer.time('validation_total'):
        for batch in val_dataloader:
            student_policy.train(batch, loss_fn, eval_mode=True)
    return {'val_loss': 1.0}
