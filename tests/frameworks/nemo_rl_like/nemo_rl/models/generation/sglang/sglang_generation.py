# SPDX-License-Identifier: Apache-2.0
"""Generation by SGLang, as the driver sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from nemo_rl.distributed.batched_data_dict import BatchedDataDict


class SGLangGeneration:
    def __init__(self, cluster: Any, sglang_cfg: Any) -> None:
        self.sglang_cfg = sglang_cfg

    def generate(self, data: BatchedDataDict, greedy: bool = False) -> BatchedDataDict:
        return BatchedDataDict(output_ids=[[1] * 7] * data.size, generation_lengths=[3] * data.size)

    async def generate_async(
        self, data: BatchedDataDict, greedy: bool = False
    ) -> AsyncIterator[tuple[int, BatchedDataDict]]:
        for index in range(data.size):
            yield index, BatchedDataDict(generation_lengths=[3])
