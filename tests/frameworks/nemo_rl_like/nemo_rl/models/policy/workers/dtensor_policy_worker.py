# SPDX-License-Identifier: Apache-2.0
"""A worker of a policy, the first of its kind."""

from __future__ import annotations

from typing import Any

from nemo_rl.models.policy.workers.base_policy_worker import AbstractPolicyWorker


class DTensorPolicyWorkerImpl(AbstractPolicyWorker):
    def __init__(self, config: Any, tokenizer: Any, processor: Any = None, **kwargs: Any) -> None:
        self.cfg = config

    def train(
        self,
        data: Any,
        loss_fn: Any,
        eval_mode: bool = False,
        gbs: int | None = None,
        mbs: int | None = None,
        check_dim_skip_keys: Any = None,
    ) -> dict[str, Any]:
        return {'loss': 1.0}

    def get_logprobs(self, data: Any, micro_batch_size: int | None = None) -> list[float]:
        return [-1.0] * len(data['input_lengths'])

    def get_topk_logits(self, data: Any, k: int, micro_batch_size: int | None = None) -> list[float]:
        return [1.0] * k

    def save_checkpoint(
        self, weights_path: str, optimizer_path: str | None = None, tokenizer_path: str | None = None
    ) -> None:
        pass

    def prepare_for_training(self, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_for_lp_inference(self, keep_train_buffers: bool = False) -> None:
        pass

    def offload_before_refit(self) -> None:
        pass

    def offload_after_refit(self) -> None:
        pass

    def stream_weights_via_ipc_zmq(self, buffer_size_bytes: int = 0, kv_scales: Any = None) -> None:
        pass

    def broadcast_weights_for_collective(
        self, kv_scales: Any = None, *, buffer_size_bytes: int | None = None, num_buffers: int | None = None
    ) -> None:
        pass

    def score(self, data: Any) -> list[float]:
        return [0.0] * len(data['input_lengths'])
