# SPDX-License-Identifier: Apache-2.0
"""What a worker of Megatron has to have for generation: its policy's worker inherits it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any


class MegatronGenerationMixin:
    def _initialize_inference_engine(self, mcore_generation_config: Any) -> None:
        self.engine = object()

    def prepare_for_generation(self, tags: list[str] | None = None, **kwargs: Any) -> bool:
        self._initialize_inference_engine({})
        return True

    def finish_generation(self, *, release_gpu: bool = True) -> bool:
        return True

    def generate(self, *, data: Any, greedy: bool = False) -> dict[str, Any]:
        return {'generation_lengths': [3] * len(data['input_lengths'])}

    async def generate_async(self, data: Any, greedy: bool = False) -> AsyncGenerator[tuple[int, dict[str, Any]], None]:
        for index in range(len(data['input_lengths'])):
            yield index, {'generation_lengths': [3]}


class MegatronGenerationRefitMixin:
    def swap_weights_via_reshard(self, is_source: bool) -> bool:
        return is_source
