# SPDX-License-Identifier: Apache-2.0
"""A worker of a policy: the class that does the work, and the actor made of it."""

from __future__ import annotations

from typing import Any

import ray

from nemo_rl.models.policy.workers.base_policy_worker import AbstractPolicyWorker
from nemo_rl.utils.timer import Timer


class DTensorPolicyWorkerV2Impl(AbstractPolicyWorker):
    def __init__(self, config: Any) -> None:
        self.timer = Timer(context={'worker': 'dtensor_policy_v2'})
        self.steps = 0

    def train(self, data: Any, loss_fn: Any, eval_mode: bool = False) -> dict[str, Any]:
        self.timer.start('train')
        self.steps += not eval_mode
        loss = 1.0 / (1 + self.steps)
        self.timer.stop('train')
        return {'loss': loss, 'grad_norm': 0.5, 'lr': 1e-5}

    def get_logprobs(self, *, data: Any, micro_batch_size: int | None = None) -> list[float]:
        self.timer.start('get_logprobs')
        logprobs = [-1.0] * len(data['input_lengths'])
        self.timer.stop('get_logprobs')
        return logprobs

    def get_topk_logits(self, *, data: Any, k: int, micro_batch_size: int | None = None) -> list[float]:
        return [1.0] * len(data['input_lengths'])

    def save_checkpoint(self, weights_path: str) -> None:
        with open(weights_path, 'w') as file:
            file.write(str(self.steps))

    def prepare_for_training(self) -> None:
        pass

    def prepare_for_lp_inference(self) -> None:
        pass

    def offload_before_refit(self) -> None:
        pass

    def offload_after_refit(self) -> None:
        pass

    def stream_weights_via_ipc_zmq(self, buffer_size_bytes: int = 0, kv_scales: Any = None) -> None:
        pass

    def stream_weights_via_http(self, rollout_engine_urls: list[str], buffer_size_bytes: int) -> None:
        pass

    def broadcast_weights_for_collective(
        self, kv_scales: Any = None, *, buffer_size_bytes: int | None = None, num_buffers: int | None = None
    ) -> None:
        pass

    def score(self, data: Any) -> list[float]:
        return [0.0] * len(data['input_lengths'])


@ray.remote
class DTensorPolicyWorkerV2(DTensorPolicyWorkerV2Impl):
    pass
