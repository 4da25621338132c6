# SPDX-License-Identifier: Apache-2.0
"""A worker of a value model that Megatron trains."""

from __future__ import annotations

from typing import Any

from nemo_rl.models.policy.workers.base_policy_worker import AbstractPolicyWorker


class MegatronValueWorkerImpl(AbstractPolicyWorker):
    def __init__(self, config: Any, tokenizer: Any, *, worker_sharding_annotations: Any, **kwargs: Any) -> None:
        self.cfg = config

    def train(
        self, data: Any, loss_fn: Any, eval_mode: bool = False, gbs: int | None = None, mbs: int | None = None
    ) -> dict[str, Any]:
        return {'loss': 1.0}

    def get_values(self, data: Any, micro_batch_size: int | None = None) -> list[float]:
        return [0.0] * len(data['input_lengths'])

    def save_checkpoint(
        self, weights_path: str, optimizer_path: str | None = None, tokenizer_path: str | None = None, **kwargs: Any
    ) -> None:
        pass

    def prepare_for_training(self) -> None:
        pass

    def prepare_for_inference(self) -> None:
        pass
