# SPDX-License-Identifier: Apache-2.0
"""A worker that generates sample by sample."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from nemo_rl.models.generation.vllm.vllm_worker import BaseVllmGenerationWorker


class VllmAsyncGenerationWorkerImpl(BaseVllmGenerationWorker):
    async def generate_async(self, data: Any, greedy: bool = False) -> AsyncGenerator[tuple[int, dict[str, Any]], None]:
        for index in range(len(data['input_lengths'])):
            yield index, {'generation_lengths': [3]}

    async def generate_text_async(
        self, data: Any, greedy: bool = False
    ) -> AsyncGenerator[tuple[int, dict[str, Any]], None]:
        for index in range(len(data['input_lengths'])):
            yield index, {'texts': ['x']}

    async def update_weights_via_ipc_zmq_async(self) -> bool:
        return True

    async def update_weights_from_collective_async(self) -> bool:
        return True

    async def nccl_reshard_refit_async(self) -> bool:
        return True

    async def sleep_async(self) -> None:
        pass

    async def wake_up_async(self, **kwargs: Any) -> None:
        pass
