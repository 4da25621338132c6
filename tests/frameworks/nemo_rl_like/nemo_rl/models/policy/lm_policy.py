# SPDX-License-Identifier: Apache-2.0
"""The policy, as the driver sees it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from nemo_rl.distributed.worker_groups import RayWorkerGroup
from nemo_rl.utils.timer import Timer

WORKER = 'nemo_rl.models.policy.workers.dtensor_policy_worker_v2.DTensorPolicyWorkerV2'


class Policy:
    def __init__(self, config: Any, name_prefix: str = 'lm_policy', workers: Any = None) -> None:
        self.cfg = config
        self.worker_group = workers or RayWorkerGroup(WORKER, config['workers'], name_prefix, config=dict(config))

    def get_logprobs(self, data: Any, micro_batch_size: int | None = None, timer: Timer | None = None) -> list[float]:
        with timer.time('get_logprobs/shard_data') if timer else nullcontext():
            pass
        with timer.time('get_logprobs/submit_logprob_futures') if timer else nullcontext():
            return self.worker_group.run_all_workers_single_data('get_logprobs', data=data)[0]

    def get_reference_policy_logprobs(
        self, data: Any, micro_batch_size: int | None = None, timer: Timer | None = None
    ) -> list[float]:
        return self.worker_group.run_all_workers_single_data('get_reference_policy_logprobs', data=data)[0]

    def get_topk_logits(self, data: Any, k: int, timer: Timer | None = None) -> list[float]:
        return self.worker_group.run_all_workers_single_data('get_topk_logits', data=data, k=k)[0]

    def train(self, data: Any, loss_fn: Any, eval_mode: bool = False, timer: Timer | None = None) -> dict[str, Any]:
        with timer.time('policy_training/sharding_data') if timer else nullcontext():
            pass
        with timer.time('policy_training/submit_training_futures') if timer else nullcontext():
            return self.worker_group.run_all_workers_single_data(
                'train', data=data, loss_fn=loss_fn, eval_mode=eval_mode
            )[0]

    def prepare_for_training(self) -> None:
        self.worker_group.run_all_workers_single_data('prepare_for_training')

    def prepare_for_lp_inference(self) -> None:
        self.worker_group.run_all_workers_single_data('prepare_for_lp_inference')

    def save_checkpoint(self, weights_path: str) -> None:
        self.worker_group.run_all_workers_single_data('save_checkpoint', weights_path=weights_path)

    def shutdown(self) -> None:
        self.worker_group.shutdown()
