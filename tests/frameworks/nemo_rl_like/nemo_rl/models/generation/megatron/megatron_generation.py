# SPDX-License-Identifier: Apache-2.0
"""Generation by Megatron's own engine, as the driver sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from nemo_rl.distributed.batched_data_dict import BatchedDataDict


class MegatronGeneration:
    def __init__(self, config: Any, tokenizer: Any, cluster: Any = None, policy: Any = None) -> None:
        self.cfg = config

    def generate(self, data: BatchedDataDict, greedy: bool = False) -> BatchedDataDict:
        return BatchedDataDict(output_ids=[[1] * 7] * data.size, generation_lengths=[3] * data.size)

    async def generate_async(
        self, data: BatchedDataDict, greedy: bool = False
    ) -> AsyncIterator[tuple[int, BatchedDataDict]]:
        for index in range(data.size):
            yield index, BatchedDataDict(generation_lengths=[3])
