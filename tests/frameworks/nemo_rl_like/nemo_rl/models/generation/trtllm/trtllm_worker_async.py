# SPDX-License-Identifier: Apache-2.0
"""A worker that generates with TensorRT-LLM."""

from __future__ import annotations

from typing import Any


class TrtllmAsyncGenerationWorkerImpl:
    def __init__(
        self, config: Any, bundle_indices: Any = None, fraction_of_gpus: float = 1.0, seed: Any = None
    ) -> None:
        self.cfg = config

    async def generate_async(self, data: Any, greedy: bool = False) -> dict[str, Any]:
        return {'generation_lengths': [3] * len(data['input_lengths'])}

    async def update_weights_via_ipc_zmq_async(self) -> bool:
        return True

    async def update_weights_from_collective_async(self, *, drain: bool = True, recompute_kv: bool = False) -> bool:
        return True

    async def sleep_async(self, **kwargs: Any) -> None:
        pass

    async def wake_up_async(self, **kwargs: Any) -> None:
        pass
