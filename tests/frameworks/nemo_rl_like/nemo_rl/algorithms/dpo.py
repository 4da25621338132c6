# SPDX-License-Identifier: Apache-2.0
"""Direct preference optimization; the reference's log-probabilities come with the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nemo_rl.utils.config import BaseModel, Section
from nemo_rl.utils.logger import Logger
from nemo_rl.utils.timer import Timer


class MasterConfig(BaseModel):
    dpo: Section
    policy: dict[str, Any]

    def __init__(self, /, **data: Any) -> None:
        super().__init__(**{**data, 'dpo': Section(**data['dpo'])})


def add_ref_logprobs_to_data(dataloader: Any, policy: Any) -> Iterator[Any]:
    for batch in dataloader:
        batch['reference_policy_logprobs'] = policy.get_reference_policy_logprobs(batch)
        yield batch


def setup(master_config: MasterConfig, tokenizer: Any, train_dataset: Any, val_dataset: Any) -> tuple[Any, Any]:
    """What trains, and what it is trained on."""
    return train_dataset, val_dataset


def validate(
    policy: Any, val_dataloader: Any, tokenizer: Any, loss_fn: Any, step: int, master_config: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    metrics: dict[str, Any] = {}
    for name, loader in val_dataloader.items():
        metrics[name] = validate_one_dataset(policy, loader, loss_fn, step)
    return metrics, {}


def validate_one_dataset(policy: Any, val_dataloader: Any, loss_fn: Any, step: int) -> dict[str, Any]:
    timer = Timer()
    with timer.time('total_validation_time'):
        for batch in val_dataloader:
            policy.train(batch, loss_fn, eval_mode=True)
    return {'loss': 1.0}


def dpo_train(policy: Any, train_dataloader: Any, val_dataloader: Any, logger: Logger, master_config: Any) -> None:
    timer = Timer()
    current_epoch = 0
    total_steps = 0
    for batch in add_ref_logprobs_to_data(train_dataloader, policy):
        with timer.time('total_step_time'):
            with timer.time('policy_training'):
                results = policy.train(batch, None)
            validate(policy, val_dataloader, None, None, total_steps + 1, master_config)
            with timer.time('checkpointing'):
                pass
        logger.log_metrics(results, total_steps + 1, prefix='train')
        timer.reset()
        total_steps += 1
        if total_steps >= master_config.dpo.max_num_steps:
            break
    current_epoch += 1
